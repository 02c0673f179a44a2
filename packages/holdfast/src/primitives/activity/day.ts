import { types } from 'node:util'
import { invalid, show } from '../../input/index.js'
import { instantMs } from '../time.js'

/** A day of UTC: `2026-07-02`, or any moment of it. */
export type Day = string | Date

export const DAY_MS = 86_400_000
const FORM = /^\d{4}-\d\d-\d\d$/

/** As it begins, in ms. Default today. */
export function dayMs(name: string, value: unknown, now: () => number): number {
  if (value === undefined || types.isDate(value)) {
    const ms = instantMs(name, value, now)
    return ms - (ms % DAY_MS)
  }
  if (typeof value !== 'string') throw invalid(name, 'a Date or a day like 2026-07-02', show(value))
  const ms = FORM.test(value) ? Date.parse(`${value}T00:00:00.000Z`) : Number.NaN
  // 2026-02-30 is read as a day of March by some.
  if (!(ms >= 0) || dayOf(ms) !== value) throw invalid(name, 'a day from 1970-01-01 to 9999-12-31', 'another text')
  return ms
}

export const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)
