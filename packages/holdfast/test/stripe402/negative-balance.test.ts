/** A balance that older software has left below zero means the same in every store that can hold one: a debt, not damage. */
import { type LedgerStore, PostgresStore, RedisStore, verifyStore } from 'holdfast/stripe402'
import { Redis } from 'ioredis'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { emptyDatabase, freshRedis } from '../../../../test/servers.js'
import { clientOf, MAX, newClientId, transactionOf } from '../../src/stripe402/conformance/subject.js'
import { makePublishedTables } from './support/published.js'

interface Subject {
  readonly store: LedgerStore
  setBalance(clientId: string, balance: number): Promise<unknown>
  close(): unknown
}

async function onRedis(): Promise<Subject> {
  const redis = new Redis(await freshRedis())
  return {
    store: new RedisStore(redis),
    setBalance: (clientId, balance) => redis.hset(`stripe402:client:${clientId}`, { balance: String(balance) }),
    close: () => redis.disconnect(),
  }
}

async function onPostgres(published: boolean): Promise<Subject> {
  const pool = new pg.Pool({ connectionString: await emptyDatabase() })
  if (published) await makePublishedTables(pool)
  const store = new PostgresStore(pool)
  await store.createTables()
  return {
    store,
    setBalance: (clientId, balance) =>
      pool.query('UPDATE stripe402_clients SET balance = $2 WHERE client_id = $1', [clientId, balance]),
    close: () => pool.end(),
  }
}

const SUBJECTS = {
  Redis: onRedis,
  Postgres: () => onPostgres(false),
  'Postgres with published tables': () => onPostgres(true),
}

describe.each(Object.entries(SUBJECTS))('in %s, a balance below zero', (_, make) => {
  let subject: Subject
  let store: LedgerStore
  let clientId: string
  beforeAll(async () => {
    subject = await make()
    store = subject.store
  })
  afterAll(() => subject.close())
  beforeEach(async () => {
    clientId = newClientId()
    await store.createClient(clientOf({ clientId }))
    await subject.setBalance(clientId, -500)
  })
  const balance = async () => (await store.getClient(clientId))?.balance

  it('is read as it is', async () => {
    expect(await balance()).toBe(-500)
    const listed: number[] = []
    for await (const one of store.listClients()) if (one.clientId === clientId) listed.push(one.balance)
    expect(listed).toEqual([-500])
  })

  it('can not be spent, not even nothing of it, and stays as it is', async () => {
    const before = await store.getClient(clientId)
    for (const amount of [0, 1, 2_147_483_647]) {
      expect(await store.deductBalance(clientId, amount)).toBe(null)
      expect(await store.deductBalance(clientId, amount, { key: 'spend' })).toBe(null)
      const spending = transactionOf(clientId, 'deduction', amount)
      expect(await store.move(spending)).toBe(null)
      expect(await store.getTransaction(clientId, spending.id)).toBe(null)
    }
    expect(await store.getClient(clientId)).toEqual(before)
  })

  it('can be topped up in every way, also where it stays below zero, and each is answered again', async () => {
    expect(await store.addBalance(clientId, 0)).toBe(-500)
    expect(await store.addBalance(clientId, 100)).toBe(-400)
    expect(await store.addBalance(clientId, 150, { key: 'topup' })).toBe(-250)
    const topup = transactionOf(clientId, 'topup', 50)
    expect(await store.move(topup)).toBe(-200)
    expect(await store.addBalance(clientId, 150, { key: 'topup' })).toBe(-250)
    expect(await store.move(topup)).toBe(-200)
    expect(await balance()).toBe(-200)
    expect(await store.addBalance(clientId, 300)).toBe(100)
    expect(await store.deductBalance(clientId, 100)).toBe(0)
  })

  it('is what is answered to a move that was recorded by other means', async () => {
    const recorded = transactionOf(clientId, 'deduction', 500)
    await store.recordTransaction(recorded)
    expect(await store.move(recorded)).toBe(-500)
  })

  it('is reported by who verifies', async () => {
    const { counts, findings } = await verifyStore(store)
    expect(counts.damaged).toBeGreaterThan(0)
    expect(findings).toContainEqual({
      kind: 'damaged',
      client: `${clientId.slice(0, 8)}…`,
      text: expect.stringContaining('balance: expected zero or more, got less'),
    })
  })
})

describe.each([
  ['Redis', SUBJECTS.Redis],
  ['Postgres', SUBJECTS.Postgres],
])('in %s', (_, make) => {
  it('a balance may be as far below zero as above, and no further', async () => {
    const { store, setBalance, close } = await make()
    const { clientId } = clientOf()
    await store.createClient(clientOf({ clientId }))
    await setBalance(clientId, -MAX)
    expect((await store.getClient(clientId))?.balance).toBe(-MAX)
    expect(await store.deductBalance(clientId, MAX)).toBe(null)
    expect(await store.addBalance(clientId, MAX)).toBe(0)
    await setBalance(clientId, -MAX - 1)
    await expect(store.getClient(clientId)).rejects.toMatchObject({ code: 'client_damaged' })
    await expect(store.addBalance(clientId, 1)).rejects.toMatchObject({ code: 'client_damaged' })
    await close()
  })
})
