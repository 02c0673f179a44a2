import type { Buckets, Outcome, Wanted } from '../../engine/index.js'
import { HoldfastError } from '../../errors/index.js'
import type { SaleTerms } from '../../journal/index.js'
import { type Command, checkoutWords, command, type Entry as MachineEntry, readLinesText } from '../../machine/index.js'
import type { Place } from '../../redis/index.js'
import { reading } from '../reads.js'
import { checkOptions, OPERATION_NAMES, type OperationOptions } from '../tenant.js'
import * as check from '../validate.js'
import { WAIT_NAMES, type WaitOptions, within } from '../waiting.js'
import { ATTEMPTS_NAMES, type SaleAttempt, type SaleAttemptsPage } from './attempts.js'
import { bucketsOf, bucketsOfCode, wantedFor } from './buckets.js'
import { CURRENCY, fillSale } from './filling.js'
import { checkLines, named, refuseTwice, type SoldItem } from './lines.js'
import type { SaleMemory } from './memory.js'
import { type Basket, buyWith, type CheckedPay, checkPay, type Paid, type PayOptions, paidFor } from './pay.js'
import {
  readItems,
  readRunning,
  readStates,
  type SaleItemState,
  type SaleItemsOptions,
  type SaleState,
} from './reading.js'
import { readAttempts, recorded, type TellItems } from './record.js'
import type { SaleTenant } from './tenant.js'
import { checkTerms, type ItemOptions, SALE_NAMES, type SaleOptions, shareOf } from './terms.js'
import { told } from './told.js'

export interface CheckoutOptions extends Omit<OperationOptions, 'metadata' | 'counter'> {
  readonly user: string
  readonly items: readonly ItemOptions[]
}

export interface PurchaseOptions extends Omit<OperationOptions, 'key' | 'metadata' | 'counter'> {
  /** Not needed: a code is bought once, however often that is asked for. */
  readonly key?: string
  /** Where stock is set aside only when it is bought: all or nothing (default), or what is left. */
  readonly take?: 'all' | 'left'
  /** Out of a wallet: stock and money move together, or not at all. */
  readonly pay?: PayOptions
}

const OPEN_NAMES = new Set([...SALE_NAMES, ...WAIT_NAMES])
const SOLD_OUT_NAMES = check.namesOf<Pick<WaitOptions, 'signal'>>({ signal: true })
const CHECKOUT_NAMES = new Set([...OPERATION_NAMES, 'user', 'items'])
const PURCHASE_NAMES = new Set([...OPERATION_NAMES, 'take', 'pay'])
/** Behind the door: what came through one of the two. */
const EITHER_NAMES = new Set([...CHECKOUT_NAMES, ...PURCHASE_NAMES])

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
  /** Null: not paid out of a wallet. */
  readonly paid: Paid | null
}

/** A sale by its id. Making one of these is no I/O. */
export class Sale {
  readonly id: string
  readonly #tenant: SaleTenant

  constructor(tenant: SaleTenant, id: string) {
    this.#tenant = tenant
    this.id = check.text('sale id', id)
  }

  /** Looked up each time: what is kept for as long as this object would have no bound. */
  get #memory(): SaleMemory {
    return this.#tenant.memories.of(this.#tenant.keys.tenant, this.id)
  }

  /** Makes the sale and fills it. The same again changes nothing, and finishes what was begun; with other terms it is `sale_exists`. */
  async open(options: SaleOptions & WaitOptions): Promise<SaleState> {
    const asked = check.options('options', options, OPEN_NAMES)
    const { terms, items } = checkTerms(asked)
    const { keys, sales, timeoutMs } = this.#tenant
    return within(timeoutMs, asked, async () => {
      const row = await sales.open(keys.tenant, this.id, terms, items)
      if (!row.same) throw new HoldfastError('sale_exists')
      if (!row.ready) await fillSale(this.#tenant, this.id, terms, items)
      return this.#state(terms)
    })
  }

  /** Null: there is no such sale. */
  async status(options: WaitOptions = {}): Promise<SaleState | null> {
    return reading(this.#tenant, check.options('options', options, WAIT_NAMES), async () => {
      const terms = await this.#memory.terms()
      return terms && this.#state(terms)
    })
  }

  /**
   * Resolves when everything is bought, for good: true. Or when the sale is over before that, nothing lying in a checkout any more: false.
   * However many wait in this process, Postgres is asked once a second.
   */
  async soldOut(options: Pick<WaitOptions, 'signal'> = {}): Promise<boolean> {
    const signal = check.signal(check.options('options', options, SOLD_OUT_NAMES).signal)
    const terms = await termsOf(this.#memory)
    return this.#tenant.soldOut.wait(this.#refs(terms), terms, signal)
  }

  /** Its items in their order, a page at a time, and what is left of each: as it stood within the last seconds. */
  async items(options: SaleItemsOptions = {}): Promise<SaleItemState[]> {
    const items = await readItems(this.#tenant, this.id, options)
    if (!items) throw new HoldfastError('sale_not_found')
    return items
  }

  /** Into the user's running checkout, or a new one: all of it or nothing. */
  async checkout(options: CheckoutOptions): Promise<Checkout> {
    const asked = check.options('options', options, CHECKOUT_NAMES)
    const user = check.text('user', asked.user)
    const key = check.key(asked.key)
    const buyer = this.#tenant.keys.buyer(this.id, user)
    const lines = checkLines(asked.items)
    return recorded(this.#tenant, this.id, 'checkout', { buyer, items: lines }, (tell) =>
      this.#checkOut(buyer, lines, key, options, tell),
    )
  }

  async #checkOut(
    buyer: string,
    lines: readonly SoldItem[],
    key: string,
    options: CheckoutOptions,
    tell: TellItems,
  ): Promise<Checkout> {
    const memory = this.#memory
    const terms = await termsOf(memory)
    const items = await memory.byId(lines.map(({ id }) => id))
    tell(items)
    refuseTwice(lines)
    const { keys, early, durability } = this.#tenant
    const buckets = bucketsOf(memory.places(keys, terms), buyer)
    const quantities = lines.map(({ quantity }) => quantity)
    const code = keys.code(buckets.places[buckets.target] as Place, buyer, key)
    const refusal = early?.refusalOf(keys.tenant, this.id, items, code)
    if (refusal) {
      checkOptions(options, durability, EITHER_NAMES)
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
        quantity: quantities[at] as number,
        share: shareOf(quantity, item, buckets.target, terms.buckets),
      })),
    })
    const wanted = async () => wantedFor(items, quantities, terms.buckets)
    const asked = command({ kind: 'checkout', key: code, also: words, counter: CURRENCY })
    const asking = this.#submit(memory, buckets, asked, wanted, options)
    const outcome = await asking.catch((error) => this.#refused(error, terms))
    const entry = outcome.entry as MachineEntry
    return {
      code: entry.hold,
      items: await named(memory, readLinesText(entry.metadata)),
      expiresAt: entry.holdExpiresAt,
      replayed: outcome.replayed,
    }
  }

  /** Buys what is in a checkout. Asked for again, the answer is the same. */
  async purchase(code: string, options: PurchaseOptions = {}): Promise<Purchase> {
    const asked = check.options('options', options, PURCHASE_NAMES)
    const take = check.oneOf('take', asked.take ?? 'all', ['all', 'left'] as const)
    const pay = checkPay(this.id, asked)
    checkOptions(options, this.#tenant.durability, PURCHASE_NAMES)
    check.text('code', code)
    return recorded(this.#tenant, this.id, 'purchase', { checkout: code }, () => this.#buy(code, take, pay, options))
  }

  async #buy(code: string, take: 'all' | 'left', pay: CheckedPay | null, options: PurchaseOptions): Promise<Purchase> {
    const memory = this.#memory
    const terms = await termsOf(memory)
    const buckets = this.#bucketsOf(memory, code, terms)
    const place = buckets.places[buckets.target] as Place
    const noted = () => this.#noted(place.ref, code, terms)
    const buy = async (what: 'all' | 'left') => {
      const also = `${what} ${terms.perUser}`
      const bought = command({ kind: 'purchase', key: `~purchase:${code}`, hold: code, also, counter: CURRENCY })
      const { entry, replayed } = pay
        ? await this.#pay(buckets, noted, { place, code, terms, take: what }, pay, options)
        : await this.#submit(memory, buckets, bought, noted, options)
      return this.#purchased(memory, code, entry as MachineEntry, replayed)
    }
    try {
      // What is left is what all buckets have: it is brought here first, as if all were wanted.
      const gathers = take === 'left' && terms.reserve === 'purchase' && terms.buckets > 1
      if (gathers) return await buy('all').catch((error) => (isTooLittle(error) ? buy('left') : Promise.reject(error)))
      return await buy(take)
    } catch (error) {
      const refusal = HoldfastError.is(error) ? await told(error, memory, terms.buckets) : error
      const before = HoldfastError.is(refusal, 'idempotency_conflict') || HoldfastError.is(refusal, 'checkout_closed')
      // Bought before, in another way.
      const entry = before ? await this.#tenant.journal.holdEntry(place.ref, code) : null
      if (entry?.kind !== 'settle') throw refusal
      return this.#purchased(memory, code, entry, true)
    }
  }

  /** Gives back what is in a checkout. Asked for again, the answer is the same. */
  async cancel(
    code: string,
    options: Omit<PurchaseOptions, 'take' | 'pay'> = {},
  ): Promise<{ readonly replayed: boolean }> {
    check.options('options', options, PURCHASE_NAMES)
    check.text('code', code)
    return recorded(this.#tenant, this.id, 'cancel', { checkout: code }, () => this.#giveBack(code, options))
  }

  async #giveBack(
    code: string,
    options: Omit<PurchaseOptions, 'take' | 'pay'>,
  ): Promise<{ readonly replayed: boolean }> {
    const memory = this.#memory
    const buckets = this.#bucketsOf(memory, code, await termsOf(memory))
    const cancelled = command({ kind: 'cancel', key: `~cancel:${code}`, hold: code, counter: CURRENCY })
    const { replayed } = await this.#submit(memory, buckets, cancelled, async () => [], options)
    return { replayed }
  }

  /** What was tried in it, refused or not, in the order of its time, a page at a time; of all users, or of one. */
  async attempts(options: SaleAttemptsPage & WaitOptions = {}): Promise<SaleAttempt[]> {
    const asked = check.options('options', options, ATTEMPTS_NAMES)
    return reading(this.#tenant, asked, () => readAttempts(this.#tenant, this.id, options))
  }

  /** The user's running checkout, as the journal has it. Null: none is. */
  async checkoutOf(user: string, options: WaitOptions = {}): Promise<Omit<Checkout, 'replayed'> | null> {
    const { keys, journal } = this.#tenant
    const buyer = keys.buyer(this.id, check.text('user', user))
    return reading(this.#tenant, check.options('options', options, WAIT_NAMES), async () => {
      const memory = this.#memory
      const { places, target } = bucketsOf(memory.places(keys, await termsOf(memory)), buyer)
      const place = places[target] as Place
      const running = await readRunning(this.#tenant, place, buyer)
      if (!running) return null
      // What Redis has decided and the journal has not may never come to be.
      const [made] = await journal.find([{ ref: place.ref, key: running.hold }])
      if (!made) return null
      return { code: running.hold, items: await named(memory, running.lines), expiresAt: running.expiresAt }
    })
  }

  /** No more checkouts from now on. What is in one can be bought until it runs out. */
  async close(options: Omit<PurchaseOptions, 'take' | 'pay'> = {}): Promise<SaleState> {
    const terms = await termsOf(this.#memory)
    const { keys, engine, durability } = this.#tenant
    const given = checkOptions(options, durability, EITHER_NAMES)
    for (let bucket = 0; bucket < terms.buckets; bucket += 1) {
      // One after the other: when the last is closed all are, and so much can be told of it.
      const metadata = JSON.stringify({ bucket, buckets: terms.buckets })
      const freeze = command({ kind: 'freeze', key: '~close', counter: CURRENCY, metadata })
      await engine.submit(keys.ofSale(this.id, bucket), freeze, { ...given, memory: false })
    }
    return this.#state(terms)
  }

  /** `wanted`: what its bucket must have for that; brought from others where it has too little. */
  async #submit(
    memory: SaleMemory,
    buckets: Buckets,
    asked: Command,
    wanted: () => Promise<readonly Wanted[]>,
    given: unknown,
  ): Promise<Outcome> {
    const { engine, durability } = this.#tenant
    const { memory: fromMemory, timeoutMs, signal, retry } = checkOptions(given, durability, EITHER_NAMES)
    const options = { memory: fromMemory, timeoutMs, signal, retry, alone: buckets.places.length === 1 }
    try {
      return await engine.moves.submit(buckets, asked, wanted, options)
    } catch (error) {
      throw error instanceof HoldfastError ? await told(error, memory, buckets.places.length) : error
    }
  }

  /** Out of a wallet, in the same way. */
  #pay(
    buckets: Buckets,
    wanted: () => Promise<readonly Wanted[]>,
    basket: Basket,
    pay: CheckedPay,
    given: PurchaseOptions,
  ): Promise<{ entry: MachineEntry; replayed: boolean }> {
    const { engine, durability } = this.#tenant
    return engine.moves.around(buckets, wanted, checkOptions(given, durability, EITHER_NAMES), (timeoutMs) =>
      buyWith(this.#tenant, this.#memory, basket, pay, { ...given, timeout: Math.ceil(timeoutMs) }),
    )
  }

  /** Where something is sold others will ask for it too. */
  #refused(error: unknown, terms: SaleTerms): never {
    const { keys, early } = this.#tenant
    if (early && HoldfastError.is(error, 'sold_out')) {
      early.begin(keys.tenant, this.id, terms, this.#refs(terms))
    }
    throw error
  }

  /** Nobody gets anywhere with a code of another sale, or of another tenant: it leads to a place that is not one of ours. */
  #bucketsOf(memory: SaleMemory, code: unknown, terms: SaleTerms): Buckets {
    const buckets = bucketsOfCode(memory.places(this.#tenant.keys, terms), check.text('code', code))
    if (!buckets) throw new HoldfastError('checkout_not_found')
    return buckets
  }

  /** What is in a checkout, as its bucket must have it. */
  async #noted(ref: string, code: string, { buckets }: SaleTerms): Promise<Wanted[]> {
    const last = await this.#tenant.journal.holdEntry(ref, code)
    const lines = last?.metadata ? readLinesText(last.metadata) : []
    const items = await this.#memory.byNumber(lines.map(({ item }) => item))
    return wantedFor(
      items,
      lines.map(({ quantity }) => quantity),
      buckets,
    )
  }

  async #purchased(memory: SaleMemory, code: string, entry: MachineEntry, replayed: boolean): Promise<Purchase> {
    const paid = await paidFor(this.#tenant, entry)
    return { code, items: await named(memory, readLinesText(entry.metadata)), replayed, at: entry.at, paid }
  }

  #refs({ buckets }: Pick<SaleTerms, 'buckets'>): string[] {
    return Array.from({ length: buckets }, (_, bucket) => this.#tenant.keys.ofSale(this.id, bucket).ref)
  }

  async #state(terms: SaleTerms): Promise<SaleState> {
    const [state] = await readStates(this.#tenant, [{ id: this.id, terms }])
    return state as SaleState
  }
}

async function termsOf(memory: SaleMemory): Promise<SaleTerms> {
  const terms = await memory.terms()
  if (!terms) throw new HoldfastError('sale_not_found')
  return terms
}

const isTooLittle = (error: unknown): boolean =>
  HoldfastError.is(error, 'sold_out') || HoldfastError.is(error, 'user_limit')
