import { JournalEnds } from '../journal/index.js'
import { applyStock, type Entry, type Stock, type WalletState } from '../machine/index.js'
import type { Place } from '../redis/index.js'
import { type HotStock, stockField, stockFields, stockSize } from '../sequencer/index.js'
import type { Difference } from './causes.js'
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
 *
 * Returns null where nothing can be said: it was loaded anew, or is nothing that anybody would go by.
 */
export async function compareStock(run: Run, place: Place, state: WalletState): Promise<Difference[] | null> {
  const { parts, limits, work } = run
  const begun = await beginning(run, place, state)
  if (!begun) return null
  const following = new Following(run, place, state, begun)
  const { stock } = following
  const differences: Difference[] = []
  // Of a large one a part, anywhere in it: so nobody has to keep where one has been.
  let left = work.full ? Number.POSITIVE_INFINITY : limits.stockInAllMax
  const fields = stockFields(stock)
  take(fields, Math.floor(Math.max(0, stockSize(stock) - left) * parts.clock.random()))
  for (;;) {
    work.signal.throwIfAborted()
    // Those that come to it meanwhile come up as well.
    const some = take(fields, Math.min(limits.stockMax, left))
    const hot = await parts.sequencer.inspectStock(place, some)
    if (!hot || !(await following.follow(hot))) return null
    differences.push(...compareFields(stock, some, hot))
    left -= some.length
    if (differences.length > 0 && (some.length === 0 || differences.length >= DIFFERENCES_MAX)) break
    if (some.length === 0) return compareSize(stock, hot)
  }
  return differences.slice(0, DIFFERENCES_MAX)
}

/** Null: the journal is not the one any more that its row was of. What Postgres has lost is for others to tell. */
async function beginning({ parts }: Run, { ref }: Place, { seq }: WalletState): Promise<Stock | null> {
  try {
    return await parts.journal.stock(ref, seq)
  } catch (error) {
    if (error instanceof JournalEnds) return null
    throw error
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
    for (const entry of entries) {
      if (entry.seq !== this.#seq + 1) return false
      applyStock(this.stock, entry)
      this.#seq = entry.seq
    }
    return true
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
