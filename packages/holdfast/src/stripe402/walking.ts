import { HoldfastError } from '../errors/index.js'

/** One, or none: what can't be read is told to who wants to know, and thrown where nobody does. */
export function unlessDamaged<T>(read: () => T, note: ((error: Error) => void) | undefined): T[] {
  try {
    return [read()]
  } catch (error) {
    if (!note || !HoldfastError.is(error, 'client_damaged')) throw error
    note(error)
    return []
  }
}

export function stopIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new HoldfastError('aborted')
}
