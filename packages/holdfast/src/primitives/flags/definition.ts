/** What a flag says. Nobody's own words are in it: subjects and their attributes are compared with it, and never kept. */

export type FlagScalar = string | number | boolean

/** Compares one attribute. What is not given, or is of another type, only ever passes `missing`, `notEquals` (if given) and `notIn` (if given). */
export type FlagCondition =
  | { readonly attribute: string; readonly test: 'equals' | 'notEquals'; readonly value: FlagScalar }
  | { readonly attribute: string; readonly test: 'in' | 'notIn'; readonly value: readonly FlagScalar[] }
  | {
      readonly attribute: string
      readonly test: 'lessThan' | 'atMost' | 'moreThan' | 'atLeast'
      readonly value: number
    }
  | { readonly attribute: string; readonly test: 'startsWith' | 'endsWith'; readonly value: string }
  | { readonly attribute: string; readonly test: 'exists' | 'missing' }

export interface FlagRule {
  /** All of them have to hold. */
  readonly when: readonly FlagCondition[]
  /** For whom it is then on: for all, for nobody, or for this percentage of the subjects. */
  readonly serve: boolean | number
}

export interface FlagDefinition {
  /** False: off for everybody, whatever stands below. */
  readonly on: boolean
  /** Of the subjects that no rule is about: 0 to 100, in steps of 0.01. */
  readonly percentage: number
  /** The first whose conditions all hold decides. */
  readonly rules: readonly FlagRule[]
  readonly description: string
}

/** As it is given: what is left out is 100 %, no rules, no description. */
export type FlagInput = Pick<FlagDefinition, 'on'> & Partial<FlagDefinition>

export interface Flag extends FlagDefinition {
  readonly name: string
  /** The number of the change that made it so. */
  readonly version: number
  /** Off for everybody, whatever else it says, until somebody takes that back. */
  readonly killed: boolean
  readonly createdAt: Date
  readonly changedAt: Date
}

/** What an answer needs of a flag, and all that the copies of it have. */
export type FlagFacts = Pick<Flag, 'name' | 'version' | 'killed' | 'on' | 'percentage' | 'rules'>

export const FLAG_NAME = /^[a-z0-9][a-z0-9_.-]{0,63}$/
export const FLAG_ATTRIBUTE = /^[A-Za-z0-9_.-]{1,64}$/

export const FLAG_TESTS = [
  'equals',
  'notEquals',
  'in',
  'notIn',
  'lessThan',
  'atMost',
  'moreThan',
  'atLeast',
  'startsWith',
  'endsWith',
  'exists',
  'missing',
] as const satisfies readonly FlagCondition['test'][]

export const FLAG_LIMITS = {
  /** Of a tenant. */
  flags: 1_000,
  /** Of all flags of a tenant together, as JSON. */
  bytes: 1_048_576,
  rules: 32,
  /** Of a rule. */
  conditions: 16,
  /** Of a list. */
  values: 100,
  valueLength: 255,
  descriptionLength: 500,
} as const
