/** Random commands for property tests: small amounts and few keys, so that rejections, replays, conflicts and expiries all happen. */
import fc from 'fast-check'
import { type Command, command, MAX_AMOUNT } from '../../src/machine/index.js'

export interface Step {
  command: Command
  /** How far the clock moves before it. */
  passedMs: number
}

const amount = fc.oneof(
  { weight: 10, arbitrary: fc.integer({ min: 1, max: 400 }) },
  { weight: 1, arbitrary: fc.constantFrom(MAX_AMOUNT, MAX_AMOUNT - 100, 2 ** 31, 2 ** 32 + 1) },
)
const key = fc.integer({ min: 1, max: 60 }).map((n) => (n % 7 === 0 ? `schlüssel ${n} 日本` : `key-${n}`))
const holdKey = fc.integer({ min: 1, max: 12 }).map((n) => `hold-${n}`)
const ttlMs = fc.integer({ min: 1, max: 400 })
const metadata = fc.constantFrom('', '{"a":1}', '{"text":"zwölf\\nBoxkämpfer"}')

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
    // As a transfer makes it: with a name that is not its key.
    weight: 1,
    arbitrary: fc
      .record({ key: holdKey, amount, ttlMs, also: fc.constantFrom('to a fee 1', 'to b fee 1') })
      .map((given) => ({ kind: 'hold' as const, hold: `~${given.key}`, ...given })),
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
      amount: fc.integer({ min: 0, max: 200 }),
      ttlMs: fc.integer({ min: 0, max: 400 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('settle' as const),
      key,
      hold: holdKey,
      amount: fc.integer({ min: 0, max: 600 }),
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
      amount: fc.integer({ min: 1, max: 300 }),
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
    arbitrary: fc.record({ kind: fc.constant('limit' as const), key, amount: fc.integer({ min: 0, max: 300 }) }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'touch' as const }) },
)

/** Now and then what came before comes again, as when a caller did not hear the answer. */
export const steps: fc.Arbitrary<Step[]> = fc
  .array(
    fc.record({
      command: any.map((given) => command(given)),
      passedMs: fc.integer({ min: 0, max: 120 }),
      again: fc.integer({ min: 0, max: 40 }),
    }),
    { minLength: 1, maxLength: 60 },
  )
  .map((drawn) => [
    { command: command({ kind: 'credit', key: 'first', amount: 1_000 }), passedMs: 0 },
    ...drawn.map(({ command, passedMs, again }, index) => ({
      command: again > 0 && again <= 6 ? (drawn[index - again]?.command ?? command) : command,
      passedMs,
    })),
  ])
