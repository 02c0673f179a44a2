/** Something needed at the start is not there or does not fit. The message is for the person at the terminal. */
export class StartError extends Error {
  override readonly name = 'StartError'
}
