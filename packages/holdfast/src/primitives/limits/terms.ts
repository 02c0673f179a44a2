import { amount, integer, invalid } from '../../input/index.js'
import { durationMs } from '../keys.js'

/** A limit in the words of `lua/primitives/limits.lua`. */
export interface Terms {
  /** The most that can be used of it. */
  readonly max: number
  readonly text: string
  /** Tells the keys of limits apart that can't read each other's values. */
  readonly part: string
}

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
const FULL_MAX_MS = 400 * DAY_MS
const MAX = Number.MAX_SAFE_INTEGER
/** Up to this length the script weighs any count exactly: its square is below 2^53. */
const EXACT_MS = Math.floor(Math.sqrt(MAX))
/** A log has an entry for each call that it let through. */
const LOG_MAX = 10_000

type Given = Readonly<Record<string, unknown>>

const bufferOf = ({ bufferMs = MINUTE_MS }: Given): number => durationMs('bufferMs', bufferMs, 0)

/** Parts of a token, and how many of them come back in a ms: the smallest whole numbers in which the rate can be told. */
export function bucketTerms(given: Given): Terms {
  const capacity = amount('capacity', given.capacity, 1)
  const refill = amount('refill', given.refill ?? capacity, 1)
  const refillMs = durationMs('refillMs', given.refillMs)
  const shared = commonDivisor(refill, refillMs)
  const rate = refill / shared
  const parts = refillMs / shared
  if (capacity > MAX / parts) {
    throw invalid('capacity', `at most ${Math.floor(MAX / parts)} tokens at this rate`, String(capacity))
  }
  const fullMs = Math.ceil((capacity * parts) / rate)
  if (fullMs > FULL_MAX_MS) {
    throw invalid('capacity', 'to be full again within 400 days', `${Math.ceil(fullMs / DAY_MS)} days`)
  }
  return { max: capacity, text: `bucket ${capacity} ${parts} ${rate} ${bufferOf(given)}`, part: 'bucket' }
}

/** Up to where the part of a window that still counts is exact. */
const countMax = (windowMs: number): number => (windowMs <= EXACT_MS ? MAX : Math.floor(MAX / windowMs))

export function slidingTerms(given: Given): Terms {
  const windowMs = durationMs('windowMs', given.windowMs)
  const max = integer('limit', given.limit, 1, countMax(windowMs))
  return { max, text: `sliding ${max} ${windowMs} 0 ${bufferOf(given)}`, part: `sliding:${windowMs}` }
}

/** Where there is no limit it is as high as can be. */
export const countingTerms = (given: Given): Terms =>
  slidingTerms({ ...given, limit: given.limit ?? countMax(durationMs('windowMs', given.windowMs)) })

export function logTerms(given: Given): Terms {
  const windowMs = durationMs('windowMs', given.windowMs)
  const max = integer('limit', given.limit, 1, LOG_MAX)
  return { max, text: `log ${max} ${windowMs} 0 ${bufferOf(given)}`, part: `log:${windowMs}` }
}

export function fixedTerms(given: Given): Terms {
  const windowMs = durationMs('windowMs', given.windowMs)
  const max = amount('limit', given.limit, 1)
  return { max, text: `fixed ${max} ${windowMs} 0 ${bufferOf(given)}`, part: `fixed:${windowMs}` }
}

function commonDivisor(a: number, b: number): number {
  return b === 0 ? a : commonDivisor(b, a % b)
}
