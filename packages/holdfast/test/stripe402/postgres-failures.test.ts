/** Connections that die, answers that are lost: what was asked for is done once or not at all, and asking again tells which. */
import { randomBytes } from 'node:crypto'
import { HoldfastError } from 'holdfast'
import { PostgresStore } from 'holdfast/stripe402'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { emptyDatabase } from '../../../../test/servers.js'
import { type FaultyProxy, startProxy } from '../redis/support/proxy.js'
import { codeOf, dumpOf, insertClient } from './support/published.js'

let url: string
let pool: pg.Pool
let store: PostgresStore
let proxy: FaultyProxy
beforeAll(async () => {
  url = await emptyDatabase()
  pool = new pg.Pool({ connectionString: url })
  store = new PostgresStore(pool)
  await store.createTables()
  proxy = await startProxy(Number(new URL(url).port))
})
afterAll(async () => {
  await proxy.close()
  await pool.end()
})

async function clientWith(balance: number): Promise<string> {
  const clientId = randomBytes(32).toString('hex')
  await insertClient(pool, clientId, balance)
  return clientId
}

/** A store that reaches Postgres through the proxy. */
async function through<T>(work: (store: PostgresStore) => Promise<T>): Promise<T> {
  const address = new URL(url)
  address.port = String(proxy.port)
  const shaky = new pg.Pool({ connectionString: address.href })
  try {
    return await work(new PostgresStore(shaky))
  } finally {
    await shaky.end()
  }
}

/** Somebody else has the client's row while `work` is done. */
async function whileLocked(clientId: string, work: (release: () => Promise<void>) => Promise<void>): Promise<void> {
  const other = await pool.connect()
  try {
    await other.query('BEGIN')
    await other.query('SELECT FROM stripe402_clients WHERE client_id = $1 FOR UPDATE', [clientId])
    await work(async () => void (await other.query('COMMIT')))
  } finally {
    await other.query('ROLLBACK')
    other.release()
  }
}

const waitingBackends = async (): Promise<number[]> => {
  const { rows } = await pool.query<{ pid: number }>(
    "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
  )
  return rows.map(({ pid }) => pid)
}

const createdAt = new Date('2024-01-15T10:30:00.123Z')
const CHANGES: Record<string, [string, (store: PostgresStore, clientId: string) => Promise<unknown>, unknown]> = {
  'a deduction with a key': ['changeBalanceOnce', (at, id) => at.deductBalance(id, 100, { key: 'k' }), 900],
  'a top-up with a key': ['changeBalanceOnce', (at, id) => at.addBalance(id, 100, { key: 'k' }), 1_100],
  'a move': ['move', (at, clientId) => at.move({ id: 't', clientId, type: 'deduction', amount: 100, createdAt }), 900],
  'a record': [
    'recordTransaction',
    (at, clientId) => at.recordTransaction({ id: 't', clientId, type: 'topup', amount: 5, createdAt }),
    undefined,
  ],
}

describe.each(Object.entries(CHANGES))('%s', (_, [name, change, answer]) => {
  it('whose answer is lost was done, and is answered when it is asked for again', async () => {
    const clientId = await clientWith(1_000)
    await through(async (shaky) => {
      const lost = proxy.cutReplyTo(`stripe402_${name}`)
      expect(await codeOf(change(shaky, clientId))).toBe('unavailable')
      await lost
      const done = await dumpOf(pool)
      expect(await change(shaky, clientId)).toBe(answer)
      expect(await change(store, clientId)).toBe(answer)
      expect(await dumpOf(pool)).toEqual(done)
    })
  })

  it('many times at once from two processes is done once', async () => {
    const clientId = await clientWith(1_000)
    const other = new pg.Pool({ connectionString: url })
    const stores = [store, new PostgresStore(other)]
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, n) => change(stores[n % 2] as PostgresStore, clientId)),
    )
    await other.end()
    expect(new Set(answers)).toEqual(new Set([answer]))
    const { transactions } = await store.listTransactions(clientId)
    expect(transactions.length).toBe(['move', 'recordTransaction'].includes(name) ? 1 : 0)
    expect((await store.getClient(clientId))?.balance).toBe(answer ?? 1_000)
  })
})

describe('a move', () => {
  it('whose connection dies in the middle did nothing, and can be asked for again', async () => {
    const clientId = await clientWith(1_000)
    const move = { id: 'm', clientId, type: 'deduction', amount: 100, createdAt } as const
    await whileLocked(clientId, async () => {
      const before = await dumpOf(pool)
      const code = codeOf(store.move(move))
      await vi.waitFor(async () => expect(await waitingBackends()).toHaveLength(1), { timeout: 10_000 })
      for (const pid of await waitingBackends()) await pool.query('SELECT pg_terminate_backend($1)', [pid])
      expect(await code).toBe('unavailable')
      expect(await dumpOf(pool)).toEqual(before)
    })
    expect(await store.move(move)).toBe(900)
  })

  it('that is given up may still be done, and then asking again tells so', async () => {
    const clientId = await clientWith(1_000)
    const move = { id: 'm', clientId, type: 'deduction', amount: 100, createdAt } as const
    const hasty = new PostgresStore(pool, { answerTimeoutMs: 200 })
    await whileLocked(clientId, async (release) => {
      expect(await codeOf(hasty.move(move))).toBe('unavailable')
      const again = store.move(move)
      await release()
      expect(await again).toBe(900)
    })
    await vi.waitFor(async () => expect(await waitingBackends()).toEqual([]), { timeout: 10_000 })
    expect(await store.move(move)).toBe(900)
    expect((await store.getClient(clientId))?.balance).toBe(900)
  })
})

describe('a Postgres that is not there', () => {
  it('is unavailable, and no password is told', async () => {
    const nowhere = new pg.Pool({ connectionString: 'postgres://alice:hunter2@127.0.0.1:1/x' })
    const error = await new PostgresStore(nowhere).getClient('x').catch((reason: unknown) => reason)
    await nowhere.end()
    expect(error).toBeInstanceOf(HoldfastError)
    expect(error).toMatchObject({ code: 'unavailable', retryable: true, outcome: 'not_executed' })
    expect((error as Error).message).toContain('127.0.0.1:1')
    expect((error as Error).message).not.toMatch(/hunter2|alice/)
  })

  it('has no connection left: what was not sent is told as such', async () => {
    const small = new pg.Pool({ connectionString: url, max: 1 })
    const taken = await small.connect()
    const error = await new PostgresStore(small, { connectTimeoutMs: 100 }).getClient('x').catch((reason) => reason)
    taken.release()
    await small.end()
    expect(error).toMatchObject({ code: 'unavailable', outcome: 'not_executed' })
  })

  it('is asked for with a pool', () => {
    for (const bad of [undefined, null, url, {}] as never[]) {
      expect(() => new PostgresStore(bad)).toThrow('pool: expected a pool of pg')
    }
    expect(() => new PostgresStore(pool, { answerTimeoutMs: 0.5 })).toThrow('answerTimeoutMs: expected')
  })
})
