/** Real processes, killed inside `move`. */
import { randomBytes } from 'node:crypto'
import { Holdfast } from 'holdfast'
import { HoldfastStore, type LedgerStore, PostgresStore } from 'holdfast/stripe402'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { emptyDatabase, freshDatabase, freshRedis } from '../../../../test/servers.js'
import { type MoverOrder, Movers } from './support/movers.js'

const BALANCE = 2_000
const AT_ONCE = 3

let movers: Movers
beforeAll(async () => {
  movers = await Movers.prepare()
})
afterAll(() => movers.close())

async function makeClients(store: LedgerStore): Promise<string[]> {
  const clients = Array.from({ length: 3 }, () => randomBytes(32).toString('hex'))
  const createdAt = new Date()
  for (const clientId of clients) {
    const record = { clientId, stripeCustomerId: 'cus', balance: BALANCE, currency: 'usd' }
    await store.createClient({ ...record, createdAt, updatedAt: createdAt })
  }
  return clients
}

async function kill(times: number, order: MoverOrder): Promise<void> {
  for (let killed = 0; killed < times; killed += AT_ONCE) {
    const some = Array.from({ length: Math.min(AT_ONCE, times - killed) }, () =>
      movers.killOne(order, 10 + Math.floor(Math.random() * 40)),
    )
    await Promise.all(some)
  }
}

describe('a process that is killed inside move leaves both or neither', () => {
  it('in Postgres, 50 times', async () => {
    const url = await emptyDatabase()
    const pool = new pg.Pool({ connectionString: url })
    const store = new PostgresStore(pool)
    await store.createTables()
    const clients = await makeClients(store)
    await kill(50, { store: { type: 'postgres', url }, clients })
    expect((await movers.judge(store, clients, BALANCE)).unknown).toBeGreaterThan(0)
    await pool.end()
  }, 300_000)

  it('in Holdfast, 24 times', async () => {
    movers.begun.clear()
    movers.answered.clear()
    const [redis, postgres] = [await freshRedis(), await freshDatabase()]
    const hf = await Holdfast.connect({ redis, postgres })
    const store = new HoldfastStore(hf)
    const clients = await makeClients(store)
    await kill(24, { store: { type: 'holdfast', redis, postgres }, clients })
    // What the dead have decided and not filed is filed by who comes next: here by a look that moves nothing.
    for (const clientId of clients) await store.addBalance(clientId, 0, { key: 'look' })
    expect((await movers.judge(store, clients, BALANCE)).unknown).toBeGreaterThan(0)
    expect((await hf.audit({ full: true })).counts.found).toBe(0)
    await hf.close()
  }, 300_000)
})
