import { type PostgresHandle, startPostgres } from '@holdfast/services'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { PostgresStore } from '../../src/stripe402/index.js'

/** Postgres waits for a replica that never comes. What was committed before can be seen, and no replica has it. */

const at = new Date('2026-01-01T00:00:00Z')
const client = { clientId: 'c', stripeCustomerId: 'cus_1', balance: 0, currency: 'usd', createdAt: at, updatedAt: at }
const noted = { id: 'noted', clientId: 'c', type: 'topup', amount: 5, createdAt: at } as const

let server: PostgresHandle
const pools: pg.Pool[] = []

function poolThat(synchronous_commit: 'on' | 'local'): pg.Pool {
  const pool = new pg.Pool({ connectionString: server.url, options: `-c synchronous_commit=${synchronous_commit}` })
  // A pool that has ended may still have connections that are closing, and hears of the server's end through them.
  pool.on('error', () => {})
  pools.push(pool)
  return pool
}

beforeAll(async () => {
  server = await startPostgres({ durable: false, settings: { synchronous_standby_names: 'absent' } })
})
afterAll(async () => {
  for (const pool of pools) await pool.end()
  await server.stop()
})

it('tells who asks again what was answered only once a replica has it', async () => {
  const operator = poolThat('local')
  const alone = new PostgresStore(operator)
  await alone.createTables()
  const changes = [
    (store: PostgresStore) => store.createClient(client),
    (store: PostgresStore) => store.addBalance('c', 10, { key: 'k' }),
    (store: PostgresStore) => store.deductBalance('c', 3, { key: 'l' }),
    (store: PostgresStore) => store.move({ id: 'm', clientId: 'c', type: 'topup', amount: 1 }),
    (store: PostgresStore) => store.recordTransaction(noted),
  ]
  for (const change of changes) await change(alone)

  const store = new PostgresStore(poolThat('on'))
  expect(await store.getClient('c')).toMatchObject({ balance: 8 })
  for (const change of changes) {
    let over = false
    const answer = change(store).then(
      () => 'told',
      ({ outcome }) => outcome,
    )
    void answer.then(() => {
      over = true
    })
    const cut = `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`
    while (!over) await operator.query(cut)
    expect(await answer).toBe('unknown')
  }
})
