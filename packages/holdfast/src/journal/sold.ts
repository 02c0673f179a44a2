import type { Postgres } from '../postgres/index.js'

/** A checkout, or what was bought. */
export interface SoldEntry {
  readonly seq: number
  readonly hash: Buffer
  readonly key: string
  /** As it stands in metadata; null: a checkout. */
  readonly sold: string | null
}

/** What Postgres remembers of what is sold. */
export class PostgresSold {
  readonly #postgres: Postgres

  constructor(postgres: Postgres) {
    this.#postgres = postgres
  }

  /** Of a bucket, in order: from a seq on, itself included, up to another. */
  async entries(ref: string, from: number, upTo: number, most: number): Promise<SoldEntry[]> {
    const rows = await this.#postgres.query<Omit<SoldEntry, 'seq'> & { seq: string }>('readSoldEntries', [
      ref,
      from,
      upTo,
      most,
    ])
    return rows.map((row) => ({ ...row, seq: Number(row.seq) }))
  }

  /** Items that there is more than one of, in their order, behind a number. */
  async quantities(
    tenant: string,
    sale: string,
    after: number,
    most: number,
  ): Promise<{ readonly item: number; readonly quantity: number }[]> {
    const rows = await this.#postgres.query<{ item: number; quantity: string }>('readSaleQuantities', [
      tenant,
      sale,
      after,
      most,
    ])
    return rows.map(({ item, quantity }) => ({ item, quantity: Number(quantity) }))
  }
}
