import { BloomFilter, type BloomRebuilt, Primitives } from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PATIENT } from './support/patient.js'
import { type On, SECRET, TOPOLOGIES } from './support/topologies.js'

const BITS = { result: 'maybe', because: 'bits' }
const ABSENT = { result: 'absent' }
const OPTIONS = { capacity: 5_000, falsePositives: 1e-6 }

describe.each(TOPOLOGIES)('rebuilding a Bloom filter on %s', (_, open) => {
  let on: On
  beforeAll(async () => {
    on = await open()
  })
  afterAll(() => on.close())

  /** Items that come when they are told to. */
  function source() {
    let next = (_: string | null) => {}
    let asked = () => {}
    const isAsked = new Promise<void>((resolve) => (asked = resolve))
    async function* items(): AsyncGenerator<string> {
      for (;;) {
        const item = new Promise<string | null>((resolve) => (next = resolve))
        asked()
        const got = await item
        if (got === null) return
        yield got
      }
    }
    return { items: items(), isAsked, end: () => next(null) }
  }

  it('takes the place of the old one at once, and drops what was not among the items', async () => {
    const filter = new BloomFilter(on.primitives, on.operation(), OPTIONS)
    await filter.begin()
    await filter.addMany(['a', 'b'])
    expect(await filter.rebuild(() => ['b', 'c'])).toEqual({ result: 'swapped', items: 2 })
    expect(await filter.mightHaveMany(['a', 'b', 'c'])).toEqual([ABSENT, BITS, BITS])
  })

  it('takes what is added meanwhile into both, whoever adds it', async () => {
    const operation = on.operation()
    const filter = new BloomFilter(on.primitives, operation, OPTIONS)
    const elsewhere = new BloomFilter(on.primitives, operation, OPTIONS)
    await filter.begin()
    await elsewhere.add('known before')
    const { items, isAsked, end } = source()
    const rebuilt = filter.rebuild(() => items)
    await isAsked
    expect(await elsewhere.add('meanwhile')).toEqual({ result: 'new' })
    expect(await filter.mightHaveMany(['known before', 'meanwhile', 'never'])).toEqual([BITS, BITS, ABSENT])
    end()
    expect(await rebuilt).toEqual({ result: 'swapped', items: 0 })
    expect(await elsewhere.mightHaveMany(['known before', 'meanwhile', 'never'])).toEqual([ABSENT, BITS, ABSENT])
  })

  it('also when there was none before, and it began only then', async () => {
    const filter = new BloomFilter(on.primitives, on.operation(), OPTIONS)
    const { items, isAsked, end } = source()
    const rebuilt = filter.rebuild(() => items)
    await isAsked
    expect(await filter.add('first')).toEqual({ result: 'missing' })
    expect(await filter.begin()).toBe('begun')
    expect(await filter.add('second')).toEqual({ result: 'new' })
    end()
    expect(await rebuilt).toEqual({ result: 'swapped', items: 0 })
    expect(await filter.mightHaveMany(['first', 'second', 'third'])).toEqual([BITS, BITS, ABSENT])
  })

  it('lets one at a time build, and tells the others', async () => {
    const operation = on.operation()
    const filters = Array.from({ length: 5 }, () => new BloomFilter(on.primitives, operation, OPTIONS))
    const sources = filters.map(() => source())
    on.counted('bloom')
    const rebuilt = filters.map((filter, at) => filter.rebuild(() => (sources[at] as ReturnType<typeof source>).items))
    const first = await Promise.any(sources.map(({ isAsked }, at) => isAsked.then(() => at)))
    const others = await Promise.all(rebuilt.filter((_, at) => at !== first))
    expect(others).toEqual(others.map(() => ({ result: 'busy' })))
    sources[first]?.end()
    expect(await rebuilt[first]).toEqual({ result: 'swapped', items: 0 })
    expect(on.counted('bloom')).toEqual({ busy: 4, swapped: 1 })
    expect(await filters[0]?.rebuild(() => ['a'])).toEqual({ result: 'swapped', items: 1 })
  })

  it('wrong state: who dies while building leaves the old one in use and garbage with an end', async () => {
    const operation = on.operation()
    const filter = new BloomFilter(on.primitives, operation, OPTIONS)
    await filter.begin()
    await filter.add('a')
    const before = await on.keys(operation)
    const { items, isAsked, end } = source()
    const dead = new BloomFilter(on.primitives, operation, OPTIONS).rebuild(() => items)
    await isAsked
    const garbage = (await on.keys(operation)).filter((key) => !before.includes(key))
    expect(garbage).toHaveLength(1)
    for (const key of garbage) {
      expect(await on.redis.pttl(key)).toBeGreaterThan(0)
      expect(await on.redis.pttl(key)).toBeLessThanOrEqual(60_000)
    }
    expect(await filter.mightHaveMany(['a', 'b'])).toEqual([BITS, ABSENT])
    expect(await filter.rebuild(() => ['a'])).toEqual({ result: 'busy' })
    // Its end comes.
    for (const key of garbage) await on.redis.unlink(key)
    expect(await filter.add('b')).toEqual({ result: 'new' })
    expect(await filter.mightHaveMany(['a', 'b'])).toEqual([BITS, BITS])
    expect(await filter.rebuild(() => ['a', 'b'])).toEqual({ result: 'swapped', items: 2 })
    // It was not dead, but slow: it finds that its place is taken, and changes nothing.
    end()
    expect(await dead).toEqual({ result: 'lost' })
    expect(await filter.mightHaveMany(['a', 'b', 'c'])).toEqual([BITS, BITS, ABSENT])
  })

  it('leaves the old one when its items fail, and nothing of the new', async () => {
    const operation = on.operation()
    const filter = new BloomFilter(on.primitives, operation, OPTIONS)
    await filter.begin()
    await filter.add('a')
    const before = await on.keys(operation)
    async function* broken() {
      yield 'b'
      throw new Error('the database is away')
    }
    await expect(filter.rebuild(broken)).rejects.toThrow('the database is away')
    await expect(filter.rebuild(() => 5 as never)).rejects.toThrow(
      'items() returns: expected something to iterate over',
    )
    await expect(filter.rebuild(() => ['b', ''])).rejects.toMatchObject({ code: 'invalid_argument' })
    expect(await on.keys(operation)).toEqual(before)
    expect(await filter.mightHaveMany(['a', 'b'])).toEqual([BITS, ABSENT])
    expect(await filter.rebuild(() => ['b'])).toEqual({ result: 'swapped', items: 1 })
  })

  it('serves processes with other settings, also when it gets another size', async () => {
    const operation = on.operation()
    const small = new BloomFilter(on.primitives, operation, { capacity: 100 })
    const large = new BloomFilter(on.primitives, operation, { capacity: 100_000, falsePositives: 0.001 })
    await small.begin()
    await large.add('a')
    expect(await small.mightHave('a')).toEqual(BITS)
    expect(await large.fill()).toMatchObject({ capacity: 100 })
    expect(await large.rebuild(() => ['a'])).toEqual({ result: 'swapped', items: 1 })
    expect(await small.fill()).toMatchObject({ capacity: 100_000, hashes: 10, items: 1 })
    await small.add('b')
    expect(await large.mightHaveMany(['a', 'b', 'c'])).toEqual([BITS, BITS, ABSENT])
  })

  it('concurrency: whatever was added is never absent, through rebuilds, over several connections', async () => {
    const operation = on.operation()
    const other = await Primitives.connect({ redis: on.redis, secret: SECRET, ...PATIENT })
    const filters = [on.primitives, other].map((primitives) => new BloomFilter(primitives, operation, OPTIONS))
    const at = (n: number) => filters[n % 2] as BloomFilter
    await at(0).begin()
    // Where the items come from; written first.
    const truth = new Set<string>()
    const added: string[] = []
    let isOver = false
    const add = async (who: number) => {
      for (let n = 0; n < 50; n += 1) {
        const item = `item-${who}-${n}`
        truth.add(item)
        await at(who).add(item)
        added.push(item)
      }
    }
    const check = async (who: number) => {
      while (!isOver) {
        const items = added.slice(-20)
        await at(who).mightHave('anything')
        expect(await at(who).mightHaveMany(items)).toEqual(items.map(() => BITS))
      }
    }
    async function* read(): AsyncGenerator<string> {
      // As of the moment at which it is first asked, as a statement of a database would.
      for (const item of [...truth]) {
        await new Promise((resolve) => setImmediate(resolve))
        yield item
      }
    }
    const rebuilt: BloomRebuilt['result'][] = []
    const rebuild = async (who: number) => {
      while (!isOver) rebuilt.push((await at(who).rebuild(read)).result)
    }
    const background = Promise.all([check(0), check(1), rebuild(0), rebuild(1)])
    background.catch(() => {})
    await Promise.all(Array.from({ length: 6 }, (_, who) => add(who)))
    isOver = true
    await background
    expect(rebuilt.filter((state) => state === 'swapped').length).toBeGreaterThan(0)
    expect(rebuilt).not.toContain('lost')
    expect(await at(1).mightHaveMany(added)).toEqual(added.map(() => BITS))
    expect((await at(0).fill())?.isOver).toBe(false)
    await other.close()
  }, 120_000)
})
