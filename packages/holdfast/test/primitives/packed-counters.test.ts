import fc from 'fast-check'
import { type FieldType, type Overflow, PackedCounters, type PlacedField, type Primitives } from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest'
import { whileAway } from './support/away.js'
import { losingReplies } from './support/lost-replies.js'
import { type On, onSingle, TOPOLOGIES } from './support/topologies.js'

const quota = { version: 1, fields: { calls: 'u8', score: 'i4', bytes: 'u53' }, ttlMs: 60_000 } as const
const MAX = Number.MAX_SAFE_INTEGER

describe.each(TOPOLOGIES)('packed counters on %s', (_, open) => {
  let on: On
  beforeAll(async () => {
    on = await open()
  })
  afterAll(() => on.close())

  it('missing key: all fields are 0, and reading or what is refused makes no key', async () => {
    const operation = on.operation()
    const counters = new PackedCounters(on.primitives, operation, quota)
    expect(await counters.get('anna')).toEqual({ bytes: 0, calls: 0, score: 0 })
    expect(await counters.increment('anna', { calls: 256, score: 1 })).toEqual({
      result: 'refused',
      values: { calls: 0, score: 0 },
      overflowed: ['calls'],
    })
    expect(await counters.reset('anna')).toBe(false)
    expect(await on.keys(operation)).toEqual([])
  })

  it('existing key: sets and increments many at once, each scope by itself', async () => {
    const counters = new PackedCounters(on.primitives, on.operation(), quota)
    expect(await counters.set('anna', { calls: 250, score: -8 })).toBe('created')
    expect(await counters.set('anna', { bytes: MAX })).toBe('set')
    expect(await counters.increment('anna', { calls: 5, score: 3, bytes: -1 })).toEqual({
      result: 'applied',
      values: { calls: 255, score: -5, bytes: MAX - 1 },
      overflowed: [],
    })
    expect(await counters.get('anna', ['score', 'calls'])).toEqual({ score: -5, calls: 255 })
    expect(await counters.get('bert')).toEqual({ bytes: 0, calls: 0, score: 0 })
    expect(await counters.reset('anna')).toBe(true)
    expect(await counters.get('anna')).toEqual({ bytes: 0, calls: 0, score: 0 })
  })

  it.each<[Overflow, object]>([
    ['wrap', { result: 'applied', values: { calls: 4, score: -7, bytes: 1 }, overflowed: ['calls', 'score'] }],
    ['saturate', { result: 'applied', values: { calls: 255, score: 7, bytes: 1 }, overflowed: ['calls', 'score'] }],
    ['fail-field', { result: 'partly', values: { calls: 250, score: 7, bytes: 1 }, overflowed: ['calls', 'score'] }],
    ['fail-all', { result: 'refused', values: { calls: 250, score: 7, bytes: 0 }, overflowed: ['calls', 'score'] }],
  ])('existing key: a field that leaves its range, with %s', async (overflow, expected) => {
    const counters = new PackedCounters(on.primitives, on.operation(), { ...quota, overflow })
    await counters.set('anna', { calls: 250, score: 7 })
    const done = await counters.increment('anna', { calls: 10, score: 2, bytes: 1 })
    expect(done).toEqual(expected)
    expect(await counters.get('anna')).toEqual(done.values)
    const other = await counters.increment('anna', { bytes: -5 }, { overflow: 'saturate' })
    expect(other).toEqual({ result: 'applied', values: { bytes: 0 }, overflowed: ['bytes'] })
    const failed = await counters.increment('anna', { bytes: -5 }, { overflow: 'fail-field' })
    expect(failed).toEqual({ result: 'refused', values: { bytes: 0 }, overflowed: ['bytes'] })
  })

  it('ttl present, ttl kept: from the first write on, or explicitly none', async () => {
    for (const write of ['set', 'increment'] as const) {
      const operation = on.operation()
      const counters = new PackedCounters(on.primitives, operation, quota)
      await counters[write]('anna', { calls: 1 })
      const [key = ''] = await on.keys(operation)
      expect(await on.redis.pttl(key)).toBeGreaterThan(30_000)
      expect(await on.redis.pttl(key)).toBeLessThanOrEqual(60_000)
      await on.redis.pexpire(key, 40_000)
      await counters.increment('anna', { calls: 1, bytes: 9 })
      await counters.set('anna', { score: 1 })
      expect(await on.redis.pttl(key)).toBeLessThanOrEqual(40_000)
      const forGood = on.operation()
      await new PackedCounters(on.primitives, forGood, { ...quota, ttlMs: 'none' })[write]('anna', { calls: 1 })
      const [endless = ''] = await on.keys(forGood)
      expect(await on.redis.pttl(endless)).toBe(-1)
    }
  })

  it('expired: fields that are gone begin at 0', async () => {
    const operation = on.operation()
    const counters = new PackedCounters(on.primitives, operation, { ...quota, ttlMs: 1 })
    await counters.set('anna', { calls: 7 })
    await expect.poll(() => on.keys(operation)).toEqual([])
    expect(await counters.get('anna', ['calls'])).toEqual({ calls: 0 })
  })

  it('wrong state: a layout is never read as another, however its fields are listed', async () => {
    const operation = on.operation()
    const counters = new PackedCounters(on.primitives, operation, quota)
    await counters.set('anna', { calls: 7, score: -1 })
    const same = { bytes: 'u53', score: 'i4', calls: 'u8' } as const
    const listed = new PackedCounters(on.primitives, operation, { ...quota, fields: same })
    expect(await listed.get('anna')).toEqual({ bytes: 0, calls: 7, score: -1 })
    expect(await new PackedCounters(on.primitives, operation, { ...quota, version: 2 }).get('anna')).toEqual({
      bytes: 0,
      calls: 0,
      score: 0,
    })
    on.counted('packed')
    const mismatch = { code: 'layout_mismatch', operation, redisPattern: 'hf:app:packed:v1' }
    const fields: Record<string, FieldType>[] = [
      { ...quota.fields, calls: 'u9' },
      { ...quota.fields, calls: 'i8' },
      { ...quota.fields, more: 'u1' },
      { hits: 'u8', score: 'i4', bytes: 'u53' },
    ]
    for (const other of fields.map((one) => new PackedCounters(on.primitives, operation, { ...quota, fields: one }))) {
      await expect(other.get('anna')).rejects.toMatchObject(mismatch)
      await expect(other.increment('anna', { score: 1 })).rejects.toMatchObject(mismatch)
      await expect(other.set('anna', { score: 1 })).rejects.toMatchObject(mismatch)
    }
    expect(on.counted('packed')).toEqual({ mismatch: 12 })
    expect(await counters.get('anna')).toEqual({ bytes: 0, calls: 7, score: -1 })
  })

  it('wrong type, serialization: something else under the key is told and left as it is', async () => {
    const operation = on.operation()
    const counters = new PackedCounters(on.primitives, operation, quota)
    await counters.set('anna', { calls: 1 })
    const [key = ''] = await on.keys(operation)
    const good = (await on.redis.getBuffer(key)) as Buffer
    for (const spoil of [
      () => on.redis.hset(key, 'calls', '1'),
      () => on.redis.set(key, '17'),
      () => on.redis.set(key, good.subarray(0, -1)),
      () => on.redis.setbit(key, 200, 1),
    ]) {
      await on.redis.del(key)
      await spoil()
      const before = await on.redis.dump(key)
      on.counted('packed')
      const damage = { code: 'value_damaged', operation }
      await expect(counters.get('anna')).rejects.toMatchObject(damage)
      await expect(counters.set('anna', { calls: 1 })).rejects.toMatchObject(damage)
      await expect(counters.increment('anna', { calls: 1 })).rejects.toMatchObject(damage)
      expect(on.counted('packed')).toEqual({ damaged: 3 })
      expect(await on.redis.dump(key)).toBe(before)
    }
    expect(await counters.reset('anna')).toBe(true)
  })

  it('keys: no word of the scope stands in them, and the version does', async () => {
    const operation = on.operation()
    await new PackedCounters(on.primitives, operation, { ...quota, version: 12 }).set('+4912345', { calls: 1 })
    const [key = ''] = await on.keys(operation)
    expect(key).toMatch(new RegExp(`^hf:app:packed:v1:default:${operation}:\\{[0-9a-f]{32}\\}:v12$`))
    expect(await on.redis.strlen(key)).toBe(5 + Math.ceil((8 + 4 + 53) / 8))
  })

  it('duplicate: what is set twice, because its answer was lost, is set once', async () => {
    const counters = new PackedCounters(losingReplies(on.primitives), on.operation(), quota)
    expect(await counters.set('anna', { calls: 9, score: -3 })).toBe('set')
    expect(await counters.get('anna')).toEqual({ bytes: 0, calls: 9, score: -3 })
  })

  it('concurrency, metrics: many at once are each counted once, and none beyond its range', async () => {
    const counters = new PackedCounters(on.primitives, on.operation(), quota)
    on.counted('packed')
    const done = await Promise.all(
      Array.from({ length: 300 }, () => counters.increment('anna', { calls: 1, bytes: 2 })),
    )
    expect(done.filter(({ result }) => result === 'applied')).toHaveLength(255)
    expect(await counters.get('anna')).toEqual({ calls: 255, bytes: 510, score: 0 })
    expect(on.counted('packed')).toEqual({ applied: 255, refused: 45 })
  })

  it('script return type: the layout says where BITFIELD finds a field', async () => {
    const operation = on.operation()
    const counters = new PackedCounters(on.primitives, operation, quota)
    await counters.set('anna', { score: -7, bytes: 2 ** 52, calls: 200 })
    const [key = ''] = await on.keys(operation)
    expect(counters.layout).toEqual([
      { name: 'bytes', type: 'u53', firstBit: 40, min: 0, max: MAX },
      { name: 'calls', type: 'u8', firstBit: 93, min: 0, max: 255 },
      { name: 'score', type: 'i4', firstBit: 101, min: -8, max: 7 },
    ])
    const values = counters.layout.map(({ type, firstBit }) => on.redis.bitfield(key, 'GET', type, firstBit))
    expect((await Promise.all(values)).flat()).toEqual([2 ** 52, 200, -7])
  })

  it('model: every width, sign and overflow does what numbers in a map do', async () => {
    const width = fc.integer({ min: 1, max: 53 })
    const type = fc.tuple(fc.constantFrom('u', 'i'), width).map(([sign, bits]) => `${sign}${bits}` as FieldType)
    // Near nothing, near the ends of the field, and anywhere.
    const place = fc.constantFrom('low', 'high', 'zero', 'any')
    const number = fc.tuple(place, fc.integer({ min: -3, max: 3 }), fc.maxSafeInteger())
    const call = fc.record({
      isSet: fc.boolean(),
      numbers: fc.array(number, { minLength: 1, maxLength: 5 }),
      overflow: fc.constantFrom<Overflow>('wrap', 'saturate', 'fail-field', 'fail-all'),
    })
    const types = fc.array(type, { minLength: 5, maxLength: 5 })
    await fc.assert(
      fc.asyncProperty(types, fc.array(call, { maxLength: 10 }), async (types, calls) => {
        const fields = Object.fromEntries(types.map((one, n) => [`f${n}`, one]))
        const counters = new PackedCounters(on.primitives, on.operation(), { version: 1, fields, ttlMs: 60_000 })
        const model = new Map(counters.layout.map(({ name }) => [name, 0n]))
        for (const { isSet, numbers, overflow } of calls) {
          const asked = numbers.map(([where, offset, any], n) => {
            const field = counters.layout[n] as PlacedField
            const wanted = where === 'any' ? any : { low: field.min, high: field.max, zero: 0 }[where] + offset
            const [low, high] = isSet ? [field.min, field.max] : [-MAX, MAX]
            return { field, number: Math.min(high, Math.max(low, wanted)) }
          })
          const given = Object.fromEntries(asked.map(({ field, number }) => [field.name, number]))
          if (isSet) {
            await counters.set('anna', given)
            for (const { field, number } of asked) model.set(field.name, BigInt(number))
          } else {
            const expected = incremented(model, asked, overflow)
            expect(await counters.increment('anna', given, { overflow })).toEqual(expected)
          }
          const all = Object.fromEntries([...model].map(([name, one]) => [name, Number(one)]))
          expect(await counters.get('anna')).toEqual(all)
        }
      }),
      { numRuns: 60 },
    )
  })

  it('model: each width from 1 to 53, of both signs, holds its ends and wraps to the other one', async () => {
    for (let bits = 1; bits <= 53; bits += 1) {
      const signed = `i${bits}` as FieldType
      const unsigned = `u${bits}` as FieldType
      const fields = { before: 'u3', signed, unsigned, zlast: 'i3' } as const
      const counters = new PackedCounters(on.primitives, on.operation(), { version: 1, fields, ttlMs: 60_000 })
      const ends = Object.fromEntries(counters.layout.map(({ name, min, max }) => [name, { min, max }]))
      const all = (end: 'min' | 'max') =>
        Object.fromEntries(Object.entries(ends).map(([name, one]) => [name, one[end]]))
      await counters.set('anna', all('max'))
      expect(await counters.get('anna')).toEqual(all('max'))
      const over = { before: 1, signed: 1, unsigned: 1, zlast: 1 }
      expect((await counters.increment('anna', over)).result).toBe('refused')
      expect((await counters.increment('anna', over, { overflow: 'saturate' })).values).toEqual(all('max'))
      expect((await counters.increment('anna', over, { overflow: 'wrap' })).values).toEqual(all('min'))
      const under = { before: -1, signed: -1, unsigned: -1, zlast: -1 }
      expect((await counters.increment('anna', under)).overflowed).toHaveLength(4)
      expect((await counters.increment('anna', under, { overflow: 'saturate' })).values).toEqual(all('min'))
      expect((await counters.increment('anna', under, { overflow: 'wrap' })).values).toEqual(all('max'))
    }
  })
})

describe('packed counters', () => {
  it('redis away: refuses, as unavailable', async () => {
    await whileAway(async (primitives) => {
      const counters = new PackedCounters(primitives, 'quota', quota)
      await expect(counters.increment('anna', { calls: 1 })).rejects.toMatchObject({ code: 'unavailable' })
      await expect(counters.get('anna')).rejects.toMatchObject({ code: 'unavailable', retryable: true })
    })
  })

  it('types know the fields', () => {
    const infer = (primitives: Primitives) => new PackedCounters(primitives, 'quota', quota)
    type Counters = ReturnType<typeof infer>
    expectTypeOf<Awaited<ReturnType<Counters['get']>>>().toEqualTypeOf<Record<'calls' | 'score' | 'bytes', number>>()
    expectTypeOf<Parameters<Counters['set']>[1]>().toEqualTypeOf<
      Readonly<Partial<Record<'calls' | 'score' | 'bytes', number>>>
    >()
  })

  it.each<[string, (primitives: Primitives) => unknown, string]>([
    [
      'a field that is too wide',
      (p) => new PackedCounters(p, 'x', { ...quota, fields: { a: 'u54' as 'u53' } }),
      "fields.a: expected 'u1' to 'u53' or 'i1' to 'i53'",
    ],
    [
      'one without bits',
      (p) => new PackedCounters(p, 'x', { ...quota, fields: { a: 'i0' as 'i1' } }),
      'fields.a: expected',
    ],
    [
      'another type',
      (p) => new PackedCounters(p, 'x', { ...quota, fields: { a: 'f8' as never } }),
      'fields.a: expected',
    ],
    [
      'no fields',
      (p) => new PackedCounters(p, 'x', { ...quota, fields: {} }),
      'fields: expected 1 to 64 fields by their names, got 0',
    ],
    ['a digit first', (p) => new PackedCounters(p, 'x', { ...quota, fields: { 1: 'u8' } }), 'fields: expected names'],
    ['no word about the end', (p) => new PackedCounters(p, 'x', { ...quota, ttlMs: undefined as never }), 'ttlMs:'],
    [
      'another overflow',
      (p) => new PackedCounters(p, 'x', { ...quota, overflow: 'fail' as never }),
      'overflow: expected',
    ],
    [
      'a number that does not fit',
      (p) => new PackedCounters(p, 'x', quota).set('anna', { calls: 256 }),
      'calls: expected an integer from 0 to 255, got 256',
    ],
    [
      'a fraction',
      (p) => new PackedCounters(p, 'x', quota).increment('anna', { calls: 0.5 }),
      'calls: expected an integer',
    ],
    [
      'nothing',
      (p) => new PackedCounters(p, 'x', quota).increment('anna', {}),
      'by: expected a number for at least one',
    ],
    ['no field', (p) => new PackedCounters(p, 'x', quota).get('anna', []), 'names: expected some names'],
    [
      'a field that is not declared',
      (p) => new PackedCounters(p, 'x', quota).set('anna', { calls: 1, hits: 1 } as never),
      "field: expected 'bytes' or 'calls' or 'score'",
    ],
  ])('refuses %s', async (_, act, message) => {
    const on = await onSingle()
    await expect(async () => act(on.primitives)).rejects.toThrow(message)
    await on.close()
  })
})

/** The model: numbers without a limit, and what becomes of one that leaves the range of its field. */
function incremented(
  model: Map<string, bigint>,
  asked: readonly { readonly field: PlacedField; readonly number: number }[],
  overflow: Overflow,
) {
  const sums = asked.map(({ field: { name, min, max }, number }) => {
    const sum = (model.get(name) as bigint) + BigInt(number)
    return { name, min: BigInt(min), max: BigInt(max), sum, isOver: sum < min || sum > max }
  })
  const overflowed = sums.filter(({ isOver }) => isOver).map(({ name }) => name)
  const isFailing = overflow.startsWith('fail') && overflowed.length > 0
  const isRefused = isFailing && (overflow === 'fail-all' || overflowed.length === asked.length)
  for (const { name, min, max, sum, isOver } of sums) {
    if (isRefused || (isFailing && isOver)) continue
    const size = max - min + 1n
    const wrapped = ((((sum - min) % size) + size) % size) + min
    const saturated = isOver ? (sum < min ? min : max) : sum
    model.set(name, overflow === 'wrap' ? wrapped : saturated)
  }
  return {
    result: isRefused ? 'refused' : isFailing ? 'partly' : 'applied',
    values: Object.fromEntries(sums.map(({ name }) => [name, Number(model.get(name))])),
    overflowed,
  }
}
