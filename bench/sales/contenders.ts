import { Holdfast, HoldfastError } from 'holdfast'
import pg from 'pg'
import type { Contender, Place } from '../harness/contender.js'

/** As in the sale that people know: at most ten a user, who comes back for each of them. */
const PER_USER = 10
/** Of each item. Enough that nobody is refused: what is measured is work, not refusals. */
const QUANTITY = 1_000_000
const CONNECTIONS = 32
const DAY_MS = 24 * 60 * 60 * 1_000

export const SALE = 'friday'

/** The caller's number and how many pairs it has made before stand at the end of the key. */
function userOf(key: string): string {
  const at = key.lastIndexOf('-')
  return `${key.slice(0, at)}-${Math.floor(Number(key.slice(at + 1)) / PER_USER)}`
}

const itemOf = (number: number): string => `item-${number}`

/** The library as everybody uses it. Numbers of wallets are those of items here: a hold is a checkout, and a settle a purchase. */
export class SaleContender implements Contender {
  readonly #place: Place
  readonly #buckets: number
  #holdfast: Holdfast | undefined

  constructor(place: Place, buckets: number) {
    this.#place = place
    this.#buckets = buckets
  }

  get #sale() {
    return (this.#holdfast as Holdfast).sale(SALE)
  }

  async open(): Promise<void> {
    const { redisUrl, databaseUrl } = this.#place
    this.#holdfast = await Holdfast.connect({ redis: redisUrl, postgres: databaseUrl, audit: false })
  }

  async close(): Promise<void> {
    await this.#holdfast?.close()
  }

  async seed(items: number): Promise<void> {
    await this.#sale.open({
      items: Array.from({ length: items }, (_, number) => ({ id: itemOf(number), quantity: QUANTITY })),
      perUser: PER_USER,
      startsAt: Date.now() - 1_000,
      endsAt: Date.now() + DAY_MS,
      buckets: this.#buckets,
      timeout: 100_000,
    })
  }

  hold(item: number, key: string): Promise<unknown> {
    return this.#sale.checkout({ user: userOf(key), items: [{ id: itemOf(item) }], key })
  }

  async settle(_: number, __: string, held: unknown): Promise<void> {
    await this.#sale.purchase((held as { code: string }).code)
  }

  isBusy(error: unknown): boolean {
    return error instanceof HoldfastError && error.retryable
  }
}

const TABLES = `
  CREATE TABLE sale (
    id integer PRIMARY KEY, total bigint NOT NULL, reserved bigint NOT NULL, sold bigint NOT NULL, per_user bigint NOT NULL,
    starts_at timestamptz NOT NULL, ends_at timestamptz NOT NULL
  ) WITH (fillfactor = 10);
  CREATE TABLE items (sale integer, item integer, quantity bigint NOT NULL, taken bigint NOT NULL, PRIMARY KEY (sale, item)) WITH (fillfactor = 80);
  CREATE TABLE users (sale integer, id text, taken bigint NOT NULL, PRIMARY KEY (sale, id)) WITH (fillfactor = 80);
  CREATE TABLE checkouts (
    sale integer, code text, user_id text NOT NULL, item integer NOT NULL, quantity bigint NOT NULL,
    made_at timestamptz NOT NULL DEFAULT clock_timestamp(), expires_at timestamptz NOT NULL, bought_at timestamptz, PRIMARY KEY (sale, code)
  ) WITH (fillfactor = 80);
  CREATE INDEX ON checkouts (expires_at) WHERE bought_at IS NULL`

const LOCK = {
  name: 'lock',
  text: `SELECT total - reserved - sold AS left, per_user, ends_at, clock_timestamp() BETWEEN starts_at AND ends_at AS active
         FROM sale WHERE id = 1 FOR UPDATE`,
}
/** Item, user and record in one statement, and no row where one of them has had enough: the row lock is not held for longer than it must. */
const TAKE = `
  WITH item AS (UPDATE items SET taken = taken + 1 WHERE sale = 1 AND item = $1 AND taken + 1 <= quantity RETURNING item),
       buyer AS (INSERT INTO users VALUES (1, $2, 1) ON CONFLICT (sale, id) DO UPDATE SET taken = users.taken + 1 WHERE users.taken + 1 <= $4 RETURNING id)
  INSERT INTO checkouts (sale, code, user_id, item, quantity, expires_at, bought_at)`
const CHECK_OUT = {
  name: 'check-out',
  text: `${TAKE}
    SELECT 1, $3, buyer.id, item.item, 1, $5, NULL FROM item, buyer RETURNING code`,
}
const BUY_AT_ONCE = {
  name: 'buy-at-once',
  text: `${TAKE}
    SELECT 1, $3, buyer.id, item.item, 1, $5, clock_timestamp() FROM item, buyer RETURNING code`,
}
const BUY = {
  name: 'buy',
  text: `UPDATE checkouts SET bought_at = clock_timestamp()
         WHERE sale = 1 AND code = $1 AND bought_at IS NULL AND expires_at > clock_timestamp() RETURNING code`,
}
const MOVE = { name: 'move', text: 'UPDATE sale SET reserved = reserved + $1, sold = sold + $2 WHERE id = 1' }

/**
 * The plain way: lock the sale's row, look, write, commit. Its statements are prepared, and as few as keep the checks apart. `steps` 1: there
 * is no checkout, what is wanted is bought at once; 2: a transaction for each of both, as Holdfast has them.
 */
export class RowLockSaleContender implements Contender {
  readonly #place: Place
  readonly #steps: 1 | 2
  #pool: pg.Pool | undefined

  constructor(place: Place, steps: 1 | 2) {
    this.#place = place
    this.#steps = steps
  }

  async open(): Promise<void> {
    this.#pool = new pg.Pool({ connectionString: this.#place.databaseUrl, max: CONNECTIONS, idleTimeoutMillis: 0 })
  }

  async close(): Promise<void> {
    await this.#pool?.end()
  }

  async seed(items: number): Promise<void> {
    const pool = this.#pool as pg.Pool
    await pool.query(TABLES)
    const until = new Date(Date.now() + DAY_MS)
    await pool.query('INSERT INTO sale VALUES (1, $1, 0, 0, $2, clock_timestamp(), $3)', [
      items * QUANTITY,
      PER_USER,
      until,
    ])
    await pool.query('INSERT INTO items SELECT 1, item, $2, 0 FROM generate_series(0, $1::bigint - 1) AS item', [
      items,
      QUANTITY,
    ])
    await pool.query('ANALYZE')
  }

  async hold(item: number, key: string): Promise<unknown> {
    if (this.#steps === 2) await this.#take(CHECK_OUT, item, key, [1, 0])
    return key
  }

  async settle(item: number, _: string, held: unknown): Promise<void> {
    if (this.#steps === 1) return this.#take(BUY_AT_ONCE, item, held as string, [0, 1])
    await this.#transaction(async (client) => {
      await client.query(LOCK)
      const { rowCount } = await client.query({ ...BUY, values: [held] })
      if (rowCount !== 1) throw new Error('The checkout is not there any more')
      await client.query({ ...MOVE, values: [-1, 1] })
    })
  }

  isBusy(): boolean {
    return false
  }

  async #take(statement: pg.QueryConfig, item: number, code: string, moved: readonly number[]): Promise<void> {
    await this.#transaction(async (client) => {
      const { rows } = await client.query<{ left: string; per_user: string; ends_at: Date; active: boolean }>(LOCK)
      const sale = rows[0]
      if (!sale?.active || Number(sale.left) < 1) throw new Error('The sale is over, or sold out')
      const { rowCount } = await client.query({
        ...statement,
        values: [item, userOf(code), code, sale.per_user, sale.ends_at],
      })
      if (rowCount !== 1) throw new Error('The item is sold out, or the user has had enough')
      await client.query({ ...MOVE, values: [...moved] })
    })
  }

  async #transaction(work: (client: pg.PoolClient) => Promise<void>): Promise<void> {
    const client = await (this.#pool as pg.Pool).connect()
    try {
      await client.query('BEGIN')
      await work(client)
      await client.query('COMMIT')
      client.release()
    } catch (error) {
      client.release(true)
      throw error
    }
  }
}

/** `sale-<buckets>`, or `rowlock-<transactions a purchase>`. */
export function makeSaleContender(name: string, place: Place): Contender | null {
  const [, kind, count] = /^(sale|rowlock)-(\d+)$/.exec(name) ?? []
  if (kind === undefined) return null
  return kind === 'sale'
    ? new SaleContender(place, Number(count))
    : new RowLockSaleContender(place, count === '1' ? 1 : 2)
}

/** One value: what the store of record says was bought. */
export const SOLD = {
  sale: `SELECT count(*) AS sold FROM holdfast.entries WHERE kind = 'settle'`,
  rowlock: `SELECT CASE WHEN s.sold = count(c) AND s.reserved = 0 AND s.sold = (SELECT sum(taken) FROM users)
                          AND s.sold = (SELECT sum(taken) FROM items) THEN s.sold ELSE -1 END AS sold
            FROM sale s LEFT JOIN checkouts c ON c.bought_at IS NOT NULL GROUP BY s.sold, s.reserved`,
}
