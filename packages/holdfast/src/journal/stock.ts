import { applyStock, emptyStock, type Line, type Stock, type StockEntry } from '../machine/index.js'
import type { Transaction } from '../postgres/index.js'

type Query = Transaction['query']

/** Entries read at a time: about 1 MB. */
const PAGE = 5_000
/** So many are read again rather than kept twice. */
const WORTH_NOTING = 1_000
/** What is remembered of all sales: about 100 bytes a field. */
const FIELDS_MAX = 4_000_000
const IDLE_MS = 600_000

/** It ends before an entry that its row had when it was read: Postgres was put back in between. */
export class JournalEnds extends Error {
  constructor(seq: number) {
    super(`The journal ends before ${seq}, which its row had`)
  }
}

/** An entry does not say what it did to the stock: somebody has damaged it. What it says instead is nobody else's. */
export class StockUnreadable extends Error {
  constructor(seq: string) {
    super(`Entry ${seq} does not say what it did to the stock`)
  }
}

/** A stock as JSON. Numbers and words only, in arrays: it may have tens of thousands of rows. */
interface Noted {
  taken: [item: number, taken: number][]
  buyers: [id: string, taken: number, running: string][]
  checkouts: [hold: string, buyer: string, reserves: boolean, lines: Line[]][]
  keys: string[]
  until: number
}

/** A stock, and the entry that it is after. */
interface Known {
  stock: Stock
  seq: number
  /** Of that entry; empty: not read, and then it is not remembered. */
  head: string
  usedAt: number
}

interface StockRow {
  seq: string
  hash: Buffer
  kind: StockEntry['kind']
  key: string | null
  hold: string | null
  params: string
  metadata: string | null
}

/**
 * Stocks of sales after an entry, as the journal has them: what was noted before it, and the entries since. They are never changed, so they
 * can be read without keeping anybody out.
 *
 * What was read is remembered, and the next time only what came since is read. Two processes that work on one large sale while Redis is away
 * would otherwise each read it anew whenever the other has appended, and the slower one never get anywhere.
 */
export class Stocks {
  readonly #query: Query
  /** By ref; those used last come last. */
  readonly #known = new Map<string, Known>()
  readonly #reading = new Map<string, Promise<unknown>>()

  constructor(query: Query) {
    this.#query = query
  }

  /** The caller's own: it may do with it what it likes. */
  async at(ref: string, seq: number): Promise<Stock> {
    // One after the other, where it is the same sale: the second finds what the first has read.
    const read = () => this.#read(ref, seq)
    const reading = (this.#reading.get(ref) ?? Promise.resolve()).then(read, read)
    this.#reading.set(ref, reading)
    try {
      return await reading
    } finally {
      if (this.#reading.get(ref) === reading) this.#reading.delete(ref)
    }
  }

  async #read(ref: string, seq: number): Promise<Stock> {
    const remembered = this.#known.get(ref)
    if (remembered && remembered.seq <= seq && (await this.#goOn(ref, remembered, seq))) {
      this.#remember(ref, remembered)
      return copyOf(remembered.stock)
    }
    const known = await begin(this.#query, ref, seq)
    const from = known.seq
    await this.#goOn(ref, known, seq)
    if (!remembered || remembered.seq <= seq) this.#remember(ref, known)
    const stock = copyOf(known.stock)
    // A shortcut, and no more: the stock is read, and one so large that Postgres does not take it as a note is sold all the same.
    if (seq - from >= WORTH_NOTING) await this.#note(ref, seq, stock).catch(() => {})
    return stock
  }

  async #note(ref: string, seq: number, stock: Stock): Promise<void> {
    await this.#query('writeStockCheckpoint', [ref, seq, JSON.stringify(noted(stock))])
  }

  /** False: what is known is of another history. Postgres was put back since. */
  async #goOn(ref: string, known: Known, seq: number): Promise<boolean> {
    // The entry that it rests on is read once more, to see that it is still there.
    for (let isFirst = known.head !== ''; known.seq < seq || isFirst; isFirst = false) {
      const after = isFirst ? known.seq - 1 : known.seq
      const rows = await this.#query<StockRow>('readStockEntries', [ref, after, seq, PAGE])
      const [first] = rows
      const last = rows.at(-1)
      if (isFirst && first?.hash.toString('hex') !== known.head) return false
      if (!last) throw new JournalEnds(seq)
      try {
        for (const row of isFirst ? rows.slice(1) : rows) take(known.stock, row)
      } catch (error) {
        // It has a part of the entries behind the one that it is said to be after.
        this.#known.delete(ref)
        throw error
      }
      known.seq = Number(last.seq)
      known.head = last.hash.toString('hex')
    }
    return true
  }

  #remember(ref: string, known: Known): void {
    if (known.head === '') return
    const now = performance.now()
    known.usedAt = now
    this.#known.delete(ref)
    this.#known.set(ref, known)
    let fields = 0
    for (const { stock } of this.#known.values()) fields += sizeOf(stock)
    for (const [old, { stock, usedAt }] of this.#known) {
      if (fields <= FIELDS_MAX && now - usedAt < IDLE_MS) return
      this.#known.delete(old)
      fields -= sizeOf(stock)
    }
  }
}

function take(stock: Stock, { seq, kind, key, hold, params, metadata }: StockRow): void {
  try {
    applyStock(stock, { kind, key: key ?? '', hold: hold ?? '', params, metadata: metadata ?? '' })
  } catch {
    throw new StockUnreadable(seq)
  }
}

const sizeOf = ({ taken, buyers, checkouts, keys }: Stock): number =>
  taken.size + buyers.size + checkouts.size + keys.size

/** What is in them is replaced, never changed. */
const copyOf = ({ taken, buyers, checkouts, keys, until }: Stock): Stock => ({
  taken: new Map(taken),
  buyers: new Map(buyers),
  checkouts: new Map(checkouts),
  keys: new Set(keys),
  until,
})

async function begin(query: Query, ref: string, seq: number): Promise<Known> {
  const [row] = await query<{ seq: string; stock: Noted }>('readStockCheckpoint', [ref, seq])
  const nothing = { stock: emptyStock(), seq: 0, head: '', usedAt: 0 }
  if (!row) return nothing
  try {
    return { ...nothing, stock: read(row.stock), seq: Number(row.seq) }
  } catch {
    await query('dropStockCheckpoint', [ref])
    return nothing
  }
}

const noted = ({ taken, buyers, checkouts, keys, until }: Stock): Noted => ({
  taken: [...taken],
  buyers: [...buyers].map(([id, { taken, running }]) => [id, taken, running]),
  checkouts: [...checkouts].map(([hold, { buyer, reserves, lines }]) => [hold, buyer, reserves, lines]),
  keys: [...keys],
  until,
})

const read = ({ taken, buyers, checkouts, keys, until }: Noted): Stock => ({
  taken: new Map(taken),
  buyers: new Map(buyers.map(([id, taken, running]) => [id, { taken, running }])),
  checkouts: new Map(checkouts.map(([hold, buyer, reserves, lines]) => [hold, { buyer, reserves, lines }])),
  // One of before there were keys is as good as none.
  keys: new Set([...keys]),
  until,
})
