import type { Lease } from '../lock/index.js'
import type { Tenant } from './tenant.js'
import * as check from './validate.js'
import { type WaitOptions, within } from './waiting.js'

const TTL_DEFAULT_MS = 5_000
/** Renewing takes a round trip every third of it. */
const TTL_MIN_MS = 100
const TTL_MAX_MS = 600_000

export interface ExclusiveOptions extends WaitOptions {
  /** How long others wait when this process dies, ms: 100 to 600,000. While it lives, the lock is renewed. Default 5,000. */
  readonly ttl?: number
}

const EXCLUSIVE_NAMES = check.namesOf<ExclusiveOptions>({ ttl: true, timeout: true, signal: true })

/** What work under a lock gets. */
export interface Lock {
  /** Grows from one holder to the next. What you write to can refuse a smaller one than it has seen: that came too late. */
  readonly token: number
  /** Fires when the lock is lost, or when the signal that was given fires. */
  readonly signal: AbortSignal
}

export async function runExclusive<T>(
  { keys, locks, timeoutMs }: Tenant,
  walletId: string,
  work: (lock: Lock) => T | Promise<T>,
  given: unknown,
): Promise<T> {
  if (typeof work !== 'function') throw check.invalid('work', 'a function', `a ${typeof work}`)
  const options = check.options('options', given, EXCLUSIVE_NAMES)
  const ttlMs = options.ttl === undefined ? TTL_DEFAULT_MS : check.integer('ttl', options.ttl, TTL_MIN_MS, TTL_MAX_MS)
  const signal = check.signal(options.signal)
  let taking: Promise<Lease> | undefined
  let lease: Lease
  try {
    lease = await within(timeoutMs, options, (stop) => {
      taking = locks.take(keys.lock(walletId), ttlMs, stop, signal)
      return taking
    })
  } catch (error) {
    // Whoever stopped waiting must not keep what may still come.
    taking?.then(
      (late) => late.release(),
      () => {},
    )
    throw error
  }
  try {
    return await work({ token: lease.token, signal: lease.signal })
  } finally {
    await lease.release()
  }
}
