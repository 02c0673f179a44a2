import { setTimeout as sleep } from 'node:timers/promises'
import { startRedis } from '@holdfast/services'
import fc from 'fast-check'
import { Idempotency, Primitives } from 'holdfast/primitives'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { claimed } from './support/idempotency.js'
import { type On, onSingle, SECRET, TOPOLOGIES } from './support/topologies.js'
import { twice } from './support/twice.js'

describe.each(TOPOLOGIES)('durable idempotency on %s', (_, open) => {
  let on: On
  let database: string
  let pool: pg.Pool
  let operation: string
  let orders: Idempotency<string>
  /** How often Postgres was. */
  let asked = 0

  beforeAll(async () => {
    database = await freshDatabase()
    const observe = (_: unknown, __: unknown, { query = '' }: Record<string, string> = {}) => {
      if (query === 'claimIdempotencyKey') asked += 1
    }
    on = await open({ postgres: database, telemetry: { observe } })
    pool = new pg.Pool({ connectionString: database, max: 4 })
    await pool.query('CREATE TABLE effects (id text)')
  })
  afterAll(async () => {
    await pool.end()
    await on.close()
  })

  /** Each test has keys of its own. */
  function begin(options = {}): void {
    operation = on.operation()
    orders = new Idempotency<string>(on.primitives, operation, { durable: true, ...options })
  }

  /** As after a flush, or a failover to a replica that had nothing. */
  async function forget(): Promise<void> {
    for (const key of await on.keys(operation)) await on.redis.del(key)
  }

  async function endLeases(): Promise<void> {
    await pool.query('UPDATE holdfast.idempotency_keys SET lease_until = 1 WHERE operation = $1 AND lease_until > 0', [
      operation,
    ])
  }

  async function effects(): Promise<number> {
    const { rows } = await pool.query('SELECT count(*)::integer AS n FROM effects WHERE id = $1', [operation])
    return rows[0].n
  }

  /** A transaction that has the effect and completes the key; `end` says how it ends. */
  async function transact(token: string, response: string, end: 'COMMIT' | 'ROLLBACK' = 'COMMIT'): Promise<void> {
    const client = await pool.connect()
    try {
      await client.query('BEGIN')
      await client.query('INSERT INTO effects VALUES ($1)', [operation])
      await orders.completeIn(client, 'key', token, response)
      await client.query(end)
    } catch (error) {
      // Whatever a caller does now: it can't commit.
      expect((await client.query('COMMIT')).command).toBe('ROLLBACK')
      throw error
    } finally {
      client.release()
    }
  }

  it('completes in the transaction that has the effect, and the next claim gets the response, also from Redis', async () => {
    begin()
    const { token } = await claimed(orders, 'key', { request: 1 })
    await transact(token, 'one')
    // Redis has not been told: it says for a moment at most that somebody is at it.
    await expect
      .poll(() => orders.tryClaim('key', { request: 1 }), { timeout: 10_000 })
      .toEqual({
        state: 'completed',
        response: 'one',
        replayed: true,
      })
    const [key = ''] = await on.keys(operation)
    expect(await on.redis.get(key)).toMatch(/^1 COMPLETED /)
    expect(await on.redis.pttl(key)).toBeGreaterThan(6 * 24 * 60 * 60 * 1_000)
    // From here on Postgres is not asked.
    await pool.query('DELETE FROM holdfast.idempotency_keys WHERE operation = $1', [operation])
    expect(await orders.tryClaim('key', { request: 1 })).toMatchObject({ state: 'completed', response: 'one' })
    await expect(orders.tryClaim('key', { request: 2 })).rejects.toMatchObject({ code: 'idempotency_conflict' })
    expect(await effects()).toBe(1)
  })

  it('has no effect and stays to be tried when the transaction rolls back', async () => {
    begin()
    const { token } = await claimed(orders, 'key')
    await transact(token, 'one', 'ROLLBACK')
    expect(await orders.peek('key')).toMatchObject({ state: 'processing', attempt: 1 })
    await transact(token, 'two')
    expect(await orders.peek('key')).toMatchObject({ state: 'completed', response: 'two' })
    expect(await effects()).toBe(1)
  })

  it('two owners, the second commits first: the first can not commit', async () => {
    begin()
    const first = await claimed(orders, 'key')
    await endLeases()
    await forget()
    const second = await claimed(orders, 'key')
    expect(second).toMatchObject({ attempt: 2, tookOver: true })
    await transact(second.token, 'of the second')
    await expect(transact(first.token, 'of the first')).rejects.toMatchObject({ code: 'claim_lost', status: 409 })
    expect(await orders.complete('key', first.token, 'of the first')).toBe('lost')
    expect(await orders.fail('key', first.token)).toBe('lost')
    await forget()
    expect(await orders.tryClaim('key')).toMatchObject({ state: 'completed', response: 'of the second' })
    expect(await effects()).toBe(1)
  })

  it('two owners, the first comes back before the second has committed: it can not commit either', async () => {
    begin()
    const first = await claimed(orders, 'key')
    await endLeases()
    await forget()
    const second = await claimed(orders, 'key')
    await expect(transact(first.token, 'of the first')).rejects.toMatchObject({ code: 'claim_lost' })
    await transact(second.token, 'of the second')
    expect(await effects()).toBe(1)
  })

  it('two owners, the first is committing when its lease runs out: nobody takes over, and nobody waits for it', async () => {
    begin()
    const first = await claimed(orders, 'key')
    const client = await pool.connect()
    await client.query('BEGIN')
    await client.query('INSERT INTO effects VALUES ($1)', [operation])
    await client.query('SELECT pg_sleep(0.01)')
    await pool.query('UPDATE holdfast.idempotency_keys SET lease_until = 1 WHERE operation = $1', [operation])
    await orders.completeIn(client, 'key', first.token, 'of the first')
    await forget()
    expect(await orders.tryClaim('key')).toEqual({ state: 'processing', leftMs: 100 })
    await client.query('COMMIT')
    client.release()
    await forget()
    expect(await orders.tryClaim('key')).toMatchObject({ state: 'completed', response: 'of the first' })
    expect(await effects()).toBe(1)
  })

  it('two owners, the first rolls back while it was committing: the next takes over', async () => {
    begin()
    const first = await claimed(orders, 'key')
    await endLeases()
    await transact(first.token, 'of the first', 'ROLLBACK')
    await forget()
    const second = await claimed(orders, 'key')
    expect(second).toMatchObject({ attempt: 2, tookOver: true })
    await transact(second.token, 'of the second')
    expect(await effects()).toBe(1)
  })

  it.each(['REPEATABLE READ', 'SERIALIZABLE'])(
    'two owners, the first in a transaction that is %s: it can not commit',
    async (isolation) => {
      begin()
      const first = await claimed(orders, 'key')
      const client = await pool.connect()
      await client.query(`BEGIN ISOLATION LEVEL ${isolation}`)
      // From here on it sees the world as it is now.
      await client.query('INSERT INTO effects VALUES ($1)', [operation])
      await endLeases()
      await forget()
      const second = await claimed(orders, 'key')
      await expect(orders.completeIn(client, 'key', first.token, 'of the first')).rejects.toMatchObject({
        code: 'unavailable',
        outcome: 'retry',
        sqlstate: '40001',
      })
      expect((await client.query('COMMIT')).command).toBe('ROLLBACK')
      client.release()
      await transact(second.token, 'of the second')
      expect(await effects()).toBe(1)
    },
  )

  it('the same owner has the effect once, also when it does not hear of its commit and does it again', async () => {
    begin()
    const { token } = await claimed(orders, 'key')
    await transact(token, 'one')
    await expect(transact(token, 'one')).rejects.toMatchObject({ code: 'claim_lost' })
    // Said without an effect, it is what it was.
    expect(await orders.complete('key', token, 'two')).toBe('completed')
    expect(await orders.tryClaim('key')).toMatchObject({ state: 'completed', response: 'one' })
    expect(await effects()).toBe(1)
  })

  it('refuses to complete outside of a transaction, and a pool', async () => {
    begin()
    const { token } = await claimed(orders, 'key')
    const message = 'client: expected one within a transaction'
    await expect(orders.completeIn(pool, 'key', token, 'one')).rejects.toThrow(message)
    const client = await pool.connect()
    await expect(orders.completeIn(client, 'key', token, 'one')).rejects.toThrow(message)
    client.release()
    await expect(orders.completeIn({} as never, 'key', token, 'one')).rejects.toThrow('client: expected a client of pg')
    expect(await orders.peek('key')).toMatchObject({ state: 'processing' })
  })

  it('run: completes with the transaction, and whatever is thrown after its commit does not undo it', async () => {
    begin()
    const failure = new Error('The reply to COMMIT was lost')
    const lost = orders.run('key', {}, async ({ completeIn }) => {
      const client = await pool.connect()
      await client.query('BEGIN')
      await client.query('INSERT INTO effects VALUES ($1)', [operation])
      await completeIn(client, 'in the transaction')
      await client.query('COMMIT')
      client.release()
      throw failure
    })
    await expect(lost).rejects.toBe(failure)
    const again = () => orders.run('key', {}, () => 'never')
    const answer = { state: 'completed', response: 'in the transaction', replayed: true }
    await expect.poll(again, { timeout: 10_000 }).toEqual(answer)
    expect(await effects()).toBe(1)
  })

  it('run: answers with what the transaction has kept, not with what is returned later, and does not take that for lost', async () => {
    begin({ leaseMs: 3_000 })
    const result = await orders.run('key', {}, async ({ completeIn, signal }) => {
      const client = await pool.connect()
      await client.query('BEGIN')
      await completeIn(client, 'in the transaction')
      await client.query('COMMIT')
      client.release()
      // A renewal would have been due by now.
      await sleep(1_200)
      expect(signal.aborted).toBe(false)
      return 'returned later'
    })
    expect(result).toEqual({ state: 'completed', response: 'in the transaction', replayed: false })
    expect(await orders.tryClaim('key')).toMatchObject({ response: 'in the transaction' })
  })

  it('fails, renews and looks as without Postgres; a call that runs twice does and says the same', async () => {
    begin()
    orders = new Idempotency<string>(twice(on.primitives), operation, { durable: true })
    const first = await claimed(orders, 'key', { request: { b: 1, a: 2 } })
    expect(await orders.renew('key', first.token)).toBe('renewed')
    expect(await orders.peek('key')).toMatchObject({ state: 'processing', attempt: 1 })
    expect(await orders.tryClaim('key', { token: first.token })).toMatchObject({ state: 'claimed', attempt: 1 })
    expect(await orders.fail('key', first.token, { reason: 'CARD_DECLINED' })).toBe('failed')
    expect(await orders.fail('key', first.token, { reason: 'ANOTHER' })).toBe('failed')
    expect(await orders.peek('key')).toEqual({ state: 'failed', attempt: 1, reason: 'CARD_DECLINED' })
    await expect(orders.tryClaim('key', { request: 3 })).rejects.toMatchObject({ code: 'idempotency_conflict' })
    // At once: neither the failure nor the conflict has left anything in Redis that others would wait for.
    const second = await claimed(orders, 'key', { request: { a: 2, b: 1 } })
    expect(second).toMatchObject({ attempt: 2, tookOver: false })
    expect(await orders.complete('key', first.token, 'x')).toBe('lost')
    expect(await orders.complete('key', second.token, 'done')).toBe('completed')
    expect(await orders.complete('key', second.token, 'other')).toBe('completed')
    expect(await orders.fail('key', second.token)).toBe('lost')
    expect(await orders.renew('key', second.token)).toBe('lost')
    expect(await orders.tryClaim('key')).toMatchObject({ state: 'completed', response: 'done' })
  })

  it('concurrency: of many at once, over several connections and with Redis forgetting all the while, one has the effect', async () => {
    begin()
    const others = await Promise.all(
      [1, 2].map(() => Primitives.connect({ redis: on.redis, postgres: database, secret: SECRET })),
    )
    const all = [on.primitives, ...others].map((one) => new Idempotency<string>(one, operation, { durable: true }))
    let isForgetting = true
    const forgetting = (async () => {
      while (isForgetting) await forget()
    })()
    const ask = async (n: number): Promise<string> => {
      const result = await (all[n % all.length] as Idempotency<string>).run(
        'key',
        { request: 1 },
        async ({ completeIn }) => {
          const client = await pool.connect()
          try {
            await client.query('BEGIN')
            await client.query('INSERT INTO effects VALUES ($1)', [operation])
            await completeIn(client, 'done')
            await client.query('COMMIT')
          } finally {
            client.release()
          }
          return 'done'
        },
      )
      return result.state === 'completed' ? result.response : ask(n)
    }
    expect(await Promise.all(Array.from({ length: 60 }, (_, n) => ask(n)))).toEqual(new Array(60).fill('done'))
    isForgetting = false
    await forgetting
    expect(await effects()).toBe(1)
    for (const one of others) await one.close()
  })

  it('lets one claim a second through to Postgres while a key is being processed', async () => {
    begin()
    await claimed(orders, 'key')
    asked = 0
    const claims = await Promise.all(Array.from({ length: 200 }, () => orders.tryClaim('key')))
    expect(new Set(claims.map(({ state }) => state))).toEqual(new Set(['processing']))
    // Each second anew, and a slow machine may take some.
    expect(asked).toBeLessThan(20)
  })

  it('keys, metrics: neither key nor token nor request stands in Postgres, and a tenant has its own', async () => {
    begin()
    on.counted('idempotency')
    await claimed(orders, 'Idempotency-Key 7', { token: 'my-secret-token', request: { phone: '+4912345' } })
    const acme = new Idempotency(on.primitives.forTenant('acme'), operation, { durable: true })
    await acme.complete('Idempotency-Key 7', (await claimed(acme, 'Idempotency-Key 7')).token, 1)
    const { rows } = await pool.query('SELECT * FROM holdfast.idempotency_keys WHERE operation = $1 ORDER BY tenant', [
      operation,
    ])
    expect(rows.map(({ tenant, owner, state }) => ({ tenant, owner, state }))).toEqual([
      { tenant: 'acme', owner: 'app', state: 'COMPLETED' },
      { tenant: 'default', owner: 'app', state: 'PROCESSING' },
    ])
    expect(JSON.stringify(rows)).not.toMatch(/Idempotency-Key|secret|4912345/)
    await forget()
    await acme.tryClaim('Idempotency-Key 7')
    expect(on.counted('idempotency')).toEqual({ claimed: 2, completed: 1, repaired: 1, replayed: 1 })
  })

  it('expired: what is kept for so long is forgotten then; prune removes a bounded number of such rows and no others', async () => {
    begin({ leaseMs: 10, retentionMs: 10 })
    for (const key of ['a', 'b', 'c'])
      await orders.complete(key, (await claimed(orders, key, { request: 1 })).token, 'x')
    const lasting = new Idempotency<string>(on.primitives, operation, { durable: true })
    await claimed(lasting, 'lasting')
    await expect
      .poll(async () => {
        await forget()
        return orders.tryClaim('a', { request: 2 })
      })
      .toMatchObject({ state: 'claimed', attempt: 1, tookOver: false })
    await pool.query('UPDATE holdfast.idempotency_keys SET expires_at = 1 WHERE operation = $1 AND expires_at < $2', [
      operation,
      Date.now() + 1_000_000,
    ])
    const before = await lasting.prune({ limit: 2 })
    expect(before).toBe(2)
    let pruned = before
    for (let gone = 1; gone > 0; pruned += gone) gone = await lasting.prune()
    expect(pruned).toBeGreaterThanOrEqual(3)
    const { rows } = await pool.query('SELECT 1 FROM holdfast.idempotency_keys WHERE operation = $1', [operation])
    expect(rows).toHaveLength(1)
    expect(await lasting.peek('lasting')).toMatchObject({ state: 'processing' })
  })

  it('model: whatever happens in whatever order, there is one effect at most, and its response is the answer', async () => {
    const step = fc.record({
      what: fc.constantFrom(
        'claim',
        'claim',
        'commit',
        'commit',
        'roll back',
        'fail',
        'lease over',
        'forget',
        'forget',
        'renew',
      ),
      who: fc.constantFrom('one', 'two', 'three'),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
        begin()
        let response: string | null = null
        let owner: string | null = null
        for (const [at, { what, who }] of steps.entries()) {
          if (what === 'forget') await forget()
          else if (what === 'lease over') await endLeases()
          else if (what === 'renew') {
            expect(await orders.renew('key', who)).toBe(owner === who ? 'renewed' : 'lost')
          } else if (what === 'fail') {
            const ended = await orders.fail('key', who)
            // Who has failed and says so again, and nobody else has come since, hears the same.
            if (owner === who) expect(ended).toBe('failed')
            if (response !== null || (owner !== null && owner !== who)) expect(ended).toBe('lost')
            if (owner === who) owner = null
          } else if (what === 'claim') {
            const claim = await orders.tryClaim('key', { token: who })
            // Redis may be a moment behind, never ahead.
            if (response === null) expect(claim.state).not.toBe('completed')
            else expect(claim.state).not.toBe('claimed')
            if (claim.state === 'completed') expect(claim.response).toBe(response)
            if (claim.state === 'claimed') owner = who
          } else {
            const end = what === 'commit' ? 'COMMIT' : 'ROLLBACK'
            const lost = await transact(who, `${who} ${at}`, end).then(
              () => false,
              () => true,
            )
            expect(lost).toBe(owner !== who)
            if (!lost && end === 'COMMIT') {
              response = `${who} ${at}`
              owner = null
            }
          }
          expect(await effects()).toBe(response === null ? 0 : 1)
        }
      }),
      { numRuns: 25 },
    )
  })
})

describe('durable idempotency', () => {
  it('redis away: goes on with Postgres alone, and says so in its metrics', async () => {
    const server = await startRedis({ source: 'installed' })
    const counts: Record<string, number> = {}
    const primitives = await Primitives.connect({
      redis: server.url,
      postgres: await freshDatabase(),
      redisOptions: { commandTimeoutMs: 300, connectTimeoutMs: 200 },
      telemetry: {
        count: (_, { result = '' } = {}, by = 1) => {
          counts[result] = (counts[result] ?? 0) + by
        },
      },
    })
    try {
      const orders = new Idempotency<string>(primitives, 'create-order', { durable: true })
      await orders.complete('before', (await claimed(orders, 'before')).token, 'kept')
      await server.stop()
      const { token } = await claimed(orders, 'key')
      expect((await orders.tryClaim('key')).state).toBe('processing')
      expect(await orders.renew('key', token)).toBe('renewed')
      expect(await orders.complete('key', token, 'done')).toBe('completed')
      expect(await orders.tryClaim('key')).toMatchObject({ state: 'completed', response: 'done' })
      expect(await orders.tryClaim('before')).toMatchObject({ state: 'completed', response: 'kept' })
      expect(counts.front_away).toBeGreaterThanOrEqual(5)
    } finally {
      await primitives.close()
    }
  })

  it('refuses when Postgres is away, but for what Redis knows to be completed', async () => {
    const on = await onSingle({ withPostgres: true })
    const orders = new Idempotency<string>(on.primitives, 'create-order', { durable: true })
    await orders.complete('done', (await claimed(orders, 'done')).token, 'kept')
    const { token } = await claimed(orders, 'key')
    await on.primitives.context.postgres?.close()
    const work = vi.fn()
    on.counted('idempotency')
    await expect(orders.run('new', {}, work)).rejects.toMatchObject({ code: 'unavailable' })
    expect(work).not.toHaveBeenCalled()
    await expect(orders.complete('key', token, 'x')).rejects.toMatchObject({ code: 'unavailable' })
    expect(on.counted('idempotency')).toEqual({ unavailable: 2 })
    expect(await orders.tryClaim('done')).toMatchObject({ state: 'completed', response: 'kept' })
    // Nobody waits for a claim that was never made.
    expect(await on.keys('create-order')).toHaveLength(2)
    await on.close()
  })
})
