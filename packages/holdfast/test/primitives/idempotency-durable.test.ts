import { setTimeout as sleep } from 'node:timers/promises'
import { startRedis } from '@holdfast/services'
import { Idempotency, Primitives } from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { DurableOrders } from './support/durable-orders.js'
import { claimed } from './support/idempotency.js'
import { PATIENT } from './support/patient.js'
import { onSingle, SECRET, TOPOLOGIES } from './support/topologies.js'
import { twice } from './support/twice.js'

describe.each(TOPOLOGIES)('durable idempotency on %s', (_, open) => {
  let shop: DurableOrders
  /** How often Postgres was. */
  let asked = 0
  beforeAll(async () => {
    const observe = (_: unknown, __: unknown, { query = '' }: Record<string, string> = {}) => {
      if (query === 'claimIdempotencyKey') asked += 1
    }
    shop = await DurableOrders.open(open, { telemetry: { observe } })
  })
  afterAll(() => shop.close())

  it('completes in the transaction that has the effect, and the next claim gets the response, also from Redis', async () => {
    const orders = shop.begin()
    const { token } = await claimed(orders, 'key', { request: 1 })
    await shop.transact(token, 'one')
    // Redis has not been told: it says for a moment at most that somebody is at it.
    await expect
      .poll(() => orders.tryClaim('key', { request: 1 }), { timeout: 10_000 })
      .toEqual({
        result: 'completed',
        response: 'one',
        replayed: true,
      })
    const [key = ''] = await shop.on.keys(shop.operation)
    expect(await shop.on.redis.get(key)).toMatch(/^1 COMPLETED /)
    expect(await shop.on.redis.pttl(key)).toBeGreaterThan(6 * 24 * 60 * 60 * 1_000)
    // From here on Postgres is not asked.
    await shop.pool.query('DELETE FROM holdfast.idempotency_keys WHERE operation = $1', [shop.operation])
    expect(await orders.tryClaim('key', { request: 1 })).toMatchObject({ result: 'completed', response: 'one' })
    await expect(orders.tryClaim('key', { request: 2 })).rejects.toMatchObject({ code: 'idempotency_conflict' })
    expect(await shop.effects()).toBe(1)
  })

  it('has no effect and stays to be tried when the transaction rolls back', async () => {
    const orders = shop.begin()
    const { token } = await claimed(orders, 'key')
    await shop.transact(token, 'one', 'ROLLBACK')
    expect(await orders.peek('key')).toMatchObject({ result: 'processing', attempt: 1 })
    await shop.transact(token, 'two')
    expect(await orders.peek('key')).toMatchObject({ result: 'completed', response: 'two' })
    expect(await shop.effects()).toBe(1)
  })

  it('run: completes with the transaction, and whatever is thrown after its commit does not undo it', async () => {
    const orders = shop.begin()
    const failure = new Error('The reply to COMMIT was lost')
    const lost = orders.run('key', {}, async ({ completeIn }) => {
      const client = await shop.beginEffect()
      await completeIn(client, 'in the transaction')
      await client.query('COMMIT')
      client.release()
      throw failure
    })
    await expect(lost).rejects.toBe(failure)
    const again = () => orders.run('key', {}, () => 'never')
    const answer = { result: 'completed', response: 'in the transaction', replayed: true }
    await expect.poll(again, { timeout: 10_000 }).toEqual(answer)
    expect(await shop.effects()).toBe(1)
  })

  it('run: answers with what the transaction has kept, not with what is returned later, and does not take that for lost', async () => {
    const orders = shop.begin({ leaseMs: 6_000 })
    const result = await orders.run('key', {}, async ({ completeIn, signal }) => {
      const client = await shop.pool.connect()
      await client.query('BEGIN')
      await completeIn(client, 'in the transaction')
      await client.query('COMMIT')
      client.release()
      // A renewal would have been due by now.
      await sleep(2_200)
      expect(signal.aborted).toBe(false)
      return 'returned later'
    })
    expect(result).toEqual({ result: 'completed', response: 'in the transaction', replayed: false })
    expect(await orders.tryClaim('key')).toMatchObject({ response: 'in the transaction' })
  })

  it('run: a commit that was none is no completion: the attempt has failed, and the next has the effect', async () => {
    const orders = shop.begin()
    const work = (isBroken: boolean) =>
      orders.run('key', {}, async ({ completeIn }) => {
        const client = await shop.beginEffect()
        await completeIn(client, 'done')
        if (isBroken) await client.query('SELECT 1 / 0').catch(() => {})
        // `pg` does not throw when this rolls back.
        await client.query('COMMIT')
        client.release()
        return 'done'
      })
    shop.on.counted('idempotency')
    await expect(work(true)).rejects.toThrow('The transaction of completeIn was not committed')
    expect(await shop.effects()).toBe(0)
    expect(await orders.peek('key')).toEqual({ result: 'failed', attempt: 1, reason: 'not_committed' })
    expect(await work(false)).toEqual({ result: 'completed', response: 'done', replayed: false })
    expect(await work(false)).toEqual({ result: 'completed', response: 'done', replayed: true })
    expect(await shop.effects()).toBe(1)
    expect(shop.on.counted('idempotency')).toEqual({ claimed: 2, failed: 1, completed: 1, replayed: 1 })
  })

  it('run: waits for a commit that is still on its way', async () => {
    const orders = shop.begin()
    let committing: Promise<unknown> = Promise.resolve()
    const result = await orders.run('key', {}, async ({ completeIn }) => {
      const client = await shop.beginEffect()
      await completeIn(client, 'done')
      committing = sleep(200)
        .then(() => client.query('COMMIT'))
        .finally(() => client.release())
      return 'done'
    })
    await committing
    expect(result).toEqual({ result: 'completed', response: 'done', replayed: false })
    expect(await shop.effects()).toBe(1)
  })

  it('fails, renews and looks as without Postgres; a call that runs twice does and says the same', async () => {
    const orders = shop.begin({}, { primitives: twice(shop.on.primitives) })
    const first = await claimed(orders, 'key', { request: { b: 1, a: 2 } })
    expect(await orders.renew('key', first.token)).toBe('renewed')
    expect(await orders.peek('key')).toMatchObject({ result: 'processing', attempt: 1 })
    expect(await orders.tryClaim('key', { token: first.token })).toMatchObject({ result: 'claimed', attempt: 1 })
    expect(await orders.fail('key', first.token, { reason: 'CARD_DECLINED' })).toBe('failed')
    expect(await orders.fail('key', first.token, { reason: 'ANOTHER' })).toBe('failed')
    expect(await orders.peek('key')).toEqual({ result: 'failed', attempt: 1, reason: 'CARD_DECLINED' })
    await expect(orders.tryClaim('key', { request: 3 })).rejects.toMatchObject({ code: 'idempotency_conflict' })
    // At once: neither the failure nor the conflict has left anything in Redis that others would wait for.
    const second = await claimed(orders, 'key', { request: { a: 2, b: 1 } })
    expect(second).toMatchObject({ attempt: 2, tookOver: false })
    expect(await orders.complete('key', first.token, 'x')).toBe('lost')
    expect(await orders.complete('key', second.token, 'done')).toBe('completed')
    expect(await orders.complete('key', second.token, 'other')).toBe('completed')
    expect(await orders.fail('key', second.token)).toBe('lost')
    expect(await orders.renew('key', second.token)).toBe('lost')
    expect(await orders.tryClaim('key')).toMatchObject({ result: 'completed', response: 'done' })
  })

  it('concurrency: of many at once, over several connections and with Redis forgetting all the while, one has the effect', async () => {
    shop.begin()
    const others = await Promise.all(
      [1, 2].map(() =>
        Primitives.connect({ redis: shop.on.redis, postgres: shop.database, secret: SECRET, ...PATIENT }),
      ),
    )
    const all = [shop.on.primitives, ...others].map(
      (one) => new Idempotency<string>(one, shop.operation, { durable: true }),
    )
    let isForgetting = true
    const forgetting = (async () => {
      while (isForgetting) await shop.forget()
    })()
    const ask = async (n: number): Promise<string> => {
      const result = await (all[n % all.length] as Idempotency<string>).run(
        'key',
        { request: 1 },
        async ({ completeIn }) => {
          const client = await shop.beginEffect()
          try {
            await completeIn(client, 'done')
            await client.query('COMMIT')
          } finally {
            client.release()
          }
          return 'done'
        },
      )
      return result.result === 'completed' ? result.response : ask(n)
    }
    expect(await Promise.all(Array.from({ length: 60 }, (_, n) => ask(n)))).toEqual(new Array(60).fill('done'))
    isForgetting = false
    await forgetting
    expect(await shop.effects()).toBe(1)
    for (const one of others) await one.close()
  })

  it('lets one claim a second through to Postgres while a key is being processed', async () => {
    const orders = shop.begin()
    await claimed(orders, 'key')
    asked = 0
    const claims = await Promise.all(Array.from({ length: 200 }, () => orders.tryClaim('key')))
    expect(new Set(claims.map(({ result }) => result))).toEqual(new Set(['processing']))
    // Each second anew, and a slow machine may take some.
    expect(asked).toBeLessThan(20)
  })

  it('keys, metrics: neither key nor token nor request stands in Postgres, and a tenant has its own', async () => {
    const orders = shop.begin()
    shop.on.counted('idempotency')
    await claimed(orders, 'Idempotency-Key 7', { token: 'my-secret-token', request: { phone: '+4912345' } })
    const acme = new Idempotency(shop.on.primitives.forTenant('acme'), shop.operation, { durable: true })
    await acme.complete('Idempotency-Key 7', (await claimed(acme, 'Idempotency-Key 7')).token, 1)
    const { rows } = await shop.pool.query(
      'SELECT * FROM holdfast.idempotency_keys WHERE operation = $1 ORDER BY tenant',
      [shop.operation],
    )
    expect(rows.map(({ tenant, owner, state }) => ({ tenant, owner, state }))).toEqual([
      { tenant: 'acme', owner: 'app', state: 'COMPLETED' },
      { tenant: 'default', owner: 'app', state: 'PROCESSING' },
    ])
    expect(JSON.stringify(rows)).not.toMatch(/Idempotency-Key|secret|4912345/)
    await shop.forget()
    await acme.tryClaim('Idempotency-Key 7')
    expect(shop.on.counted('idempotency')).toEqual({ claimed: 2, completed: 1, repaired: 1, replayed: 1 })
  })

  it('expired: what is kept for so long is forgotten then; prune removes a bounded number of such rows and no others', async () => {
    const orders = shop.begin({ leaseMs: 10, retentionMs: 10 })
    for (const key of ['a', 'b', 'c'])
      await orders.complete(key, (await claimed(orders, key, { request: 1 })).token, 'x')
    const lasting = new Idempotency<string>(shop.on.primitives, shop.operation, { durable: true })
    await claimed(lasting, 'lasting')
    await expect
      .poll(async () => {
        await shop.forget()
        return orders.tryClaim('a', { request: 2 })
      })
      .toMatchObject({ result: 'claimed', attempt: 1, tookOver: false })
    await shop.pool.query(
      'UPDATE holdfast.idempotency_keys SET expires_at = 1 WHERE operation = $1 AND expires_at < $2',
      [shop.operation, Date.now() + 1_000_000],
    )
    const before = await lasting.prune({ limit: 2 })
    expect(before).toBe(2)
    let pruned = before
    for (let gone = 1; gone > 0; pruned += gone) gone = await lasting.prune()
    expect(pruned).toBeGreaterThanOrEqual(3)
    const { rows } = await shop.pool.query('SELECT 1 FROM holdfast.idempotency_keys WHERE operation = $1', [
      shop.operation,
    ])
    expect(rows).toHaveLength(1)
    expect(await lasting.peek('lasting')).toMatchObject({ result: 'processing' })
  })
})

describe('durable idempotency', () => {
  it('redis away: goes on with Postgres alone, and says so in its metrics', async () => {
    const server = await startRedis({ source: 'installed' })
    const counts: Record<string, number> = {}
    const primitives = await Primitives.connect({
      redis: server.url,
      postgres: await freshDatabase(),
      ...PATIENT,
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
      expect((await orders.tryClaim('key')).result).toBe('processing')
      expect(await orders.renew('key', token)).toBe('renewed')
      expect(await orders.complete('key', token, 'done')).toBe('completed')
      expect(await orders.tryClaim('key')).toMatchObject({ result: 'completed', response: 'done' })
      expect(await orders.tryClaim('before')).toMatchObject({ result: 'completed', response: 'kept' })
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
    const before = await on.keys('create-order')
    await on.primitives.context.postgres?.close()
    const work = vi.fn()
    on.counted('idempotency')
    await expect(orders.run('new', {}, work)).rejects.toMatchObject({ code: 'unavailable' })
    expect(work).not.toHaveBeenCalled()
    await expect(orders.complete('key', token, 'x')).rejects.toMatchObject({ code: 'unavailable' })
    expect(on.counted('idempotency')).toEqual({ unavailable: 2 })
    expect(await orders.tryClaim('done')).toMatchObject({ result: 'completed', response: 'kept' })
    // Nobody waits for a claim that was never made. That of the other may be over by now.
    expect((await on.keys('create-order')).filter((key) => !before.includes(key))).toEqual([])
    await on.close()
  })
})
