import type { Postgres } from '../postgres/index.js'
import { textArray } from './array-text.js'

export type AttemptKind = 'checkout' | 'purchase' | 'cancel'
/** `failed`: the answer is not known, or the servers were away. */
export type AttemptOutcome = 'accepted' | 'replayed' | 'refused' | 'failed'

/** Something that was tried in a sale. Empty strings for what it has not. */
export interface AttemptRow {
  /** Its number in the process that writes it. */
  readonly n: number
  readonly sale: string
  readonly at: number
  readonly kind: AttemptKind
  readonly outcome: AttemptOutcome
  readonly code: string
  readonly buyer: string
  readonly checkout: string
  /** JSON: numbers of items with how many, or where those were not known, ids. */
  readonly items: string
}

export interface AttemptPlace {
  readonly at: number
  readonly writer: number
  readonly n: number
}

/** As it is read: of which sale was asked, and who it was is not told. */
export type KeptAttempt = AttemptPlace & Omit<AttemptRow, 'sale' | 'buyer'>

/** What Postgres remembers of attempts in sales. */
export class PostgresAttempts {
  readonly #postgres: Postgres

  constructor(postgres: Postgres) {
    this.#postgres = postgres
  }

  /** Writes what is not there yet: safe to repeat. */
  async keep(writer: number, rows: readonly AttemptRow[]): Promise<void> {
    await this.#postgres.query('keepSaleAttempts', [
      writer,
      `{${rows.map(({ n }) => n)}}`,
      `{${rows.map(({ sale }) => sale)}}`,
      `{${rows.map(({ at }) => at)}}`,
      textArray(rows.map(({ kind }) => kind)),
      textArray(rows.map(({ outcome }) => outcome)),
      textArray(rows.map(({ code }) => code)),
      textArray(rows.map(({ buyer }) => buyer)),
      textArray(rows.map(({ checkout }) => checkout)),
      textArray(rows.map(({ items }) => items)),
    ])
  }

  async read(sale: string, after: AttemptPlace, most: number, buyer: string | null): Promise<KeptAttempt[]> {
    const { at, writer, n } = after
    const asked = [sale, at, writer, n, most]
    const rows = await (buyer === null
      ? this.#postgres.query<Record<string, string | null>>('readSaleAttempts', asked)
      : this.#postgres.query<Record<string, string | null>>('readBuyerAttempts', [...asked, buyer]))
    return rows.map((row) => ({
      at: Number(row.at),
      writer: Number(row.writer),
      n: Number(row.n),
      kind: row.kind as AttemptKind,
      outcome: row.outcome as AttemptOutcome,
      code: row.code ?? '',
      checkout: row.checkout ?? '',
      items: row.items ?? '',
    }))
  }

  /** Takes away at most so many that are older. How many there were. */
  async prune(olderThanMs: number, most: number): Promise<number> {
    const [row] = await this.#postgres.query<{ pruned: number }>('pruneSaleAttempts', [olderThanMs, most])
    return row?.pruned ?? 0
  }
}
