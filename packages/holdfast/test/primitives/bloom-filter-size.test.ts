import { BloomFilter, type Primitives } from 'holdfast/primitives'
import { describe, expect, it } from 'vitest'
import { newGeneration } from '../../src/primitives/bloom/generation.js'
import { sizeOf } from '../../src/primitives/bloom/size.js'
import { offsetsOf } from '../../src/primitives/bloom/spot.js'
import { type On, onSingle } from './support/topologies.js'

const words = (count: number, name = 'item'): string[] => Array.from({ length: count }, (_, n) => `${name}-${n}`)

describe('the size of a Bloom filter', () => {
  it.each([
    [100_000, 0.01, 117, 7],
    [10_000, 0.001, 18, 10],
    [27_000_000, 0.01, 31_592, 7],
  ])('is as large as the formulas say: %d at %d', async (capacity, falsePositives, kib, hashes) => {
    await withSingle(async ({ primitives }) => {
      const { size } = new BloomFilter(primitives, 'sold', { capacity, falsePositives })
      expect({ kib: Math.round(size.bits / 8 / 1_024), hashes: size.hashes }).toEqual({ kib, hashes })
      expect(size.chunkBytes).toBeLessThan(65_536)
    })
  })

  it.each([
    [60_000, 0.01],
    [10_000, 0.001],
    [50, 0.01],
  ])(
    'forgets none of %d, and is wrong about %d of the others',
    async (capacity, falsePositives) => {
      await withSingle(async ({ primitives }) => {
        const filter = new BloomFilter(primitives, 'sold', { capacity, falsePositives })
        const items = words(capacity)
        expect(await filter.rebuild(() => items)).toEqual({ result: 'swapped', items: capacity })
        const mirror = filter.mirror()
        await mirror.refresh()
        expect(items.filter((item) => mirror.mightHave(item).result !== 'maybe')).toEqual([])
        const others = words(30_000, 'other')
        const wrong = others.filter((item) => mirror.mightHave(item).result !== 'absent').length / others.length
        // Some 30 of them, or a filter with so few items, are what they are by chance.
        const slack = capacity === 60_000 ? 1.4 : 3
        expect(wrong).toBeGreaterThan(falsePositives / slack)
        expect(wrong).toBeLessThan(falsePositives * slack)
        const fill = await filter.fill()
        expect(fill?.falsePositives).toBeGreaterThan(wrong / slack)
        expect(fill?.falsePositives).toBeLessThan(wrong * slack)
        expect(fill?.items).toBeGreaterThan(capacity * 0.85)
        expect(fill?.items).toBeLessThan(capacity * 1.15)
        mirror.close()
      })
    },
    120_000,
  )

  it('is hardly more often wrong than it should be when it is small', () => {
    const generation = newGeneration(sizeOf(20, 1e-4))
    const anywhere = () => Math.floor(Math.random() * 2 ** 32)
    const spot = (): number[] => offsetsOf([anywhere(), anywhere(), anywhere(), anywhere()], generation)
    let wrong = 0
    const [filters, checks] = [500, 2_000]
    for (let n = 0; n < filters; n += 1) {
      const bits = new Set(Array.from({ length: 20 }, spot).flat())
      for (let check = 0; check < checks; check += 1) if (spot().every((offset) => bits.has(offset))) wrong += 1
    }
    // With double hashing it would be 40 times as often as it should.
    expect(wrong / (filters * checks)).toBeLessThan(2e-4)
  })

  it.each<[string, (on: On) => unknown, string]>([
    ['no items', ({ primitives }) => filterOf(primitives, { capacity: 0 }), 'capacity: expected an integer from 1'],
    ['no options', ({ primitives }) => new BloomFilter(primitives, 'sold', undefined as never), 'capacity: expected'],
    [
      'a rate of nothing',
      ({ primitives }) => filterOf(primitives, { falsePositives: 0 }),
      'falsePositives: expected a number from 0.000001 to 0.5, got 0',
    ],
    [
      'more bits than are allowed',
      ({ primitives }) => filterOf(primitives, { capacity: 30_000_000 }),
      'capacity and falsePositives: expected what fits into 268173312 bits, got what takes 287551752',
    ],
    [
      'an end that is none',
      ({ primitives }) => filterOf(primitives, { endsAt: 5 as never }),
      'endsAt: expected a Date',
    ],
    ['an empty scope', ({ primitives }) => filterOf(primitives, { scope: '' }), 'scope: expected 1 to 1024'],
    ['an empty item', ({ primitives }) => filterOf(primitives).add(''), 'item: expected 1 to 1024 characters'],
    [
      'a number',
      ({ primitives }) => filterOf(primitives).mightHave(5 as never),
      'item: expected a string, got a number',
    ],
    ['no array', ({ primitives }) => filterOf(primitives).addMany('a' as never), 'items: expected an array'],
    [
      'too many at once',
      ({ primitives }) => filterOf(primitives).addMany(words(10_001)),
      'items: expected at most 10000, got 10001',
    ],
    [
      'to rebuild from nothing',
      ({ primitives }) => filterOf(primitives).rebuild(undefined as never),
      'items: expected a function that reads them',
    ],
    ['a mirror without rest', ({ primitives }) => filterOf(primitives).mirror({ everyMs: 1 }), 'everyMs: expected'],
    [
      'a mirror that is stale at once',
      ({ primitives }) => filterOf(primitives).mirror({ everyMs: 1_000, maxAgeMs: 500 }),
      'maxAgeMs: expected an integer from 1000',
    ],
  ])('refuses %s', async (_, act, message) => {
    await withSingle(async (on) => {
      await expect(async () => act(on)).rejects.toThrow(message)
      expect(await on.keys('sold')).toEqual([])
    })
  })
})

function filterOf(primitives: Primitives, options: Partial<ConstructorParameters<typeof BloomFilter>[2]> = {}) {
  return new BloomFilter(primitives, 'sold', { capacity: 100, ...options })
}

async function withSingle(use: (on: On) => Promise<void>): Promise<void> {
  const on = await onSingle()
  try {
    await use(on)
  } finally {
    await on.close()
  }
}
