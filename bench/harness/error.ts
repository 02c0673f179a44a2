/** For the person at the terminal: the message is all that is printed. */
export class BenchError extends Error {}
