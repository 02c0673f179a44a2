import { Gathering } from '../../engine/index.js'
import type { PostgresSales, SaleItem, SaleTerms } from '../../journal/index.js'
import type { Keys, Place } from '../../redis/index.js'
import * as check from '../validate.js'

/** Items remembered of one sale. */
const ITEMS_MAX = 100_000

/** Who sees to it that all sales together take up no more than there is room for. */
export interface MemoryRoom {
  isThere(): void
  /** There is no such sale, or not yet. */
  isNone(): void
  /** So many items more, or less. */
  grew(by: number): void
}

/** What a process remembers of a sale: its terms and items never change, so it never has to ask twice. */
export class SaleMemory {
  readonly #sales: PostgresSales
  readonly #tenant: string
  readonly #id: string
  readonly #room: MemoryRoom
  readonly #byId = new Map<string, SaleItem>()
  readonly #byNumber = new Map<number, SaleItem>()
  // Hundreds ask for items at the same time, and each for others: asked one by one, that cost more than all the rest of a purchase.
  readonly #idsAsked: Gathering<string, SaleItem | undefined>
  readonly #numbersAsked: Gathering<number, SaleItem | undefined>
  #terms: SaleTerms | undefined
  #termsAsked: Promise<SaleTerms | null> | undefined
  #places: readonly Place[] | undefined

  constructor(sales: PostgresSales, tenant: string, id: string, room: MemoryRoom) {
    this.#sales = sales
    this.#tenant = tenant
    this.#id = id
    this.#room = room
    this.#idsAsked = new Gathering(async (ids) => {
      const found = new Map((await sales.items(tenant, this.#id, { ids })).map((item) => [item.id, item]))
      return ids.map((id) => this.#remember(found.get(id)))
    })
    this.#numbersAsked = new Gathering(async (items) => {
      const found = new Map((await sales.items(tenant, this.#id, { items })).map((item) => [item.item, item]))
      return items.map((item) => this.#remember(found.get(item)))
    })
  }

  get size(): number {
    return this.#byId.size
  }

  /** Undefined: nobody has asked for its terms. */
  get endsAt(): number | undefined {
    return this.#terms?.endsAt
  }

  /** At once where they are known. Null: there is no such sale, or not all of its stock is there yet. A crowd that comes at once asks once. */
  terms(): SaleTerms | Promise<SaleTerms | null> {
    if (this.#terms) return this.#terms
    this.#termsAsked ??= this.#readTerms().finally(() => {
      this.#termsAsked = undefined
    })
    return this.#termsAsked
  }

  async #readTerms(): Promise<SaleTerms | null> {
    const row = await this.#sales.read(this.#tenant, this.#id)
    if (!row?.ready) {
      this.#room.isNone()
      return null
    }
    this.#terms = row.terms
    this.#room.isThere()
    return row.terms
  }

  /** Where its buckets are. */
  places(keys: Keys, { buckets }: SaleTerms): readonly Place[] {
    this.#places ??= Array.from({ length: buckets }, (_, bucket) => keys.ofSale(this.#id, bucket))
    return this.#places
  }

  /** At once where all of them are known. */
  byId(ids: readonly string[]): SaleItem[] | Promise<SaleItem[]> {
    return allOf(this.#byId, ids) ?? this.#askById(ids)
  }

  /** At once where all of them are known. */
  byNumber(numbers: readonly number[]): SaleItem[] | Promise<SaleItem[]> {
    return allOf(this.#byNumber, numbers) ?? this.#askByNumber(numbers)
  }

  async #askById(ids: readonly string[]): Promise<SaleItem[]> {
    const items = await Promise.all(ids.map((id) => this.#byId.get(id) ?? this.#idsAsked.add(id)))
    return items.map((item, at) => {
      if (!item) throw check.invalid(`items[${at}].id`, 'an item of the sale', 'another')
      return item
    })
  }

  async #askByNumber(numbers: readonly number[]): Promise<SaleItem[]> {
    const items = await Promise.all(numbers.map((item) => this.#byNumber.get(item) ?? this.#numbersAsked.add(item)))
    return items.map((item, at) => {
      if (!item) throw new Error(`The journal names item ${numbers[at]}, and the sale has none`)
      return item
    })
  }

  #remember(item: SaleItem | undefined): SaleItem | undefined {
    if (!item) return undefined
    const before = this.#byId.size
    if (before >= ITEMS_MAX) {
      this.#byId.clear()
      this.#byNumber.clear()
    }
    this.#byId.set(item.id, item)
    this.#byNumber.set(item.item, item)
    this.#room.grew(this.#byId.size - before)
    return item
  }
}

/** Null: not all of them are there. */
function allOf<K, V>(map: ReadonlyMap<K, V>, keys: readonly K[]): V[] | null {
  const found: V[] = []
  for (const key of keys) {
    const value = map.get(key)
    if (value === undefined) return null
    found.push(value)
  }
  return found
}
