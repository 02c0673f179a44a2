/** Waits grow from `baseMs`, doubling, up to `capMs`. */
export interface Backoff {
  readonly baseMs: number
  readonly capMs: number
}

/**
 * How long to wait before the retry number `retry` (from 1). The upper half of the wait is random: processes that lost
 * the same server at the same moment must not come back at the same moment.
 */
export function backoffMs(retry: number, { baseMs, capMs }: Backoff): number {
  const waitMs = Math.min(capMs, baseMs * 2 ** Math.min(retry - 1, 30))
  return Math.ceil(waitMs * (0.5 + Math.random() * 0.5))
}
