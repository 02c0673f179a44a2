/** What older software, or a person, has left in the tables: told, and never made worse. */
import { type ClientRecord, PostgresStore } from 'holdfast/stripe402'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { emptyDatabase } from '../../../../test/servers.js'
import { codeOf, dumpOf, insertClient } from './support/published.js'

let pool: pg.Pool
let store: PostgresStore
beforeAll(async () => {
  pool = new pg.Pool({ connectionString: await emptyDatabase() })
  store = new PostgresStore(pool)
  await store.createTables()
  // Somebody has taken care of nothing.
  await pool.query(`
    ALTER TABLE stripe402_clients ALTER balance TYPE numeric, ALTER balance DROP NOT NULL,
      ALTER stripe_customer_id DROP NOT NULL, ALTER currency DROP NOT NULL, ALTER updated_at DROP NOT NULL;
    ALTER TABLE stripe402_transactions ALTER amount TYPE numeric, DROP CONSTRAINT stripe402_transactions_type_check`)
})
afterAll(() => pool.end())

const BALANCES = [
  '-9007199254740992',
  '-10.5',
  '10.5',
  'NaN',
  'Infinity',
  '9007199254740992',
  '99999999999999999999',
  null,
]

describe.each(BALANCES)('a balance of %s', (balance) => {
  const clientId = `client-${balance}-${'0'.repeat(40)}`
  beforeAll(() => insertClient(pool, clientId, balance))

  it('is reported, and left as it is by whatever is tried with it', async () => {
    const before = await dumpOf(pool)
    const move = { id: 'm', clientId, amount: 1 }
    const calls = [
      () => store.getClient(clientId),
      () => store.deductBalance(clientId, 1),
      () => store.deductBalance(clientId, 0),
      () => store.deductBalance(clientId, Number.MAX_SAFE_INTEGER),
      () => store.deductBalance(clientId, 1, { key: 'k' }),
      () => store.addBalance(clientId, 1),
      () => store.addBalance(clientId, 1, { key: 'k' }),
      () => store.move({ ...move, type: 'topup' }),
      () => store.move({ ...move, type: 'deduction' }),
    ]
    for (const call of calls) expect(await codeOf(call())).toBe('client_damaged')
    await store.createClient({
      clientId,
      stripeCustomerId: 'cus',
      balance: 5,
      currency: 'usd',
      createdAt: new Date(),
      updatedAt: new Date(),
    })
    expect(await dumpOf(pool)).toEqual(before)
    expect((await pool.query('SELECT FROM stripe402_keys')).rowCount).toBe(0)
  })

  it('is told without what stands there, and with no more of the id than is needed', async () => {
    const error = (await store.getClient(clientId).catch((reason: unknown) => reason)) as Error
    expect(error.message).toMatch(/^client client-.*…, balance: expected an integer within ±9007199254740991, got /)
    expect(error.message).not.toContain(clientId)
  })
})

describe('other damage', () => {
  it.each(['stripe_customer_id', 'currency', 'updated_at'])('a client without %s is reported', async (column) => {
    await insertClient(pool, `no-${column}`, 5)
    await pool.query(`UPDATE stripe402_clients SET ${column} = NULL WHERE client_id = $1`, [`no-${column}`])
    expect(await codeOf(store.getClient(`no-${column}`))).toBe('client_damaged')
  })

  it('is passed over by a walk that is told of it, and thrown at the end of one that is not', async () => {
    await insertClient(pool, 'sound', 5)
    const damaged: Error[] = []
    const found: ClientRecord[] = []
    for await (const one of store.listClients({ onDamaged: (error) => damaged.push(error) })) found.push(one)
    expect(found.map(({ clientId }) => clientId)).toEqual(['sound'])
    expect(damaged).toHaveLength(BALANCES.length + 3)
    const seen: string[] = []
    const walk = async () => {
      for await (const one of store.listClients()) seen.push(one.clientId)
    }
    expect(await codeOf(walk())).toBe('client_damaged')
    expect(seen).toEqual(['sound'])
  })

  it('of a transaction is reported, by a list too', async () => {
    await insertClient(pool, 'txns', 5)
    await pool.query(`INSERT INTO stripe402_transactions (client_id, id, type, amount, created_at) VALUES
      ('txns', 'a', 'topup', 1, '2024-01-01Z'), ('txns', 'b', 'topup', 1.5, '2024-01-02Z'),
      ('txns', 'c', 'refund', 1, '2024-01-03Z'), ('txns', 'd', 'topup', -1, '2024-01-04Z')`)
    for (const id of ['b', 'c', 'd']) expect(await codeOf(store.getTransaction('txns', id))).toBe('client_damaged')
    expect(await codeOf(store.listTransactions('txns'))).toBe('client_damaged')
    const damaged: Error[] = []
    const onDamaged = (error: Error) => void damaged.push(error)
    const page = await store.listTransactions('txns', { order: 'oldest', limit: 2, onDamaged })
    expect(page.transactions.map(({ id }) => id)).toEqual(['a'])
    const rest = await store.listTransactions('txns', { order: 'oldest', after: page.next as string, onDamaged })
    expect([rest.transactions, damaged.length]).toEqual([[], 3])
  })

  it('a time that no Date can be is reported, and a page can go on behind it', async () => {
    await insertClient(pool, 'times', 5)
    await pool.query(`INSERT INTO stripe402_transactions (client_id, id, type, amount, created_at) VALUES
      ('times', 'a', 'topup', 1, '-infinity'), ('times', 'b', 'topup', 1, '0044-03-15 12:00:00+00 BC'),
      ('times', 'c', 'topup', 1, '0044-03-15 12:00:00+00 BC'), ('times', 'd', 'topup', 1, '0044-03-15 12:00:00+00'),
      ('times', 'e', 'topup', 1, '10000-01-01Z'), ('times', 'f', 'topup', 1, '10000-01-01Z')`)
    for (const id of ['a', 'b', 'e']) expect(await codeOf(store.getTransaction('times', id))).toBe('client_damaged')
    for (const order of ['oldest', 'newest'] as const) {
      const damaged: Error[] = []
      const found: string[] = []
      for (let after: string | null | undefined; after !== null; ) {
        const onDamaged = (error: Error) => void damaged.push(error)
        const page = await store.listTransactions('times', { order, limit: 1, onDamaged, ...(after && { after }) })
        found.push(...page.transactions.map(({ id, createdAt }) => `${id} ${createdAt.toISOString()}`))
        after = page.next
      }
      expect([found, damaged.length]).toEqual([['d 0044-03-15T12:00:00.000Z'], 5])
    }
  })

  it('a place that was never told is refused, whatever it looks like', async () => {
    for (const at of [
      '2024-02-30T00:00:00.000000Z AD',
      '0000-01-01T00:00:00.000000Z AD',
      '9999-99-99T99:99:99.000000Z BC',
    ]) {
      const after = Buffer.from(`${at} x`).toString('base64url')
      expect(await codeOf(store.listTransactions('nobody', { after })), at).toBe('invalid_argument')
    }
  })
})
