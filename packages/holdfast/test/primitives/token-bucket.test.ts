import fc from 'fast-check'
import { Primitives, TokenBucket, type TokenBucketOptions } from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { whileAway } from './support/away.js'
import { BucketModel } from './support/bucket-model.js'
import { PATIENT } from './support/patient.js'
import { type On, onSingle, SECRET, TOPOLOGIES } from './support/topologies.js'

const START = Date.UTC(2026, 6, 2, 14, 30)
const after = (ms: number): Date => new Date(START + ms)
const at = after(0)
/** 10 at once, and one more every 6 s. */
const TEN_A_MINUTE: TokenBucketOptions = { capacity: 10, refillMs: 60_000 }

describe.each(TOPOLOGIES)('token bucket on %s', (_, open) => {
  let on: On
  beforeAll(async () => {
    on = await open()
  })
  afterAll(() => on.close())

  it('missing key: a bucket is full at first, and neither reading nor giving back makes a key', async () => {
    const operation = on.operation()
    const bucket = new TokenBucket(on.primitives, operation, TEN_A_MINUTE)
    expect(await bucket.peek('user', { at })).toEqual({ allowed: true, left: 10, retryAfterMs: 0, resetAfterMs: 0 })
    expect(await bucket.refund('user', { at, cost: 5 })).toEqual({ left: 10, resetAfterMs: 0 })
    expect(await bucket.reset('user')).toBe(false)
    expect(await on.keys(operation)).toEqual([])
  })

  it('existing key: takes from what is there, each scope by itself, and fills up evenly', async () => {
    const bucket = new TokenBucket(on.primitives, on.operation(), TEN_A_MINUTE)
    expect(await bucket.consume('user', { at, cost: 9 })).toEqual({
      allowed: true,
      left: 1,
      retryAfterMs: 0,
      resetAfterMs: 54_000,
    })
    expect((await bucket.consume('other', { at })).left).toBe(9)
    expect((await bucket.peek('user', { at: after(5_999) })).left).toBe(1)
    expect((await bucket.peek('user', { at: after(6_000) })).left).toBe(2)
    expect((await bucket.refund('user', { at, cost: 3 })).left).toBe(4)
    expect(await bucket.refund('user', { at, cost: Number.MAX_SAFE_INTEGER })).toEqual({ left: 10, resetAfterMs: 0 })
    expect((await bucket.consume('user', { at, cost: 10 })).left).toBe(0)
    expect(await bucket.reset('user')).toBe(true)
    expect((await bucket.peek('user', { at })).left).toBe(10)
  })

  it('existing key: a refused call changes nothing, and says when to come again', async () => {
    const operation = on.operation()
    const bucket = new TokenBucket(on.primitives, operation, TEN_A_MINUTE)
    await bucket.consume('user', { at, cost: 8 })
    const [key = ''] = await on.keys(operation)
    await on.redis.pexpire(key, 50_000)
    const before = await on.redis.get(key)
    const refused = await bucket.consume('user', { at: after(1), cost: 3 })
    expect(refused).toEqual({ allowed: false, left: 2, retryAfterMs: 5_999, resetAfterMs: 47_999 })
    expect(await on.redis.get(key)).toBe(before)
    expect(await on.redis.pttl(key)).toBeLessThanOrEqual(50_000)
    expect((await bucket.consume('user', { at: after(5_999), cost: 3 })).allowed).toBe(false)
    expect((await bucket.consume('user', { at: after(6_000), cost: 3 })).allowed).toBe(true)
  })

  it('existing key: a clock that goes back gives nothing twice and takes nothing away', async () => {
    const bucket = new TokenBucket(on.primitives, on.operation(), TEN_A_MINUTE)
    await bucket.consume('user', { at, cost: 10 })
    expect((await bucket.consume('user', { at: after(30_000) })).left).toBe(4)
    // Half a minute back: what came back until then is there, and does not come back again on the way.
    expect(await bucket.consume('user', { at })).toMatchObject({ allowed: true, left: 3 })
    expect(await bucket.consume('user', { at, cost: 4 })).toMatchObject({ allowed: false, retryAfterMs: 36_000 })
    expect((await bucket.peek('user', { at: after(30_000) })).left).toBe(3)
    expect((await bucket.peek('user', { at: after(36_000) })).left).toBe(4)
  })

  it('ttl present: as long as it takes to be full again and a buffer, with every write', async () => {
    const operation = on.operation()
    const bucket = new TokenBucket(on.primitives, operation, { ...TEN_A_MINUTE, bufferMs: 20_000 })
    await bucket.consume('user', { at, cost: 5 })
    const [key = ''] = await on.keys(operation)
    const left = async (): Promise<number> => on.redis.pttl(key)
    expect(await left()).toBeLessThanOrEqual(50_000)
    expect(await left()).toBeGreaterThan(40_000)
    await bucket.consume('user', { at, cost: 5 })
    expect(await left()).toBeLessThanOrEqual(80_000)
    expect(await left()).toBeGreaterThan(70_000)
    await bucket.refund('user', { at, cost: 10 })
    expect(await left()).toBeLessThanOrEqual(20_000)
    // By a clock that is a minute behind it takes a minute longer.
    await bucket.consume('user', { at: after(-60_000), cost: 10 })
    expect(await left()).toBeGreaterThan(130_000)
  })

  it('expired: a bucket that is gone was full', async () => {
    const operation = on.operation()
    const bucket = new TokenBucket(on.primitives, operation, { capacity: 1_000, refillMs: 1, bufferMs: 0 })
    expect((await bucket.consume('user', { cost: 1_000 })).left).toBe(0)
    await expect.poll(() => on.keys(operation)).toEqual([])
    expect((await bucket.peek('user')).left).toBe(1_000)
  })

  it('wrong state: a bucket of other terms keeps what was taken from it', async () => {
    const operation = on.operation()
    const small = new TokenBucket(on.primitives, operation, TEN_A_MINUTE)
    await small.consume('user', { at, cost: 8 })
    const large = new TokenBucket(on.primitives, operation, { capacity: 100, refill: 7, refillMs: 1_000 })
    expect((await large.consume('user', { at, cost: 40 })).left).toBe(52)
    expect(await small.peek('user', { at })).toMatchObject({ left: 0, retryAfterMs: 6_000 })
    // Parts of a token that the new rate can't tell are rounded up.
    await small.reset('user')
    await small.consume('user', { at, cost: 8 })
    expect((await small.refund('user', { at: after(1), cost: 1 })).left).toBe(3)
    expect((await large.peek('user', { at: after(1) })).left).toBe(93)
  })

  it('wrong type, serialization: something else under the key is told and left as it is', async () => {
    const operation = on.operation()
    const bucket = new TokenBucket(on.primitives, operation, TEN_A_MINUTE)
    await bucket.consume('user', { at })
    const [key = ''] = await on.keys(operation)
    await on.redis.del(key)
    await on.redis.lpush(key, 'x')
    const dumps = [await on.redis.dumpBuffer(key)]
    for (const text of ['', '5', '1:2', '1:2:0', '1:2:3:4', '-1:2:3', '1.5:2:3', '1:9007199254740992:3', '1:2:x']) {
      await on.redis.set(key, text)
      dumps.push(await on.redis.dumpBuffer(key))
    }
    on.counted('bucket')
    for (const dump of dumps) {
      await on.redis.restore(key, 0, dump as Buffer, 'REPLACE')
      for (const call of [bucket.consume, bucket.refund, bucket.peek]) {
        await expect(call.call(bucket, 'user', { at })).rejects.toMatchObject({
          code: 'value_damaged',
          operation,
          redisPattern: 'hf:app:bucket:v1',
        })
      }
      expect(await on.redis.dumpBuffer(key)).toEqual(dump)
    }
    expect(on.counted('bucket')).toEqual({ damaged: 3 * dumps.length })
    // What is told of one does not cost those that went in the same call.
    const [bad, good] = await Promise.allSettled([bucket.consume('user', { at }), bucket.consume('other', { at })])
    expect([bad.status, good.status]).toEqual(['rejected', 'fulfilled'])
    expect(await bucket.reset('user')).toBe(true)
  })

  it('script return type: exact to the token for buckets as large as numbers are', async () => {
    const capacity = Number.MAX_SAFE_INTEGER
    const bucket = new TokenBucket(on.primitives, on.operation(), { capacity, refillMs: 1 })
    expect((await bucket.consume('user', { at, cost: capacity - 1 })).left).toBe(1)
    expect(await bucket.consume('user', { at, cost: 2 })).toMatchObject({ allowed: false, left: 1, retryAfterMs: 1 })
    expect((await bucket.consume('user', { at })).left).toBe(0)
    expect((await bucket.refund('user', { at, cost: capacity - 1 })).left).toBe(capacity - 1)
  })

  it('concurrency, metrics: of many at once from several processes as many get through as there are tokens', async () => {
    on.counted('bucket')
    const operation = on.operation()
    const other = await Primitives.connect({ redis: on.redis, secret: SECRET, ...PATIENT })
    const buckets = [on.primitives, other].map(
      (primitives) => new TokenBucket(primitives, operation, { capacity: 300, refillMs: 86_400_000 }),
    )
    const answers = await Promise.all(
      Array.from({ length: 250 }, () => buckets.map((bucket) => bucket.consume('user', { at }))).flat(),
    )
    expect(answers.filter(({ allowed }) => allowed).map(({ left }) => left)).toHaveLength(300)
    expect(new Set(answers.filter(({ allowed }) => allowed).map(({ left }) => left)).size).toBe(300)
    await other.close()
    const { allowed = 0, refused = 0 } = on.counted('bucket')
    expect(allowed + refused).toBe(250)
    await buckets[0]?.refund('user', { at })
    await buckets[0]?.reset('user')
    expect(on.counted('bucket')).toEqual({ refunded: 1, reset: 1 })
  })

  it('keys: one a scope, in which no word of the scope stands, and a tenant has its own', async () => {
    const operation = on.operation()
    await new TokenBucket(on.primitives, operation, TEN_A_MINUTE).consume('+4912345')
    await new TokenBucket(on.primitives.forTenant('acme'), operation, TEN_A_MINUTE).consume('+4912345')
    const [acme = '', ours = '', ...more] = await on.keys(operation)
    expect(acme).toMatch(new RegExp(`^hf:app:bucket:v1:acme:${operation}:\\{[0-9a-f]{32}\\}$`))
    expect(ours).toMatch(new RegExp(`^hf:app:bucket:v1:default:${operation}:\\{[0-9a-f]{32}\\}$`))
    expect(more).toEqual([])
    expect(acme.slice(-34)).not.toBe(ours.slice(-34))
  })

  it('takes the time from Redis, so that all processes have the same', async () => {
    const slow = await open({ now: () => 0 })
    const operation = slow.operation()
    await new TokenBucket(slow.primitives, operation, TEN_A_MINUTE).consume('user')
    const [key = ''] = await slow.keys(operation)
    const since = Number((await slow.redis.get(key))?.split(':')[1])
    expect(Math.abs(since - Date.now())).toBeLessThan(60_000)
    await slow.close()
  })

  it('model: any sequence of calls does what a fraction of tokens does, to the part of a token and the ms', async () => {
    const terms = fc.record({
      capacity: fc.integer({ min: 1, max: 1_000 }),
      refill: fc.integer({ min: 1, max: 1_000 }),
      refillMs: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 100_000 })),
    })
    const call = fc.record({
      what: fc.constantFrom('consume', 'consume', 'consume', 'peek', 'refund', 'reset'),
      share: fc.integer({ min: 1, max: 1_000 }),
      step: fc.oneof(fc.integer({ min: -50, max: 50 }), fc.integer({ min: -1_000, max: 20_000 })),
    })
    await fc.assert(
      fc.asyncProperty(terms, fc.array(call, { maxLength: 25 }), async ({ capacity, refill, refillMs }, calls) => {
        const bucket = new TokenBucket(on.primitives, on.operation(), { capacity, refill, refillMs })
        const model = new BucketModel(capacity, refill, refillMs)
        let ms = START
        for (const { what, share, step } of calls) {
          ms += step
          const cost = Math.ceil((capacity * share) / 1_000)
          const call = { cost, at: new Date(ms) }
          if (what === 'reset') {
            await bucket.reset('user')
            model.reset()
          } else if (what === 'refund') {
            expect(await bucket.refund('user', call)).toEqual(model.refund(cost, ms))
          } else {
            expect(await bucket[what]('user', call)).toEqual(model.ask(cost, ms, what === 'consume'))
          }
        }
      }),
      { numRuns: 40 },
    )
  })
})

describe('token bucket', () => {
  it('redis away: refuses, as unavailable', async () => {
    await whileAway(async (primitives) => {
      const bucket = new TokenBucket(primitives, 'login', TEN_A_MINUTE)
      await expect(bucket.consume('user')).rejects.toMatchObject({ code: 'unavailable', retryable: true })
      await expect(bucket.peek('user')).rejects.toMatchObject({ code: 'unavailable' })
    })
  })

  it.each<[string, TokenBucketOptions | undefined, string]>([
    ['nothing', undefined, 'capacity: expected an integer from 1'],
    ['no capacity', { capacity: 0, refillMs: 1_000 }, 'capacity: expected an integer from 1'],
    ['no time', { capacity: 1 } as never, 'refillMs: expected an integer from 1'],
    ['no refill', { capacity: 1, refill: 0, refillMs: 1_000 }, 'refill: expected an integer from 1'],
    [
      'more parts than numbers',
      { capacity: 2 ** 50, refill: 1, refillMs: 1_000 },
      'capacity: expected at most 9007199254740 tokens at this rate, got 1125899906842624',
    ],
    [
      'years',
      { capacity: 1_000, refill: 1, refillMs: 86_400_000 },
      'capacity: expected to be full again within 400 days, got 1000 days',
    ],
    ['a buffer below nothing', { ...TEN_A_MINUTE, bufferMs: -1 }, 'bufferMs: expected an integer from 0'],
  ])('can not be made with %s', async (_, options, message) => {
    const on = await onSingle()
    expect(() => new TokenBucket(on.primitives, 'login', options as never)).toThrow(message)
    await on.close()
  })

  it.each([
    ['more than it ever has', { cost: 11 }, 'cost: expected an integer from 1 to 10, got 11'],
    ['nothing', { cost: 0 }, 'cost: expected an integer from 1 to 10, got 0'],
    ['a fraction', { cost: 0.5 }, 'cost: expected an integer from 1 to 10, got 0.5'],
    ['a number for a date', { at: 5 as never }, 'at: expected a Date, got 5'],
  ])('refuses %s', async (_, call, message) => {
    const on = await onSingle()
    const bucket = new TokenBucket(on.primitives, 'login', TEN_A_MINUTE)
    await expect(bucket.consume('user', call)).rejects.toThrow(message)
    expect(await on.keys('login')).toEqual([])
    await on.close()
  })
})
