import { FLAG_ATTRIBUTE, FLAG_LIMITS, FLAG_NAME, FLAG_TESTS, type FlagRule as Rule } from 'holdfast/primitives'
import { Type } from 'typebox'
import { Count, oneOf, orNull, refTo, Time } from './parts.js'

export const FlagName = Type.String({
  pattern: FLAG_NAME.source,
  description: 'Of a-z, 0-9, _, . and -, the first of them a letter or digit',
})
export const FlagVersion = Type.Integer({
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description: 'Only if this is its version: 0 if there is none. Otherwise `version_conflict`',
})
export const Why = Type.String({ minLength: 1, maxLength: 1_000, description: 'For the history' })

const Percentage = Type.Number({ minimum: 0, maximum: 100, description: 'In steps of 0.01' })

const FlagCondition = Type.Object(
  {
    attribute: Type.String({ pattern: FLAG_ATTRIBUTE.source }),
    test: oneOf(FLAG_TESTS),
    value: Type.Optional(
      Type.Unknown({
        description:
          'in, notIn: a list; lessThan, atMost, moreThan, atLeast: a number; startsWith, endsWith: a string; exists, missing: none',
      }),
    ),
  },
  { additionalProperties: false },
)

const FlagRule = Type.Object(
  {
    when: Type.Array(FlagCondition, {
      minItems: 1,
      maxItems: FLAG_LIMITS.conditions,
      description: 'All of them have to hold',
    }),
    serve: Type.Unsafe<boolean | number>({
      type: ['boolean', 'number'],
      description: 'For whom it is then on: for all, for nobody, or for this percentage of the subjects',
    }),
  },
  { additionalProperties: false },
)

/** What can decide, where there is a flag. */
export const FLAG_REASONS = ['killed', 'off', 'rule', 'percentage'] as const

/** What a flag says. */
export const FLAG_DEFINITION = {
  on: Type.Boolean({ description: 'False: off for everybody' }),
  percentage: Percentage,
  rules: Type.Unsafe<readonly Rule[]>(
    Type.Array(FlagRule, {
      maxItems: FLAG_LIMITS.rules,
      description: 'The first whose conditions all hold decides',
    }),
  ),
  description: Type.String({ maxLength: FLAG_LIMITS.descriptionLength }),
}

const killed = Type.Boolean({ description: 'The kill switch: off for everybody, whatever else it says' })

export const Flag = Type.Object(
  {
    name: FlagName,
    version: Type.Integer({ description: 'The number of the change that made it so' }),
    killed,
    ...FLAG_DEFINITION,
    createdAt: Time,
    changedAt: Time,
  },
  { $id: 'Flag' },
)

export const FlagChange = Type.Object(
  {
    flag: refTo(Flag),
    changed: Type.Boolean({ description: 'False: it was so already, and nothing was written' }),
    announced: Type.Boolean({
      description: 'False: Redis could not be told, so that processes learn of it a little later, within their bound',
    }),
  },
  { $id: 'FlagChange' },
)

const FlagState = Type.Object({ ...FLAG_DEFINITION, killed }, { $id: 'FlagState' })

export const FlagEvent = Type.Object(
  {
    revision: Count,
    name: FlagName,
    kind: oneOf(['put', 'kill', 'unkill', 'delete']),
    at: Time,
    by: Type.String({ description: 'Who: `key:` and the id of an API key, or what was given elsewhere' }),
    why: orNull(Type.String()),
    before: Type.Union([refTo(FlagState), Type.Null()], { description: 'Null: there was none' }),
    after: Type.Union([refTo(FlagState), Type.Null()], { description: 'Null: there is none any more' }),
  },
  { $id: 'FlagEvent' },
)

export const FlagAnswer = Type.Object({
  on: Type.Boolean(),
  because: oneOf(FLAG_REASONS, 'The first that applies, in this order'),
  rule: orNull(Type.Integer({ description: 'Which rule decided, from 0' })),
  percentage: orNull(Type.Number({ description: 'For how much of the subjects it is on, where that was asked' })),
  place: orNull(Type.Number({ description: 'Where the subject stands: on where that is less than the percentage' })),
  version: Count,
})

export const FLAG_SCHEMAS = [Flag, FlagChange, FlagState, FlagEvent]
