/** What Postgres remembers, read past the product's own reading: rows, entries and the books. */
import pg from 'pg'
import { PostgresJournal } from '../packages/holdfast/src/journal/index.js'
import { Postgres } from '../packages/holdfast/src/postgres/index.js'
import type { SimWallet } from '../sim/database.js'

export interface Remembered {
  readonly wallets: readonly SimWallet[]
  /** Transfers that nobody has finished. */
  readonly openTransfers: number
  /** Tenants and currencies whose accounts do not sum to zero. */
  readonly unbalanced: readonly string[]
}

const ENTRIES_MAX = 10_000_000

/** What is still on its way to an end: holds that are open, be it with nothing left in them, and transfers that are under way. */
export async function findUnrest(databaseUrl: string): Promise<string[]> {
  const client = new pg.Client(databaseUrl)
  await client.connect()
  try {
    const { rows } = await client.query<{ what: string }>(
      `SELECT w.id || ': ' || begun.hold || ' is still open' AS what
       FROM holdfast.entries begun JOIN holdfast.wallets w ON w.ref = begun.wallet
       WHERE begun.kind = 'hold' AND NOT EXISTS (
         SELECT FROM holdfast.entries ended
         WHERE ended.wallet = begun.wallet AND ended.hold = begun.hold AND ended.kind IN ('settle', 'release', 'expire'))
       UNION ALL SELECT key || ': the transfer is under way' FROM holdfast.transfers`,
    )
    return rows.map(({ what }) => what)
  } finally {
    await client.end()
  }
}

export async function readJournal(databaseUrl: string): Promise<Remembered> {
  const client = new pg.Client(databaseUrl)
  await client.connect()
  const postgres = new Postgres(databaseUrl, { maxConnections: 1, answerTimeoutMs: 60_000 })
  const journal = new PostgresJournal(postgres)
  try {
    const { rows } = await client.query<{ ref: string; tenant: string; genesis: string }>(
      `SELECT ref, tenant, encode(genesis, 'hex') AS genesis FROM holdfast.wallets`,
    )
    const wallets: SimWallet[] = []
    for (const { ref, tenant, genesis } of rows) {
      const [row] = await journal.read([ref])
      if (row) wallets.push({ tenant, genesis, row, entries: await journal.entries(ref, 1, ENTRIES_MAX) })
    }
    const transfers = await client.query<{ count: string }>('SELECT count(*) FROM holdfast.transfers')
    const books = await client.query<{ what: string }>(
      `SELECT tenant || ' ' || currency || ': ' || sum(balance) AS what FROM holdfast.books
       GROUP BY tenant, currency HAVING sum(balance) <> 0`,
    )
    return {
      wallets,
      openTransfers: Number(transfers.rows[0]?.count),
      unbalanced: books.rows.map(({ what }) => what),
    }
  } finally {
    await postgres.close()
    await client.end()
  }
}
