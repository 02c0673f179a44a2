import { applyStock, emptyStock, type Line, type Stock, type StockEntry } from '../machine/index.js'
import type { Transaction } from '../postgres/index.js'

type Query = Transaction['query']

/** Entries read at a time: about 1 MB. */
const PAGE = 5_000
/** So many are read again rather than kept twice. */
const WORTH_NOTING = 1_000

/** A stock as JSON. Numbers and words only, in arrays: it may have tens of thousands of rows. */
interface Noted {
  taken: [item: number, taken: number][]
  buyers: [id: string, taken: number, running: string][]
  checkouts: [hold: string, buyer: string, reserves: boolean, lines: Line[]][]
  keys: string[]
  until: number
}

/**
 * The stock of a sale after an entry: what was noted before it, and the entries since. They are never changed, so they can be read without
 * keeping anybody out. What took many to read is noted.
 */
export async function loadStock(query: Query, ref: string, seq: number): Promise<Stock> {
  const { stock, from } = await begin(query, ref, seq)
  for (let after = from; after < seq; ) {
    const rows = await query<{
      seq: string
      kind: StockEntry['kind']
      key: string | null
      hold: string | null
      params: string
      metadata: string | null
    }>('readStockEntries', [ref, after, seq, PAGE])
    const last = rows.at(-1)
    if (!last) throw new Error(`The journal ends before ${seq}, which its row says that it has`)
    for (const { kind, key, hold, params, metadata } of rows) {
      applyStock(stock, { kind, key: key ?? '', hold: hold ?? '', params, metadata: metadata ?? '' })
    }
    after = Number(last.seq)
  }
  if (seq - from >= WORTH_NOTING) await query('writeStockCheckpoint', [ref, seq, JSON.stringify(noted(stock))])
  return stock
}

async function begin(query: Query, ref: string, seq: number): Promise<{ stock: Stock; from: number }> {
  const [row] = await query<{ seq: string; stock: Noted }>('readStockCheckpoint', [ref, seq])
  if (!row) return { stock: emptyStock(), from: 0 }
  try {
    return { stock: read(row.stock), from: Number(row.seq) }
  } catch {
    await query('dropStockCheckpoint', [ref])
    return { stock: emptyStock(), from: 0 }
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
