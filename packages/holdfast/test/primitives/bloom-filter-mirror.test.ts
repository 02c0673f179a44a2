import { BloomFilter } from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { whileAway } from './support/away.js'
import { counting, holding } from './support/runners.js'
import { type On, TOPOLOGIES } from './support/topologies.js'

const OPTIONS = { capacity: 100_000, falsePositives: 0.001 }
/** It looks by itself so seldom that only the test makes it look. */
const BY_HAND = { everyMs: 3_600_000 }
const BITS = { result: 'maybe', because: 'bits' }
const MISSING = { result: 'maybe', because: 'missing' }
const STALE = { result: 'maybe', because: 'stale' }
/** Generous: the machine may be busy. */
const SOON = { timeout: 20_000 }

describe.each(TOPOLOGIES)('the mirror of a Bloom filter on %s', (_, open) => {
  let on: On
  beforeAll(async () => {
    on = await open()
  })
  afterAll(() => on.close())

  it('answers from this process, and says as of when something was absent', async () => {
    const operation = on.operation()
    const at = new Date('2026-07-02T14:30:00Z')
    const { primitives } = on
    const filter = new BloomFilter(
      { context: { ...primitives.context, now: () => at.getTime() } } as never,
      operation,
      OPTIONS,
    )
    const elsewhere = new BloomFilter(primitives, operation, OPTIONS)
    const mirror = filter.mirror(BY_HAND)
    expect(mirror.mightHave('a')).toEqual(STALE)
    expect(mirror.ageMs).toBe(Number.POSITIVE_INFINITY)
    await mirror.refresh()
    expect(mirror.mightHave('a')).toEqual(MISSING)
    await filter.begin()
    await mirror.refresh()
    expect(mirror.mightHave('a')).toEqual({ result: 'absent', asOf: at })
    expect(mirror.ageMs).toBeLessThan(60_000)
    await elsewhere.add('a')
    expect(mirror.mightHave('a')).toEqual({ result: 'absent', asOf: at })
    await mirror.refresh()
    expect(mirror.mightHave('a')).toEqual(BITS)
    mirror.close()
    expect(mirror.mightHave('a')).toEqual(STALE)
  })

  it('looks by itself, and counts what it answered', async () => {
    const operation = on.operation()
    const filter = new BloomFilter(on.primitives, operation, OPTIONS)
    const elsewhere = new BloomFilter(on.primitives, operation, OPTIONS)
    await filter.begin()
    on.counted('bloom')
    const mirror = filter.mirror({ everyMs: 10, maxAgeMs: 600_000 })
    await expect.poll(() => mirror.mightHave('a').result, SOON).toBe('absent')
    await elsewhere.add('a')
    await expect.poll(() => mirror.mightHave('a'), SOON).toEqual(BITS)
    await mirror.refresh()
    mirror.close()
    const counted = on.counted('bloom')
    expect(counted.mirror_absent).toBeGreaterThan(0)
    expect(counted.mirror_maybe).toBeGreaterThan(0)
    expect(counted.refreshed).toBeGreaterThan(1)
  })

  it('knows at once what this process adds, also while it reads', async () => {
    const operation = on.operation()
    const { primitives, isHeld, letGo } = holding(on.primitives, 'bloom_read')
    const filter = new BloomFilter(primitives, operation, OPTIONS)
    await filter.begin()
    const mirror = filter.mirror(BY_HAND)
    await isHeld
    // What it reads is from before this.
    await filter.add('meanwhile')
    expect(mirror.mightHave('meanwhile')).toEqual(STALE)
    letGo()
    await expect.poll(() => mirror.mightHave('never').result, SOON).toBe('absent')
    expect(mirror.mightHave('meanwhile')).toEqual(BITS)
    await filter.add('later')
    expect(mirror.mightHave('later')).toEqual(BITS)
    mirror.close()
  })

  it('reads only chunks that have changed, and a rebuilt filter as a whole', async () => {
    const operation = on.operation()
    const { primitives, counts } = counting(on.primitives)
    const filter = new BloomFilter(primitives, operation, { capacity: 1_000_000 })
    const elsewhere = new BloomFilter(on.primitives, operation, OPTIONS)
    await filter.begin()
    const { chunks } = filter.size
    const mirror = filter.mirror(BY_HAND)
    const reads = async () => {
      const before = counts.bloom_read ?? 0
      await mirror.refresh()
      return (counts.bloom_read ?? 0) - before
    }
    await mirror.refresh()
    expect(counts.bloom_read).toBe(Math.ceil(chunks / 4))
    expect(await reads()).toBe(0)
    await elsewhere.add('a')
    expect(await reads()).toBe(1)
    expect(mirror.mightHave('a')).toEqual(BITS)
    await elsewhere.rebuild(() => ['b'])
    expect(await reads()).toBe(1)
    expect([mirror.mightHave('a').result, mirror.mightHave('b').result]).toEqual(['absent', 'maybe'])
    mirror.close()
  })

  it('notices that a chunk has others than it had, though as many: after a failover that lost some', async () => {
    const operation = on.operation()
    const filter = new BloomFilter(on.primitives, operation, { capacity: 100 })
    await filter.begin()
    const chunk = (await on.keys(operation)).find((key) => !key.endsWith('}')) as string
    const empty = await on.redis.getBuffer(chunk)
    const mirror = new BloomFilter(on.primitives, operation, OPTIONS).mirror(BY_HAND)
    await filter.add('lost')
    await mirror.refresh()
    await on.redis.set(chunk, empty as Buffer)
    await filter.add('added since')
    await mirror.refresh()
    expect(mirror.mightHave('added since')).toEqual(BITS)
    mirror.close()
  })

  it('is never wrong about what was added before it looked, while filters take each other’s place', async () => {
    const operation = on.operation()
    const filter = new BloomFilter(on.primitives, operation, OPTIONS)
    const mirror = new BloomFilter(on.primitives, operation, OPTIONS).mirror(BY_HAND)
    await filter.begin()
    const truth = new Set<string>()
    let isOver = false
    const rebuild = async () => {
      while (!isOver) await filter.rebuild(() => [...truth])
    }
    const background = rebuild()
    background.catch(() => {})
    for (let n = 0; n < 30; n += 1) {
      truth.add(`item-${n}`)
      await filter.add(`item-${n}`)
      await mirror.refresh()
      expect([...truth].filter((item) => mirror.mightHave(item).result === 'absent')).toEqual([])
    }
    isOver = true
    await background
    expect(mirror.mightHave('never').result).toBe('absent')
    mirror.close()
  })

  it('says maybe of what lies in a chunk that was taken away', async () => {
    const operation = on.operation()
    const filter = new BloomFilter(on.primitives, operation, { capacity: 100 })
    await filter.begin()
    const mirror = filter.mirror(BY_HAND)
    await mirror.refresh()
    expect(mirror.mightHave('a').result).toBe('absent')
    await on.redis.unlink((await on.keys(operation)).find((key) => !key.endsWith('}')) as string)
    await mirror.refresh()
    expect(mirror.mightHave('a')).toEqual(BITS)
    await filter.rebuild(() => [])
    await mirror.refresh()
    expect(mirror.mightHave('a').result).toBe('absent')
    mirror.close()
  })

  it('goes on without Redis until it is too old, and then is sure of nothing', async () => {
    const { primitives, line } = counting(on.primitives)
    const filter = new BloomFilter(primitives, on.operation(), OPTIONS)
    await filter.begin()
    on.counted('bloom')
    const mirror = filter.mirror({ everyMs: 50, maxAgeMs: 1_000 })
    await expect.poll(() => mirror.mightHave('a').result, SOON).toBe('absent')
    line.isCut = true
    await expect(mirror.refresh()).rejects.toMatchObject({ code: 'unavailable' })
    await expect.poll(() => mirror.mightHave('a'), SOON).toEqual(STALE)
    await expect.poll(() => on.logged.some(({ event }) => event === 'bloom_refresh_failed'), SOON).toBe(true)
    expect(on.counted('bloom').refresh_failed).toBeGreaterThan(0)
    line.isCut = false
    await expect.poll(() => mirror.mightHave('a').result, SOON).toBe('absent')
    mirror.close()
  })
})

it('does not look without a rest because the rest is longer than a timer can be set for', async () => {
  await whileAway(async (primitives) => {
    const filter = new BloomFilter(primitives, 'sold', OPTIONS)
    expect(() => filter.mirror({ everyMs: 25 * 86_400_000 })).toThrow(
      'everyMs: expected an integer from 10 to 86400000',
    )
    expect(() => filter.mirror({ everyMs: Number.NaN })).toThrow('everyMs: expected an integer')
  })
})

it('redis away: a mirror that never saw its filter is sure of nothing', async () => {
  await whileAway(async (primitives) => {
    const mirror = new BloomFilter(primitives, 'sold', OPTIONS).mirror()
    expect(mirror.mightHave('a')).toEqual(STALE)
    await expect(mirror.refresh()).rejects.toMatchObject({ code: 'unavailable' })
    expect(mirror.mightHave('a')).toEqual(STALE)
    mirror.close()
  })
})
