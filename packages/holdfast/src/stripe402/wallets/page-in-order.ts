import { type Page, writeCursor } from '../checks.js'
import type { TransactionPage, TransactionRecord } from '../types.js'

/** Room for more than a page, so that it is put in order once in a while and not for each that comes. */
const SLACK = 1_000

/** A page out of transactions that come in any order: it keeps the first so many behind where the page before ended, and no more. */
export class PageInOrder {
  readonly onDamaged: Page['onDamaged']
  readonly #page: Page
  #kept: TransactionRecord[] = []

  constructor(page: Page) {
    this.#page = page
    this.onDamaged = page.onDamaged
  }

  offer(transaction: TransactionRecord): void {
    const { after } = this.#page
    if (after && this.#compare(placeOf(transaction), after) <= 0) return
    this.#kept.push(transaction)
    if (this.#kept.length > this.#page.limit + SLACK) this.#order()
  }

  close(): TransactionPage {
    this.#order()
    const { limit } = this.#page
    const transactions = this.#kept.slice(0, limit)
    const last = transactions.at(-1)
    return { transactions, next: this.#kept.length > limit && last ? writeCursor(placeOf(last)) : null }
  }

  /** One more than asked for stays: it tells that there are more. */
  #order(): void {
    this.#kept.sort((one, other) => this.#compare(placeOf(one), placeOf(other)))
    this.#kept = this.#kept.slice(0, this.#page.limit + 1)
  }

  #compare(one: Place, other: Place): number {
    const byTime = one.atMs - other.atMs || (one.id < other.id ? -1 : one.id > other.id ? 1 : 0)
    return this.#page.order === 'oldest' ? byTime : -byTime
  }
}

type Place = ReturnType<typeof placeOf>

const placeOf = ({ createdAt, id }: TransactionRecord) => ({ atMs: createdAt.getTime(), id })
