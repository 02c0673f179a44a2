import type { WalletStatus } from '../machine/index.js'
import type { Postgres } from '../postgres/index.js'
import { textArray } from './array-text.js'

/** What a sale was opened with, but for the list of its items. It never changes. */
export interface SaleTerms {
  /** How many can be bought in all. */
  readonly limit: number
  readonly perUser: number
  /** Checkouts are taken from this time on, and until before that, ms. */
  readonly startsAt: number
  readonly endsAt: number
  readonly checkoutTtlMs: number
  /** When stock is set aside: with the checkout, or only when it is bought. */
  readonly reserve: 'checkout' | 'purchase'
  readonly buckets: number
  readonly items: number
  /** SHA-256 over ids and quantities, in their order. */
  readonly itemsHash: string
}

export interface SaleItem {
  /** Its place in the list, from 1. */
  readonly item: number
  readonly id: string
  readonly quantity: number
}

export interface SaleRow {
  readonly terms: SaleTerms
  readonly ready: boolean
}

/** How a bucket stands. */
export interface BucketStanding {
  readonly ref: string
  /** What can be checked out, and what lies in checkouts. */
  readonly unsold: number
  readonly status: WalletStatus
  /** A checkout is open. */
  readonly running: boolean
  /** Something is on its way from it to another bucket. */
  readonly moving: boolean
}

/** What Postgres remembers of sales themselves. */
export class PostgresSales {
  readonly #postgres: Postgres

  constructor(postgres: Postgres) {
    this.#postgres = postgres
  }

  /** Makes it, if there is none. Whether what is there then is the same. */
  async open(
    tenant: string,
    id: string,
    terms: SaleTerms,
    items: readonly { readonly id: string; readonly quantity: number }[],
  ): Promise<SaleRow & { readonly same: boolean }> {
    const json = JSON.stringify(terms)
    const ids = textArray(items.map((item) => item.id))
    await this.#postgres.query('openSale', [tenant, id, json, ids, `{${items.map(({ quantity }) => quantity)}}`])
    const [row] = await this.#postgres.query<SaleRow & { same: boolean }>('readSale', [tenant, id, json])
    if (!row) throw new Error('A sale that was made a moment ago is gone')
    return row
  }

  async read(tenant: string, id: string): Promise<SaleRow | null> {
    const [row] = await this.#postgres.query<SaleRow>('readSale', [tenant, id, null])
    return row ?? null
  }

  /** `ref`: of one of its buckets, for who asks for events. */
  async ready(tenant: string, id: string, ref: string): Promise<void> {
    await this.#postgres.query('readySale', [tenant, id, ref])
  }

  /** Those after an id, by the bytes of their ids. */
  async list(tenant: string, after: string, most: number): Promise<{ id: string; terms: SaleTerms }[]> {
    return this.#postgres.query<{ id: string; terms: SaleTerms }>('listSales', [tenant, after, most])
  }

  /** Items in their order, those behind the one with this number. */
  async itemsAfter(tenant: string, id: string, item: number, most: number): Promise<SaleItem[]> {
    const rows = await this.#postgres.query<{ item: number; id: string; quantity: string }>('listSaleItems', [
      tenant,
      id,
      item,
      most,
    ])
    return rows.map(({ item, id, quantity }) => ({ item, id, quantity: Number(quantity) }))
  }

  async items(
    tenant: string,
    id: string,
    wanted: { ids?: readonly string[]; items?: readonly number[] },
  ): Promise<SaleItem[]> {
    const { ids = [], items = [] } = wanted
    const rows = await this.#postgres.query<{ item: number; id: string; quantity: string }>('saleItems', [
      tenant,
      id,
      textArray(ids),
      `{${items}}`,
    ])
    return rows.map(({ item, id, quantity }) => ({ item, id, quantity: Number(quantity) }))
  }

  /** How buckets stand, of whichever sales, all at one time. */
  async standing(refs: readonly string[]): Promise<BucketStanding[]> {
    const rows = await this.#postgres.query<Omit<BucketStanding, 'unsold'> & { unsold: string }>('saleStanding', [
      `{${refs}}`,
    ])
    return rows.map((row) => ({ ...row, unsold: Number(row.unsold) }))
  }
}
