/** Random commands for property tests: small amounts and few keys, so that rejections, replays, conflicts and expiries all happen. */
import fc from 'fast-check'
import { type Command, command, MAX_AMOUNT, type Meter } from '../../src/machine/index.js'

/** Far in the past, so that the caller's clock, and not the server's, is what a script goes by. */
export const START = 1_600_000_000_000

/**
 * So many that Redis remembers what all of them came to, as the oracle does, which knows every key for good. What comes when it forgets is seen in
 * `long-lives.test.ts`.
 */
export const STEPS = { minLength: 1, maxLength: 11, size: 'max' } as const

export interface Step {
  command: Command
  /** How far the clock moves before it. */
  passedMs: number
}

/** What is no amount and no time, whatever it is asked for. */
export const BAD_NUMBERS = [
  -5,
  1.5,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  2 ** 53,
  -(2 ** 53),
] as const

/** Bad ones now and then. */
const number = (fine: fc.Arbitrary<number>): fc.Arbitrary<number> =>
  fc.oneof({ weight: 30, arbitrary: fine }, { weight: 1, arbitrary: fc.constantFrom(0, ...BAD_NUMBERS) })

const amount = number(
  fc.oneof(
    { weight: 10, arbitrary: fc.integer({ min: 1, max: 400 }) },
    { weight: 1, arbitrary: fc.constantFrom(MAX_AMOUNT, MAX_AMOUNT - 100, 2 ** 31, 2 ** 32 + 1) },
  ),
)
const key = fc.integer({ min: 1, max: 60 }).map((n) => (n % 7 === 0 ? `schlüssel ${n} 日本` : `key-${n}`))
const holdKey = fc.integer({ min: 1, max: 12 }).map((n) => `hold-${n}`)
const ttlMs = number(fc.integer({ min: 1, max: 400 }))
const metadata = fc.constantFrom('', '{"a":1}', '{"text":"zwölf\\nBoxkämpfer"}')

const sessionKey = fc.integer({ min: 1, max: 5 }).map((n) => `session-${n}`)

/** Small numbers mostly, so that lines are crossed; and the largest that are allowed. */
const terms = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      counting: fc.constantFrom('started' as const, 'completed' as const, 'prorated' as const),
      rate: fc.integer({ min: 1, max: 40 }),
      perMs: fc.integer({ min: 1, max: 300 }),
      stretch: fc.integer({ min: 1, max: 200 }),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      counting: fc.constant('units' as const),
      rate: fc.integer({ min: 1, max: 20 }),
      perMs: fc.constant(0),
      stretch: fc.integer({ min: 1, max: 200 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      { counting: 'prorated' as const, rate: MAX_AMOUNT, perMs: 1, stretch: MAX_AMOUNT },
      { counting: 'prorated' as const, rate: 2 ** 26 - 1, perMs: 2 ** 27 - 1, stretch: 7 },
      { counting: 'units' as const, rate: MAX_AMOUNT, perMs: 0, stretch: 1 },
    ),
  },
)

function meter(kind: 'meter' | 'tick' | 'end', key: fc.Arbitrary<string>): fc.Arbitrary<Command> {
  const minimum = fc.integer({ min: 1, max: 300 })
  const units = fc.oneof(
    { weight: 8, arbitrary: fc.integer({ min: 0, max: 60 }) },
    { weight: 1, arbitrary: fc.constant(MAX_AMOUNT) },
  )
  return fc
    .record({
      key,
      hold: fc.oneof({ weight: 8, arbitrary: sessionKey }, { weight: 1, arbitrary: holdKey }),
      terms,
      extendAtPercent: fc.constantFrom(80, 80, 50, 99, 100, 1),
      heartbeatMs: fc.integer({ min: 1, max: 1_000 }),
      minimum,
      units,
      beganMs: fc.integer({ min: 0, max: 2_000 }),
    })
    .map(({ key, hold, terms, extendAtPercent, heartbeatMs, minimum, units, beganMs }) => {
      const measured = terms.counting === 'units' ? units : START + beganMs
      const full: Meter = { ...terms, extendAtPercent, heartbeatMs, measure: kind === 'meter' ? minimum : measured }
      return command({ kind, key: kind === 'meter' ? hold : key, hold, meter: full })
    })
}

const any = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('credit' as const), key, amount, metadata }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('debit' as const),
      key,
      amount,
      counter: fc.constantFrom('revenue', 'fees'),
    }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('hold' as const), key: holdKey, amount, ttlMs }) },
  {
    // As a transfer makes it.
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('hold' as const),
      key: holdKey,
      amount,
      ttlMs,
      also: fc.constantFrom('to a fee 1', 'to b fee 1'),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('capture' as const), key, hold: holdKey, amount, beyond: fc.boolean() }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('extend' as const),
      key,
      hold: holdKey,
      amount: number(fc.integer({ min: 0, max: 200 })),
      ttlMs: number(fc.integer({ min: 0, max: 400 })),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('settle' as const),
      key,
      hold: holdKey,
      amount: number(fc.integer({ min: 0, max: 600 })),
      beyond: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('release' as const), key, hold: holdKey }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('refund' as const),
      key,
      of: fc.integer({ min: 1, max: 20 }),
      amount: number(fc.integer({ min: 1, max: 300 })),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        'freeze' as const,
        'unfreeze' as const,
        'unfreeze' as const,
        'close' as const,
        'void' as const,
      ),
      key,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('limit' as const),
      key,
      amount: number(fc.integer({ min: 0, max: 300 })),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'touch' as const }) },
  { weight: 4, arbitrary: meter('meter', key) },
  { weight: 8, arbitrary: meter('tick', key) },
  { weight: 2, arbitrary: meter('end', key) },
)

/** Now and then what came before comes again, as when a caller did not hear the answer. */
export const steps: fc.Arbitrary<Step[]> = fc
  .array(
    fc.record({
      command: any.map((given) => command(given)),
      passedMs: fc.integer({ min: 0, max: 120 }),
      again: fc.integer({ min: 0, max: 40 }),
    }),
    STEPS,
  )
  .map((drawn) => [
    { command: command({ kind: 'credit', key: 'first', amount: 1_000 }), passedMs: 0 },
    ...drawn.map(({ command, passedMs, again }, index) => ({
      command: again > 0 && again <= 6 ? (drawn[index - again]?.command ?? command) : command,
      passedMs,
    })),
  ])
