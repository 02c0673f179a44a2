/**
 * Everything that Redis and Postgres hold, to the letter: what a refused call must leave as it was. Without what processes know to be in the
 * journal: that is written a moment later, by whatever came before.
 */
import { Redis } from 'ioredis'
import pg from 'pg'
import type { Path } from './paths.js'

/** The numbers of `core` that only say when the wallet was last looked at, and what Redis was told of the journal. */
const LOOKED_AT = { acked: 9, agenda: 11, clock: 12 }
const NUMBERS_AT = 3

export class Dump {
  readonly #redis: Redis | undefined
  readonly #postgres: pg.Pool

  constructor(path: Path) {
    this.#redis = path.name === 'Redis' ? new Redis(path.redisUrl) : undefined
    this.#postgres = new pg.Pool({ connectionString: path.databaseUrl, max: 1 })
  }

  /** `exact`: refused before any I/O, so not even the time of the last look may have changed. */
  async take(exact: boolean): Promise<unknown> {
    const wallets = await this.#postgres.query('SELECT * FROM holdfast.wallets ORDER BY ref')
    const entries = await this.#postgres.query('SELECT * FROM holdfast.entries ORDER BY wallet, seq')
    const transfers = await this.#postgres.query('SELECT * FROM holdfast.transfers ORDER BY attempt')
    return {
      wallets: wallets.rows,
      entries: entries.rows,
      transfers: transfers.rows,
      redis: await this.#takeRedis(exact),
    }
  }

  async #takeRedis(exact: boolean): Promise<Record<string, unknown>> {
    const dump: Record<string, unknown> = {}
    for (const key of ((await this.#redis?.keys('*')) ?? []).sort()) {
      if (key.includes(':wallet:')) {
        const hash = (await this.#redis?.hgetallBuffer(key)) as Record<string, Buffer>
        dump[key] = exact ? hash : { ...hash, core: withoutLooks(hash.core as Buffer) }
      } else if (exact && !key.includes(':witnesses:')) {
        dump[key] = await this.#redis?.zrange(key, '0', '-1', 'WITHSCORES')
      }
    }
    return dump
  }

  async close(): Promise<void> {
    this.#redis?.disconnect()
    await this.#postgres.end()
  }
}

function withoutLooks(core: Buffer): Buffer {
  const rest = Buffer.from(core)
  for (const index of Object.values(LOOKED_AT)) rest.writeDoubleLE(0, NUMBERS_AT + 8 * index)
  return rest
}
