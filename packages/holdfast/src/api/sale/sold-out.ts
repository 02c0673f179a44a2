import { HoldfastError } from '../../errors/index.js'
import type { BucketStanding, PostgresSales, SaleTerms } from '../../journal/index.js'

/** How often Postgres is asked at most: one statement for all sales that somebody waits for. */
const EVERY_MS = 1_000
/** Buckets asked about in one statement; what is above waits for the next. */
const REFS_MAX = 500

interface Watched {
  readonly refs: readonly string[]
  readonly terms: SaleTerms
  readonly waiting: Set<{ resolve: (soldOut: boolean) => void; reject: (error: HoldfastError) => void }>
}

/** Everything is bought, and nothing lies in a checkout that could come back. */
export const isSoldOut = (buckets: readonly BucketStanding[]): boolean =>
  buckets.length > 0 && buckets.every(({ unsold, moving }) => unsold === 0 && !moving)

/** No more checkouts are taken, and none is open. */
const isOver = (buckets: readonly BucketStanding[], { endsAt }: SaleTerms): boolean =>
  (Date.now() >= endsAt || buckets.every(({ status }) => status !== 'active')) &&
  !buckets.some(({ running }) => running)

/**
 * Tells who waits for it that a sale is sold out for good, or over. While somebody waits Postgres is asked once a second, for all sales and
 * all who wait in this process together.
 */
export class SoldOutWatch {
  readonly #sales: PostgresSales
  readonly #watched = new Map<string, Watched>()
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(sales: PostgresSales) {
    this.#sales = sales
  }

  /** True: sold out. False: over before that. */
  wait(refs: readonly string[], terms: SaleTerms, signal: AbortSignal | undefined): Promise<boolean> {
    if (signal?.aborted) return Promise.reject(new HoldfastError('aborted'))
    if (this.#closed) return Promise.reject(closing())
    return new Promise((resolve, reject) => {
      const name = refs[0] as string
      const watched: Watched = this.#watched.get(name) ?? { refs, terms, waiting: new Set() }
      this.#watched.set(name, watched)
      const abort = (): void => {
        watched.waiting.delete(one)
        if (watched.waiting.size === 0) this.#watched.delete(name)
        reject(new HoldfastError('aborted'))
      }
      const done = (): void => signal?.removeEventListener('abort', abort)
      const one = {
        resolve: (soldOut: boolean) => {
          done()
          resolve(soldOut)
        },
        reject: (error: HoldfastError) => {
          done()
          reject(error)
        },
      }
      watched.waiting.add(one)
      signal?.addEventListener('abort', abort, { once: true })
      this.#schedule(0)
    })
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
    for (const { waiting } of this.#watched.values()) for (const { reject } of waiting) reject(closing())
    this.#watched.clear()
  }

  /** Who waits keeps the process alive by what it waits for, and not by this. */
  #schedule(ms: number): void {
    if (this.#timer || this.#watched.size === 0 || this.#closed) return
    this.#timer = setTimeout(() => {
      void this.#look().finally(() => {
        this.#timer = undefined
        this.#schedule(EVERY_MS * (0.75 + Math.random() / 2))
      })
    }, ms)
    this.#timer.unref()
  }

  async #look(): Promise<void> {
    const asked: [string, Watched][] = []
    let refs = 0
    for (const entry of this.#watched) {
      if (refs > 0 && refs + entry[1].refs.length > REFS_MAX) break
      refs += entry[1].refs.length
      asked.push(entry)
    }
    const rows = await this.#sales.standing(asked.flatMap(([, { refs }]) => refs)).catch(() => null)
    // Postgres is away: nobody is told anything, and it is asked again.
    if (!rows || this.#closed) return
    const byRef = new Map(rows.map((row) => [row.ref, row]))
    for (const [name] of asked) {
      const watched = this.#watched.get(name)
      if (!watched) continue
      // To the end of the line, so that more than can be asked about at once all have their turn.
      this.#watched.delete(name)
      const own = watched.refs.flatMap((ref) => byRef.get(ref) ?? [])
      const soldOut = isSoldOut(own)
      if (soldOut || isOver(own, watched.terms)) for (const { resolve } of watched.waiting) resolve(soldOut)
      else this.#watched.set(name, watched)
    }
  }
}

const closing = (): HoldfastError => new HoldfastError('unavailable', 'Holdfast is being closed')
