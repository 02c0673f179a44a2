import fc from 'fast-check'
import { type BloomAdded, BloomFilter, Primitives } from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { whileAway } from './support/away.js'
import { PATIENT } from './support/patient.js'
import { stuttering } from './support/runners.js'
import { type On, SECRET, TOPOLOGIES } from './support/topologies.js'

const MISSING = { result: 'maybe', because: 'missing' }
const BITS = { result: 'maybe', because: 'bits' }
const ABSENT = { result: 'absent' }
const states = (added: readonly BloomAdded[]): string[] => added.map(({ result }) => result)
const words = (count: number, name = 'item'): string[] => Array.from({ length: count }, (_, n) => `${name}-${n}`)

describe.each(TOPOLOGIES)('Bloom filter on %s', (_, open) => {
  let on: On
  beforeAll(async () => {
    on = await open()
  })
  afterAll(() => on.close())

  it('missing key: without a filter nothing is sure, nothing is kept, and nothing is made by asking', async () => {
    const operation = on.operation()
    const filter = new BloomFilter(on.primitives, operation, { capacity: 100 })
    on.counted('bloom')
    expect(await filter.mightHave('a')).toEqual(MISSING)
    expect(await filter.add('a')).toEqual({ result: 'missing' })
    expect(await filter.mightHave('a')).toEqual(MISSING)
    expect(await filter.fill()).toBeNull()
    expect(await filter.drop()).toBe(false)
    expect(await on.keys(operation)).toEqual([])
    expect(on.counted('bloom')).toEqual({ missing: 3, dropped: 1 })
  })

  it('existing key, metrics: absent is sure, maybe is not, and what is new for sure is told', async () => {
    const filter = new BloomFilter(on.primitives, on.operation(), { capacity: 1_000, falsePositives: 1e-6 })
    on.counted('bloom')
    expect(await filter.begin()).toBe('begun')
    expect(await filter.mightHave('a')).toEqual(ABSENT)
    expect(await filter.add('a')).toEqual({ result: 'new' })
    expect(await filter.add('a')).toEqual({ result: 'maybe' })
    expect(await filter.mightHave('a')).toEqual(BITS)
    expect(states(await filter.addMany(['a', 'b', 'c', 'b']))).toEqual(['maybe', 'new', 'new', 'maybe'])
    expect(await filter.mightHaveMany(['c', 'd', 'a'])).toEqual([BITS, ABSENT, BITS])
    expect(await filter.begin()).toBe('exists')
    expect(await filter.mightHave('a')).toEqual(BITS)
    expect(await filter.drop()).toBe(true)
    expect(await filter.mightHave('a')).toEqual(MISSING)
    expect(on.counted('bloom')).toEqual({
      begun: 1,
      exists: 1,
      absent: 2,
      added: 3,
      added_again: 3,
      maybe: 4,
      dropped: 1,
      missing: 1,
    })
  })

  it('keys: a state and its chunks under one tag, with no word of an item or a scope in keys or values', async () => {
    const operation = on.operation()
    const acme = on.primitives.forTenant('acme')
    for (const [primitives, scope] of [
      [on.primitives, 'sale-1'],
      [on.primitives, 'sale-2'],
      [acme, 'sale-1'],
    ] as const) {
      const filter = new BloomFilter(primitives, operation, { capacity: 100_000, scope })
      await filter.begin()
      await filter.add('+4912345')
    }
    const keys = await on.keys(operation)
    const form = new RegExp(`^hf:app:bloom:v1:(acme|default):${operation}:\\{[0-9a-f]{32}\\}(:[0-9a-f]{16}-[01])?$`)
    expect(keys).toHaveLength(9)
    for (const key of keys) expect(key).toMatch(form)
    const bits = new Set<string>()
    for (const key of keys.filter((one) => /-[01]$/.test(one))) {
      const value = (await on.redis.getBuffer(key)) as Buffer
      expect(value.length).toBe(59_907 + 8)
      expect(value.includes('4912345')).toBe(false)
      if (value.some((byte) => byte !== 0)) bits.add(value.toString('latin1'))
    }
    // The same item sets other bits in each filter.
    expect(bits.size).toBe(3)
  })

  it('ttl present, ttl kept: with an end all of it ends then; without one nothing does', async () => {
    const [endless, ending] = [on.operation(), on.operation()]
    const endsAt = new Date(Date.now() + 3_600_000)
    for (const [operation, options] of [
      [endless, {}],
      [ending, { endsAt }],
    ] as const) {
      const filter = new BloomFilter(on.primitives, operation, { capacity: 100, ...options })
      await filter.begin()
      await filter.add('a')
      expect((await filter.rebuild(() => ['a'])).result).toBe('swapped')
      await filter.add('b')
    }
    const ends = async (operation: string) => {
      const { current, old } = { current: [] as number[], old: [] as number[] }
      const keys = await on.keys(operation)
      const id = String(await on.redis.get(keys.find((key) => key.endsWith('}')) as string)).slice(0, 16)
      for (const key of keys) {
        const isOld = !key.endsWith('}') && !key.includes(id)
        ;(isOld ? old : current).push(await on.redis.pexpiretime(key))
      }
      return { current, old }
    }
    const [without, withEnd] = [await ends(endless), await ends(ending)]
    expect(without.current).toEqual([-1, -1])
    expect(withEnd.current).toEqual([endsAt.getTime(), endsAt.getTime()])
    for (const ms of [...without.old, ...withEnd.old]) {
      expect(ms).toBeGreaterThan(Date.now())
      expect(ms).toBeLessThanOrEqual(Date.now() + 60_000)
    }
    expect([without.old.length, withEnd.old.length]).toEqual([1, 1])
  })

  it('expired: when it has ended nothing is sure again, and it does not begin anew', async () => {
    const operation = on.operation()
    const filter = new BloomFilter(on.primitives, operation, { capacity: 100, endsAt: new Date(Date.now() + 400) })
    await filter.begin()
    await filter.add('a')
    await expect.poll(() => on.keys(operation)).toEqual([])
    expect(await filter.mightHave('a')).toEqual(MISSING)
    expect(await filter.add('a')).toEqual({ result: 'missing' })
    expect(await filter.begin()).toBe('expired')
    expect(await filter.rebuild(() => ['a'])).toEqual({ result: 'expired' })
    expect(await filter.mightHave('a')).toEqual(MISSING)
  })

  it('wrong type, serialization: something else in the place of state or chunk is told and left as it is', async () => {
    const operation = on.operation()
    const filter = new BloomFilter(on.primitives, operation, { capacity: 100 })
    await filter.begin()
    const keys = await on.keys(operation)
    const [state, chunk] = [keys.find((key) => key.endsWith('}')), keys.find((key) => !key.endsWith('}'))] as string[]
    const right = String(await on.redis.get(state as string))
    for (const [key, spoil, restore] of [
      [chunk, () => on.redis.set(chunk as string, 'short'), () => on.redis.del(chunk as string)],
      [chunk, () => on.redis.lpush(chunk as string, 'x'), () => on.redis.del(chunk as string)],
      [state, () => on.redis.set(state as string, 'no state of ours'), () => on.redis.set(state as string, right)],
      [state, () => on.redis.set(state as string, 'one '), () => on.redis.set(state as string, right)],
      [state, () => on.redis.del(state as string).then(() => on.redis.lpush(state as string, 'x')), () => 0],
    ] as const) {
      await spoil()
      const before = await on.redis.dump(key as string)
      on.counted('bloom')
      for (const call of [() => filter.add('a'), () => filter.mightHave('a'), () => filter.fill()]) {
        await expect(call()).rejects.toMatchObject({
          code: 'value_damaged',
          operation,
          redisPattern: 'hf:app:bloom:v1',
        })
      }
      expect(on.counted('bloom')).toEqual({ damaged: 3 })
      expect(await on.redis.dump(key as string)).toBe(before)
      await restore()
    }
    await expect(filter.rebuild(() => ['a'])).rejects.toMatchObject({ code: 'value_damaged' })
  })

  it('script return type: a chunk that was taken away is not read as empty, until a rebuild heals it', async () => {
    const operation = on.operation()
    const filter = new BloomFilter(on.primitives, operation, { capacity: 100 })
    await filter.begin()
    await filter.add('a')
    const chunk = (await on.keys(operation)).find((key) => !key.endsWith('}')) as string
    await on.redis.del(chunk)
    expect(await filter.mightHave('a')).toEqual(MISSING)
    expect(await filter.add('b')).toEqual({ result: 'missing' })
    expect(await filter.fill()).toBeNull()
    expect(await on.redis.exists(chunk)).toBe(0)
    expect(await filter.rebuild(() => ['a', 'b'])).toEqual({ result: 'swapped', items: 2 })
    expect(await filter.mightHaveMany(['a', 'b', 'c'])).toEqual([BITS, BITS, ABSENT])
  })

  it('duplicate: a call whose reply was lost and that runs twice does no harm', async () => {
    const filter = new BloomFilter(stuttering(on.primitives), on.operation(), { capacity: 100 })
    expect(await filter.begin()).toBe('begun')
    // That it was new is not known for sure any more, and so not said; nor that there was something to drop.
    expect(await filter.add('a')).toEqual({ result: 'maybe' })
    expect(await filter.rebuild(() => words(10))).toEqual({ result: 'swapped', items: 10 })
    expect(await filter.mightHaveMany(['a', 'item-9'])).toEqual([ABSENT, BITS])
    expect((await filter.fill())?.items).toBeLessThan(15)
    expect(await filter.drop()).toBe(false)
    expect(await filter.mightHave('item-9')).toEqual(MISSING)
  })

  it('concurrency: of many who add the same, each is told new once, over several connections', async () => {
    const operation = on.operation()
    const other = await Primitives.connect({ redis: on.redis, secret: SECRET, ...PATIENT })
    const filters = [on.primitives, other].map(
      (primitives) => new BloomFilter(primitives, operation, { capacity: 10_000, falsePositives: 1e-6 }),
    ) as [BloomFilter, BloomFilter]
    expect((await Promise.all([...filters, ...filters].map((filter) => filter.begin()))).sort()).toEqual([
      'begun',
      'exists',
      'exists',
      'exists',
    ])
    const items = words(200)
    const added = await Promise.all([...filters, ...filters].map((filter) => filter.addMany(items)))
    for (const at of items.keys()) {
      expect(added.map((all) => all[at]?.result).sort()).toEqual(['maybe', 'maybe', 'maybe', 'new'])
    }
    for (const filter of filters) expect(await filter.mightHaveMany(items)).toEqual(items.map(() => BITS))
    await other.close()
  })

  it('tells how full it is, and warns once when it has more than it was made for', async () => {
    const filter = new BloomFilter(on.primitives, on.operation(), { capacity: 200 })
    await filter.begin()
    await filter.addMany(words(200))
    const full = await filter.fill()
    expect(full).toMatchObject({ capacity: 200, hashes: 7, bits: 1_920 })
    expect(full?.items).toBeGreaterThan(175)
    expect(full?.items).toBeLessThan(225)
    expect(full?.falsePositives).toBeGreaterThan(0.003)
    expect(full?.falsePositives).toBeLessThan(0.025)
    expect(on.logged.filter(({ event }) => event === 'bloom_over_capacity')).toEqual([])
    on.counted('bloom')
    await filter.addMany(words(400))
    const over = await filter.fill()
    expect(over?.isOver).toBe(true)
    expect(over?.falsePositives).toBeGreaterThan(0.05)
    expect(on.logged.filter(({ event }) => event === 'bloom_over_capacity')).toHaveLength(1)
    expect(on.counted('bloom').over_capacity).toBeGreaterThan(50)
  })

  it('model: any sequence of calls of two processes does what a set does', async () => {
    const item = fc.integer({ min: 0, max: 15 }).map((n) => `item-${n}`)
    const call = fc.record({
      what: fc.constantFrom('add', 'add', 'add', 'check', 'check', 'rebuild', 'begin', 'drop'),
      who: fc.integer({ min: 0, max: 1 }),
      items: fc.array(item, { minLength: 1, maxLength: 4 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(call, { maxLength: 40 }), async (calls) => {
        const operation = on.operation()
        // So large for so few that a false positive does not happen; and of two sizes.
        const filters = [5_000, 2_000].map(
          (capacity) => new BloomFilter(on.primitives, operation, { capacity, falsePositives: 1e-6 }),
        )
        let model: Set<string> | null = null
        for (const { what, who, items } of calls) {
          const filter = filters[who] as BloomFilter
          if (what === 'begin') {
            expect(await filter.begin()).toBe(model ? 'exists' : 'begun')
            model ??= new Set()
          } else if (what === 'drop') {
            expect(await filter.drop()).toBe(model !== null)
            model = null
          } else if (what === 'rebuild') {
            expect(await filter.rebuild(() => items)).toEqual({ result: 'swapped', items: items.length })
            model = new Set(items)
          } else if (what === 'check') {
            const expected = items.map((one) => (model ? (model.has(one) ? BITS : ABSENT) : MISSING))
            expect(await filter.mightHaveMany(items)).toEqual(expected)
          } else {
            const expected = items.map((one, at) => {
              if (!model) return 'missing'
              return model.has(one) || items.indexOf(one) < at ? 'maybe' : 'new'
            })
            expect(states(await filter.addMany(items))).toEqual(expected)
            for (const one of items) model?.add(one)
          }
        }
      }),
      { numRuns: 20 },
    )
  })
})

describe('Bloom filter', () => {
  it('redis away: refuses, as unavailable', async () => {
    await whileAway(async (primitives) => {
      const filter = new BloomFilter(primitives, 'sold', { capacity: 100 })
      for (const call of [
        () => filter.add('a'),
        () => filter.mightHave('a'),
        () => filter.begin(),
        () => filter.rebuild(() => ['a']),
        () => filter.fill(),
      ]) {
        await expect(call()).rejects.toMatchObject({ code: 'unavailable', retryable: true })
      }
    })
  })
})
