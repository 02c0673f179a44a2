import { HoldfastError } from '../errors/index.js'
import type { PostgresSales, SaleItem, SaleTerms } from '../journal/index.js'

/** Items remembered of a sale, about 200 bytes each. */
const ITEMS_MAX = 100_000

/** What a process remembers of a sale: its terms and items never change, so it never has to ask twice. */
export class SaleMemory {
  readonly #sales: PostgresSales
  readonly #tenant: string
  readonly #id: string
  readonly #byId = new Map<string, SaleItem>()
  readonly #byNumber = new Map<number, SaleItem>()
  #terms: SaleTerms | undefined

  constructor(sales: PostgresSales, tenant: string, id: string) {
    this.#sales = sales
    this.#tenant = tenant
    this.#id = id
  }

  /** Null: there is no such sale, or not all of its stock is there yet. */
  async terms(): Promise<SaleTerms | null> {
    if (this.#terms) return this.#terms
    const row = await this.#sales.read(this.#tenant, this.#id)
    if (!row?.ready) return null
    this.#terms = row.terms
    return row.terms
  }

  async byId(ids: readonly string[]): Promise<SaleItem[]> {
    const unknown = ids.filter((id) => !this.#byId.has(id))
    if (unknown.length > 0) this.#remember(await this.#sales.items(this.#tenant, this.#id, { ids: unknown }))
    return ids.map((id, at) => {
      const item = this.#byId.get(id)
      if (!item)
        throw new HoldfastError('invalid_argument', `items[${at}].id: expected an item of the sale, got another`)
      return item
    })
  }

  async byNumber(items: readonly number[]): Promise<SaleItem[]> {
    const unknown = items.filter((item) => !this.#byNumber.has(item))
    if (unknown.length > 0) this.#remember(await this.#sales.items(this.#tenant, this.#id, { items: unknown }))
    return items.map((item) => this.#byNumber.get(item) as SaleItem)
  }

  #remember(items: readonly SaleItem[]): void {
    if (this.#byId.size + items.length > ITEMS_MAX) {
      this.#byId.clear()
      this.#byNumber.clear()
    }
    for (const item of items) {
      this.#byId.set(item.id, item)
      this.#byNumber.set(item.item, item)
    }
  }
}
