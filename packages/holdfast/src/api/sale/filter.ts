import { BloomFilter, type BloomMirror, type Primitives } from '../../primitives/index.js'
import type { SaleName, SoldItems } from './sold.js'

/** What is asked first whether an item may be sold. What it says is verified before anybody is told. */
export interface SoldFilter {
  /** False: it is not sold, as far as this process knows. */
  mightHave(item: number): boolean
  /** What was sold since the last time. */
  learn(fresh: readonly number[]): Promise<void>
  close(): void
}

/** One bit for each item, exact: the truth itself as it was last read, so there is nothing to verify. */
export class ExactFilter implements SoldFilter {
  readonly #sold: SoldItems

  constructor(sold: SoldItems) {
    this.#sold = sold
  }

  mightHave(item: number): boolean {
    return this.#sold.has(item)
  }

  async learn(): Promise<void> {}

  close(): void {}
}

export interface BloomSize {
  /** Of how many items. Default 100,000, or as many as the sale has. */
  readonly capacity: number | undefined
  /** How often it takes an item for sold that is not. Default 0.01. */
  readonly falsePositives: number | undefined
  readonly everyMs: number
}

const CAPACITY = 100_000
const ADD_MAX = 10_000
/** As the keys of the sale itself. */
const KEPT_AFTER_MS = 3_600_000

/** In Redis, one for all processes, with a copy in each. */
export class SharedBloomFilter implements SoldFilter {
  readonly #sold: SoldItems
  readonly #filter: BloomFilter
  readonly #mirror: BloomMirror

  constructor(primitives: Primitives, sold: SoldItems, { id, terms }: SaleName, size: BloomSize) {
    this.#sold = sold
    this.#filter = new BloomFilter(primitives, 'sold', {
      scope: id,
      endsAt: new Date(terms.endsAt + KEPT_AFTER_MS),
      capacity: size.capacity ?? Math.max(CAPACITY, terms.items),
      ...(size.falsePositives !== undefined && { falsePositives: size.falsePositives }),
    })
    this.#mirror = this.#filter.mirror({ everyMs: size.everyMs })
  }

  mightHave(item: number): boolean {
    return this.#mirror.mightHave(String(item)).result === 'maybe'
  }

  /** Others add what they have read as well: only what is missing goes to Redis. */
  async learn(fresh: readonly number[]): Promise<void> {
    await this.#mirror.refresh()
    if (this.#isMissing()) return this.#rebuild()
    const absent = fresh.filter((item) => !this.mightHave(item))
    for (let from = 0; from < absent.length; from += ADD_MAX) {
      const added = await this.#filter.addMany(absent.slice(from, from + ADD_MAX).map(String))
      if (added.some(({ result }) => result === 'missing')) return this.#rebuild()
    }
  }

  close(): void {
    this.#mirror.close()
  }

  #isMissing(): boolean {
    const answer = this.#mirror.mightHave('0')
    return answer.result === 'maybe' && answer.because === 'missing'
  }

  async #rebuild(): Promise<void> {
    const sold = this.#sold
    await this.#filter.rebuild(function* () {
      for (const item of sold.all()) yield String(item)
    })
    await this.#mirror.refresh()
  }
}
