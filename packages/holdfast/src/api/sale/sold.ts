import type { Journal, PostgresSold, SaleTerms } from '../../journal/index.js'
import { readLinesText } from '../../machine/index.js'
import { CodeSet } from './codes.js'

export interface SoldParts {
  readonly journal: Pick<Journal, 'read'>
  readonly sold: PostgresSold
}

export interface SaleName {
  readonly tenant: string
  readonly id: string
  readonly terms: SaleTerms
  /** Of its buckets, in their order. */
  readonly refs: readonly string[]
}

/** Rows read at a time: about 1 MB. Others get their turn in between. */
const PAGE = 5_000

/**
 * Which items of a sale are sold for good, a bit for each, as the journal has it: all that there was is bought, and what is bought never
 * comes back. What only lies in checkouts may, and is not in here. So what is in here stays true, and needs no second look.
 *
 * With it go the codes of all checkouts that there were. Once an item is sold for good no further checkout of it can come to be: so whoever
 * asks for it under a key whose code is not among them has never had an answer that could be given again.
 */
export class SoldItems {
  readonly #parts: SoldParts
  readonly #sale: SaleName
  #bits: Uint8Array
  #codes = new CodeSet()
  /** How many can still be bought, in all, and of each item that there is more than one of. */
  #left: number
  #leftOf: Map<number, number> | null = null
  /** The last entry of each bucket that was read. */
  #read: { readonly seq: number; readonly hash: Buffer | null }[]
  /** Sold by what was read, and not shown before every bucket was read as far: a code may stand in another one. */
  #soon: number[] = []
  #isAll = false
  #count = 0

  constructor(parts: SoldParts, sale: SaleName) {
    this.#parts = parts
    this.#sale = sale
    this.#bits = new Uint8Array(Math.ceil((sale.terms.items + 1) / 8))
    this.#left = sale.terms.limit
    this.#read = sale.refs.map(() => ({ seq: 0, hash: null }))
  }

  /** Everything that can be bought is. */
  get isAll(): boolean {
    return this.#isAll
  }

  get count(): number {
    return this.#count
  }

  get bytes(): { readonly bits: number; readonly codes: number } {
    return { bits: this.#bits.byteLength, codes: this.#codes.bytes }
  }

  has(item: number): boolean {
    return ((this.#bits[item >> 3] as number) & (1 << (item & 7))) !== 0
  }

  /** There may have been a checkout of this code. */
  knows(code: string): boolean {
    return this.#codes.has(code)
  }

  *all(): Generator<number> {
    for (let item = 1; item <= this.#sale.terms.items; item += 1) if (this.has(item)) yield item
  }

  /** Reads what has come into the journal since. What is sold by that; null: it is another journal, and all is read anew. */
  async refresh(): Promise<readonly number[] | null> {
    const { journal } = this.#parts
    const { refs } = this.#sale
    this.#leftOf ??= await this.#quantities()
    // In one statement, so of one moment: what one bucket has from another, that one has given by then.
    const rows = await journal.read(refs)
    const seqs = new Map(rows.map(({ ref, seq }) => [ref, seq]))
    for (const [bucket, ref] of refs.entries()) {
      if (!(await this.#follow(bucket, ref, seqs.get(ref) ?? 0))) {
        this.#forget()
        return null
      }
    }
    const fresh = this.#soon
    this.#soon = []
    for (const item of fresh) this.#bits[item >> 3] = (this.#bits[item >> 3] as number) | (1 << (item & 7))
    this.#count += fresh.length
    this.#isAll = this.#left <= 0
    return fresh
  }

  /** False: what was read before is not there any more. Postgres was put back. */
  async #follow(bucket: number, ref: string, upTo: number): Promise<boolean> {
    for (;;) {
      const last = this.#read[bucket] as { seq: number; hash: Buffer | null }
      const page = await this.#parts.sold.entries(ref, last.seq, upTo, PAGE)
      const [first] = page
      if (last.hash && !(first?.seq === last.seq && first.hash.equals(last.hash))) return false
      for (const { seq, key, sold } of page) {
        if (seq === last.seq) continue
        if (sold === null) this.#codes.add(key)
        else this.#buy(sold)
      }
      const end = page.at(-1)
      if (end) this.#read[bucket] = { seq: end.seq, hash: end.hash }
      if (page.length < PAGE) return true
    }
  }

  #buy(sold: string): void {
    for (const { item, quantity } of readLinesText(sold)) {
      const left = (this.#leftOf?.get(item) ?? 1) - quantity
      this.#left -= quantity
      if (left > 0) this.#leftOf?.set(item, left)
      else this.#soon.push(item)
    }
  }

  async #quantities(): Promise<Map<number, number>> {
    const { tenant, id } = this.#sale
    const quantities = new Map<number, number>()
    for (let after = 0; ; ) {
      const page = await this.#parts.sold.quantities(tenant, id, after, PAGE)
      for (const { item, quantity } of page) quantities.set(item, quantity)
      const last = page.at(-1)
      if (!last || page.length < PAGE) return quantities
      after = last.item
    }
  }

  #forget(): void {
    this.#bits = new Uint8Array(this.#bits.length)
    this.#codes = new CodeSet()
    this.#left = this.#sale.terms.limit
    this.#leftOf = null
    this.#read = this.#sale.refs.map(() => ({ seq: 0, hash: null }))
    this.#soon = []
    this.#isAll = false
    this.#count = 0
  }
}
