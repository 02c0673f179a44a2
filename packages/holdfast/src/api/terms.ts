import type { HoldfastError } from '../errors/index.js'
import { MAX_AMOUNT, type Meter, type Terms } from '../machine/index.js'
import { OPERATION_NAMES, type OperationOptions, type Own } from './tenant.js'
import * as check from './validate.js'

interface SessionTerms extends OperationOptions {
  /** The price of a period, or of a unit: a whole number, 1 or more. Where units differ in price, let one cost 1 and count money. */
  readonly rate: number
  /** How much must be there to begin, `creditLimit` included. Default: `rate`. */
  readonly minimum?: number
  /** Without a tick for so long (ms) the session ends with what was charged. Default: 60 s, or twice `per` where that is longer. */
  readonly heartbeat?: number
  /** When more than this share of all that was reserved is used, more is reserved. In hundredths, up to 1. Default 0.8. */
  readonly extendAt?: number
}

export interface TimeTerms extends SessionTerms {
  /** What is counted: time. */
  readonly by: 'time'
  /** How long a period is, ms. */
  readonly per: number
  /** How many ms are reserved at a time; rounded up to whole periods, unless they are prorated. */
  readonly reserve: number
  /** Which periods are charged: those that have begun, those that are over, or every part of one. Default `started`. */
  readonly rounding?: 'started' | 'completed' | 'prorated'
}

export interface UnitTerms extends SessionTerms {
  /** What is counted: units. */
  readonly by: 'units'
  /** How many units are reserved at a time. */
  readonly reserve: number
}

export type MeterOptions = TimeTerms | UnitTerms

export const METER_NAMES = new Set([
  ...OPERATION_NAMES,
  ...check.namesOf<Own<TimeTerms>>({
    by: true,
    rate: true,
    per: true,
    reserve: true,
    rounding: true,
    minimum: true,
    heartbeat: true,
    extendAt: true,
  }),
])

const HEARTBEAT_MS = 60_000
const EXTEND_AT = 0.8

/** What the caller wants, in the words of the machine. Nothing of it can overflow later: that is refused here. */
export function meterOf(given: unknown): Meter {
  const options = check.options('options', given, METER_NAMES)
  const by = check.oneOf('by', options.by, ['time', 'units'] as const)
  const rate = check.amount('rate', options.rate, 1)
  const counted = by === 'time' ? byTime(options, rate) : byUnits(options, rate)
  const { heartbeat = Math.min(check.TTL_MAX_MS, Math.max(HEARTBEAT_MS, 2 * counted.perMs)) } = options
  return {
    ...counted,
    rate,
    extendAtPercent: percent(options.extendAt ?? EXTEND_AT),
    heartbeatMs: check.integer('heartbeat', heartbeat, 1, check.TTL_MAX_MS),
    measure: check.amount('minimum', options.minimum === undefined ? rate : options.minimum, 1),
  }
}

type Counted = Pick<Terms, 'counting' | 'perMs' | 'stretch'>

function byTime(options: Record<string, unknown>, rate: number): Counted {
  const { rounding = 'started' } = options
  const counting = check.oneOf('rounding', rounding, ['started', 'completed', 'prorated'] as const)
  const perMs = check.integer('per', options.per, 1, check.TTL_MAX_MS)
  const reserveMs = check.integer('reserve', options.reserve, 1, check.TTL_MAX_MS)
  if (rate * perMs > MAX_AMOUNT) throw tooLarge('rate times per', rate * perMs, 'rate')
  const periods = Math.floor(reserveMs / perMs)
  const restMs = reserveMs - periods * perMs
  const rest = counting === 'prorated' ? Math.ceil((restMs * rate) / perMs) : restMs > 0 ? rate : 0
  return { counting, perMs, stretch: atMost('reserve', periods * rate + rest) }
}

function byUnits(options: Record<string, unknown>, rate: number): Counted {
  for (const name of ['per', 'rounding']) {
    if (options[name] !== undefined) throw check.invalid(name, "none with by: 'units'", 'one')
  }
  const units = check.integer('reserve', options.reserve, 1, MAX_AMOUNT)
  return { counting: 'units', perMs: 0, stretch: atMost('reserve', units * rate) }
}

function percent(share: unknown): number {
  const hundredths = typeof share === 'number' ? Math.round(share * 100) : Number.NaN
  // 0.29 × 100 is not quite 29.
  if (hundredths >= 1 && hundredths <= 100 && hundredths / 100 === share) return hundredths
  throw check.invalid('extendAt', 'hundredths from 0.01 to 1', check.show(share))
}

function atMost(name: string, money: number): number {
  if (money > MAX_AMOUNT) throw tooLarge(name, money)
  return money
}

function tooLarge(name: string, money: number, argument = name): HoldfastError {
  return check.invalidAmount(name, `at most ${MAX_AMOUNT} in all`, `${money}`, argument)
}
