import { flag, integer, invalid, namesOf, oneOf, options as optionsOf, show } from '../../input/index.js'
import type { Retry } from '../../lock/index.js'
import { durationMs, TIMER_MAX_MS } from '../keys.js'

/** Where tokens come from. */
export type TokenSource = 'postgres' | 'redis'

export interface LeaseRetry {
  /** How many tries come after the first. */
  readonly times: number
  /** The first wait is this or half of it, by chance, and each further one twice as long. Default 100. */
  readonly baseMs?: number
  /** No wait is longer. Default 2,000. */
  readonly capMs?: number
  /** No try begins later. Default: as long as the tries take. */
  readonly maxWaitMs?: number
}

export interface LeaseTerms {
  /** How long others wait when this process dies: 50 ms to a day. Default 5 s. */
  readonly ttlMs?: number
  /** Renewed by itself, each third of `ttlMs`. Default true; false: only by `renew`. */
  readonly autoRenew?: boolean
  /** It is not renewed beyond this: then it is lost. At least `ttlMs`. Default ten minutes, or `ttlMs`. */
  readonly heldMaxMs?: number
  /** When somebody else has it. Default `'none'`. */
  readonly retry?: 'none' | LeaseRetry
}

export interface LeasesOptions extends LeaseTerms {
  /**
   * `postgres`: tokens grow for good, whatever Redis forgets. `redis`: a round trip less, but they may go back when Redis loses its memory and
   * the clock of the server that goes on is behind. Default: `postgres` where one is connected, otherwise `redis`.
   */
  readonly tokens?: TokenSource
}

export interface AcquireOptions extends LeaseTerms {
  /** Ends the waiting, and then fires the signal of the lease. */
  readonly signal?: AbortSignal
}

export interface CheckedTerms {
  readonly ttlMs: number
  readonly autoRenew: boolean
  readonly heldMaxMs: number
  readonly retry: Retry | null
}

const TERM_NAMES = namesOf<LeaseTerms>({ ttlMs: true, autoRenew: true, heldMaxMs: true, retry: true })
export const LEASES_NAMES = new Set([...TERM_NAMES, ...namesOf<Pick<LeasesOptions, 'tokens'>>({ tokens: true })])
export const ACQUIRE_NAMES = new Set([...TERM_NAMES, ...namesOf<Pick<AcquireOptions, 'signal'>>({ signal: true })])
const RETRY_NAMES = namesOf<LeaseRetry>({ times: true, baseMs: true, capMs: true, maxWaitMs: true })

/** Renewing takes a round trip every third of it. */
const TTL_MIN_MS = 50
export const TERMS: CheckedTerms = { ttlMs: 5_000, autoRenew: true, heldMaxMs: 10 * 60 * 1_000, retry: null }
const TIMES_MAX = 10_000
const BASE_DEFAULT_MS = 100
const CAP_DEFAULT_MS = 2_000

/** What is not given is as in `defaults`. */
export function checkTerms<T extends CheckedTerms>(given: unknown, defaults: T): T {
  const { ttlMs, autoRenew, heldMaxMs, retry } = optionsOf('options', given)
  if (ttlMs === undefined && autoRenew === undefined && heldMaxMs === undefined && retry === undefined) return defaults
  const ttl = ttlMs === undefined ? defaults.ttlMs : durationMs('ttlMs', ttlMs, TTL_MIN_MS, TIMER_MAX_MS)
  return {
    ...defaults,
    ttlMs: ttl,
    autoRenew: autoRenew === undefined ? defaults.autoRenew : flag('autoRenew', autoRenew),
    heldMaxMs: heldMaxMs === undefined ? Math.max(defaults.heldMaxMs, ttl) : durationMs('heldMaxMs', heldMaxMs, ttl),
    retry: retry === undefined ? defaults.retry : checkRetry(retry),
  }
}

function checkRetry(given: unknown): Retry | null {
  if (given === 'none') return null
  if (typeof given !== 'object' || given === null) throw invalid('retry', "'none' or { times }", show(given))
  const asked = optionsOf('retry', given, RETRY_NAMES)
  const { times, baseMs = BASE_DEFAULT_MS, capMs = CAP_DEFAULT_MS, maxWaitMs } = asked
  const base = durationMs('retry.baseMs', baseMs, 1, TIMER_MAX_MS)
  return {
    times: integer('retry.times', times, 1, TIMES_MAX),
    baseMs: base,
    capMs: Math.max(base, durationMs('retry.capMs', capMs, 1, TIMER_MAX_MS)),
    maxWaitMs: maxWaitMs === undefined ? Number.POSITIVE_INFINITY : durationMs('retry.maxWaitMs', maxWaitMs),
  }
}

export const checkTokens = (given: unknown, hasPostgres: boolean): TokenSource =>
  given === undefined ? (hasPostgres ? 'postgres' : 'redis') : oneOf('tokens', given, ['postgres', 'redis'])
