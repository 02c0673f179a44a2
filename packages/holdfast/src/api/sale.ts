import type { Outcome } from '../engine/index.js'
import { type Facts, HoldfastError } from '../errors/index.js'
import type { SaleTerms } from '../journal/index.js'
import { checkoutWords, command, genesisHash, type Entry as MachineEntry, readLinesText } from '../machine/index.js'
import { type Place, readCode } from '../redis/index.js'
import type { Running } from '../sequencer/index.js'
import type { SaleMemory } from './sale-items.js'
import { checkItem, checkTerms, type ItemOptions, limitOf, type SaleOptions, shareOf } from './sale-terms.js'
import { checkOptions, type OperationOptions, type SaleTenant } from './tenant.js'
import * as check from './validate.js'
import { type WaitOptions, within } from './waiting.js'

export interface CheckoutOptions extends Omit<OperationOptions, 'metadata' | 'counter'> {
  readonly user: string
  readonly items: readonly ItemOptions[]
}

export interface PurchaseOptions extends Omit<OperationOptions, 'key' | 'metadata' | 'counter'> {
  /** Not needed: a code is bought once, however often that is asked for. */
  readonly key?: string
  /** Where stock is set aside only when it is bought: all or nothing (default), or what is left. */
  readonly take?: 'all' | 'left'
}

export interface SoldItem {
  readonly id: string
  readonly quantity: number
}

/** What a user has set aside, or noted. */
export interface Checkout {
  /** Unguessable: whoever has it can buy or cancel. */
  readonly code: string
  /** All that is in it, also of calls before. */
  readonly items: readonly SoldItem[]
  readonly expiresAt: number
  /** The key was used before: this is the answer of the first time. */
  readonly replayed: boolean
}

export interface Purchase {
  readonly code: string
  readonly items: readonly SoldItem[]
  /** Bought before: this is the answer of the first time. */
  readonly replayed: boolean
  readonly at: number
}

export interface SaleState extends Omit<SaleTerms, 'itemsHash'> {
  readonly id: string
  /** What can be checked out, what lies in open checkouts, what was bought. */
  readonly stock: number
  readonly reserved: number
  readonly sold: number
  /** False: it was closed. */
  readonly open: boolean
}

const LINES_MAX = 100
const CURRENCY = 'stock'

/** A sale by its id. Making one of these is no I/O. */
export class Sale {
  readonly id: string
  readonly #tenant: SaleTenant
  readonly #memory: SaleMemory

  constructor(tenant: SaleTenant, id: string) {
    this.#tenant = tenant
    this.id = check.text('sale id', id)
    this.#memory = tenant.saleMemory(this.id)
  }

  /** Makes the sale and fills it. The same again changes nothing, and finishes what was begun; with other terms it is `sale_exists`. */
  async open(options: SaleOptions & WaitOptions): Promise<SaleState> {
    const { terms, items } = checkTerms(options)
    const { keys, journal, sales, timeoutMs } = this.#tenant
    return within(timeoutMs, check.options('options', options), async () => {
      const row = await sales.open(keys.tenant, this.id, terms, items)
      if (!row.same) throw new HoldfastError('sale_exists')
      if (!row.ready) {
        for (let bucket = 0; bucket < terms.buckets; bucket += 1) {
          const place = keys.ofSale(this.id, bucket)
          const { ref, tenant } = place
          const head = genesisHash(ref, CURRENCY)
          await journal.open({ ref, tenant, id: this.id, currency: CURRENCY, creditLimit: 0, metadata: '', head })
          await this.#fill(place, limitOf(terms, items, bucket))
        }
        await sales.ready(keys.tenant, this.id)
      }
      return this.#state(terms)
    })
  }

  /** Null: there is no such sale. */
  async status(options: WaitOptions = {}): Promise<SaleState | null> {
    const { timeoutMs } = this.#tenant
    return within(timeoutMs, check.options('options', options), async () => {
      const terms = await this.#memory.terms()
      return terms && this.#state(terms)
    })
  }

  /** Into the user's running checkout, or a new one: all of it or nothing. */
  async checkout(options: CheckoutOptions): Promise<Checkout> {
    const asked = check.options('options', options)
    const user = check.text('user', asked.user)
    const lines = checkLines(asked.items)
    const key = check.key(asked.key)
    const terms = await this.#terms()
    const items = await this.#memory.byId(lines.map(({ id }) => id))
    const { keys, early, durability } = this.#tenant
    const buyer = keys.buyer(this.id, user)
    const bucket = bucketOf(buyer, terms)
    const place = keys.ofSale(this.id, bucket)
    const code = keys.code(place, key)
    const refusal = early?.refusalOf(keys.tenant, this.id, items, code)
    if (refusal) {
      checkOptions(options, durability)
      throw refusal
    }
    const words = checkoutWords({
      reserves: terms.reserve === 'checkout',
      ttlMs: terms.checkoutTtlMs,
      from: terms.startsAt,
      until: terms.endsAt,
      perBuyer: terms.perUser,
      buyer,
      lines: items.map(({ item, quantity }, at) => ({
        item,
        quantity: (lines[at] as SoldItem).quantity,
        share: shareOf(quantity, item, bucket, terms.buckets),
      })),
    })
    const asking = this.#submit(place, { kind: 'checkout', key: code, also: words }, options)
    const outcome = await asking.catch((error) => this.#refused(error, terms))
    const entry = outcome.entry as MachineEntry
    return {
      code: entry.hold,
      items: await this.#items(entry.metadata),
      expiresAt: entry.holdExpiresAt,
      replayed: outcome.replayed,
    }
  }

  /** Buys what is in a checkout. Asked for again, the answer is the same. */
  async purchase(code: string, options: PurchaseOptions = {}): Promise<Purchase> {
    const { take = 'all' } = check.options('options', options)
    const wanted = check.oneOf('take', take, ['all', 'left'] as const)
    const terms = await this.#terms()
    const place = this.#placeOf(code, terms)
    const key = `~purchase:${code}`
    try {
      const bought = { kind: 'purchase' as const, key, hold: code, also: `${wanted} ${terms.perUser}` }
      const { entry, replayed } = await this.#submit(place, bought, options)
      return await this.#purchased(code, entry as MachineEntry, replayed)
    } catch (error) {
      // Bought before, in the other way of the two.
      if (!HoldfastError.is(error, 'idempotency_conflict')) throw error
      const [entry] = await this.#tenant.journal.find([{ ref: place.ref, key }])
      if (!entry) throw error
      return this.#purchased(code, entry, true)
    }
  }

  /** Gives back what is in a checkout. Asked for again, the answer is the same. */
  async cancel(code: string, options: Omit<PurchaseOptions, 'take'> = {}): Promise<{ readonly replayed: boolean }> {
    const place = this.#placeOf(code, await this.#terms())
    const cancelled = { kind: 'cancel' as const, key: `~cancel:${code}`, hold: code }
    const { replayed } = await this.#submit(place, cancelled, options)
    return { replayed }
  }

  /** The user's running checkout, as the journal has it. Null: none is. */
  async checkoutOf(user: string, options: WaitOptions = {}): Promise<Omit<Checkout, 'replayed'> | null> {
    const { keys, timeoutMs, journal } = this.#tenant
    const buyer = keys.buyer(this.id, check.text('user', user))
    return within(timeoutMs, check.options('options', options), async () => {
      const terms = await this.#terms()
      const place = keys.ofSale(this.id, bucketOf(buyer, terms))
      const running = (await this.#hot(place, buyer)) ?? (await this.#cold(place, buyer))
      if (!running) return null
      // What Redis has decided and the journal has not may never come to be.
      const [made] = await journal.find([{ ref: place.ref, key: running.hold }])
      if (!made) return null
      return { code: running.hold, items: await this.#named(running.lines), expiresAt: running.expiresAt }
    })
  }

  /** No more checkouts from now on. What is in one can be bought until it runs out. */
  async close(options: Omit<PurchaseOptions, 'take'> = {}): Promise<SaleState> {
    const terms = await this.#terms()
    const { keys, engine, durability } = this.#tenant
    const freeze = command({ kind: 'freeze', key: '~close', counter: CURRENCY })
    const given = checkOptions(options, durability)
    for (let bucket = 0; bucket < terms.buckets; bucket += 1) {
      await engine.submit(keys.ofSale(this.id, bucket), freeze, { ...given, memory: false })
    }
    return this.#state(terms)
  }

  /** Undefined: Redis can't say. */
  async #hot(place: Place, buyer: string): Promise<Running | null | undefined> {
    const { sequencer, journal } = this.#tenant
    const [row] = await journal.read([place.ref])
    const running = await sequencer.running(place, row?.epoch ?? 0, buyer).catch(() => 'untrusted' as const)
    return running === 'untrusted' ? undefined : running
  }

  async #cold(place: Place, buyer: string): Promise<Running | null> {
    const { sales, journal } = this.#tenant
    const [row] = await journal.read([place.ref])
    if (!row) return null
    const { buyers, checkouts } = await sales.stock(place.ref, row.seq)
    const hold = buyers.get(buyer)?.running ?? ''
    const last = hold === '' ? null : await journal.holdEntry(place.ref, hold)
    return last && { hold, expiresAt: last.holdExpiresAt, lines: checkouts.get(hold)?.lines ?? [] }
  }

  async #terms(): Promise<SaleTerms> {
    const terms = await this.#memory.terms()
    if (!terms) throw new HoldfastError('sale_not_found')
    return terms
  }

  /** The key is the engine's own: whoever opens the sale again fills nothing twice. */
  async #fill(place: Place, amount: number): Promise<void> {
    if (amount === 0) return
    const credit = command({ kind: 'credit', key: '~stock', amount, counter: CURRENCY })
    await this.#tenant.engine.submit(place, credit, { memory: false })
  }

  async #submit(
    place: Place,
    asked: { kind: 'checkout' | 'purchase' | 'cancel'; key: string; hold?: string; also?: string },
    given: unknown,
  ): Promise<Outcome> {
    const { engine, durability } = this.#tenant
    try {
      return await engine.submit(place, command({ ...asked, counter: CURRENCY }), checkOptions(given, durability))
    } catch (error) {
      throw error instanceof HoldfastError ? await this.#told(error) : error
    }
  }

  /** Where something is sold others will ask for it too. */
  #refused(error: unknown, terms: SaleTerms): never {
    const { keys, early } = this.#tenant
    if (early && HoldfastError.is(error, 'sold_out')) {
      const refs = Array.from({ length: terms.buckets }, (_, bucket) => keys.ofSale(this.id, bucket).ref)
      early.begin(keys.tenant, this.id, terms, refs)
    }
    throw error
  }

  /** In the words of a sale: a checkout is a hold, and an item has an id. */
  async #told(error: HoldfastError): Promise<HoldfastError> {
    const code = CODES[error.code as keyof typeof CODES]
    if (code) return new HoldfastError(code)
    if (typeof error.facts.item !== 'number') return error
    const [item] = await this.#memory.byNumber([error.facts.item])
    const facts: Facts = { ...error.facts, item: item?.id ?? '' }
    return new HoldfastError(error.code, undefined, facts)
  }

  /** Nobody gets anywhere with a code of another sale, or of another tenant: it leads to a place that is not one of ours. */
  #placeOf(code: unknown, { buckets }: SaleTerms): Place {
    const ref = readCode(check.text('code', code))
    for (let bucket = 0; ref !== null && bucket < buckets; bucket += 1) {
      const place = this.#tenant.keys.ofSale(this.id, bucket)
      if (place.ref === ref) return place
    }
    throw new HoldfastError('checkout_not_found')
  }

  async #purchased(code: string, entry: MachineEntry, replayed: boolean): Promise<Purchase> {
    return { code, items: await this.#items(entry.metadata), replayed, at: entry.at }
  }

  async #items(metadata: string): Promise<SoldItem[]> {
    return this.#named(readLinesText(metadata))
  }

  async #named(lines: readonly { readonly item: number; readonly quantity: number }[]): Promise<SoldItem[]> {
    const items = await this.#memory.byNumber(lines.map(({ item }) => item))
    return lines.map(({ quantity }, at) => ({ id: items[at]?.id ?? '', quantity }))
  }

  async #state({ itemsHash: _, ...terms }: SaleTerms): Promise<SaleState> {
    const { keys, journal } = this.#tenant
    const refs = Array.from({ length: terms.buckets }, (_, bucket) => keys.ofSale(this.id, bucket).ref)
    const rows = await journal.read(refs)
    const stock = rows.reduce((sum, { available }) => sum + available, 0)
    const reserved = rows.reduce((sum, row) => sum + row.reserved, 0)
    const open = rows.every(({ status }) => status === 'active')
    return { id: this.id, ...terms, stock, reserved, sold: terms.limit - stock - reserved, open }
  }
}

/** A user is always in the same one: that is what keeps the limit exact. */
const bucketOf = (buyer: string, { buckets }: SaleTerms): number => Number.parseInt(buyer.slice(0, 8), 16) % buckets

const CODES = {
  hold_not_found: 'checkout_not_found',
  hold_closed: 'checkout_closed',
  hold_expired: 'checkout_expired',
} as const

function checkLines(value: unknown): SoldItem[] {
  if (!Array.isArray(value) || value.length < 1 || value.length > LINES_MAX) {
    throw check.invalid(
      'items',
      `1 to ${LINES_MAX} of them`,
      Array.isArray(value) ? `${value.length}` : check.show(value),
    )
  }
  const lines = value.map((one, at) => checkItem(one, `items[${at}]`, Number.MAX_SAFE_INTEGER))
  const seen = new Set<string>()
  for (const { id } of lines) {
    if (seen.has(id)) throw new HoldfastError('duplicate_item', undefined, { item: id })
    seen.add(id)
  }
  return lines
}
