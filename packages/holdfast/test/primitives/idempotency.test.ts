import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { Idempotency, Primitives } from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { whileAway } from './support/away.js'
import { claimed, endLeases } from './support/idempotency.js'
import { PATIENT } from './support/patient.js'
import { type On, SECRET, TOPOLOGIES } from './support/topologies.js'
import { twice } from './support/twice.js'

const DAY_MS = 24 * 60 * 60 * 1_000

describe.each(TOPOLOGIES)('idempotency on %s', (_, open) => {
  let on: On
  beforeAll(async () => {
    on = await open()
  })
  afterAll(() => on.close())

  it('missing key: the first claims it; what was never claimed can not be ended', async () => {
    const operation = on.operation()
    const orders = new Idempotency(on.primitives, operation)
    expect(await orders.peek('key')).toEqual({ result: 'free' })
    expect(await orders.complete('key', 'token', 1)).toBe('lost')
    expect(await orders.fail('key', 'token')).toBe('lost')
    expect(await orders.renew('key', 'token')).toBe('lost')
    expect(await on.keys(operation)).toEqual([])
    expect(await orders.tryClaim('key')).toEqual({
      result: 'claimed',
      token: expect.stringMatching(/^[0-9a-f]{32}$/),
      attempt: 1,
      tookOver: false,
    })
    expect(await orders.peek('key')).toEqual({ result: 'processing', attempt: 1, leftMs: expect.any(Number) })
  })

  it('existing key, duplicate: others hear that it is being processed, then get the response', async () => {
    const orders = new Idempotency<{ order: string }>(on.primitives, on.operation(), { leaseMs: 20_000 })
    const { token } = await claimed(orders, 'key', { request: { item: 1 } })
    const second = await orders.tryClaim('key', { request: { item: 1 } })
    expect(second.result === 'processing' && second.leftMs > 0 && second.leftMs <= 20_000).toBe(true)
    expect(await orders.complete('key', token, { order: 'O-1 ✓' })).toBe('completed')
    const third = await orders.tryClaim('key', { request: { item: 1 } })
    expect(third).toEqual({ result: 'completed', response: { order: 'O-1 ✓' }, replayed: true })
    expect(await orders.peek('key')).toEqual({ result: 'completed', attempt: 1, response: { order: 'O-1 ✓' } })
  })

  it('wrong state: what has ended is not ended otherwise, and what was given up is not completed', async () => {
    const orders = new Idempotency(on.primitives, on.operation())
    const done = await claimed(orders, 'done')
    await orders.complete('done', done.token, 1)
    expect(await orders.fail('done', done.token)).toBe('lost')
    expect(await orders.renew('done', done.token)).toBe('lost')
    // Said again it is what it was: the first response counts.
    expect(await orders.complete('done', done.token, 2)).toBe('completed')
    expect(await orders.tryClaim('done')).toMatchObject({ result: 'completed', response: 1 })

    const failed = await claimed(orders, 'failed')
    expect(await orders.fail('failed', failed.token, { reason: 'UPSTREAM_TIMEOUT' })).toBe('failed')
    expect(await orders.fail('failed', failed.token)).toBe('failed')
    expect(await orders.peek('failed')).toEqual({ result: 'failed', attempt: 1, reason: 'UPSTREAM_TIMEOUT' })
    expect(await orders.complete('failed', failed.token, 1)).toBe('lost')
    expect(await orders.renew('failed', failed.token)).toBe('lost')
    expect(await orders.tryClaim('failed')).toMatchObject({ result: 'claimed', attempt: 2, tookOver: false })
  })

  it('another request under the same key is a conflict, in every state; the order of members does not matter', async () => {
    const operation = on.operation()
    const orders = new Idempotency(on.primitives, operation)
    const request = { item: 1, to: { b: [1, null, 'x'], a: true } }
    const same = { to: { a: true, b: [1, null, 'x'] }, item: 1, note: undefined }
    const conflict = { code: 'idempotency_conflict', status: 422, retryable: false }
    const { token } = await claimed(orders, 'key', { request })
    on.logged.length = 0
    await expect(orders.tryClaim('key', { request: { ...request, item: 2 } })).rejects.toMatchObject(conflict)
    expect(on.logged).toEqual([
      {
        event: 'idempotency_conflict',
        facts: {
          tenantId: 'default',
          operation,
          keyHashPrefix: expect.stringMatching(/^hmac_[0-9a-f]{8}$/),
          redisPattern: 'hf:app:idempotency:v1',
        },
      },
    ])
    expect((await orders.tryClaim('key', { request: same })).result).toBe('processing')
    await endLeases(on, operation)
    await expect(orders.tryClaim('key', { request: 'other' })).rejects.toMatchObject(conflict)
    await orders.fail('key', token)
    await expect(orders.tryClaim('key', { request: 'other' })).rejects.toMatchObject(conflict)
    const again = await claimed(orders, 'key', { request: same })
    await orders.complete('key', again.token, 'done')
    await expect(orders.tryClaim('key', { request: 'other' })).rejects.toMatchObject(conflict)
    // Who gives none is not compared.
    expect((await orders.tryClaim('key')).result).toBe('completed')
  })

  it('ttl present, ttl kept: seven days from each step, whatever the lease', async () => {
    const operation = on.operation()
    const orders = new Idempotency(on.primitives, operation)
    const { token } = await claimed(orders, 'key')
    const [key = ''] = await on.keys(operation)
    const expectWeek = async () => {
      expect(await on.redis.pttl(key)).toBeGreaterThan(7 * DAY_MS - 60_000)
      expect(await on.redis.pttl(key)).toBeLessThanOrEqual(7 * DAY_MS)
      await on.redis.pexpire(key, 60_000)
    }
    await expectWeek()
    await orders.renew('key', token)
    await expectWeek()
    await orders.complete('key', token, 1)
    await expectWeek()
    // Looking at it, or being told the response, does not keep it for longer.
    await orders.tryClaim('key')
    await orders.complete('key', token, 1)
    await orders.peek('key')
    expect(await on.redis.pttl(key)).toBeLessThanOrEqual(60_000)
  })

  it('expired: after the lease another takes over with a token of its own, and the first can do nothing any more', async () => {
    const orders = new Idempotency(on.primitives, on.operation(), { leaseMs: 10 })
    const slow = await claimed(orders, 'key')
    await expect.poll(async () => (await orders.peek('key')) as object).toMatchObject({ leftMs: 0 })
    on.logged.length = 0
    const next = await orders.tryClaim('key', { token: 'next' })
    expect(next).toEqual({ result: 'claimed', token: 'next', attempt: 2, tookOver: true })
    expect(on.logged.map(({ event, facts }) => [event, facts.attempt])).toEqual([['idempotency_taken_over', 2]])
    expect(await orders.complete('key', slow.token, 'of the first')).toBe('lost')
    expect(await orders.fail('key', slow.token)).toBe('lost')
    expect(await orders.renew('key', slow.token)).toBe('lost')
    expect(await orders.complete('key', 'next', 'of the second')).toBe('completed')
    expect(await orders.complete('key', slow.token, 'of the first')).toBe('lost')
    expect(await orders.tryClaim('key')).toMatchObject({ result: 'completed', response: 'of the second' })
  })

  it('an owner whose lease has run out is the owner as long as nobody has taken over', async () => {
    const operation = on.operation()
    const orders = new Idempotency(on.primitives, operation)
    const { token } = await claimed(orders, 'key')
    await endLeases(on, operation)
    expect(await orders.renew('key', token)).toBe('renewed')
    await endLeases(on, operation)
    expect(await orders.complete('key', token, 1)).toBe('completed')
  })

  it('expired: what is kept for so long is forgotten then, and the key is as new', async () => {
    const orders = new Idempotency(on.primitives, on.operation(), { leaseMs: 10, retentionMs: 10 })
    await orders.complete('key', (await claimed(orders, 'key', { request: 1 })).token, 1)
    await expect.poll(() => orders.tryClaim('key', { request: 2 })).toMatchObject({ result: 'claimed', attempt: 1 })
  })

  it('wrong type, serialization: something else under the key is told and left as it is', async () => {
    const operation = on.operation()
    const orders = new Idempotency(on.primitives, operation)
    await claimed(orders, 'key', { token: 'mine' })
    const [key = ''] = await on.keys(operation)
    const value = String(await on.redis.get(key))
    for (const spoil of [
      () => on.redis.del(key).then(() => on.redis.lpush(key, 'x')),
      () => on.redis.set(key, 'PROCESSING'),
      () => on.redis.set(key, value.replace(/^1/, '2')),
      () => on.redis.set(key, value.replace('PROCESSING', 'DONE')),
      () => on.redis.set(key, value.replace(' - ', ' x ')),
    ]) {
      await spoil()
      const before = await on.redis.dump(key)
      on.counted('idempotency')
      for (const call of [
        () => orders.tryClaim('key'),
        () => orders.complete('key', 'mine', 1),
        () => orders.fail('key', 'mine'),
        () => orders.renew('key', 'mine'),
        () => orders.peek('key'),
      ]) {
        const damage = { code: 'value_damaged', operation, redisPattern: 'hf:app:idempotency:v1' }
        await expect(call()).rejects.toMatchObject(damage)
      }
      expect(await on.redis.dump(key)).toBe(before)
      expect(on.counted('idempotency')).toEqual({ damaged: 5 })
    }
  })

  it('script return type: any JSON comes back as it was, and what does not fit is refused before anything is sent', async () => {
    const orders = new Idempotency(on.primitives, on.operation(), { responseMaxBytes: 1_000 })
    const responses = [
      null,
      0,
      -0.5,
      1e300,
      '',
      'a\nb\0c',
      '1 COMPLETED',
      [],
      {},
      [{ ü: '𝄞' }],
      'x'.repeat(998),
      undefined,
    ]
    for (const [at, response] of responses.entries()) {
      const { token } = await claimed(orders, `${at}`)
      await orders.complete(`${at}`, token, response)
      expect(await orders.tryClaim(`${at}`)).toEqual({ result: 'completed', response, replayed: true })
    }
    const { token } = await claimed(orders, 'large')
    const tooLarge = { code: 'too_large', limit: 1_000, bytes: 1_001 }
    await expect(orders.complete('large', token, 'x'.repeat(999))).rejects.toMatchObject(tooLarge)
    await expect(orders.complete('large', token, 1n)).rejects.toMatchObject({ code: 'invalid_argument' })
    expect((await orders.peek('large')).result).toBe('processing')
  })

  it('duplicate: a call whose reply is lost and that runs twice does and says the same', async () => {
    const operation = on.operation()
    const orders = new Idempotency(twice(on.primitives), operation)
    expect(await orders.tryClaim('a', { token: 'one' })).toMatchObject({ result: 'claimed', attempt: 1 })
    expect(await orders.renew('a', 'one')).toBe('renewed')
    await endLeases(on, operation)
    expect(await orders.tryClaim('a', { token: 'two' })).toMatchObject({ attempt: 2, tookOver: true })
    // Made again after an answer that never came, it is the same claim.
    expect(await orders.tryClaim('a', { token: 'two' })).toMatchObject({ attempt: 2, tookOver: true })
    expect(await orders.fail('a', 'two')).toBe('failed')
    expect(await orders.tryClaim('a', { token: 'three' })).toMatchObject({ attempt: 3, tookOver: false })
    expect(await orders.complete('a', 'three', 'done')).toBe('completed')
    expect(await orders.tryClaim('a')).toMatchObject({ result: 'completed', response: 'done' })
  })

  it('concurrency, metrics: of many at once, over several connections, one works and all get its response', async () => {
    on.counted('idempotency')
    const operation = on.operation()
    const other = await Primitives.connect({ redis: on.redis, secret: SECRET, ...PATIENT })
    const both = [new Idempotency<number>(on.primitives, operation), new Idempotency<number>(other, operation)] as const
    let effects = 0
    const ask = async (n: number): Promise<number> => {
      const result = await both[n % 2 === 0 ? 0 : 1].run('key', { request: 1 }, async () => {
        await sleep(20)
        effects += 1
        return 17
      })
      if (result.result === 'completed') return result.response
      await sleep(20)
      return ask(n)
    }
    expect(await Promise.all(Array.from({ length: 200 }, (_, n) => ask(n)))).toEqual(new Array(200).fill(17))
    expect(effects).toBe(1)
    const told = on.counted('idempotency')
    expect(Object.keys(told).sort()).toEqual(expect.arrayContaining(['processing', 'replayed']))
    await other.close()
  })

  it('keys: neither key nor token nor request stands in Redis, and a tenant has its own', async () => {
    const operation = on.operation()
    const orders = new Idempotency(on.primitives, operation)
    await claimed(orders, 'Idempotency-Key 7', { token: 'my-secret-token', request: { phone: '+4912345' } })
    const [key = '', ...rest] = await on.keys(operation)
    expect(rest).toEqual([])
    expect(key).toMatch(new RegExp(`^hf:app:idempotency:v1:default:${operation}:\\{[0-9a-f]{32}\\}$`))
    expect(await on.redis.get(key)).toMatch(/^1 PROCESSING [0-9a-f]{32} [0-9a-f]{32} 1 0 \d{13} \d{13} \d{13}\n$/)
    await orders.complete('Idempotency-Key 7', 'another-secret-token', 1)
    expect(JSON.stringify(on.logged)).toMatch(/idempotency_lost/)
    expect(JSON.stringify(on.logged)).not.toMatch(/Idempotency-Key|secret-token|4912345/)
    const acme = new Idempotency(on.primitives.forTenant('acme'), operation)
    expect((await acme.tryClaim('Idempotency-Key 7', { request: 1 })).result).toBe('claimed')
  })

  it('model: any sequence of calls does what a small state machine does', async () => {
    const call = fc.record({
      what: fc.constantFrom('claim', 'claim', 'complete', 'fail', 'renew', 'lease over'),
      token: fc.constantFrom('one', 'two'),
      request: fc.constantFrom(1, 1, 1, 2, undefined),
    })
    interface Model {
      state: 'free' | 'processing' | 'completed' | 'failed'
      owner?: string
      request?: number | undefined
      attempt: number
      isOver: boolean
      tookOver: boolean
    }
    await fc.assert(
      fc.asyncProperty(fc.array(call, { maxLength: 25 }), async (calls) => {
        const operation = on.operation()
        const orders = new Idempotency(on.primitives, operation)
        const model: Model = { state: 'free', attempt: 0, isOver: false, tookOver: false }
        for (const { what, token, request } of calls) {
          const isOurs = model.owner === token
          if (what === 'lease over') {
            await endLeases(on, operation)
            model.isOver = model.state === 'processing'
          } else if (what === 'claim') {
            const claim = orders.tryClaim('key', { token, request })
            if (model.request !== undefined && request !== undefined && request !== model.request) {
              await expect(claim).rejects.toMatchObject({ code: 'idempotency_conflict' })
              continue
            }
            if (model.state === 'completed') expect(await claim).toMatchObject({ result: 'completed' })
            else if (model.state === 'processing' && !isOurs && !model.isOver)
              expect(await claim).toMatchObject({ result: 'processing' })
            else {
              if (model.state !== 'processing' || !isOurs) {
                model.attempt += 1
                model.tookOver = model.state === 'processing'
              }
              const { attempt, tookOver } = model
              expect(await claim).toEqual({ result: 'claimed', token, attempt, tookOver })
              Object.assign(model, { state: 'processing', owner: token, isOver: false })
              model.request ??= request
            }
          } else if (what === 'renew') {
            const isRenewed = isOurs && model.state === 'processing'
            expect(await orders.renew('key', token)).toBe(isRenewed ? 'renewed' : 'lost')
            if (isRenewed) model.isOver = false
          } else {
            const to = what === 'complete' ? 'completed' : 'failed'
            const isEnded = isOurs && (model.state === 'processing' || model.state === to)
            const ended = what === 'complete' ? await orders.complete('key', token, 1) : await orders.fail('key', token)
            expect(ended).toBe(isEnded ? to : 'lost')
            if (isEnded) Object.assign(model, { state: to, isOver: false })
          }
          expect((await orders.peek('key')).result).toBe(model.state)
        }
      }),
      { numRuns: 40 },
    )
  })
})

describe('idempotency', () => {
  it('redis away: refuses, as unavailable, and does not work', async () => {
    await whileAway(async (primitives) => {
      const orders = new Idempotency(primitives, 'create-order')
      const work = vi.fn()
      await expect(orders.tryClaim('key')).rejects.toMatchObject({ code: 'unavailable', retryable: true })
      await expect(orders.run('key', {}, work)).rejects.toMatchObject({ code: 'unavailable' })
      expect(work).not.toHaveBeenCalled()
    })
  })
})
