import { types } from 'node:util'
import { invalid, show } from '../input/index.js'

/** Years with four digits: beyond them labels and keys would have another length. */
const INSTANT_MAX_MS = Date.parse('9999-12-31T23:59:59.999Z')

/** Of a Date that was given, or of the clock. */
export const instantMs = (name: string, value: unknown, now: () => number): number =>
  value === undefined ? clockMs(now()) : dateMs(name, value)

/** Of a Date that was given, or nothing: the script then asks the server's clock, as `primitives/clock.lua` says. */
export const instantArg = (name: string, value: unknown): number | '' =>
  value === undefined ? '' : dateMs(name, value)

function clockMs(value: unknown): number {
  if (typeof value === 'number' && value >= 0 && value <= INSTANT_MAX_MS) return Math.floor(value)
  throw invalid('now', 'milliseconds of the years 1970 to 9999', show(value))
}

function dateMs(name: string, value: unknown): number {
  // Not `instanceof`: a date of another realm (a test runner's) is a date too.
  if (!types.isDate(value)) throw invalid(name, 'a Date', show(value))
  const ms = value.getTime()
  if (!(ms >= 0 && ms <= INSTANT_MAX_MS)) {
    throw invalid(
      name,
      'a Date of the years 1970 to 9999',
      Number.isNaN(ms) ? 'an invalid Date' : 'one outside of them',
    )
  }
  return ms
}
