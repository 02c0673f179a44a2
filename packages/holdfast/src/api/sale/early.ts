import type { Clock } from '../../engine/index.js'
import { HoldfastError } from '../../errors/index.js'
import type { SaleTerms } from '../../journal/index.js'
import type { Primitives } from '../../primitives/index.js'
import type { Telemetry } from '../../telemetry/index.js'
import * as check from '../validate.js'
import { ExactFilter, SharedBloomFilter, type SoldFilter } from './filter.js'
import { type SaleName, SoldItems, type SoldParts } from './sold.js'

/** How checkouts of items that are sold are refused without asking Redis or Postgres. */
export interface EarlyRejectOptions {
  /**
   * `bitmap`: a bit for each item, in the process. `bloom`: a Bloom filter in Redis with a copy in the process before that, for comparison.
   * Default `bitmap`.
   */
  readonly by?: 'bitmap' | 'bloom'
  /** How often what is sold is read from the journal, ms. Default 10,000. */
  readonly every?: number
  /** Of the Bloom filter: for how many items. Default 100,000, or as many as the sale has. */
  readonly capacity?: number
  /** Of the Bloom filter: how often it takes an item for sold that is not, from 0.000001 to 0.5. Default 0.01. */
  readonly falsePositives?: number
}

const EARLY_NAMES = check.namesOf<EarlyRejectOptions>({ by: true, every: true, capacity: true, falsePositives: true })

export interface CheckedEarlyReject {
  readonly by: 'bitmap' | 'bloom'
  readonly everyMs: number
  readonly capacity: number | undefined
  readonly falsePositives: number | undefined
}

export interface EarlyParts extends SoldParts {
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** Postgres lacks what it acknowledged: then nobody knows what is sold. */
  isStopped(): boolean
  /** For the Bloom filter alone: what it is not asked for is not made. */
  primitivesOf(tenant: string): Promise<Primitives>
}

const EVERY_MS = 10_000
const EVERY_MIN_MS = 10
const EVERY_MAX_MS = 3_600_000
const CAPACITY_MAX = 1_000_000
/** What was not read for so many times is not believed any more; what nobody asked for so long is let go. */
const TIMES_MAX = 6
const SALES_MAX = 1_000

/** Of one sale, since the first of its checkouts in this process was refused because something is sold. */
class EarlyReject {
  usedAt: number
  readonly #parts: EarlyParts
  readonly #options: CheckedEarlyReject
  readonly #sale: SaleName
  readonly #sold: SoldItems
  #filter: SoldFilter | undefined
  #readAt = Number.NEGATIVE_INFINITY
  #isClosed = false

  constructor(parts: EarlyParts, options: CheckedEarlyReject, sale: SaleName) {
    this.#parts = parts
    this.#options = options
    this.#sale = sale
    this.#sold = new SoldItems(parts, sale)
    this.usedAt = parts.clock.now()
  }

  /** The first of these that is sold for good; 0: all of the sale is. Undefined: the engine has to be asked. */
  look(items: readonly { readonly item: number }[], code: string): number | undefined {
    const { clock } = this.#parts
    this.usedAt = clock.now()
    const filter = this.#filter
    if (!filter || clock.now() - this.#readAt > TIMES_MAX * this.#options.everyMs) return undefined
    const item = this.#sold.isAll ? 0 : items.find((one) => this.#isSold(filter, one.item))?.item
    if (item === undefined || this.#sold.knows(code) || this.#parts.isStopped()) return undefined
    this.#tell('told')
    return item
  }

  #isSold(filter: SoldFilter, item: number): boolean {
    if (!filter.mightHave(item)) return false
    const isSold = this.#sold.has(item)
    if (!isSold) this.#tell('false_hit')
    return isSold
  }

  /** Whatever fails in here only means that the engine is asked. */
  async refresh(): Promise<void> {
    const { clock, telemetry } = this.#parts
    const beganAt = clock.now()
    try {
      const fresh = (await this.#sold.refresh()) ?? (await this.#sold.refresh())
      this.#readAt = beganAt
      this.#filter ??= await this.#makeFilter()
      if (this.#isClosed) this.#filter.close()
      else await this.#filter.learn(fresh ?? [])
    } catch (error) {
      telemetry.log?.('warn', 'early_reject_not_refreshed', { reason: String(error) })
    }
  }

  close(): void {
    this.#isClosed = true
    this.#filter?.close()
  }

  async #makeFilter(): Promise<SoldFilter> {
    if (this.#options.by === 'bitmap') return new ExactFilter(this.#sold)
    const primitives = await this.#parts.primitivesOf(this.#sale.tenant)
    return new SharedBloomFilter(primitives, this.#sold, this.#sale, this.#options)
  }

  #tell(outcome: 'told' | 'false_hit'): void {
    this.#parts.telemetry.count?.('holdfast_sale_early_rejects_total', { outcome })
  }
}

/** Those of all sales that this process has refused checkouts of. */
export class EarlyRejects {
  readonly #parts: EarlyParts
  readonly #options: CheckedEarlyReject
  readonly #known = new Map<string, EarlyReject>()
  #cancel: (() => void) | undefined
  #working: Promise<void> | undefined
  #isClosed = false

  constructor(parts: EarlyParts, options: CheckedEarlyReject) {
    this.#parts = parts
    this.#options = options
  }

  /** What the engine would be sure to say. Undefined: it has to be asked. */
  refusalOf(
    tenant: string,
    id: string,
    items: readonly { readonly item: number; readonly id: string }[],
    code: string,
  ): HoldfastError | undefined {
    const item = this.#known.get(nameOf(tenant, id))?.look(items, code)
    if (item === undefined) return undefined
    const sold = items.find((one) => one.item === item)
    return new HoldfastError('sold_out', undefined, sold ? { item: sold.id, left: 0 } : { left: 0 })
  }

  /** Something of this sale is sold: from now on what is, is known here. */
  begin(tenant: string, id: string, terms: SaleTerms, refs: readonly string[]): void {
    const name = nameOf(tenant, id)
    if (this.#isClosed || this.#known.has(name) || this.#known.size >= SALES_MAX) return
    const early = new EarlyReject(this.#parts, this.#options, { tenant, id, terms, refs })
    this.#known.set(name, early)
    if (!this.#working) this.#work()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancel?.()
    for (const early of this.#known.values()) early.close()
    this.#known.clear()
    await this.#working
  }

  #work(): void {
    this.#cancel?.()
    this.#working = this.#round().finally(() => {
      this.#working = undefined
      if (this.#isClosed || this.#known.size === 0) return
      this.#cancel = this.#parts.clock.after(this.#options.everyMs, () => this.#work(), true)
    })
  }

  async #round(): Promise<void> {
    for (const [name, early] of this.#known) {
      if (this.#isClosed) return
      if (this.#parts.clock.now() - early.usedAt > TIMES_MAX * this.#options.everyMs) {
        early.close()
        this.#known.delete(name)
      } else await early.refresh()
    }
  }
}

const nameOf = (tenant: string, id: string): string => `${tenant}\0${id}`

/** Null: none. */
export function checkEarlyReject(given: unknown): CheckedEarlyReject | null {
  if (given === false) return null
  const asked = check.options('earlyReject', given, EARLY_NAMES)
  const { by = 'bitmap', every = EVERY_MS, capacity, falsePositives } = asked
  return {
    by: check.oneOf('earlyReject.by', by, ['bitmap', 'bloom'] as const),
    everyMs: check.integer('earlyReject.every', every, EVERY_MIN_MS, EVERY_MAX_MS),
    capacity: capacity === undefined ? undefined : check.integer('earlyReject.capacity', capacity, 1, CAPACITY_MAX),
    falsePositives: falsePositives === undefined ? undefined : rateOf(falsePositives),
  }
}

function rateOf(value: unknown): number {
  if (typeof value === 'number' && value >= 1e-6 && value <= 0.5) return value
  throw check.invalid('earlyReject.falsePositives', 'a number from 0.000001 to 0.5', check.show(value))
}
