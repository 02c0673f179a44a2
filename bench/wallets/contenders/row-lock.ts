import pg from 'pg'
import { type Contender, FUNDS, HOLD_AMOUNT, HOLD_TTL_MS, type Place, SETTLE_TOTAL } from '../../harness/contender.js'
import { PostgresBooks } from './postgres-books.js'

const CONNECTIONS = 32

/** The key makes an operation safe to repeat, as it does in Holdfast; there is no chain, and a hold is an entry. */
const TABLES = `
  CREATE TABLE wallets (
    id bigint PRIMARY KEY, seq bigint NOT NULL, available bigint NOT NULL, reserved bigint NOT NULL
  ) WITH (fillfactor = 50);
  CREATE TABLE entries (
    wallet bigint NOT NULL, seq bigint NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp(), kind text NOT NULL,
    key text NOT NULL, hold text, amount bigint NOT NULL, available bigint NOT NULL, reserved bigint NOT NULL, expires_at bigint,
    PRIMARY KEY (wallet, seq), UNIQUE (wallet, key)
  )`

const LOCK = {
  name: 'lock',
  text: 'SELECT seq, available, reserved FROM wallets WHERE id = $1 FOR UPDATE',
}
const LOCK_AND_FIND = {
  name: 'lock-and-find',
  text: `SELECT w.seq, w.available, w.reserved, e.amount FROM wallets w JOIN entries e ON e.wallet = w.id AND e.key = $2
         WHERE w.id = $1 FOR UPDATE OF w`,
}
const MOVE = {
  name: 'move',
  text: 'UPDATE wallets SET seq = $2, available = $3, reserved = $4 WHERE id = $1',
}
const FILE = {
  name: 'file',
  text: `INSERT INTO entries (wallet, seq, kind, key, hold, amount, available, reserved, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
}

interface Row {
  seq: string
  available: string
  reserved: string
  amount?: string
}

/** The plain way: lock the row, look, write, commit. */
export class RowLockContender implements Contender {
  readonly #place: Place
  #pool: pg.Pool | undefined

  constructor(place: Place) {
    this.#place = place
  }

  async open(): Promise<void> {
    this.#pool = new pg.Pool({ connectionString: this.#place.databaseUrl, max: CONNECTIONS, idleTimeoutMillis: 0 })
  }

  async close(): Promise<void> {
    await this.#pool?.end()
  }

  async seed(wallets: number): Promise<void> {
    const pool = this.#pool as pg.Pool
    await pool.query(TABLES)
    await pool.query('INSERT INTO wallets SELECT id, 1, $1, 0 FROM generate_series(0, $2::bigint - 1) AS id', [
      FUNDS,
      wallets,
    ])
    await pool.query(
      `INSERT INTO entries (wallet, seq, kind, key, amount, available, reserved)
       SELECT id, 1, 'credit', 'seed', $1, $1, 0 FROM generate_series(0, $2::bigint - 1) AS id`,
      [FUNDS, wallets],
    )
    await pool.query('ANALYZE')
  }

  async hold(wallet: number, key: string): Promise<unknown> {
    await this.#transaction(async (client) => {
      const { seq, available, reserved } = await lock(client, { ...LOCK, values: [wallet] })
      if (available < HOLD_AMOUNT) throw new Error(`Insufficient: ${available}`)
      const after = [seq + 1, available - HOLD_AMOUNT, reserved + HOLD_AMOUNT] as const
      await client.query({ ...MOVE, values: [wallet, ...after] })
      await client.query({
        ...FILE,
        values: [wallet, after[0], 'hold', key, key, HOLD_AMOUNT, after[1], after[2], Date.now() + HOLD_TTL_MS],
      })
    })
    return key
  }

  async settle(wallet: number, key: string, held: unknown): Promise<void> {
    await this.#transaction(async (client) => {
      const { seq, available, reserved, amount } = await lock(client, { ...LOCK_AND_FIND, values: [wallet, held] })
      const after = [seq + 1, available + amount - SETTLE_TOTAL, reserved - amount] as const
      await client.query({ ...MOVE, values: [wallet, ...after] })
      await client.query({
        ...FILE,
        values: [wallet, after[0], 'settle', key, held, SETTLE_TOTAL, after[1], after[2], null],
      })
    })
  }

  isBusy(): boolean {
    return false
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

async function lock(client: pg.PoolClient, query: pg.QueryConfig) {
  const { rows } = await client.query<Row>(query)
  const row = rows[0]
  if (!row) throw new Error('The wallet or the hold is not there')
  return {
    seq: Number(row.seq),
    available: Number(row.available),
    reserved: Number(row.reserved),
    amount: Number(row.amount ?? 0),
  }
}

export class RowLockBooks extends PostgresBooks {
  constructor(place: Place) {
    super(place, {
      schema: 'public',
      count: 'SELECT sum(seq) AS count FROM wallets',
      tally: `SELECT (SELECT count(*) FROM entries) AS entries, (SELECT sum(available::numeric + reserved) FROM wallets) AS money`,
    })
  }
}
