import { HoldfastError } from '../../errors/index.js'

/** Gives the value, from wherever it is slow to get. `signal` fires when it takes too long, or is somebody else's to load by now. */
export type Load<T> = (given: { readonly signal: AbortSignal }) => T | Promise<T>

/** One load: not waited for any longer than it may take, or than it is ours to do. */
export async function runLoad<T>(load: Load<T>, loadMaxMs: number, lost: AbortSignal): Promise<T> {
  const over = new AbortController()
  let stop = (_: unknown) => {}
  const stopped = new Promise<never>((_, reject) => {
    stop = (reason) => {
      over.abort(reason)
      reject(reason)
    }
  })
  const onLost = () => stop(lost.reason)
  const onLate = () => stop(new HoldfastError('timeout', `load: expected a value within ${loadMaxMs} ms, got none`))
  const timer = setTimeout(onLate, loadMaxMs)
  lost.addEventListener('abort', onLost, { once: true })
  try {
    return await Promise.race([(async () => load({ signal: over.signal }))(), stopped])
  } finally {
    clearTimeout(timer)
    lost.removeEventListener('abort', onLost)
  }
}
