import fc from 'fast-check'
import { type Primitives, ShardedCounter, type ShardedCounterOptions } from 'holdfast/primitives'
import type { Cluster } from 'ioredis'
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest'
import { RedisUnavailable } from '../../src/redis/index.js'
import { shardedAdd, shardedRead, shardedReset, shardedTake } from '../../src/redis/scripts.generated.js'
import { whileAway } from './support/away.js'
import { whileAnswersGetLost } from './support/lost.js'
import { type On, onCluster, onSingle, TOPOLOGIES } from './support/topologies.js'

const MAX = Number.MAX_SAFE_INTEGER
const ttlMs = 60_000

describe.each(TOPOLOGIES)('sharded counter on %s', (_, open) => {
  let on: On
  let now = Date.parse('2026-07-02T14:30:10.000Z')
  beforeAll(async () => {
    on = await open({ now: () => now })
  })
  afterAll(() => on.close())

  const counterOf = (operation = on.operation(), shards = 8) =>
    new ShardedCounter(on.primitives, operation, { ttlMs, shards })
  const countOf = async (counter: ShardedCounter) => (await counter.read('page')).count

  it('missing key: counts from nothing, and reading makes no key', async () => {
    const operation = on.operation()
    const counter = counterOf(operation)
    expect(await counter.read('page')).toEqual({ count: 0n, asOf: new Date(now) })
    expect((await counter.approximate('page')).count).toBe(0n)
    expect(await counter.refund('page', { by: 5 })).toEqual({ refunded: 0 })
    expect(await counter.reset('page')).toBe(false)
    expect(await on.keys(operation)).toEqual([])
  })

  it('existing key: adds up over all shards, each scope by itself', async () => {
    const operation = on.operation()
    const counter = counterOf(operation)
    for (let by = 1; by <= 40; by += 1) await counter.add('page', { by })
    await counter.add('other')
    expect(await countOf(counter)).toBe(820n)
    expect((await on.keys(operation)).length).toBeGreaterThan(4)
    expect(await counter.reset('page')).toBe(true)
    expect(await countOf(counter)).toBe(0n)
    expect((await counter.read('other')).count).toBe(1n)
  })

  it('has 64 shards unless others are asked for, and more of them later find what fewer have counted', async () => {
    const operation = on.operation()
    const counter = new ShardedCounter(on.primitives, operation, { ttlMs })
    expect(counter.shards).toBe(64)
    await Promise.all(Array.from({ length: 1_500 }, () => counter.add('page')))
    expect(await on.keys(operation)).toHaveLength(64)
    const wider = counterOf(operation, 128)
    await wider.add('page')
    expect(await countOf(wider)).toBe(1_501n)
  })

  it('leads the same word to the same shard, and words to all of them', async () => {
    const operation = on.operation()
    const counter = counterOf(operation)
    for (let n = 0; n < 20; n += 1) await counter.add('page', { spreadBy: 'request-17' })
    expect(await on.keys(operation)).toHaveLength(1)
    for (let n = 0; n < 200; n += 1) await counter.add('page', { spreadBy: `request-${n}` })
    expect(await on.keys(operation)).toHaveLength(8)
    expect(await countOf(counter)).toBe(220n)
  })

  it('takes back no more than there is, from several shards where one has not enough', async () => {
    const counter = counterOf()
    for (let n = 0; n < 100; n += 1) await counter.add('page')
    expect(await counter.refund('page', { by: 90 })).toEqual({ refunded: 90 })
    expect(await countOf(counter)).toBe(10n)
    expect(await counter.refund('page', { by: 90 })).toEqual({ refunded: 10 })
    expect(await countOf(counter)).toBe(0n)
    expect(await counter.refund('page')).toEqual({ refunded: 0 })
  })

  it('takes back what a word has added from the shard of that word alone', async () => {
    const counter = counterOf()
    const [one, two] = await differentShards(counter)
    await counter.reset('page')
    await counter.add('page', { spreadBy: one, by: 3 })
    await counter.add('page', { spreadBy: two, by: 7 })
    expect(await counter.refund('page', { spreadBy: one, by: 5 })).toEqual({ refunded: 3 })
    expect(await counter.refund('page', { spreadBy: two, by: 5 })).toEqual({ refunded: 5 })
    expect(await countOf(counter)).toBe(2n)
  })

  it('ttl present, ttl kept: each shard has its end with its first write, and later calls do not move it', async () => {
    const operation = on.operation()
    const counter = counterOf(operation, 1)
    await counter.add('page')
    const [key = ''] = await on.keys(operation)
    expect(await on.redis.pttl(key)).toBeGreaterThan(30_000)
    await on.redis.pexpire(key, 40_000)
    await counter.add('page')
    await counter.refund('page')
    expect(await on.redis.pttl(key)).toBeLessThanOrEqual(40_000)
    expect(await on.redis.pttl(key)).toBeGreaterThan(0)
  })

  it('keys, ttl present: those that stay on purpose have a name of their own', async () => {
    const operation = on.operation()
    const counter = new ShardedCounter(on.primitives, operation, { ttlMs: 'none', shards: 2 })
    await Promise.all(Array.from({ length: 60 }, () => counter.add('+4912345')))
    const keys = await on.keys(operation)
    expect(keys).toHaveLength(2)
    for (const key of keys) {
      expect(key).toMatch(/^hf:app:sharded-lasting:v1:default:[^:]+:\{[0-9a-f]{32}\}$/)
      expect(await on.redis.pttl(key)).toBe(-1)
    }
    // A tag of its own each: a common one would put them all on one node.
    expect(new Set(keys.map((key) => /\{(.*)\}/.exec(key)?.[1])).size).toBe(2)
  })

  it('keys, ttl present: counts by windows, of which each goes by itself', async () => {
    const operation = on.operation()
    const counter = new ShardedCounter(on.primitives, operation, { windowMs: 60_000, bufferMs: 1_000, shards: 4 })
    const at = new Date('2026-07-02T14:29:59.999Z')
    await counter.add('page', { at, by: 5 })
    await counter.add('page')
    expect((await counter.read('page', { at })).count).toBe(5n)
    expect((await counter.read('page')).count).toBe(1n)
    expect((await counter.approximate('page', { at })).count).toBe(5n)
    expect((await counter.approximate('page')).count).toBe(1n)
    const keys = await on.keys(operation)
    expect(keys.map((key) => key.split('}:')[1]).sort()).toEqual(['60000:202607021429', '60000:202607021430'])
    for (const key of keys) expect(await on.redis.pttl(key)).toBeGreaterThan(30_000)
    expect(await counter.reset('page', { at })).toBe(true)
    expect(await on.keys(operation)).toHaveLength(1)
  })

  it('expired: shards that are gone count no more', async () => {
    const operation = on.operation()
    const counter = new ShardedCounter(on.primitives, operation, { ttlMs: 1, shards: 4 })
    await Promise.all(Array.from({ length: 20 }, () => counter.add('page')))
    await expect.poll(() => on.keys(operation)).toEqual([])
    expect(await countOf(counter)).toBe(0n)
  })

  it('script return type: a shard is exact up to 2^53 − 1 and refuses more, the sum goes beyond', async () => {
    const counter = counterOf(undefined, 2)
    const [one, two] = await differentShards(counter)
    await counter.reset('page')
    await counter.add('page', { by: MAX - 1, spreadBy: one })
    await counter.add('page', { by: MAX, spreadBy: two })
    on.counted('sharded')
    await expect(counter.add('page', { by: 2, spreadBy: one })).rejects.toMatchObject({
      code: 'counter_overflow',
      by: 2,
    })
    await expect(counter.add('page', { spreadBy: two })).rejects.toMatchObject({ code: 'counter_overflow' })
    expect(on.counted('sharded')).toEqual({ overflow: 2 })
    await counter.add('page', { spreadBy: one })
    expect(await countOf(counter)).toBe(BigInt(MAX) * 2n)
    expect(await counter.refund('page', { by: MAX })).toEqual({ refunded: MAX })
    expect(await countOf(counter)).toBe(BigInt(MAX))
  })

  it('wrong type, serialization: something else under the key of a shard is told and left as it is', async () => {
    const operation = on.operation()
    const counter = counterOf(operation, 1)
    await counter.add('page')
    const [key = ''] = await on.keys(operation)
    for (const spoil of [
      () => on.redis.del(key).then(() => on.redis.lpush(key, 'x')),
      () => on.redis.set(key, '1.5'),
      () => on.redis.set(key, '-1'),
      () => on.redis.set(key, '9007199254740992'),
    ]) {
      await spoil()
      const before = await on.redis.dump(key)
      on.counted('sharded')
      const calls: (() => Promise<unknown>)[] = [
        () => counter.add('page'),
        () => counter.refund('page'),
        () => counter.read('page'),
        () => counter.approximate('page'),
      ]
      for (const call of calls) {
        await expect(call()).rejects.toMatchObject({ code: 'value_damaged', operation })
      }
      expect(await on.redis.dump(key)).toBe(before)
      expect(on.counted('sharded')).toEqual({ damaged: 4 })
    }
    expect(await counter.reset('page')).toBe(true)
    expect(await countOf(counter)).toBe(0n)
  })

  it('concurrency, metrics: of many adds and refunds at once none is lost or done twice', async () => {
    const counter = counterOf()
    on.counted('sharded')
    const adds = Array.from({ length: 500 }, (_, n) => counter.add('page', n % 2 ? { spreadBy: `${n}` } : {}))
    const refunds = Array.from({ length: 300 }, () => counter.refund('page', { by: 2 }))
    await Promise.all(adds)
    const refunded = (await Promise.all(refunds)).reduce((sum, one) => sum + one.refunded, 0)
    expect(refunded).toBeLessThanOrEqual(500)
    expect(await countOf(counter)).toBe(BigInt(500 - refunded))
    const { added, refunded: full = 0, refunded_less: less = 0 } = on.counted('sharded')
    expect({ added, refunds: full + less }).toEqual({ added: 500, refunds: 300 })
  })

  it('reads cheaply what it has read a moment ago, and says of when', async () => {
    const counter = counterOf()
    const began = now
    await counter.add('page')
    expect(await counter.approximate('page')).toEqual({ count: 1n, asOf: new Date(began) })
    await counter.add('page')
    now += 1_000
    expect(await counter.approximate('page')).toEqual({ count: 1n, asOf: new Date(began) })
    expect(await counter.approximate('page', { maxAgeMs: 999 })).toEqual({ count: 2n, asOf: new Date(now) })
    await counter.add('page')
    now += 1_001
    expect((await counter.approximate('page')).count).toBe(3n)
    // A clock that was put back makes nothing young.
    await counter.add('page')
    now -= 60_000
    expect((await counter.approximate('page')).count).toBe(4n)
    await counter.reset('page')
    expect((await counter.approximate('page')).count).toBe(0n)
  })

  it('model: any sequence of calls does what a map of sums does', async () => {
    const call = fc.record({
      what: fc.constantFrom('add', 'add', 'refund', 'read', 'reset'),
      scope: fc.constantFrom<(string | string[])[]>('a', ['a', '1'], ['a', '1', '1']),
      by: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 2 ** 45 })),
      spreadBy: fc.option(fc.constantFrom('x', 'y'), { nil: undefined }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(call, { maxLength: 25 }), async (calls) => {
        const counter = counterOf(undefined, 3)
        const model = new Map<string, number>()
        for (const { what, scope, by, spreadBy } of calls) {
          const name = String(scope)
          const before = model.get(name) ?? 0
          if (what === 'read') expect((await counter.read(scope)).count).toBe(BigInt(before))
          else if (what === 'reset') expect(await counter.reset(scope)).toBe(model.delete(name))
          else if (what === 'refund') {
            expect(await counter.refund(scope, { by })).toEqual({ refunded: Math.min(by, before) })
            if (model.has(name)) model.set(name, Math.max(0, before - by))
          } else {
            await counter.add(scope, { by, ...(spreadBy && { spreadBy }) })
            model.set(name, before + by)
          }
        }
      }),
      { numRuns: 25 },
    )
  })
})

/** Two words that lead to different shards. */
async function differentShards(counter: ShardedCounter): Promise<[string, string]> {
  await counter.add('page', { spreadBy: 'first' })
  for (let n = 0; ; n += 1) {
    const other = `other ${n}`
    const { refunded } = await counter.refund('page', { spreadBy: other })
    if (refunded === 0) return ['first', other]
    await counter.add('page', { spreadBy: 'first' })
  }
}

describe('sharded counter', () => {
  it('lies on all nodes of a Cluster, each shard in a slot of its own', async () => {
    const on = await onCluster()
    const operation = on.operation()
    const counter = new ShardedCounter(on.primitives, operation, { ttlMs })
    await Promise.all(Array.from({ length: 1_500 }, () => counter.add('page')))
    const masters = (on.redis as Cluster).nodes('master')
    expect(masters.length).toBeGreaterThanOrEqual(3)
    const found = await Promise.all(masters.map((node) => node.keys(`hf:*:${operation}:*`)))
    const counts = found.map(({ length }) => length)
    expect(counts.reduce((sum, one) => sum + one, 0)).toBe(64)
    // A third each; less than five would come about once in a hundred million times.
    for (const count of counts) expect(count).toBeGreaterThanOrEqual(5)
    const slots = await Promise.all(found.flat().map((key) => on.redis.cluster('KEYSLOT', key)))
    expect(new Set(slots).size).toBeGreaterThanOrEqual(60)
    await on.close()
  })

  it('has types that ask for an end, and for one alone', () => {
    expectTypeOf<{ ttlMs: 1; windowMs: 1 }>().not.toExtend<ShardedCounterOptions>()
    expectTypeOf<{ windowMs: 1 }>().toExtend<ShardedCounterOptions>()
    expectTypeOf<object>().not.toExtend<ShardedCounterOptions>()
  })

  it('duplicate: what was counted and not answered is told as unknown, and not counted again', async () => {
    await whileAnswersGetLost(async (primitives, lose) => {
      const counter = new ShardedCounter(primitives, 'views', { ttlMs, shards: 2 })
      await counter.add('page', { by: 10 })
      await counter.refund('page')
      const unknown = { code: 'unavailable', outcome: 'unknown' }
      const [added] = await Promise.allSettled([counter.add('page'), lose(shardedAdd)])
      expect(added).toMatchObject({ status: 'rejected', reason: unknown })
      expect((await counter.read('page')).count).toBe(10n)
      const [taken] = await Promise.allSettled([counter.refund('page', { by: 10 }), lose(shardedTake)])
      expect(taken).toMatchObject({ status: 'rejected', reason: unknown })
      // To forget twice does no harm, so that is sent again.
      await counter.reset('other')
      await Promise.all([counter.reset('page'), lose(shardedReset)])
      expect((await counter.read('page')).count).toBe(0n)
    })
  })

  it('redis away: a refund that has taken a part before it fails does not say that nothing was done', async () => {
    const on = await onSingle()
    const { context } = on.primitives
    const runner: typeof context.runner = {
      run: async (script, keys, args) => {
        if (script === shardedRead) throw new RedisUnavailable('not_executed', 'Redis is away; it did not run')
        return context.runner.run(script, keys, args)
      },
    }
    const cut = new ShardedCounter({ context: { ...context, runner } } as Primitives, 'views', { ttlMs, shards: 1 })
    await cut.add('page', { by: 2 })
    await expect(cut.refund('page', { by: 3 })).rejects.toMatchObject({ code: 'unavailable', outcome: 'unknown' })
    expect(await new ShardedCounter(on.primitives, 'views', { ttlMs, shards: 1 }).read('page')).toMatchObject({
      count: 0n,
    })
    // Now there is nothing that it could have taken.
    await expect(cut.refund('page', { by: 3 })).rejects.toMatchObject({ outcome: 'not_executed' })
    await on.close()
  })

  it('redis away: refuses, as unavailable', async () => {
    await whileAway(async (primitives) => {
      const counter = new ShardedCounter(primitives, 'views', { ttlMs, shards: 4 })
      await expect(counter.add('page')).rejects.toMatchObject({ code: 'unavailable', retryable: true })
      await expect(counter.approximate('page')).rejects.toMatchObject({ code: 'unavailable' })
      await expect(counter.read('page')).rejects.toMatchObject({ code: 'unavailable' })
    })
  })

  it.each<[string, (on: On) => unknown, string]>([
    [
      'no word about the end',
      ({ primitives }) => new ShardedCounter(primitives, 's', {} as never),
      'options: expected either ttlMs or windowMs, got neither',
    ],
    [
      'two ends',
      ({ primitives }) => new ShardedCounter(primitives, 's', { ttlMs, windowMs: 5 } as never),
      'options: expected either ttlMs or windowMs, got both',
    ],
    [
      'no shards',
      ({ primitives }) => new ShardedCounter(primitives, 's', { ttlMs, shards: 0 }),
      'shards: expected an integer',
    ],
    [
      'a buffer of no window',
      ({ primitives }) => new ShardedCounter(primitives, 's', { ttlMs, bufferMs: 5 } as never),
      'bufferMs: expected none',
    ],
    ['nothing to add', (on) => counterOn(on).add('p', { by: 0 }), 'by: expected an integer from 1'],
    ['no words', (on) => counterOn(on).add([]), 'scope: expected a string or some'],
    [
      'a number for a scope',
      (on) => counterOn(on).read(5 as never),
      'scope: expected a string or some strings, got a number',
    ],
    ['an empty scope', (on) => counterOn(on).approximate(''), 'scope: expected 1 to 1024'],
    ['what looks like the words of another', approximateAlike, 'scope: expected no control characters'],
    ['an empty word to spread by', (on) => counterOn(on).add('p', { spreadBy: '' }), 'spreadBy: expected 1 to 255'],
  ])('refuses %s', async (_, act, message) => {
    const on = await onSingle()
    await expect(async () => act(on)).rejects.toThrow(message)
    expect(await on.keys('s')).toEqual([])
    await on.close()
  })
})

const counterOn = ({ primitives }: On) => new ShardedCounter(primitives, 's', { ttlMs, shards: 2 })

/** Of a sum that is known by then. */
async function approximateAlike(on: On): Promise<unknown> {
  const counter = counterOn(on)
  await counter.approximate(['front', 'page'])
  return counter.approximate('front\0page')
}
