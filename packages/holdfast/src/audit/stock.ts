import { JournalEnds, StockUnreadable } from '../journal/index.js'
import { applyStock, type Entry, type Stock, type WalletState } from '../machine/index.js'
import type { Place } from '../redis/index.js'
import { type HotStock, stockField, stockFields, stockSize } from '../sequencer/index.js'
import type { Difference } from './causes.js'
import type { Comparison } from './hot.js'
import type { Run } from './run.js'

/** Enough to see what it is about; the whole of a stock may be wrong. */
const DIFFERENCES_MAX = 20

/**
 * The stock of a sale in Redis against its journal, beside live traffic. It may have a million fields, so it is read a part at a time, each
 * as of a moment of its own:
 *
 *     journal (read first)  ──▶ j                          the stock after entry j
 *     Redis, some fields         ──▶ R₁                    j+1 … R₁ are taken into it, then those fields must be the same
 *     Redis, some more                   ──▶ R₂            R₁+1 … R₂ as well, then those
 *
 * Where all that should be there is, and there are as many in all, there are no others.
 */
export async function compareStock(run: Run, place: Place, state: WalletState): Promise<Comparison> {
  const { parts, limits, work } = run
  const look = (fields: readonly string[]) => parts.sequencer.inspectStock(place, fields)
  const first = await look([])
  if (!first || (first.size > limits.stockInAllMax && !work.full)) return ABSENT
  const stock = await stockAfter(run, place, state)
  if (!stock) return MOVED
  if ('cause' in stock) return differing([stock])
  const following = new Following(run, place, state, stock)
  const differences: Difference[] = []
  // Those that come to it meanwhile come up as well.
  for (let fields = stockFields(stock), some = ['']; some.length > 0 && differences.length < DIFFERENCES_MAX; ) {
    work.signal.throwIfAborted()
    some = take(fields, limits.stockMax)
    const hot = await look(some)
    if (!hot) return ABSENT
    if (!(await following.follow(hot))) return MOVED
    differences.push(...compareFields(stock, some, hot))
    if (some.length === 0 && differences.length === 0) differences.push(...compareSize(stock, hot))
  }
  return differing(differences.slice(0, DIFFERENCES_MAX))
}

const ABSENT: Comparison = { type: 'absent' }
const MOVED: Comparison = { type: 'moved' }
const differing = (differences: readonly Difference[]): Comparison => ({ type: 'compared', differences })

/** Null: the journal is not the one any more that its row was of. What Postgres has lost is for others to tell. */
async function stockAfter({ parts }: Run, { ref }: Place, { seq }: WalletState): Promise<Stock | Difference | null> {
  try {
    return await parts.journal.stock(ref, seq)
  } catch (error) {
    if (error instanceof JournalEnds) return null
    if (!(error instanceof StockUnreadable)) throw error
    return { cause: 'journal_stock', field: 'metadata', expected: 'what it did', found: OTHER }
  }
}

/** The names of so many more, or of all that are left. */
function take(fields: Iterator<[field: string, value: string]>, count: number): string[] {
  const names: string[] = []
  while (names.length < count) {
    const next = fields.next()
    if (next.done) break
    names.push(next.value[0])
  }
  return names
}

/** A stock that keeps up with what Redis had when it was asked. */
class Following {
  readonly stock: Stock
  readonly #run: Run
  readonly #ref: string
  readonly #epoch: number
  #seq: number

  constructor(run: Run, { ref }: Place, { epoch, seq }: WalletState, stock: Stock) {
    this.#run = run
    this.#ref = ref
    this.#epoch = epoch
    this.#seq = seq
    this.stock = stock
  }

  /** False: it is of another life, or what lies in between can't be had. What is wrong with entries is for others to tell. */
  async follow({ core, pending }: HotStock): Promise<boolean> {
    if (core.epoch !== this.#epoch || core.seq < this.#seq) return false
    while (this.#seq < core.acked) {
      const { audits } = this.#run.parts
      const stretch = { ref: this.#ref, after: this.#seq, upTo: core.acked }
      const [entries] = await audits.entries([stretch], this.#run.limits.fullEntriesMax)
      if (!entries?.length || !this.#take(entries)) return false
    }
    return this.#take(pending.filter(({ seq }) => seq > this.#seq)) && this.#seq === core.seq
  }

  #take(entries: readonly Entry[]): boolean {
    try {
      for (const entry of entries) {
        if (entry.seq !== this.#seq + 1) return false
        applyStock(this.stock, entry)
        this.#seq = entry.seq
      }
      return true
    } catch {
      // Somebody has damaged it.
      return false
    }
  }
}

function compareFields(stock: Stock, fields: readonly string[], { values }: HotStock): Difference[] {
  return fields.flatMap((field, index) => {
    const expected = stockField(stock, field)
    const found = values[index] ?? null
    return expected === found ? [] : [explained(field, expected, found)]
  })
}

/** One is the epoch that it is of. */
function compareSize(stock: Stock, { size }: HotStock): Difference[] {
  const expected = stockSize(stock) + 1
  return size === expected ? [] : [{ cause: 'hot_stock_differs', field: 'fields', expected, found: size }]
}

/** In words that may reach logs: buyers, keys and codes of checkouts are callers' own. */
function explained(field: string, expected: string | null, found: string | null): Difference {
  const cause = 'hot_stock_differs'
  if (field === 'until') return { cause, field, expected: countOf(expected), found: countOf(found) }
  const name = field.slice(2)
  switch (field[0]) {
    case 'i':
      return { cause, field: `item ${name}`, expected: countOf(expected), found: countOf(found) }
    case 'u': {
      const [right, other] = [countOf(expected), countOf(found)]
      if (right !== other) return { cause, field: 'buyer', expected: right, found: other }
      return { cause, field: 'running', expected: 'the checkout', found: 'another, or none' }
    }
    case 'c':
      return {
        cause,
        field: 'checkout',
        hold: name,
        expected: noted(expected, 'its lines'),
        found: noted(found, OTHER),
      }
    default:
      return { cause, field: 'key', expected: noted(expected, 'noted'), found: noted(found, OTHER) }
  }
}

const OTHER = 'something else'

const noted = (value: string | null, word: string): string | null => (value === null ? null : word)

/** The number that a value begins with. */
function countOf(value: string | null): number | string | null {
  if (value === null) return null
  const [count] = /^-?\d+(?= |$)/.exec(value) ?? []
  return count === undefined ? OTHER : Number(count)
}
