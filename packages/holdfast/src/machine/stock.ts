import type { Entry } from './types.js'

/**
 * Stock: what a sale has beyond the numbers of a wallet. `available` is what can still be checked out of it, `reserved` what lies in open
 * checkouts, and a checkout is a hold. What is kept beside them is how many of each item are taken, how many each buyer has taken, and what
 * lies in each open checkout.
 *
 * What a command asks for stands in its params, in words, and so it stands in the journal: whoever replays an entry reads there what it did.
 *
 *     checkout reserve|note <ttl> <from> <until> <per buyer> <buyer> <item>:<quantity>/<share> …
 *     purchase all|left <per buyer> [<wallet> <payment> <amount> <item>:<price> …]
 *     cancel
 *     give <total> <item>:<quantity>/<share> …        take <total> <item>:<quantity>/<share> …
 *
 * What a checkout has in it after the entry, and what a purchase has sold, stands in the metadata of their entries: `[[item, quantity], …]`.
 *
 * An item is a number, its place in the list that the sale was opened with. Its share is how many of it this part of the sale began with: a
 * sale may be cut into parts, and what one gives another takes. Fewer than none may be taken of an item by that. Items and what can be checked
 * out in all move together or apart: where the total is less than all items, a part may have the one and not the other.
 */
export interface Stock {
  /** By item: in open checkouts, sold, or given away; what came from others is taken off. */
  taken: Map<number, number>
  buyers: Map<string, Buyer>
  /** By hold. */
  checkouts: Map<string, Checkout>
  /** Of every checkout that there was: who asks with another one has had no answer yet. */
  keys: Set<string>
  /** When the sale ends, as the last checkout has it; 0: there was none yet. */
  until: number
}

export interface Buyer {
  /** In the open checkout, if that reserves, and bought. */
  taken: number
  /** The hold of the open checkout; empty for none. */
  running: string
}

export interface Checkout {
  buyer: string
  /** False: what is in it is decided when it is bought. */
  reserves: boolean
  lines: Line[]
}

/** Different items in one checkout. They all stand in each of its entries. */
export const LINES_MAX = 100

export interface Line {
  item: number
  quantity: number
  share: number
}

/** What one part of a sale gives and another takes. */
export interface Move {
  total: number
  lines: Line[]
}

export interface CheckoutOrder {
  reserves: boolean
  ttlMs: number
  /** The sale takes checkouts from this time on, and until before that. */
  from: number
  until: number
  perBuyer: number
  buyer: string
  lines: Line[]
}

export interface PurchaseOrder {
  /** All or nothing; otherwise what is left. */
  all: boolean
  perBuyer: number
  /** Null: it is not paid for out of a wallet. */
  payment: Payment | null
}

/** What a purchase is paid with: a hold on a wallet that belongs to it alone. */
export interface Payment {
  /** The wallet's ref. */
  wallet: string
  id: string
  /** What is held: enough for all that was in the checkout. */
  amount: number
  /** What one of each item costs. */
  prices: ReadonlyMap<number, number>
}

export const emptyStock = (): Stock => ({
  taken: new Map(),
  buyers: new Map(),
  checkouts: new Map(),
  keys: new Set(),
  until: 0,
})

/** In the words of the params, without the first. */
export function checkoutWords(order: CheckoutOrder): string {
  const { reserves, ttlMs, from, until, perBuyer, buyer, lines } = order
  return `${reserves ? 'reserve' : 'note'} ${ttlMs} ${from} ${until} ${perBuyer} ${buyer} ${lineWords(lines)}`
}

export const lineWords = (lines: readonly Line[]): string =>
  lines.map(({ item, quantity, share }) => `${item}:${quantity}/${share}`).join(' ')

export function readCheckout(params: string): CheckoutOrder {
  const [, mode, ttlMs, from, until, perBuyer, buyer = '', ...lines] = params.split(' ')
  return {
    reserves: mode === 'reserve',
    ttlMs: Number(ttlMs),
    from: Number(from),
    until: Number(until),
    perBuyer: Number(perBuyer),
    buyer,
    lines: readLines(lines),
  }
}

/** In the words of the params, without the first. */
export function purchaseWords({ all, perBuyer, payment }: PurchaseOrder): string {
  const words = `${all ? 'all' : 'left'} ${perBuyer}`
  if (!payment) return words
  const { wallet, id, amount, prices } = payment
  return `${words} ${wallet} ${id} ${amount} ${[...prices].map(([item, price]) => `${item}:${price}`).join(' ')}`
}

export function readPurchase(params: string): PurchaseOrder {
  const [, take, perBuyer, wallet, id = '', amount, ...prices] = params.split(' ')
  const order = { all: take === 'all', perBuyer: Number(perBuyer) }
  if (wallet === undefined) return { ...order, payment: null }
  const pairs = prices.map((word) => word.split(':').map(Number) as [number, number])
  return { ...order, payment: { wallet, id, amount: Number(amount), prices: new Map(pairs) } }
}

/** What has to be paid for lines at these prices. One that has none makes it NaN: it can't be paid. */
export const priceOf = (
  lines: readonly Pick<Line, 'item' | 'quantity'>[],
  prices: ReadonlyMap<number, number>,
): number => lines.reduce((sum, { item, quantity }) => sum + quantity * (prices.get(item) ?? Number.NaN), 0)

export const moveWords = ({ total, lines }: Move): string =>
  lines.length === 0 ? `${total}` : `${total} ${lineWords(lines)}`

export function readMove(params: string): Move {
  const [, total, ...lines] = params.split(' ')
  return { total: Number(total), lines: readLines(lines) }
}

export const readLines = (words: readonly string[]): Line[] => words.map(readLine)

function readLine(word: string): Line {
  const [item, quantity, share] = word.split(/[:/]/)
  return { item: Number(item), quantity: Number(quantity), share: Number(share) }
}

export const takenOf = (stock: Stock, item: number): number => stock.taken.get(item) ?? 0

export const buyerOf = (stock: Stock, buyer: string): Buyer => stock.buyers.get(buyer) ?? { taken: 0, running: '' }

export const total = (lines: readonly Line[]): number => lines.reduce((sum, { quantity }) => sum + quantity, 0)

/** What the machine says of lines, in metadata. */
export const linesText = (lines: readonly Line[]): string =>
  `[${lines.map(({ item, quantity }) => `[${item},${quantity}]`).join(',')}]`

export function readLinesText(metadata: string): { item: number; quantity: number }[] {
  return (JSON.parse(metadata) as [number, number][]).map(([item, quantity]) => ({ item, quantity }))
}

/** What a purchase sold of a checkout. */
function soldOf({ lines }: Checkout, metadata: string): Line[] {
  const sold = new Set(readLinesText(metadata).map(({ item }) => item))
  return lines.filter(({ item }) => sold.has(item))
}

/** What of an entry says what it did to the stock. */
export type StockEntry = Pick<Entry, 'kind' | 'key' | 'hold' | 'params' | 'metadata'>

/** Takes an entry into the stock. */
export function applyStock(stock: Stock, entry: StockEntry): void {
  const [word] = entry.params.split(' ', 1)
  if (word === 'checkout') return applyCheckout(stock, entry)
  if (word === 'give' || word === 'take') {
    for (const { item, quantity } of readMove(entry.params).lines)
      add(stock, item, word === 'give' ? quantity : -quantity)
    return
  }
  const checkout = stock.checkouts.get(entry.hold)
  if (!checkout) return
  const after = entry.kind === 'settle' ? soldOf(checkout, entry.metadata) : []
  const before = checkout.reserves ? checkout.lines : []
  for (const { item, quantity } of before) add(stock, item, -quantity)
  for (const { item, quantity } of after) add(stock, item, quantity)
  setBuyer(stock, checkout.buyer, {
    taken: buyerOf(stock, checkout.buyer).taken - total(before) + total(after),
    running: '',
  })
  stock.checkouts.delete(entry.hold)
}

function applyCheckout(stock: Stock, { key, hold, params }: StockEntry): void {
  const { reserves, buyer, lines, until } = readCheckout(params)
  const before = stock.checkouts.get(hold)
  stock.checkouts.set(hold, { buyer, reserves, lines: [...(before?.lines ?? []), ...lines] })
  if (reserves) for (const { item, quantity } of lines) add(stock, item, quantity)
  const { taken } = buyerOf(stock, buyer)
  setBuyer(stock, buyer, { taken: taken + (reserves ? total(lines) : 0), running: hold })
  stock.keys.add(key)
  stock.until = until
}

/** What is as if it had never been is not kept. */
function add(stock: Stock, item: number, quantity: number): void {
  const taken = takenOf(stock, item) + quantity
  if (taken === 0) stock.taken.delete(item)
  else stock.taken.set(item, taken)
}

function setBuyer(stock: Stock, id: string, buyer: Buyer): void {
  if (buyer.taken === 0 && buyer.running === '') stock.buyers.delete(id)
  else stock.buyers.set(id, buyer)
}
