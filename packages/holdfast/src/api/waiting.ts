import { onAbort } from '../engine/index.js'
import { HoldfastError } from '../errors/index.js'
import * as check from './validate.js'

/** How long a caller waits for an answer. */
export interface WaitOptions {
  /** How long to wait, ms. Default: that of `connect`. */
  readonly timeout?: number
  /** Ends the waiting when it fires, with `aborted`. */
  readonly signal?: AbortSignal
}

export const WAIT_NAMES = check.namesOf<WaitOptions>({ timeout: true, signal: true })

/** Ends the waiting when the time is up or the caller says so; `stop` then tells the work that nobody wants it any more. */
export async function within<T>(
  defaultMs: number,
  options: Record<string, unknown>,
  work: (stop: AbortSignal) => Promise<T>,
): Promise<T> {
  const timeoutMs = check.timeoutMs(options.timeout) ?? defaultMs
  const signal = check.signal(options.signal)
  if (signal?.aborted) throw new HoldfastError('aborted', 'The caller had stopped waiting before it began')
  const stop = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let stopListening: (() => void) | undefined
  const stopped = new Promise<never>((_, reject) => {
    const end = (error: HoldfastError) => {
      // In this order: what the work makes of being stopped is not what the caller hears.
      reject(error)
      stop.abort(error)
    }
    timer = setTimeout(
      () => end(new HoldfastError('timeout', `No answer within ${timeoutMs} ms`, { timeoutMs })),
      timeoutMs,
    )
    stopListening = signal && onAbort(signal, () => end(new HoldfastError('aborted', 'The caller stopped waiting')))
  })
  try {
    return await Promise.race([work(stop.signal), stopped])
  } finally {
    clearTimeout(timer)
    stopListening?.()
  }
}
