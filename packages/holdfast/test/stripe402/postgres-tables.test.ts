import { randomBytes } from 'node:crypto'
import { PostgresStore, type TransactionRecord } from 'holdfast/stripe402'
import pg from 'pg'
import { afterEach, describe, expect, it } from 'vitest'
import { emptyDatabase } from '../../../../test/servers.js'
import { codeOf, dumpOf, insertClient, insertTransaction, makePublishedTables } from './support/published.js'

const INTEGER_MAX = 2_147_483_647

const pools: pg.Pool[] = []
afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.end()
})

async function openPool(connectionString?: string): Promise<pg.Pool> {
  const pool = new pg.Pool({ connectionString: connectionString ?? (await emptyDatabase()) })
  pools.push(pool)
  return pool
}

async function typesOf(pool: pg.Pool): Promise<Record<string, string>> {
  const { rows } = await pool.query<{ name: string; type: string }>(`
    SELECT table_name || '.' || column_name AS name, data_type AS type FROM information_schema.columns
    WHERE table_name LIKE 'stripe402%' AND column_name IN ('balance', 'amount') ORDER BY 1`)
  return Object.fromEntries(rows.map(({ name, type }) => [name, type]))
}

const newClientId = () => randomBytes(32).toString('hex')
const transaction = (clientId: string, given: Partial<TransactionRecord> = {}): TransactionRecord => ({
  id: 'one',
  clientId,
  type: 'deduction',
  amount: 100,
  createdAt: new Date(),
  ...given,
})

describe('createTables', () => {
  it('can be called by many at once, and again', async () => {
    const url = await emptyDatabase()
    const stores = await Promise.all(Array.from({ length: 8 }, async () => new PostgresStore(await openPool(url))))
    await Promise.all(stores.flatMap((store) => [store.createTables(), store.createTables({ widen: true })]))
    await stores[0]?.createTables()
    expect(await typesOf(pools[0] as pg.Pool)).toEqual({
      'stripe402_clients.balance': 'bigint',
      'stripe402_keys.amount': 'bigint',
      'stripe402_keys.balance': 'bigint',
      'stripe402_transactions.amount': 'bigint',
    })
  })

  it('refuses options that are none', async () => {
    const store = new PostgresStore(await openPool())
    expect(await codeOf(store.createTables({ widen: 'yes' } as never))).toBe('invalid_argument')
    expect(await codeOf(store.createTables(null as never))).toBe('invalid_argument')
  })

  it('finds what is there wherever it is on the search path', async () => {
    const url = await emptyDatabase()
    await makePublishedTables(await openPool(url))
    const pool = new pg.Pool({ connectionString: url, options: '-c search_path=shop,public' })
    pools.push(pool)
    await pool.query('CREATE SCHEMA shop')
    await new PostgresStore(pool).createTables()
    const { rows } = await pool.query(
      "SELECT table_schema || '.' || table_name AS name FROM information_schema.tables WHERE table_name LIKE 'stripe402%' ORDER BY 1",
    )
    expect(rows.map(({ name }) => name)).toEqual([
      'public.stripe402_clients',
      'public.stripe402_transactions',
      'shop.stripe402_keys',
    ])
  })

  it('leaves tables of stripe402 and what is in them as they are', async () => {
    const pool = await openPool()
    await makePublishedTables(pool)
    const clientId = newClientId()
    await insertClient(pool, clientId, 49_500)
    await insertTransaction(pool, clientId, 't1', 'deduction', 500)
    const before = await dumpOf(pool)
    await new PostgresStore(pool).createTables()
    expect(await dumpOf(pool)).toEqual(before)
    expect(await typesOf(pool)).toMatchObject({
      'stripe402_clients.balance': 'integer',
      'stripe402_transactions.amount': 'integer',
    })
  })

  it('widens them on request, beside traffic, and again costs nothing', async () => {
    const pool = await openPool()
    await makePublishedTables(pool)
    const store = new PostgresStore(pool)
    const clientId = newClientId()
    await insertClient(pool, clientId, 1_000)
    const deducted = Promise.all(Array.from({ length: 100 }, () => store.deductBalance(clientId, 1)))
    await store.createTables({ widen: true })
    expect(new Set(await deducted).size).toBe(100)
    const { rows } = await pool.query("SELECT pg_relation_filenode('stripe402_clients') AS file")
    await store.createTables({ widen: true })
    expect((await pool.query("SELECT pg_relation_filenode('stripe402_clients') AS file")).rows).toEqual(rows)
    expect(await store.addBalance(clientId, INTEGER_MAX)).toBe(INTEGER_MAX + 900)
  })
})

describe('on tables that stripe402 made', () => {
  it('amounts are bounded by what the columns can take, and beyond nothing changes', async () => {
    const pool = await openPool()
    await makePublishedTables(pool)
    const store = new PostgresStore(pool)
    await store.createTables()
    const clientId = newClientId()
    await insertClient(pool, clientId, INTEGER_MAX - 1)
    const before = await dumpOf(pool)
    const record = { stripeCustomerId: 'cus', currency: 'usd', createdAt: new Date(), updatedAt: new Date() }
    const calls = [
      () => store.addBalance(clientId, 2),
      () => store.addBalance(clientId, Number.MAX_SAFE_INTEGER - INTEGER_MAX),
      () => store.addBalance(clientId, 2, { key: 'k' }),
      () => store.move(transaction(clientId, { type: 'topup', amount: 2 })),
      () => store.recordTransaction(transaction(clientId, { amount: INTEGER_MAX + 1 })),
      () => store.createClient({ ...record, clientId: newClientId(), balance: INTEGER_MAX + 1 }),
    ]
    for (const call of calls) expect(await codeOf(call())).toBe('invalid_amount')
    await expect(store.addBalance(clientId, 2)).rejects.toThrow('createTables({ widen: true })')
    expect(await dumpOf(pool)).toEqual(before)
    expect(await store.deductBalance(clientId, INTEGER_MAX + 1)).toBeNull()
    expect(await store.addBalance(clientId, 1)).toBe(INTEGER_MAX)
    expect(await store.move(transaction(clientId, { amount: INTEGER_MAX }))).toBe(0)
  })

  it('a transaction of nobody is refused, and so is the id of another client', async () => {
    const pool = await openPool()
    await makePublishedTables(pool)
    const store = new PostgresStore(pool)
    await store.createTables()
    const [one, other] = [newClientId(), newClientId()]
    for (const clientId of [one, other]) await insertClient(pool, clientId, 1_000)
    expect(await codeOf(store.recordTransaction(transaction(newClientId())))).toBe('client_not_found')
    await store.move(transaction(one))
    const before = await dumpOf(pool)
    expect(await codeOf(store.move(transaction(other)))).toBe('idempotency_conflict')
    expect(await codeOf(store.recordTransaction(transaction(other)))).toBe('idempotency_conflict')
    expect(await dumpOf(pool)).toEqual(before)
  })

  it('the published methods need no table of ours, and none is made behind their back', async () => {
    const pool = await openPool()
    await makePublishedTables(pool)
    const store = new PostgresStore(pool)
    const clientId = newClientId()
    await insertClient(pool, clientId, 1_000)
    expect(await store.deductBalance(clientId, 100)).toBe(900)
    expect(await store.addBalance(clientId, 50)).toBe(950)
    await store.recordTransaction(transaction(clientId))
    expect((await store.listTransactions(clientId)).transactions).toHaveLength(1)
    const before = await dumpOf(pool)
    expect(await codeOf(store.deductBalance(clientId, 1, { key: 'k' }))).toBe('incompatible')
    expect(await codeOf(store.move(transaction(clientId, { id: 'two' })))).toBe('incompatible')
    expect(await codeOf(store.pruneTransactions({ olderThan: new Date(Date.now() + 1_000) }))).toBe('incompatible')
    expect(await dumpOf(pool)).toEqual(before)
    expect((await pool.query("SELECT to_regclass('stripe402_keys') AS found")).rows).toEqual([{ found: null }])
    await store.createTables()
    expect(await store.deductBalance(clientId, 1, { key: 'k' })).toBe(949)
    expect(await store.move(transaction(clientId, { id: 'two' }))).toBe(849)
    expect(await codeOf(new PostgresStore(await openPool()).getClient(clientId))).toBe('incompatible')
  })
})

it('a balance that nothing can be added to any more is damage, and not an amount that is too large', async () => {
  const pool = await openPool()
  const store = new PostgresStore(pool)
  await store.createTables()
  const clientId = newClientId()
  await insertClient(pool, clientId, '9223372036854775807')
  const before = await dumpOf(pool)
  expect(await codeOf(store.addBalance(clientId, 1))).toBe('client_damaged')
  expect(await codeOf(store.addBalance(clientId, 1, { key: 'k' }))).toBe('client_damaged')
  expect(await codeOf(store.move(transaction(clientId, { type: 'topup' })))).toBe('client_damaged')
  expect(await codeOf(store.deductBalance(clientId, 1))).toBe('client_damaged')
  expect(await dumpOf(pool)).toEqual(before)
})

it('pruning forgets keys and moves of before that time, and no others', async () => {
  const pool = await openPool()
  const store = new PostgresStore(pool)
  await store.createTables()
  const clientId = newClientId()
  await insertClient(pool, clientId, 1_000)
  const old = transaction(clientId, { id: 'old', createdAt: new Date('2024-01-01') })
  expect(await store.move(old)).toBe(900)
  expect(await store.deductBalance(clientId, 100, { key: 'old' })).toBe(800)
  await pool.query("UPDATE stripe402_keys SET created_at = '2024-01-01'")
  expect(await store.deductBalance(clientId, 100, { key: 'new' })).toBe(700)
  expect(await store.pruneTransactions({ olderThan: new Date('2024-06-01') })).toBe(1)
  expect(await store.deductBalance(clientId, 100, { key: 'new' })).toBe(700)
  expect(await store.move(old)).toBe(600)
  expect(await store.deductBalance(clientId, 100, { key: 'old' })).toBe(500)
})

describe('what stands in the tables', () => {
  it('by plain SQL of stripe402 is read field by field', async () => {
    const pool = await openPool()
    await makePublishedTables(pool)
    const clientId = newClientId()
    await insertClient(pool, clientId, 49_500)
    await pool.query(
      `INSERT INTO stripe402_transactions VALUES
       ('t1', $1, 'topup', 50000, 'pi_1', NULL, '2024-01-15T10:30:00.123456Z'),
       ('t2', $1, 'deduction', 500, NULL, 'GET /api/joke', '2024-01-15T10:30:00.123999Z')`,
      [clientId],
    )
    const store = new PostgresStore(pool)
    expect(await store.getClient(clientId)).toEqual({
      clientId,
      stripeCustomerId: 'cus_1',
      balance: 49_500,
      currency: 'usd',
      createdAt: new Date('2024-01-15T10:30:00.123Z'),
      updatedAt: new Date('2024-01-15T10:31:05.456Z'),
    })
    const createdAt = new Date('2024-01-15T10:30:00.123Z')
    const topup = { id: 't1', clientId, type: 'topup', amount: 50_000, stripePaymentIntentId: 'pi_1', createdAt }
    const deduction = { id: 't2', clientId, type: 'deduction', amount: 500, resource: 'GET /api/joke', createdAt }
    expect(await store.getTransaction(clientId, 't1')).toEqual(topup)
    // One page each: what is less than a millisecond apart is neither repeated nor left out.
    const first = await store.listTransactions(clientId, { order: 'oldest', limit: 1 })
    const second = await store.listTransactions(clientId, { order: 'oldest', limit: 1, after: first.next as string })
    expect([first.transactions, second]).toEqual([[topup], { transactions: [deduction], next: null }])
  })

  it('by this store is read by plain SQL', async () => {
    const pool = await openPool()
    const store = new PostgresStore(pool)
    await store.createTables()
    const clientId = newClientId()
    const createdAt = new Date('2024-01-15T10:30:00.123Z')
    const updatedAt = new Date('2024-01-15T10:31:05.456Z')
    await store.createClient({ clientId, stripeCustomerId: 'cus_1', balance: 7, currency: 'eur', createdAt, updatedAt })
    const clients = await pool.query('SELECT * FROM stripe402_clients')
    expect(clients.rows).toEqual([
      {
        client_id: clientId,
        stripe_customer_id: 'cus_1',
        balance: '7',
        currency: 'eur',
        created_at: createdAt,
        updated_at: updatedAt,
      },
    ])
    await store.move({ id: 't1', clientId, type: 'topup', amount: 5, stripePaymentIntentId: 'pi_1', createdAt })
    await store.recordTransaction({ id: 't2', clientId, type: 'deduction', amount: 1, resource: '/a', createdAt })
    const transactions = await pool.query('SELECT * FROM stripe402_transactions ORDER BY id')
    const common = { client_id: clientId, created_at: createdAt }
    expect(transactions.rows).toEqual([
      { ...common, id: 't1', type: 'topup', amount: '5', stripe_payment_intent_id: 'pi_1', resource: null },
      { ...common, id: 't2', type: 'deduction', amount: '1', stripe_payment_intent_id: null, resource: '/a' },
    ])
  })
})
