import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { PostgresJournal } from '../../src/journal/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { append, newWallet, raise, type Writer } from './journals.js'

/** A wallet that grows fast, in a database that was empty a moment ago: nobody has looked at its tables since. */
const ENTRIES = 6_000
let client: pg.Client
let postgres: Postgres
let journal: PostgresJournal
let wallet: Writer

beforeAll(async () => {
  const url = await freshDatabase()
  client = new pg.Client({ connectionString: url, options: '-c search_path=holdfast' })
  await client.connect()
  const { rows } = await client.query("SELECT relname FROM pg_class WHERE relname ~ '^entries_[0-9]+$'")
  for (const { relname } of rows) await client.query(`ALTER TABLE ${relname} SET (autovacuum_enabled = off)`)
  // All goes over one connection, so that all plans are known.
  postgres = new Postgres(url, { maxConnections: 1 })
  journal = new PostgresJournal(postgres)
  wallet = await newWallet(journal)
})
afterAll(async () => {
  await client.end()
  await postgres.close()
})

async function grow(until: number): Promise<void> {
  while (wallet.state.seq < until) {
    const part = Array.from({ length: Math.min(500, until - wallet.state.seq) }, () =>
      wallet.credit(`k${wallet.state.seq}`),
    )
    await append(journal, wallet.file(...part))
  }
}

/** How the connection does by now what it has done before. */
async function planOf(statement: string): Promise<string> {
  const rows = await postgres.transaction((tx) =>
    tx.execute<{ 'QUERY PLAN': string }>('test', `EXPLAIN (ANALYZE) EXECUTE ${statement}`),
  )
  const lines = rows.map((row) => row['QUERY PLAN']).filter((line) => !line.includes('never executed'))
  return lines.join('\n')
}

/** The most that a step of it has read. */
function mostRows(plan: string): number {
  return Math.max(...[...plan.matchAll(/actual time=\S+ rows=(\d+)/g)].map(([, rows]) => Number(rows)))
}

it('finds a key by its index, also on a connection that has looked for some while there was little', async () => {
  const find = () => journal.find([{ ref: wallet.ref, key: 'k7' }])
  // So few that Postgres takes one index for as good as the other.
  await grow(420)
  expect(await find()).toMatchObject([{ seq: 8 }])
  await grow(ENTRIES)
  await expect
    .poll(
      async () => {
        await find()
        return planOf(`"holdfast_findKeys"('{${wallet.ref}}', '{k7}')`)
      },
      { timeout: 10_000, interval: 100 },
    )
    .not.toMatch(/Rows Removed by Filter/)
  expect(await find()).toMatchObject([{ seq: 8 }])
})

it('reads no more of a wallet than its last entries when it is loaded', async () => {
  const raised = await raise(journal, wallet.ref, { memory: true })
  expect(raised?.recent.map(({ seq }) => seq)).toEqual(Array.from({ length: 16 }, (_, n) => ENTRIES - 15 + n))
  const plan = await planOf(`"holdfast_recentEntries"('{${wallet.ref}}', '{${ENTRIES}}', 16)`)
  expect(plan).not.toMatch(/Rows Removed by Filter/)
  expect(mostRows(plan)).toBe(16)
})

it('reads nothing of what came after a charge without a hold when that is refunded', async () => {
  const charged = await newWallet(journal)
  const charge = [charged.credit('before'), charged.make({ kind: 'debit', key: 'charge', amount: 5 })]
  const after = Array.from({ length: 500 }, (_, n) => charged.credit(`after ${n}`))
  await append(journal, charged.file(...charge, ...after))
  expect(await journal.charge(charged.ref, 2)).toMatchObject({ charge: 5, hold: '' })
  const plan = await planOf(`"holdfast_refundFacts"('${charged.ref}', 2)`)
  expect(plan).not.toMatch(/Rows Removed by Filter/)
  expect(mostRows(plan)).toBe(1)
})

it('reads no more of the wallets that are due than a page, wherever that begins', async () => {
  // Two at a time are due at the same moment.
  await client.query(
    `INSERT INTO wallets (ref, tenant, id, currency, opened_at, initial_limit, genesis, epoch, owner, seq, head, at,
                          available, reserved, credit_limit, status, due, since)
     SELECT gen_random_uuid(), 'test', 'w' || n, 'usd', 1, 0, '', 1, 'redis', 1, '', 1, 0, 0, 0, 'active', 1000 + n / 2, 1
     FROM generate_series(1, 4000) AS n`,
  )
  for (const due of [0, 2_000, 2_900]) {
    expect(await journal.due(4_000, 64, { due, ref: '8'.repeat(32) })).toHaveLength(64)
    const plan = await planOf(`"holdfast_dueWallets"(4000, 64, ${due}, '${'8'.repeat(32)}')`)
    expect(plan).toMatch(/Index Scan using wallets_by_due/)
    expect(mostRows(plan)).toBeLessThan(2 * 64)
  }
})
