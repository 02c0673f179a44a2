import { type HoldState, MAX_AMOUNT, type Meter, type Terms } from './types.js'

/**
 * Metered sessions: what a tick reserves and charges. The twin of `lua/wallet/meter.lua`.
 *
 *     reserved   ├──────── stretch ────────┼──────── stretch ────────┤   always whole stretches, unless the money was short
 *     due        ├───────────────────▶┊                                  past 80 %: the next stretch is reserved in the same step
 *
 * Everything follows from the total that is due and from what the hold says. So a tick that comes twice, late, or from two places at
 * once adds nothing, and two that cross the line together reserve one stretch.
 */

/** What the session costs up to now, all of it. Nothing on the way passes 2^53: `rate` × `perMs` is checked to be below. */
function totalDue({ counting, rate, perMs, measure }: Meter, now: number): number {
  if (counting === 'units') return Math.min(MAX_AMOUNT, rate * measure)
  const elapsedMs = Math.max(0, now - measure)
  const periods = Math.floor(elapsedMs / perMs)
  const restMs = elapsedMs - periods * perMs
  let due = periods * rate
  if (counting === 'prorated') due += Math.floor((restMs * rate) / perMs)
  else if (counting === 'started' && (restMs > 0 || periods === 0)) due += rate
  return Math.min(MAX_AMOUNT, due)
}

/** What should be reserved in all when so much is used: whole stretches, so many that the used share is not passed. */
function wanted({ stretch, extendAtPercent }: Terms, amount: number, used: number): number {
  const stretches = Math.max(Math.ceil(amount / stretch), Math.ceil((used * 100) / (stretch * extendAtPercent)))
  return Math.min(MAX_AMOUNT, stretch * stretches)
}

/** Never less than was charged before: a total that goes down gives nothing back. */
export function usedBy(meter: Meter, captured: number, now: number): number {
  return Math.max(captured, totalDue(meter, now))
}

/** What a tick adds to the hold, as far as it may be spent, and what it charges out of it. */
export function meterTick(meter: Meter, hold: HoldState, spendable: number, now: number) {
  const used = usedBy(meter, hold.captured, now)
  const more = Math.min(wanted(meter, hold.amount, used) - hold.amount, spendable)
  return { more, charge: Math.min(used - hold.captured, hold.left + more) }
}

/** The same for the end: only what is due is added, because nothing comes after it. */
export function meterEnd(meter: Meter, hold: HoldState, spendable: number, now: number) {
  const due = usedBy(meter, hold.captured, now) - hold.captured
  const more = Math.max(0, Math.min(due - hold.left, spendable, MAX_AMOUNT - hold.amount))
  return { more, charge: Math.min(due, hold.left + more) }
}

/** Is less reserved than there should be? Then there was no more money for it. */
export function isShort(terms: Terms, amount: number, used: number): boolean {
  return amount < wanted(terms, amount, used)
}

/** Terms and measure as part of `params`, in a fixed order: what Lua decides by, and what a journal shows. */
export function meterParams(meter: Meter): string {
  const { counting, rate, perMs, stretch, extendAtPercent, heartbeatMs, measure } = meter
  return `${counting} ${rate} ${perMs} ${stretch} ${extendAtPercent} ${heartbeatMs} ${measure}`
}

const PARAMS = /^(?:meter|tick|end) (started|completed|prorated|units) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)$/

/** Back from `params`; null for those of anything else. */
export function readMeter(params: string): Meter | null {
  const match = PARAMS.exec(params)
  if (!match) return null
  const [rate, perMs, stretch, extendAtPercent, heartbeatMs, measure] = match.slice(2).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  return { counting: match[1] as Meter['counting'], rate, perMs, stretch, extendAtPercent, heartbeatMs, measure }
}
