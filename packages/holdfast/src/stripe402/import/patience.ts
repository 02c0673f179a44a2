import { HoldfastError } from '../../errors/index.js'
import { stopIfAborted } from '../walking.js'

/** Servers may restart meanwhile: for so long it is tried again. */
const PATIENCE_MS = 60_000
const PAUSE_MS = 250

/** For what is safe to try again, whatever became of it: `retry` tells that it was tried before. */
export async function patiently<T>(work: (retry: boolean) => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  const giveUpAt = performance.now() + PATIENCE_MS
  for (let tries = 1; ; tries += 1) {
    try {
      return await work(tries > 1)
    } catch (error) {
      const passes = HoldfastError.is(error) && error.retryable && error.code !== 'aborted'
      if (!passes || performance.now() > giveUpAt) throw error
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
      stopIfAborted(signal)
    }
  }
}
