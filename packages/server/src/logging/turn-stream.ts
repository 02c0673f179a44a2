import { type DestinationStream, destination } from 'pino'

/**
 * Standard error, written once a turn of the event loop instead of once a line: under load many requests end in one. Nothing waits longer
 * than that turn, and what it still holds when the process exits is written then.
 */
export function turnStream(): DestinationStream & { flushSync(): void } {
  const file = destination({ fd: 2, sync: true })
  let lines = ''
  const flushSync = (): void => {
    if (lines === '') return
    const text = lines
    lines = ''
    file.write(text)
  }
  process.on('exit', flushSync)
  return {
    write(line) {
      if (lines === '') setImmediate(flushSync)
      lines += line
    },
    flushSync,
  }
}
