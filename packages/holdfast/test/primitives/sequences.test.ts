import fc from 'fast-check'
import { FastSequence } from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sequenceNext, sequenceRaise } from '../../src/redis/scripts.generated.js'
import { whileAway } from './support/away.js'
import { whileAnswersGetLost } from './support/lost.js'
import { type On, onSingle, TOPOLOGIES } from './support/topologies.js'

const MAX = Number.MAX_SAFE_INTEGER
const ttlMs = 60_000

describe.each(TOPOLOGIES)('fast sequence on %s', (_, open) => {
  let on: On
  beforeAll(async () => {
    on = await open()
  })
  afterAll(() => on.close())

  const sequenceOf = (operation = on.operation()) => new FastSequence(on.primitives, operation, { ttlMs })

  it('missing key, existing key: begins with 1 and goes on, each scope by itself', async () => {
    const tickets = sequenceOf()
    expect(await tickets.next('a')).toBe(1)
    expect(await tickets.next('a')).toBe(2)
    expect(await tickets.nextMany('a', 10)).toEqual({ first: 3, last: 12 })
    expect(await tickets.next('a')).toBe(13)
    expect(await tickets.next('b')).toBe(1)
  })

  it('ttl present, ttl kept: the end comes with the first number, and stays', async () => {
    const operation = on.operation()
    const tickets = sequenceOf(operation)
    await tickets.next('a')
    const [key = ''] = await on.keys(operation)
    expect(await on.redis.pttl(key)).toBeGreaterThan(30_000)
    await on.redis.pexpire(key, 40_000)
    await tickets.next('a')
    await tickets.raise('a', 100)
    expect(await on.redis.pttl(key)).toBeLessThanOrEqual(40_000)
    expect(await on.redis.pttl(key)).toBeGreaterThan(0)
    await tickets.raise('b', 7)
    const other = (await on.keys(operation)).find((one) => one !== key) as string
    expect(await on.redis.pttl(other)).toBeGreaterThan(30_000)
  })

  it('keys: no word of the scope stands in them, and those that stay have a name of their own', async () => {
    const operation = on.operation()
    await sequenceOf(operation).next('+4912345')
    await new FastSequence(on.primitives, operation, { ttlMs: 'none' }).next('+4912345')
    const [lasting = '', ending = ''] = await on.keys(operation)
    expect(lasting).toMatch(/^hf:app:sequence-lasting:v1:default:[^:]+:\{[0-9a-f]{32}\}$/)
    expect(ending).toMatch(/^hf:app:sequence:v1:default:[^:]+:\{[0-9a-f]{32}\}$/)
    expect(await on.redis.pttl(lasting)).toBe(-1)
  })

  it('expired: a sequence that is gone, or that Redis has lost, begins anew; raised it goes on', async () => {
    const operation = on.operation()
    const tickets = sequenceOf(operation)
    await tickets.nextMany('a', 50)
    const [key = ''] = await on.keys(operation)
    await on.redis.pexpire(key, 1)
    await expect.poll(() => on.keys(operation)).toEqual([])
    expect(await tickets.next('a')).toBe(1)
    expect(await tickets.raise('a', 50)).toBe(50)
    expect(await tickets.next('a')).toBe(51)
    // Never back.
    expect(await tickets.raise('a', 10)).toBe(51)
    expect(await tickets.next('a')).toBe(52)
  })

  it('wrong type, serialization: something else under the key is told and left as it is', async () => {
    const operation = on.operation()
    const tickets = sequenceOf(operation)
    await tickets.next('a')
    const [key = ''] = await on.keys(operation)
    for (const spoil of [
      () => on.redis.del(key).then(() => on.redis.lpush(key, 'x')),
      () => on.redis.set(key, 'seven'),
      () => on.redis.set(key, '-1'),
    ]) {
      await spoil()
      const before = await on.redis.dump(key)
      on.counted('sequence')
      await expect(tickets.next('a')).rejects.toMatchObject({ code: 'value_damaged', operation })
      await expect(tickets.raise('a', 5)).rejects.toMatchObject({ code: 'value_damaged' })
      expect(await on.redis.dump(key)).toBe(before)
      expect(on.counted('sequence')).toEqual({ damaged: 2 })
    }
  })

  it('script return type: exact up to 2^53 − 1, and past it a typed error that gives nothing', async () => {
    const tickets = sequenceOf()
    expect(await tickets.raise('a', MAX - 2)).toBe(MAX - 2)
    expect(await tickets.next('a')).toBe(MAX - 1)
    await expect(tickets.nextMany('a', 2)).rejects.toMatchObject({ code: 'counter_overflow', by: 2 })
    expect(await tickets.next('a')).toBe(MAX)
    await expect(tickets.next('a')).rejects.toMatchObject({ code: 'counter_overflow' })
  })

  it('concurrency, metrics: of many at once each gets numbers of its own', async () => {
    const tickets = sequenceOf()
    on.counted('sequence')
    const [singles, ranges] = await Promise.all([
      Promise.all(Array.from({ length: 400 }, () => tickets.next('a'))),
      Promise.all(Array.from({ length: 100 }, () => tickets.nextMany('a', 3))),
    ])
    const numbers = [...singles, ...ranges.flatMap(({ first }) => [first, first + 1, first + 2])]
    expect(numbers.sort((a, b) => a - b)).toEqual(Array.from({ length: 700 }, (_, n) => n + 1))
    expect(on.counted('sequence')).toEqual({ given: 500 })
  })

  it('model: any sequence of calls does what a number does', async () => {
    const call = fc.record({
      what: fc.constantFrom('next', 'many', 'raise'),
      number: fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 1_000_000 })),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(call, { maxLength: 20 }), async (calls) => {
        const tickets = sequenceOf()
        let last = 0
        for (const { what, number } of calls) {
          if (what === 'next') {
            last += 1
            expect(await tickets.next('a')).toBe(last)
          } else if (what === 'many') {
            expect(await tickets.nextMany('a', number)).toEqual({ first: last + 1, last: last + number })
            last += number
          } else {
            last = Math.max(last, number)
            expect(await tickets.raise('a', number)).toBe(last)
          }
        }
      }),
      { numRuns: 25 },
    )
  })
})

describe('fast sequence', () => {
  it('duplicate: a call whose answer was lost is sent again, which leaves a number out and gives none twice', async () => {
    await whileAnswersGetLost(async (primitives, lose) => {
      const tickets = new FastSequence(primitives, 'ticket', { ttlMs })
      expect(await tickets.next('a')).toBe(1)
      expect(await tickets.next('a')).toBe(2)
      const [number] = await Promise.all([tickets.next('a'), lose(sequenceNext)])
      expect(number).toBe(4)
      expect(await tickets.raise('a', 10)).toBe(10)
      const [raised] = await Promise.all([tickets.raise('a', 20), lose(sequenceRaise)])
      expect(raised).toBe(20)
      expect(await tickets.next('a')).toBe(21)
    })
  })

  it('redis away: refuses, as unavailable', async () => {
    await whileAway(async (primitives) => {
      const tickets = new FastSequence(primitives, 'ticket', { ttlMs })
      await expect(tickets.next('a')).rejects.toMatchObject({ code: 'unavailable', retryable: true })
    })
  })

  it.each<[string, (on: On) => unknown, string]>([
    [
      'no word about the end',
      ({ primitives }) => new FastSequence(primitives, 't', {} as never),
      'ttlMs: expected millis',
    ],
    ['no numbers', (on) => sequenceOn(on).nextMany('a', 0), 'count: expected an integer from 1'],
    ['a fraction', (on) => sequenceOn(on).raise('a', 1.5), 'number: expected an integer'],
    ['an empty scope', (on) => sequenceOn(on).next(''), 'scope: expected 1 to 1024'],
  ])('refuses %s', async (_, act, message) => {
    const on = await onSingle()
    await expect(async () => act(on)).rejects.toThrow(message)
    expect(await on.keys('t')).toEqual([])
    await on.close()
  })
})

const sequenceOn = ({ primitives }: On) => new FastSequence(primitives, 't', { ttlMs })
