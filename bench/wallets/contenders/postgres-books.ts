import pg from 'pg'
import type { Books, Place, Tally } from '../../harness/contender.js'

/** What is asked of a contender's database; how its tables are called is the contender's. */
export interface BookQueries {
  /** One value: entries, cheaply. */
  readonly count: string
  /** Two: entries counted one by one, and all money. */
  readonly tally: string
  readonly schema: string
}

export class PostgresBooks implements Books {
  readonly #pool: pg.Pool
  readonly #queries: BookQueries

  constructor({ databaseUrl }: Place, queries: BookQueries) {
    this.#pool = new pg.Pool({ connectionString: databaseUrl, max: 1 })
    this.#queries = queries
  }

  async count(): Promise<number> {
    const { rows } = await this.#pool.query<{ count: string | null }>(this.#queries.count)
    return Number(rows[0]?.count ?? 0)
  }

  async tally(): Promise<Tally> {
    const { rows } = await this.#pool.query<{ entries: string; money: string | null }>(this.#queries.tally)
    const money = rows[0]?.money ?? null
    return { entries: Number(rows[0]?.entries), money: money === null ? null : BigInt(money) }
  }

  async bytesOnDisk(): Promise<{ tables: number; log: number }> {
    const { rows } = await this.#pool.query<{ tables: string; log: string }>(
      `SELECT (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c
               WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'r') AS tables,
              pg_current_wal_insert_lsn() - '0/0' AS log`,
      [this.#queries.schema],
    )
    return { tables: Number(rows[0]?.tables), log: Number(rows[0]?.log) }
  }

  async close(): Promise<void> {
    await this.#pool.end()
  }
}
