/** A private server could not be started or stopped. The message is meant for the person at the terminal: no stack needed. */
export class ServicesError extends Error {
  override readonly name = 'ServicesError'
}
