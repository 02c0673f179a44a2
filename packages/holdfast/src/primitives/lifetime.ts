import { invalid, show } from '../input/index.js'
import { durationMs, type Purpose } from './keys.js'

/** How long what is written stays: in ms from then, or `none` for what is to stay on purpose. There is no default: leaks begin with one. */
export type Lifetime = number | 'none'

/** Primitives that can be asked for keys with an end and for keys without one. */
type WithChoice = Extract<Purpose, `${string}-lasting`> extends `${infer Name}-lasting` ? Name & Purpose : never

export function lifetime(name: string, value: unknown): Lifetime {
  if (value === 'none') return value
  if (typeof value !== 'number') throw invalid(name, "milliseconds, or 'none' for what is to stay", show(value))
  return durationMs(name, value)
}

/** Those without an end have a purpose of their own, so that the sampler misses it only where there should be one. */
export const purposeFor = (purpose: WithChoice, ttlMs: Lifetime): WithChoice | `${WithChoice}-lasting` =>
  ttlMs === 'none' ? `${purpose}-lasting` : purpose
