import fc from 'fast-check'
import {
  Activity,
  estimateMemory,
  type Id,
  MappedIndex,
  OwnIndex,
  type OwnPosition,
  Primitives,
} from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest'
import { whileAway } from './support/away.js'
import { losingReplies } from './support/lost-replies.js'
import { PATIENT } from './support/patient.js'
import { type On, onSingle, SECRET, TOPOLOGIES } from './support/topologies.js'

const day = '2026-07-02'
const ids = (count: number, name = 'user') => Array.from({ length: count }, (_, n) => `${name}-${n}`)

describe.each(TOPOLOGIES)('activity on %s', (_, open) => {
  let on: On
  beforeAll(async () => {
    on = await open()
  })
  afterAll(() => on.close())

  const keyOf = async (operation: string, purpose: 'activity' | 'activity-index') =>
    (await on.keys(operation)).find((key) => key.startsWith(`hf:app:${purpose}:`)) ?? ''

  it('missing key: who was never marked was not active, and asking makes no key', async () => {
    const operation = on.operation()
    const opened = new Activity(on.primitives, operation)
    expect(await opened.wasActive('anna', { day })).toBe(false)
    expect(await opened.countActive({ day })).toBe(0)
    expect(await opened.on(day).count()).toBeNull()
    expect(await opened.on(day).inspect()).toBeNull()
    const index = opened.index as MappedIndex
    expect([await index.find('anna'), await index.inspect()]).toEqual([null, null])
    expect(await opened.markManyActive([], { day })).toEqual({ marked: 0, already: 0, day })
    expect(await on.keys(operation)).toEqual([])
  })

  it('existing key, duplicate: is marked once a day, each day by itself', async () => {
    const opened = new Activity(on.primitives, on.operation())
    expect(await opened.markActive('anna', { day })).toEqual({ result: 'marked', day })
    expect(await opened.markActive('anna', { day: new Date('2026-07-02T23:59:59.999Z') })).toEqual({
      result: 'already',
      day,
    })
    expect(await opened.markActive('anna', { day: '2026-07-03' })).toMatchObject({ result: 'marked' })
    expect(await opened.markManyActive(['anna', 'bert', 'bert', 'carl'], { day })).toEqual({
      marked: 2,
      already: 2,
      day,
    })
    expect(await opened.countActive({ day })).toBe(3)
    expect(await opened.countActive({ day: '2026-07-03' })).toBe(1)
    expect(await opened.wasActive('bert', { day })).toBe(true)
    expect(await opened.wasActive('bert', { day: '2026-07-03' })).toBe(false)
    expect(await opened.wasActive('dora', { day })).toBe(false)
  })

  it('keys: ids get the positions from 0 on, and no word of them stands anywhere', async () => {
    const operation = on.operation()
    const index = new MappedIndex(on.primitives, operation)
    const opened = new Activity(on.primitives, operation, { index })
    await opened.markManyActive([['anna', 'de'], '+4912345'], { day })
    expect(await Promise.all([['anna', 'de'], ['anna', 'fr'], '+4912345'].map((id) => index.find(id)))).toEqual([
      0,
      null,
      1,
    ])
    const { generation = '' } = (await index.inspect()) ?? {}
    const keys = await on.keys(operation)
    const tag = /\{(.*)\}/.exec(keys[0] as string)?.[1]
    expect(keys).toEqual([
      `hf:app:activity-index:v1:default:${operation}:{${tag}}`,
      `hf:app:activity:v1:default:${operation}:{${tag}}:${generation}.20260702`,
    ])
    const fields = await on.redis.hkeysBuffer(keys[0] as string)
    expect(fields.map(({ length }) => length).sort((a, b) => a - b)).toEqual([4, 10, 16, 16])
    const acme = on.primitives.forTenant('acme')
    expect(await new Activity(acme, operation).wasActive('+4912345', { day })).toBe(false)
    expect(() => new Activity(acme, operation, { index })).toThrow('index: expected one of the same Primitives')
  })

  it('ttl present, ttl kept: a day has its end from its first mark on, the index has none', async () => {
    const operation = on.operation()
    const opened = new Activity(on.primitives, operation)
    await opened.markActive('anna', { day })
    const key = await keyOf(operation, 'activity')
    expect(await on.redis.pttl(key)).toBeGreaterThan(89 * 86_400_000)
    expect(await on.redis.pttl(key)).toBeLessThanOrEqual(90 * 86_400_000)
    await on.redis.pexpire(key, 60_000)
    await opened.markActive('bert', { day })
    await opened.markManyActive(ids(10), { day })
    expect(await on.redis.pttl(key)).toBeLessThanOrEqual(60_000)
    expect(await on.redis.pttl(await keyOf(operation, 'activity-index'))).toBe(-1)
  })

  it('expired: positions outlive the day', async () => {
    const operation = on.operation()
    const opened = new Activity(on.primitives, operation, { ttlMs: 1 })
    const lasting = new Activity(on.primitives, operation, { index: opened.index })
    await lasting.markManyActive(['anna', 'bert'], { day: '2026-07-03' })
    await opened.markActive('bert', { day })
    await expect.poll(() => opened.on(day).count()).toBeNull()
    expect(await opened.countActive({ day })).toBe(0)
    expect(await (opened.index as MappedIndex).find('bert')).toBe(1)
    expect(await lasting.countActive({ day: '2026-07-03' })).toBe(2)
  })

  it('wrong state: when the index is lost no bitmap of before is read with positions of now', async () => {
    const operation = on.operation()
    const opened = new Activity(on.primitives, operation)
    const other = new Activity(on.primitives, operation)
    await opened.markManyActive(['anna', 'bert'], { day })
    expect(await other.wasActive('bert', { day })).toBe(true)
    on.counted('activity-index')
    await on.redis.del(await keyOf(operation, 'activity-index'))
    // Carl gets the position that Anna had.
    expect(await opened.markActive('carl', { day: '2026-07-03' })).toMatchObject({ result: 'marked' })
    expect(await (opened.index as MappedIndex).find('carl')).toBe(0)
    for (const one of [opened, other]) {
      expect(await one.wasActive('carl', { day })).toBe(false)
      expect(await one.countActive({ day })).toBe(0)
      expect(await one.wasActive('carl', { day: '2026-07-03' })).toBe(true)
      expect(await one.countActive({ day: '2026-07-03' })).toBe(1)
    }
    expect(on.counted('activity-index')).toEqual({ lost: 2, begun: 1 })
    expect(on.logged.filter(({ event }) => event === 'activity_index_lost').at(-1)?.facts).toMatchObject({
      operation,
      redisPattern: 'hf:app:activity-index:v1',
    })
  })

  it('wrong state: of an index that was lost nothing is read either while there is none', async () => {
    const operation = on.operation()
    const opened = new Activity(on.primitives, operation)
    await opened.markManyActive(['anna', 'bert'], { day })
    await on.redis.del(await keyOf(operation, 'activity-index'))
    expect(await opened.countActive({ day })).toBe(0)
    expect(await opened.wasActive('anna', { day })).toBe(false)
    // And the reverse: without the bitmap the positions stay.
    await opened.markManyActive(['bert', 'anna'], { day })
    const generation = (await (opened.index as MappedIndex).inspect())?.generation
    await on.redis.del((await on.keys(operation)).find((key) => key.endsWith(`${generation}.20260702`)) ?? '')
    expect(await opened.countActive({ day })).toBe(0)
    await opened.markActive('carl', { day })
    expect(await (opened.index as MappedIndex).find('carl')).toBe(2)
    expect(await opened.countActive({ day })).toBe(1)
  })

  it('wrong type, serialization: something else under a key is told and left as it is', async () => {
    const operation = on.operation()
    const opened = new Activity(on.primitives, operation)
    await opened.markActive('anna', { day })
    const bitmap = await keyOf(operation, 'activity')
    const index = await keyOf(operation, 'activity-index')
    const field = (await on.redis.hkeysBuffer(index)).find(({ length }) => length === 16) as Buffer
    const good = await on.redis.dumpBuffer(index)
    const damage = { code: 'value_damaged', operation, redisPattern: 'hf:app:activity:v1' }
    const spoilt: [() => Promise<unknown>, boolean][] = [
      [() => on.redis.set(index, 'x'), true],
      [() => on.redis.hset(index, field, '1.5'), true],
      [() => on.redis.hset(index, 'next', '-1'), false],
      [() => on.redis.hdel(index, 'next'), false],
      [() => on.redis.del(bitmap).then(() => on.redis.lpush(bitmap, 'x')), true],
    ]
    for (const [spoil, isReadToo] of spoilt) {
      await spoil()
      const before = [await on.redis.dump(index), await on.redis.dump(bitmap)]
      on.counted('activity')
      await expect(opened.markActive('anna', { day })).rejects.toMatchObject(damage)
      await expect(opened.markManyActive(['anna', 'bert'], { day })).rejects.toMatchObject(damage)
      const read = opened.wasActive('anna', { day })
      if (isReadToo) await expect(read).rejects.toMatchObject(damage)
      else expect(await read).toBe(true)
      expect(on.counted('activity').damaged).toBeGreaterThan(1)
      expect([await on.redis.dump(index), await on.redis.dump(bitmap)]).toEqual(before)
      await on.redis.restore(index, 0, good as never, 'REPLACE')
    }
    // Without a generation it is nobody's index, and none is begun on top of it.
    await on.redis.del(bitmap)
    await on.redis.hdel(index, 'generation')
    await expect(opened.markActive('bert', { day })).rejects.toMatchObject({ code: 'value_damaged' })
    await expect((opened.index as MappedIndex).inspect()).rejects.toMatchObject({ code: 'value_damaged' })
  })

  it('script return type: first positions, bytes and the end of a bitmap', async () => {
    const operation = on.operation()
    const index = new OwnIndex(on.primitives, operation, { populationMax: 16 })
    const opened = new Activity(on.primitives, operation, { index })
    await opened.markActive({ index: 9 }, { day })
    expect(await opened.on(day).inspect()).toEqual({
      firstSet: 9,
      firstClear: 0,
      bytes: 2,
      memoryBytes: expect.any(Number),
      leftMs: expect.any(Number),
    })
    await opened.markManyActive(
      Array.from({ length: 16 }, (_, index) => ({ index })),
      { day },
    )
    await on.redis.persist(await keyOf(operation, 'activity'))
    expect(await opened.on(day).inspect()).toMatchObject({ firstSet: 0, firstClear: null, leftMs: null })
    await on.redis.set(await keyOf(operation, 'activity'), '')
    expect(await opened.on(day).inspect()).toMatchObject({ firstSet: null, firstClear: 0, bytes: 0 })
  })

  it('takes the positions of the caller, and none beyond the bound', async () => {
    const operation = on.operation()
    const index = new OwnIndex(on.primitives, operation, { populationMax: 1_000 })
    const opened = new Activity(on.primitives, operation, { index })
    expect(await opened.markActive({ index: 999 }, { day })).toMatchObject({ result: 'marked' })
    expect(await opened.wasActive({ index: 999 }, { day })).toBe(true)
    expect(await opened.wasActive({ index: 998 }, { day })).toBe(false)
    for (const index of [1_000, -1, 0.5, 2 ** 32, Number.NaN]) {
      await expect(opened.markActive({ index }, { day })).rejects.toThrow('index: expected an integer from 0 to 999')
    }
    await expect(opened.markActive('anna' as never, { day })).rejects.toThrow('member: expected an object')
    expect(await on.keys(operation)).toHaveLength(1)
  })

  it('refuses whom a full index has no place for, and marks nothing of that call', async () => {
    const operation = on.operation()
    const index = new MappedIndex(on.primitives, operation, { populationMax: 300 })
    const opened = new Activity(on.primitives, operation, { index })
    await opened.markActive('anna', { day })
    const full = { code: 'index_full', populationMax: 300 }
    await expect(opened.markManyActive(ids(400), { day })).rejects.toMatchObject({ ...full, done: 256 })
    expect(await opened.countActive({ day })).toBe(257)
    await opened.markManyActive(ids(43, 'more'), { day })
    on.counted('activity')
    await expect(opened.markActive('zoe', { day })).rejects.toMatchObject({ ...full, done: 0 })
    expect(on.counted('activity')).toEqual({ full: 1 })
    expect(await opened.markActive('anna', { day })).toMatchObject({ result: 'already' })
    expect(await index.inspect()).toMatchObject({ size: 300 })
    expect(await opened.countActive({ day })).toBe(300)
    expect((await opened.on(day).inspect())?.firstClear).toBeNull()
  })

  it('concurrency, metrics: many processes give each id one position', async () => {
    const operation = on.operation()
    const others = await Promise.all(
      [1, 2, 3].map(() => Primitives.connect({ redis: on.redis, secret: SECRET, ...PATIENT })),
    )
    on.counted('activity')
    const activities = [on.primitives, ...others].map((primitives) => new Activity(primitives, operation))
    const all = ids(200)
    const marks = await Promise.all([
      ...activities.flatMap((opened) => all.map((id) => opened.markActive(id, { day }))),
      ...activities.map((opened) => opened.markManyActive(all, { day: '2026-07-03' })),
    ])
    expect(marks.filter((mark) => 'result' in mark && mark.result === 'marked')).toHaveLength(200)
    const [opened] = activities as [Activity]
    const index = opened.index as MappedIndex
    const positions = await Promise.all(all.map((id) => index.find(id)))
    expect(positions.sort((a, b) => Number(a) - Number(b))).toEqual(all.map((_, n) => n))
    expect(await opened.countActive({ day })).toBe(200)
    expect(await opened.countActive({ day: '2026-07-03' })).toBe(200)
    const { marked = 0, already = 0 } = on.counted('activity')
    expect(marked + already).toBe(400)
    await Promise.all(others.map((primitives) => primitives.close()))
  })

  it('duplicate: a call that runs twice, because its answer was lost, gives no second position', async () => {
    const operation = on.operation()
    const opened = new Activity(losingReplies(on.primitives), operation)
    expect(await opened.markManyActive(['anna', 'bert'], { day })).toEqual({ marked: 0, already: 2, day })
    expect(await opened.markActive('carl', { day })).toEqual({ result: 'already', day })
    expect(await opened.countActive({ day })).toBe(3)
    expect(await (opened.index as MappedIndex).inspect()).toMatchObject({ size: 3 })
  })

  it('model: any sequence of calls does what a set for each day does', async () => {
    const call = fc.record({
      what: fc.constantFrom('mark', 'mark', 'many', 'was', 'count', 'first'),
      who: fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 20 }),
      date: fc.constantFrom('2026-07-01', '2026-07-02'),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(call, { maxLength: 25 }), async (calls) => {
        const opened = new Activity(on.primitives, on.operation())
        const positions = new Map<number, number>()
        const model = new Map<string, Set<number>>()
        for (const { what, who, date } of calls) {
          const set = model.get(date) ?? new Set()
          const [one = 0] = who
          if (what === 'was') {
            expect(await opened.wasActive(`${one}`, { day: date })).toBe(set.has(one))
          } else if (what === 'count') {
            expect(await opened.countActive({ day: date })).toBe(set.size)
          } else if (what === 'first') {
            const marked = [...set].map((id) => positions.get(id) as number)
            const facts = await opened.on(date).inspect()
            expect(facts?.firstSet ?? null).toBe(marked.length === 0 ? null : Math.min(...marked))
            const clear = Array.from({ length: 50 }, (_, n) => n).find((n) => !marked.includes(n))
            expect(facts?.firstClear ?? 0).toBe(clear)
          } else {
            const some = what === 'mark' ? [one] : who
            const fresh = new Set(some.filter((id) => !set.has(id))).size
            for (const id of some) if (!positions.has(id)) positions.set(id, positions.size)
            for (const id of some) set.add(id)
            model.set(date, set)
            if (what === 'mark') {
              const result = fresh === 1 ? 'marked' : 'already'
              expect(await opened.markActive(`${one}`, { day: date })).toEqual({ result, day: date })
            } else {
              const done = await opened.markManyActive(some.map(String), { day: date })
              expect(done).toEqual({ marked: fresh, already: some.length - fresh, day: date })
            }
          }
        }
      }),
      { numRuns: 25 },
    )
  })
})

describe('activity', () => {
  it('redis away: refuses, as unavailable', async () => {
    await whileAway(async (primitives) => {
      const opened = new Activity(primitives, 'opened')
      const away = { code: 'unavailable', retryable: true }
      await expect(opened.markActive('anna')).rejects.toMatchObject(away)
      await expect(opened.markManyActive(['anna'])).rejects.toMatchObject(away)
      await expect(opened.wasActive('anna')).rejects.toMatchObject(away)
      await expect(opened.countActive()).rejects.toMatchObject(away)
    })
  })

  it('metrics: tells the highest position that was marked, not the sum of several', async () => {
    const read: (() => number)[] = []
    const gauge = (metric: string, value: () => number, labels = {}) => {
      if (metric === 'holdfast_bitmap_highest_offset') {
        expect(labels).toEqual({ primitive: 'activity' })
        read.push(value)
      }
      return () => {}
    }
    const on = await onSingle({ telemetry: { gauge } })
    const index = new OwnIndex(on.primitives, 'users')
    await new Activity(on.primitives, 'opened', { index }).markActive({ index: 70 })
    await new Activity(on.primitives, 'bought', { index }).markManyActive([{ index: 5 }, { index: 90 }, { index: 6 }])
    await new Activity(on.primitives, 'bought', { index }).markActive({ index: 3 })
    expect(read.map((value) => value())).toEqual([90])
    await on.close()
  })

  it('estimates what members take', async () => {
    const on = await onSingle()
    const opened = new Activity(on.primitives, 'opened')
    const all = ids(10_000)
    await opened.markManyActive(all, { day })
    const estimate = estimateMemory(all.length)
    const { memoryBytes = 0 } = (await (opened.index as MappedIndex).inspect()) ?? {}
    expect(memoryBytes / estimate.indexBytes).toBeGreaterThan(0.7)
    expect(memoryBytes / estimate.indexBytes).toBeLessThan(1.4)
    expect(estimate.bitmapBytes).toBe((await opened.on(day).inspect())?.bytes)
    await on.close()
  })

  it('types know whose members an index has', () => {
    const mapped = (primitives: Primitives) => new Activity(primitives, 'opened')
    expectTypeOf(mapped).returns.toEqualTypeOf<Activity<Id>>()
    const own = (primitives: Primitives, index: OwnIndex) => new Activity(primitives, 'opened', { index })
    expectTypeOf(own).returns.toEqualTypeOf<Activity<OwnPosition>>()
  })

  it('today is the day of the clock, in UTC', async () => {
    const on = await onSingle({ now: () => Date.parse('2026-12-31T23:59:59.999Z') })
    const opened = new Activity(on.primitives, 'opened')
    expect(await opened.markActive('anna')).toEqual({ result: 'marked', day: '2026-12-31' })
    expect(await opened.wasActive('anna', { day: '2026-12-31' })).toBe(true)
    await on.close()
  })

  it.each<[string, (on: On) => unknown, string]>([
    [
      'a day that there is not',
      ({ primitives }) => new Activity(primitives, 'o').on('2026-02-30'),
      'day: expected a day',
    ],
    ['a day of another form', ({ primitives }) => new Activity(primitives, 'o').on('20260702'), 'day: expected a day'],
    ['a number for a day', ({ primitives }) => new Activity(primitives, 'o').on(5 as never), 'day: expected a Date or'],
    ['no id', ({ primitives }) => new Activity(primitives, 'o').markActive(''), 'member: expected 1 to 1024'],
    ['one for many', ({ primitives }) => new Activity(primitives, 'o').markManyActive('a' as never), 'an array'],
    [
      'a hole',
      ({ primitives }) => new Activity(primitives, 'o').markManyActive(new Array(3)),
      'member: expected a string',
    ],
    ['no time', ({ primitives }) => new Activity(primitives, 'o', { ttlMs: 0 }), 'ttlMs: expected an integer'],
    ['no index', ({ primitives }) => new Activity(primitives, 'o', { index: {} as never }), 'index: expected a Mapped'],
    [
      'a population near 2^32',
      ({ primitives }) => new MappedIndex(primitives, 'o', { populationMax: 2 ** 31 }),
      'populationMax: expected an integer from 1 to 134217728',
    ],
  ])('refuses %s', async (_, act, message) => {
    const on = await onSingle()
    await expect(async () => act(on)).rejects.toThrow(message)
    await on.close()
  })
})
