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
  const counts = [...plan.matchAll(/actual time=\S+ rows=(\d+)/g)].map(([, rows]) => Number(rows))
  expect(Math.max(...counts)).toBe(16)
})
