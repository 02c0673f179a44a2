/** Random commands for the stock of a sale: few items, few buyers and small limits, so that all of them are reached. */
import fc from 'fast-check'
import { type Command, checkoutWords, command, type Line, moveWords, purchaseWords } from '../../src/machine/index.js'
import { START, STEPS, type Step } from './commands.js'

const ITEMS = 6
const BUYERS = 4
/** What the sale has in all: less than its items, so that the total is a limit of its own. */
const TOTAL = 22
/** How many of each item. */
const SHARES = [1, 1, 2, 5, 5, 12]
const PER_BUYER = 6
const FROM = START + 20
const UNTIL = START + 4_000

const key = fc.integer({ min: 1, max: 60 }).map((n) => `key-${n}`)
/** Few, so that most are bought or cancelled while they are open. */
const code = fc.integer({ min: 1, max: 16 }).map((n) => `code-${n}`)
const line = fc.record({ item: fc.integer({ min: 1, max: ITEMS }), quantity: fc.integer({ min: 1, max: 3 }) })
const withShare = ({ item, quantity }: Pick<Line, 'item' | 'quantity'>): Line => ({
  item,
  quantity,
  share: SHARES[item - 1] as number,
})

/** It asks for the code that is its key, so that the same key asks for the same twice. */
function checkoutOf(
  key: string,
  buyer: number,
  ttlMs: number,
  lines: readonly Pick<Line, 'item' | 'quantity'>[],
): Command {
  // A sale does it in one way. Two that share their items are two tests in one.
  const order = { reserves: buyer % 2 === 0, ttlMs, from: FROM, until: UNTIL, perBuyer: PER_BUYER }
  const also = checkoutWords({ ...order, buyer: `buyer-${buyer}`, lines: lines.map(withShare) })
  return command({ kind: 'checkout', key, also })
}

const checkout = fc
  .record({
    key: code,
    ttlMs: fc.integer({ min: 1, max: 2_000 }),
    buyer: fc.integer({ min: 1, max: BUYERS }),
    lines: fc.array(line, { minLength: 1, maxLength: 3 }),
  })
  .map(({ key, ttlMs, buyer, lines }) => checkoutOf(key, buyer, ttlMs, lines))

/** What is noted by one is bought by another before it is bought: chance alone seldom leads there. */
const contended = fc
  .record({ from: fc.integer({ min: 1, max: 12 }), mode: fc.constantFrom('all', 'left') })
  .map(({ from, mode }) => [
    checkoutOf(`code-${from}`, 1, 1_000, [
      { item: 1, quantity: 1 },
      { item: 4, quantity: 1 },
    ]),
    checkoutOf(`code-${from + 1}`, 2, 1_000, [{ item: 1, quantity: 1 }]),
    command({ kind: 'purchase', key: `key-${from}`, hold: `code-${from}`, also: `${mode} ${PER_BUYER}` }),
  ])

const closing = (kind: 'purchase' | 'cancel', words: fc.Arbitrary<string | undefined>) =>
  fc.record({ key, code, words }).map(({ key, code, words }) => command({ kind, key, hold: code, also: words }))

/** Out of a wallet: the price of these lines, which may be in the checkout or not, or a little more than that. */
const paid = fc
  .record({ all: fc.boolean(), items: fc.subarray([1, 2, 3, 4], { minLength: 1 }), more: fc.constantFrom(0, 0, 1) })
  .map(({ all, items, more }) =>
    purchaseWords({
      all,
      perBuyer: PER_BUYER,
      payment: {
        wallet: 'a'.repeat(32),
        id: 'b'.repeat(32),
        amount: 25 * items.length + more,
        prices: new Map(items.map((item) => [item, 25])),
      },
    }),
  )

/** The lines that are in it, or others of the same number: chance alone seldom leads there. */
const paidFor = fc
  .record({ from: fc.integer({ min: 1, max: 12 }), words: paid, buyer: fc.integer({ min: 1, max: BUYERS }) })
  .map(({ from, words, buyer }) => [
    checkoutOf(`code-${from}`, buyer, 1_000, [
      { item: 2, quantity: 1 },
      { item: 3, quantity: 1 },
    ]),
    command({ kind: 'purchase', key: `key-${from}`, hold: `code-${from}`, also: words }),
  ])

const pass = (kind: 'give' | 'take') =>
  fc
    .record({
      key,
      total: fc.integer({ min: 0, max: 3 }),
      lines: fc.uniqueArray(line, { maxLength: 2, selector: ({ item }) => item }),
    })
    .map(({ key, total, lines }) => command({ kind, key, also: moveWords({ total, lines: lines.map(withShare) }) }))

const any = fc.oneof(
  { weight: 12, arbitrary: checkout },
  {
    weight: 6,
    arbitrary: closing('purchase', fc.constantFrom(`all ${PER_BUYER}`, `left ${PER_BUYER}`)),
  },
  { weight: 3, arbitrary: closing('purchase', paid) },
  { weight: 3, arbitrary: closing('cancel', fc.constant(undefined)) },
  { weight: 1, arbitrary: pass('give') },
  { weight: 1, arbitrary: pass('take') },
  { weight: 1, arbitrary: fc.record({ key }).map(({ key }) => command({ kind: 'freeze', key })) },
  { weight: 2, arbitrary: fc.record({ key }).map(({ key }) => command({ kind: 'unfreeze', key })) },
  { weight: 2, arbitrary: fc.constant(command({ kind: 'touch' })) },
)

export const stockSteps: fc.Arbitrary<Step[]> = fc
  .array(
    fc.record({
      commands: fc.oneof(
        { weight: 20, arbitrary: any.map((one) => [one]) },
        { weight: 1, arbitrary: contended },
        { weight: 1, arbitrary: paidFor },
      ),
      passedMs: fc.integer({ min: 0, max: 60 }),
    }),
    STEPS,
  )
  .map((parts) => [
    { command: command({ kind: 'credit', key: 'stock', amount: TOTAL }), passedMs: 0 },
    ...parts.flatMap(({ commands, passedMs }) => commands.map((one) => ({ command: one, passedMs }))),
  ])
