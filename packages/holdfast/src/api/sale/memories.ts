import type { PostgresSales } from '../../journal/index.js'
import { SaleMemory } from './memory.js'

export interface MemoriesOptions {
  readonly itemsMax?: number
  readonly salesMax?: number
  readonly now?: () => number
}

/** Items of all sales together, about 200 bytes each: 100 MB. */
const ITEMS_MAX = 500_000
const SALES_MAX = 1_000
/** Later than that next to nobody asks: Redis has forgotten it as well. */
const KEPT_MS = 3_600_000
const LOOK_EVERY_MS = 60_000

/** What a process remembers of sales. Of those that were not used for longest nothing stays when there is no room. */
export class SaleMemories {
  readonly #sales: PostgresSales
  readonly #itemsMax: number
  readonly #salesMax: number
  readonly #now: () => number
  /** Of sales that there are, in the order of their use. */
  readonly #known = new Map<string, SaleMemory>()
  /** Of which that is not known: a crowd that comes for one of them asks once, and made-up ones cost no other its place. */
  readonly #asked = new Map<string, SaleMemory>()
  #latest: string | undefined
  #items = 0
  #lookedAt: number

  constructor(sales: PostgresSales, options: MemoriesOptions = {}) {
    const { itemsMax = ITEMS_MAX, salesMax = SALES_MAX, now = () => Date.now() } = options
    this.#sales = sales
    this.#itemsMax = itemsMax
    this.#salesMax = salesMax
    this.#now = now
    this.#lookedAt = now()
  }

  get sales(): number {
    return this.#known.size
  }

  get items(): number {
    return this.#items
  }

  /** For as long as something is asked of it: who keeps it for longer may hold one that is forgotten here. */
  of(tenant: string, saleId: string): SaleMemory {
    this.#dropOver()
    const name = `${tenant}\0${saleId}`
    const known = this.#known.get(name)
    if (!known) return this.#asked.get(name) ?? this.#make(name, tenant, saleId)
    if (name === this.#latest) return known
    this.#latest = name
    this.#known.delete(name)
    this.#known.set(name, known)
    return known
  }

  #make(name: string, tenant: string, saleId: string): SaleMemory {
    const memory: SaleMemory = new SaleMemory(this.#sales, tenant, saleId, {
      isThere: () => this.#keep(name, memory),
      isNone: () => this.#drop(name, memory),
      grew: (by) => this.#grow(name, memory, by),
    })
    this.#asked.set(name, memory)
    if (this.#asked.size > this.#salesMax) this.#asked.delete(this.#asked.keys().next().value as string)
    return memory
  }

  #keep(name: string, memory: SaleMemory): void {
    if (this.#asked.get(name) !== memory) return
    this.#asked.delete(name)
    this.#known.set(name, memory)
    this.#latest = name
    this.#dropOldest()
  }

  #grow(name: string, memory: SaleMemory, by: number): void {
    this.#keep(name, memory)
    if (this.#known.get(name) !== memory) return
    this.#items += by
    this.#dropOldest()
  }

  #drop(name: string, memory: SaleMemory): void {
    if (this.#asked.get(name) === memory) this.#asked.delete(name)
    if (this.#known.get(name) !== memory) return
    this.#known.delete(name)
    this.#items -= memory.size
  }

  #dropOldest(): void {
    for (const [name, memory] of this.#known) {
      if (this.#known.size <= this.#salesMax && this.#items <= this.#itemsMax) return
      this.#drop(name, memory)
    }
  }

  #dropOver(): void {
    const now = this.#now()
    if (now - this.#lookedAt < LOOK_EVERY_MS) return
    this.#lookedAt = now
    for (const [name, memory] of this.#known) {
      if (memory.endsAt !== undefined && memory.endsAt + KEPT_MS < now) this.#drop(name, memory)
    }
  }
}
