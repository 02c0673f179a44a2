import { randomBytes } from 'node:crypto'
import { paidBy } from '../../engine/index.js'
import { HoldfastError } from '../../errors/index.js'
import type { SaleTerms } from '../../journal/index.js'
import { type Entry, MAX_AMOUNT, priceOf, readLinesText } from '../../machine/index.js'
import type { Place } from '../../redis/index.js'
import * as check from '../validate.js'
import { within } from '../waiting.js'
import type { SaleMemory } from './memory.js'
import type { SaleTenant } from './tenant.js'

/** Out of which wallet a purchase is paid, and what it costs. */
export interface PayOptions {
  readonly wallet: string
  /** What one costs, in the wallet's smallest unit: of whichever item, or by its id. */
  readonly price: number | Readonly<Record<string, number>>
  /** The account that gets the money. Default `revenue`. */
  readonly counter?: string
  /** JSON of up to 4 kB, kept with the wallet's entries. Default: the sale's id. */
  readonly metadata?: unknown
}

const PAY_NAMES = check.namesOf<PayOptions>({ wallet: true, price: true, counter: true, metadata: true })

/** What was paid for a purchase, and out of which hold of which wallet. */
export interface Paid {
  readonly wallet: string
  readonly hold: string
  readonly amount: number
}

type Price = number | ReadonlyMap<string, number>

export interface CheckedPay {
  readonly wallet: string
  readonly price: Price
  readonly counter: string
  readonly metadata: string
}

export function checkPay(saleId: string, options: Record<string, unknown>): CheckedPay | null {
  if (options.pay === undefined) return null
  const asked = check.options('pay', options.pay ?? null, PAY_NAMES)
  const { wallet, price, counter = 'revenue', metadata = { sale: saleId } } = asked
  check.oneOf('durability', options.durability ?? 'ledger', ['ledger'] as const)
  return {
    wallet: check.text('pay.wallet', wallet),
    price: checkPrice(price),
    counter: check.account('pay.counter', counter),
    metadata: check.metadata(metadata),
  }
}

function checkPrice(value: unknown): Price {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return check.amount('pay.price', value, 0)
  return new Map(Object.entries(value).map(([id, price]) => [id, check.amount('pay.price of an item', price, 0)]))
}

export interface Basket {
  readonly place: Place
  readonly code: string
  readonly terms: SaleTerms
  readonly take: 'all' | 'left'
}

type Lines = readonly { readonly item: number; readonly quantity: number }[]

/** Buys what is in a checkout with money of a wallet. The entry that sold it: this purchase's, or that of whoever bought it before. */
export async function buyWith(
  tenant: SaleTenant,
  memory: SaleMemory,
  basket: Basket,
  pay: CheckedPay,
  options: Record<string, unknown>,
): Promise<{ entry: Entry; replayed: boolean }> {
  const { engine, keys, timeoutMs } = tenant
  const { place, code, terms, take } = basket
  const deadline = performance.now() + (check.timeoutMs(options.timeout) ?? timeoutMs)
  return within(timeoutMs, options, async (signal) => {
    for (;;) {
      const found = await look(tenant, place, code)
      if ('sold' in found) return { entry: found.sold, replayed: true }
      const priced = await price(memory, found.lines, pay.price)
      const intent = {
        tenant: keys.tenant,
        wallet: keys.ref(pay.wallet),
        bucket: place.ref,
        code,
        id: randomBytes(16).toString('hex'),
        take,
        perBuyer: terms.perUser,
        counter: pay.counter,
        metadata: pay.metadata,
        ...priced,
      }
      try {
        const leftMs = Math.max(1, Math.ceil(deadline - performance.now()))
        const outcome = await engine.purchase(intent, { timeoutMs: leftMs, signal })
        // Something came into the checkout meanwhile: what it costs now is another price.
        if (outcome.type === 'again') continue
        const { entry, replayed } = outcome.sale
        return { entry: entry as Entry, replayed }
      } catch (error) {
        if (!HoldfastError.is(error) || error.retryable) throw error
        // A "no" is none where somebody has bought it: this caller, before its answer was lost, or another.
        const after = await look(tenant, place, code).catch(() => null)
        if (after && 'sold' in after) return { entry: after.sold, replayed: true }
        throw error
      }
    }
  })
}

/** What is in a checkout, or the entry that sold it. */
async function look(tenant: SaleTenant, place: Place, code: string): Promise<{ lines: Lines } | { sold: Entry }> {
  const { journal, sequencer, engine } = tenant
  const [row] = await journal.read([place.ref])
  if (!engine.isRedisAway(place)) {
    const open = await sequencer.running(place, row?.epoch ?? 0, { code }).catch(() => null)
    if (open !== null && open !== 'untrusted') return { lines: open.lines }
  }
  const entry = await journal.holdEntry(place.ref, code)
  if (!entry) throw new HoldfastError('checkout_not_found')
  if (entry.kind === 'settle') return { sold: entry }
  if (entry.kind === 'expire') throw new HoldfastError('checkout_expired')
  if (entry.kind === 'release') throw new HoldfastError('checkout_closed')
  return { lines: readLinesText(entry.metadata) }
}

async function price(memory: SaleMemory, lines: Lines, of: Price): Promise<{ amount: number; prices: string }> {
  const items = await memory.byNumber(lines.map(({ item }) => item))
  const prices = new Map<number, number>()
  for (const { item, id } of items) {
    const one = typeof of === 'number' ? of : of.get(id)
    if (one === undefined) {
      throw check.invalid('pay.price', 'a price for each item in the checkout', 'none for one of them')
    }
    prices.set(item, one)
  }
  const amount = priceOf(lines, prices)
  if (amount > MAX_AMOUNT) throw check.tooMuch('pay.price of all', 'pay.price')
  return { amount, prices: [...prices].map(([item, one]) => `${item}:${one}`).join(' ') }
}

/** Who paid for what an entry sold; null: nobody, out of a wallet. */
export async function paidFor({ journal }: SaleTenant, sold: Entry): Promise<Paid | null> {
  const paid = paidBy(sold)
  if (!paid) return null
  const [row] = await journal.read([paid.wallet])
  return { wallet: row?.id ?? '', hold: paid.hold, amount: paid.amount }
}
