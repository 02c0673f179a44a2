import { createHash } from 'node:crypto'
import type { FlagCondition, FlagFacts, FlagRule, FlagScalar } from './definition.js'

export type FlagAttributes = Readonly<Record<string, FlagScalar | null | undefined>>

/** Why the answer is what it is. The first that applies, in this order, after what a process knows of its flags at all. */
export type FlagReason =
  /** The kill switch, which beats everything below. */
  | 'killed'
  /** It is off for everybody. */
  | 'off'
  /** A rule is about this subject. */
  | 'rule'
  /** No rule is, so the percentage of the flag decides. */
  | 'percentage'
  /** There is no flag of that name: the default. */
  | 'unknown'
  /** No flags were read yet, or for longer than is allowed: the default. */
  | 'unread'
  | 'too_old'

export interface Verdict {
  readonly on: boolean
  readonly because: FlagReason
  /** Which rule decided, from 0. */
  readonly rule: number | null
  /** For how much of the subjects it is on, where that was asked. */
  readonly percentage: number | null
  /** Where the subject stands: it is on where that is less than the percentage. Null: nobody had to know, or no subject was given. */
  readonly place: number | null
}

/** Pure: the same flag, subject and attributes give the same verdict everywhere. */
export function judge(flag: FlagFacts, subject: string | undefined, attributes: FlagAttributes): Verdict {
  if (flag.killed) return decided(false, 'killed')
  if (!flag.on) return decided(false, 'off')
  const rule = flag.rules.findIndex(({ when }) => when.every((condition) => holds(condition, attributes)))
  const share = rule < 0 ? flag.percentage : shareOf(flag.rules[rule] as FlagRule)
  const facts = { because: rule < 0 ? 'percentage' : 'rule', rule: rule < 0 ? null : rule, percentage: share } as const
  if (share === 0 || share === 100) return { on: share === 100, ...facts, place: null }
  // Without a subject there is nothing to be among the percentage with.
  if (subject === undefined) return { on: false, ...facts, place: null }
  const place = placeOf(flag.name, subject)
  return { on: place < share, ...facts, place }
}

export const decided = (on: boolean, because: FlagReason): Verdict => ({
  on,
  because,
  rule: null,
  percentage: null,
  place: null,
})

const PLACES = 10_000

/**
 * Where a subject stands among all, for one flag: 0 to 99.99. The first 32 bits of SHA-256 of the flag's name, a zero byte and the subject,
 * as a share of 2^32. No secret and no state is in it, so that it is the same in every process and for ever; the name is, so that who is
 * early with one flag is not early with all.
 */
export function placeOf(name: string, subject: string): number {
  const bits = createHash('sha256').update(`${name}\0${subject}`).digest().readUInt32BE(0)
  return Math.floor((bits * PLACES) / 2 ** 32) / 100
}

const shareOf = ({ serve }: FlagRule): number => (typeof serve === 'number' ? serve : serve ? 100 : 0)

function holds(condition: FlagCondition, attributes: FlagAttributes): boolean {
  const { attribute } = condition
  const given = Object.hasOwn(attributes, attribute) ? (attributes[attribute] ?? null) : null
  if (given === null) return condition.test === 'missing'
  switch (condition.test) {
    case 'equals':
      return given === condition.value
    case 'notEquals':
      return given !== condition.value
    case 'in':
      return condition.value.includes(given)
    case 'notIn':
      return !condition.value.includes(given)
    case 'lessThan':
      return typeof given === 'number' && given < condition.value
    case 'atMost':
      return typeof given === 'number' && given <= condition.value
    case 'moreThan':
      return typeof given === 'number' && given > condition.value
    case 'atLeast':
      return typeof given === 'number' && given >= condition.value
    case 'startsWith':
      return typeof given === 'string' && given.startsWith(condition.value)
    case 'endsWith':
      return typeof given === 'string' && given.endsWith(condition.value)
    case 'exists':
      return true
    case 'missing':
      return false
  }
}
