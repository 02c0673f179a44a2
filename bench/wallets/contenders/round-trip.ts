import { Redis } from 'ioredis'
import pg from 'pg'
import type { Contender, Place } from '../../harness/contender.js'
import { PostgresBooks } from './postgres-books.js'

/** Not a way to keep wallets: the least that deciding in Redis and remembering in Postgres can cost, one after the other. */
export class RoundTripContender implements Contender {
  readonly #place: Place
  #redis: Redis | undefined
  #client: pg.Client | undefined

  constructor(place: Place) {
    this.#place = place
  }

  async open(): Promise<void> {
    this.#redis = new Redis(this.#place.redisUrl)
    this.#client = new pg.Client({ connectionString: this.#place.databaseUrl })
    await Promise.all([this.#redis.ping(), this.#client.connect()])
  }

  async close(): Promise<void> {
    this.#redis?.disconnect()
    await this.#client?.end()
  }

  async seed(): Promise<void> {
    await (this.#client as pg.Client).query('CREATE TABLE entries (key text NOT NULL)')
  }

  async hold(_: number, key: string): Promise<unknown> {
    await this.#once(key)
    return undefined
  }

  async settle(_: number, key: string): Promise<void> {
    await this.#once(key)
  }

  isBusy(): boolean {
    return false
  }

  async #once(key: string): Promise<void> {
    await (this.#redis as Redis).ping()
    await (this.#client as pg.Client).query({
      name: 'file',
      text: 'INSERT INTO entries (key) VALUES ($1)',
      values: [key],
    })
  }
}

/** There is no money in it; the entries are counted as everywhere. */
export class RoundTripBooks extends PostgresBooks {
  constructor(place: Place) {
    super(place, {
      schema: 'public',
      count: 'SELECT count(*) AS count FROM entries',
      tally: 'SELECT count(*) AS entries, NULL AS money FROM entries',
    })
  }
}
