import type { Clock } from '../engine/index.js'

/** Who has which shard, kept in Postgres: one process audits a shard at a time. */
export interface Leases {
  claim(shard: number | null, holder: string, leaseMs: number, everyMs: number): Promise<number | null>
  renew(shard: number, holder: string, leaseMs: number): Promise<boolean>
  release(shard: number, holder: string, done: boolean): Promise<void>
}

export interface LeaseParts {
  readonly leases: Leases
  readonly clock: Clock
  /** Unique to this process. */
  readonly holder: string
  /** Default 30 s. */
  readonly leaseMs?: number
}

const LEASE_MS = 30_000
const RENEWALS = 3

/** It was not renewed in time, or somebody else has the shard by now. What was found until then stands; the rest is theirs. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost'
}

/**
 * Works on a shard while it is this process's: the signal fires when that is over, or when `stop` does. Returns null when there is no
 * shard to be had.
 */
export async function underLease<T>(
  { leases, clock, holder, leaseMs = LEASE_MS }: LeaseParts,
  { shard, everyMs, stop }: { shard: number | null; everyMs: number; stop: AbortSignal },
  work: (shard: number, signal: AbortSignal) => Promise<T>,
): Promise<T | null> {
  const askedAt = clock.now()
  const taken = await leases.claim(shard, holder, leaseMs, everyMs)
  if (taken === null) return null
  const over = new AbortController()
  const end = (): void => over.abort(stop.reason)
  stop.addEventListener('abort', end, { once: true })
  let until = askedAt + leaseMs
  let cancel = (): void => {}
  const watch = (): void => {
    cancel = clock.after(leaseMs / RENEWALS, () => void renew(), true)
  }
  const renew = async (): Promise<void> => {
    const from = clock.now()
    // An answer that does not come says nothing: it is asked again, until the time is over by our own clock.
    const held = from < until ? await leases.renew(taken, holder, leaseMs).catch(() => null) : false
    if (over.signal.aborted) return
    if (held) until = from + leaseMs
    if (held === false || clock.now() >= until)
      over.abort(new LeaseLost(`The audit of shard ${taken} is another process's`))
    else watch()
  }
  watch()
  let done = false
  try {
    const result = await work(taken, over.signal)
    done = true
    return result
  } finally {
    cancel()
    stop.removeEventListener('abort', end)
    over.abort()
    await leases.release(taken, holder, done).catch(() => {})
  }
}
