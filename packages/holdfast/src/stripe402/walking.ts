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

/** So many at once. The first failure ends it, once those that were begun are over. */
export async function eachOf<T>(all: AsyncIterable<T>, atOnce: number, work: (one: T) => Promise<void>): Promise<void> {
  const running = new Set<Promise<void>>()
  const failures: unknown[] = []
  const begin = (one: T): void => {
    const under: Promise<void> = work(one)
      .catch((error: unknown) => void failures.push(error))
      .finally(() => running.delete(under))
    running.add(under)
  }
  try {
    for await (const one of all) {
      begin(one)
      if (running.size >= atOnce) await Promise.race(running)
      if (failures.length > 0) break
    }
  } finally {
    await Promise.all(running)
  }
  if (failures.length > 0) throw failures[0]
}
