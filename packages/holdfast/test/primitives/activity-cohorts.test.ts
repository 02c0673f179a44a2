import fc from 'fast-check'
import {
  Activity,
  Cohorts,
  type Combination,
  MappedIndex,
  OwnIndex,
  type Primitives,
  type Progress,
} from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ScriptRunner } from '../../src/redis/index.js'
import { whileAway } from './support/away.js'
import { losingReplies } from './support/lost-replies.js'
import { type On, TOPOLOGIES } from './support/topologies.js'

const [first, second, third] = ['2026-07-01', '2026-07-02', '2026-07-03']
/** Three bitmaps that reach there are too large for one call. */
const FAR = 9_999_000

describe.each(TOPOLOGIES)('cohorts on %s', (_, open) => {
  let on: On
  beforeAll(async () => {
    on = await open()
  })
  afterAll(() => on.close())

  function over(operation: string, primitives = on.primitives) {
    const index = new MappedIndex(primitives, operation)
    return {
      index,
      opened: new Activity(primitives, operation, { index }),
      bought: new Activity(primitives, `${operation}-bought`, { index }),
      cohorts: new Cohorts(primitives, operation, { index, ttlMs: 60_000 }),
    }
  }
  const own = (operation: string, primitives = on.primitives) => {
    const index = new OwnIndex(primitives, operation)
    const opened = new Activity(primitives, operation, { index })
    return { index, opened, cohorts: new Cohorts(primitives, operation, { index, ttlMs: 60_000 }) }
  }
  const at = (...positions: number[]) => positions.map((index) => ({ index }))

  it('existing key: combines days of several activities', async () => {
    const { opened, bought, cohorts } = over(on.operation())
    await opened.markManyActive(['anna', 'bert', 'carl'], { day: first })
    await opened.markManyActive(['bert', 'carl', 'dora'], { day: second })
    await bought.markManyActive(['carl', 'emil'], { day: second })
    const days = [opened.on(first), opened.on(second)]
    const back = await cohorts.combine('back', 'and', days)
    expect(back).toMatchObject({ result: 'made', count: 2 })
    expect(await cohorts.combine('any', 'or', [...days, bought.on(second)])).toMatchObject({ count: 5 })
    expect(await cohorts.combine('one', 'xor', days)).toMatchObject({ count: 2 })
    expect(await cohorts.combine('gone', 'andnot', days)).toMatchObject({ count: 1 })
    expect(await cohorts.named('gone').has('anna')).toBe(true)
    const still = await cohorts.combine('looking', 'andnot', [cohorts.named('back'), bought.on(second)])
    expect(still).toMatchObject({ count: 1 })
    expect(await cohorts.named('looking').has('bert')).toBe(true)
    expect(await cohorts.named('looking').count()).toBe(1)
    // A cohort can grow: it is read until what takes its place is whole.
    const more = [cohorts.named('looking'), opened.on(first)]
    expect(await cohorts.combine('looking', 'or', more)).toMatchObject({ count: 3 })
  })

  it('script return type: NOT marks those of the index and nobody beyond', async () => {
    const { opened, cohorts } = over(on.operation())
    await opened.markManyActive(
      Array.from({ length: 11 }, (_, n) => `${n}`),
      { day: first },
    )
    await opened.markManyActive(['0', '1'], { day: second })
    expect(await cohorts.combine('absent', 'not', [opened.on(second)])).toMatchObject({ count: 9 })
    expect(await cohorts.named('absent').count()).toBe(9)
    expect((await cohorts.named('absent').inspect())?.bytes).toBe(2)
    expect(await cohorts.combine('all', 'not', [opened.on(third)])).toMatchObject({ count: 11 })
    expect(await cohorts.combine('some', 'not', [opened.on(second)], { population: 8 })).toMatchObject({ count: 6 })
    const { cohorts: ours, opened: numbered } = own(on.operation())
    await numbered.markManyActive(at(0, 9), { day: first })
    expect(await ours.combine('rest', 'not', [numbered.on(first)], { population: 10 })).toMatchObject({ count: 8 })
    expect(await ours.combine('rest', 'not', [numbered.on(first)])).toMatchObject({ count: 9_999_998 })
  })

  it('missing key: nobody came on a day that is not there, but a cohort that is gone is told', async () => {
    const operation = on.operation()
    const { opened, cohorts } = over(operation)
    expect(await cohorts.combine('none', 'and', [opened.on(first), opened.on(second)])).toMatchObject({ count: 0 })
    await opened.markActive('anna', { day: first })
    const none = await cohorts.combine('none', 'and', [opened.on(second), opened.on(third)])
    expect(none).toMatchObject({ result: 'made', count: 0 })
    expect(await cohorts.named('none').count()).toBe(0)
    expect(await cohorts.named('other').count()).toBeNull()
    on.counted('activity')
    expect(await cohorts.combine('x', 'or', [opened.on(first), cohorts.named('other')])).toEqual({
      result: 'missing',
      at: 1,
    })
    expect(on.counted('activity')).toEqual({ missing: 1 })
    expect(await cohorts.named('x').count()).toBeNull()
  })

  it('ttl present, expired: a cohort has its end, and nothing to work with stays behind', async () => {
    const operation = on.operation()
    const { opened, cohorts } = own(operation)
    for (const day of [first, second, third]) await opened.markManyActive(at(1, FAR), { day })
    await cohorts.combine('small', 'andnot', [opened.on(first), opened.on(second)])
    const three = [opened.on(first), opened.on(second), opened.on(third)]
    await cohorts.combine('large', 'and', three)
    await cohorts.combine('rest', 'not', [opened.on(first)])
    const keys = await on.keys(operation)
    expect(keys.map((key) => key.slice(key.indexOf('}') + 2))).toEqual([
      'own.20260701',
      'own.20260702',
      'own.20260703',
      'own.cohort.large',
      'own.cohort.rest',
      'own.cohort.small',
    ])
    for (const key of keys.filter((one) => one.includes('cohort'))) {
      expect(await on.redis.pttl(key)).toBeGreaterThan(30_000)
      expect(await on.redis.pttl(key)).toBeLessThanOrEqual(60_000)
    }
    const brief = new Cohorts(on.primitives, operation, { index: opened.index, ttlMs: 1 })
    await brief.combine('large', 'and', three)
    await expect.poll(() => brief.named('large').count()).toBeNull()
  })

  it('does what is large in portions, says how far it is, and stops when it is told to', async () => {
    const operation = on.operation()
    const { opened, cohorts } = own(operation)
    await opened.markManyActive(at(3, 500_000, FAR), { day: first })
    await opened.markManyActive(at(3, 500_000, 600_000), { day: second })
    await opened.markManyActive(at(3, 700_000, FAR), { day: third })
    const three = [opened.on(first), opened.on(second), opened.on(third)]
    const seen: Progress[] = []
    const both = await cohorts.combine('any', 'or', three, { onProgress: (progress) => seen.push(progress) })
    expect(both).toMatchObject({ result: 'made', count: 5 })
    expect(seen.length).toBeGreaterThan(10)
    expect(seen.at(-1)).toEqual({ doneBytes: FAR / 8 + 1, totalBytes: FAR / 8 + 1 })
    expect(await cohorts.named('any').count()).toBe(5)

    const stop = new AbortController()
    const given = { signal: stop.signal, onProgress: () => stop.abort() }
    await expect(cohorts.combine('any', 'and', three, given)).rejects.toMatchObject({ code: 'aborted' })
    expect(await cohorts.named('any').count()).toBe(5)
    const left = (await on.keys(operation)).filter((key) => key.includes('.run.'))
    expect(left).toHaveLength(1)
    expect(await on.redis.pttl(left[0] as string)).toBeGreaterThan(0)
  })

  /** Primitives to which something happens before the fourth call of a script. */
  function disturbed(name: string, disturb: (keys: readonly string[]) => Promise<unknown>): Primitives {
    let calls = 0
    const { context } = on.primitives
    const runner: ScriptRunner = {
      async run(script, keys, args) {
        if (script.name === name && calls++ === 3) await disturb(keys)
        return context.runner.run(script, keys, args)
      },
    }
    return { context: { ...context, runner } } as Primitives
  }

  it('wrong state: begins again when what was made so far is lost', async () => {
    const forgetful = disturbed('activity_combine', ([, , made = '']) => on.redis.del(made))
    const { opened, cohorts } = own(on.operation(), forgetful)
    for (const day of [first, second, third]) await opened.markManyActive(at(7, FAR), { day })
    const three = [opened.on(first), opened.on(second), opened.on(third)]
    const seen: number[] = []
    const onProgress = ({ doneBytes }: Progress) => seen.push(doneBytes)
    expect(await cohorts.combine('any', 'or', three, { onProgress })).toMatchObject({ result: 'made', count: 2 })
    expect(seen.slice(3, 6)).toEqual(seen.slice(0, 3))
    expect(await cohorts.named('any').count()).toBe(2)
  })

  it('wrong state: begins again when Redis has gone back to where less was made', async () => {
    const older = disturbed('activity_combine', ([, , made = '']) => on.redis.set(made, '', 'PX', 60_000))
    const { opened, cohorts } = own(on.operation(), older)
    for (const day of [first, second, third]) await opened.markManyActive(at(7, FAR), { day })
    const three = [opened.on(first), opened.on(second), opened.on(third)]
    expect(await cohorts.combine('any', 'or', three)).toMatchObject({ result: 'made', count: 2 })
    expect(await cohorts.named('any').count()).toBe(2)
  })

  it.each(['activity_combine', 'activity_read'])(
    'wrong state: of an index that is lost while %s reads it nothing counts',
    async (name) => {
      const losing = disturbed(name, ([index = '']) => on.redis.del(index))
      const { index, opened, cohorts } = over(on.operation(), losing)
      await opened.markManyActive(['anna', 'bert'], { day: first })
      // As if as many had come in between.
      await on.redis.hset(index.scope.base, 'next', FAR)
      for (const day of [first, second, third]) await opened.markManyActive(['anna', 'carl'], { day })
      if (name === 'activity_combine') {
        const three = [opened.on(first), opened.on(second), opened.on(third)]
        expect(await cohorts.combine('any', 'or', three)).toMatchObject({ result: 'made', count: 0 })
      } else {
        const table = await opened.retention({ from: first, days: 3 })
        expect(table.map(({ size }) => size)).toEqual([0, 0, 0])
      }
      expect(await opened.countActive({ day: first })).toBe(0)
    },
  )

  it('wrong type: something else under a key is told, and nothing is made', async () => {
    const operation = on.operation()
    const { opened, cohorts } = own(operation)
    await opened.markActive({ index: 1 }, { day: first })
    await opened.markActive({ index: 1 }, { day: second })
    const days = [opened.on(first), opened.on(second)]
    await cohorts.combine('both', 'and', days)
    const keys = await on.keys(operation)
    for (const key of [keys[0], keys[2]] as string[]) {
      await on.redis.del(key)
      await on.redis.lpush(key, 'x')
      const before = [await on.keys(operation), await Promise.all(keys.map((one) => on.redis.dump(one)))]
      await expect(cohorts.combine('both', 'or', days)).rejects.toMatchObject({ code: 'value_damaged', operation })
      expect([await on.keys(operation), await Promise.all(keys.map((one) => on.redis.dump(one)))]).toEqual(before)
      await on.redis.del(key)
    }
  })

  it('duplicate, concurrency: many at once, and calls that run twice, make the same', async () => {
    const { opened, cohorts, index } = own(on.operation())
    for (const day of [first, second, third]) await opened.markManyActive(at(7, FAR), { day })
    const three = [opened.on(first), opened.on(second), opened.on(third)]
    const made = await Promise.all(Array.from({ length: 5 }, () => cohorts.combine('all', 'and', three)))
    expect(made.map((one) => one.result === 'made' && one.count)).toEqual([2, 2, 2, 2, 2])
    const primitives = losingReplies(on.primitives)
    const twice = new OwnIndex(primitives, index.scope.space.operation)
    const again = new Activity(primitives, on.operation(), { index: twice })
    await again.markManyActive(at(7, 8), { day: first })
    await again.markManyActive(at(8, 9), { day: second })
    const stuttering = new Cohorts(primitives, on.operation(), { index: twice })
    const some = await stuttering.combine('some', 'and', [again.on(first), again.on(second)])
    expect(some).toMatchObject({ result: 'made', count: 1 })
  })

  it('model: does what sets do, at once and in portions', async () => {
    const position = fc.oneof(fc.integer({ min: 0, max: 70 }), fc.integer({ min: FAR, max: FAR + 70 }))
    const set = fc.array(position, { maxLength: 30 })
    const how = fc.constantFrom<Combination>('and', 'or', 'xor', 'not', 'andnot')
    await fc.assert(
      fc.asyncProperty(how, fc.array(set, { minLength: 2, maxLength: 4 }), async (how, given) => {
        const { opened, cohorts } = own(on.operation())
        const sets = (how === 'not' ? given.slice(0, 1) : given).map((one) => new Set(one))
        const days = sets.map((_, n) => `2026-07-0${n + 1}`)
        await Promise.all(sets.map((one, n) => opened.markManyActive(at(...one), { day: days[n] as string })))
        const population = FAR + 40
        const expected = new Set<number>()
        for (const one of new Set(given.flat())) {
          const [is = false, ...others] = sets.map((members) => members.has(one))
          const of = { and: is && others.every(Boolean), or: is || others.some(Boolean) }
          const xor = [is, ...others].filter(Boolean).length % 2 === 1
          const isIn = { ...of, xor, not: !is && one < population, andnot: is && !others.some(Boolean) }[how]
          if (isIn) expected.add(one)
        }
        const marked = [...(sets[0] as Set<number>)].filter((one) => one < population).length
        const size = how === 'not' ? population - marked : expected.size
        const bitmaps = days.map((day) => opened.on(day))
        const made = await cohorts.combine('made', how, bitmaps, { population })
        expect(made).toMatchObject({ result: 'made', count: size })
        expect(await cohorts.named('made').count()).toBe(size)
        for (const one of new Set(given.flat())) {
          expect(await cohorts.named('made').has({ index: one })).toBe(expected.has(one))
        }
      }),
      { numRuns: 15 },
    )
  })

  it('model: the retention table is what sets of days say', async () => {
    const who = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 2_000_000, max: 2_000_040 }))
    const sets = fc.array(fc.array(who, { maxLength: 20 }), { minLength: 2, maxLength: 6 })
    await fc.assert(
      fc.asyncProperty(sets, async (given) => {
        const { opened } = own(on.operation())
        const days = given.map((one) => new Set(one))
        const dates = given.map((_, n) => new Date(Date.UTC(2026, 5, 29 + n)))
        await Promise.all(days.map((one, n) => opened.markManyActive(at(...one), { day: dates[n] as Date })))
        const table = await opened.retention({ from: '2026-06-29', days: given.length })
        const expected = days.map((one, n) => ({
          day: dates[n]?.toISOString().slice(0, 10),
          size: one.size,
          returned: days.slice(n).map((later) => {
            const count = [...one].filter((id) => later.has(id)).length
            return { count, rate: one.size === 0 ? null : count / one.size }
          }),
        }))
        expect(table).toEqual(expected)
      }),
      { numRuns: 10 },
    )
  })

  it('retention tells how far it is, stops when it is told to, and finds nothing where there is nothing', async () => {
    const { opened } = own(on.operation())
    expect(await opened.retention({ from: first, days: 2 })).toEqual([
      {
        day: first,
        size: 0,
        returned: [
          { count: 0, rate: null },
          { count: 0, rate: null },
        ],
      },
      { day: second, size: 0, returned: [{ count: 0, rate: null }] },
    ])
    await opened.markManyActive(at(0, FAR), { day: first })
    const seen: Progress[] = []
    await opened.retention({ from: first, days: 31, onProgress: (progress) => seen.push(progress) })
    expect(seen.length).toBeGreaterThan(10)
    expect(seen.at(-1)).toEqual({ doneBytes: FAR / 8 + 1, totalBytes: FAR / 8 + 1 })
    const stopped = { from: first, days: 3, signal: AbortSignal.abort() }
    await expect(opened.retention(stopped)).rejects.toMatchObject({ code: 'aborted' })
  })
})

describe('cohorts', () => {
  it('redis away: refuses, as unavailable', async () => {
    await whileAway(async (primitives) => {
      const opened = new Activity(primitives, 'opened')
      const cohorts = new Cohorts(primitives, 'weekly', { index: opened.index })
      const days = [opened.on(first), opened.on(second)]
      await expect(cohorts.combine('both', 'and', days)).rejects.toMatchObject({ code: 'unavailable' })
      await expect(opened.retention({ from: first, days: 2 })).rejects.toMatchObject({ code: 'unavailable' })
    })
  })

  it('refuses what can not be combined', async () => {
    const on = await (TOPOLOGIES[0] as (typeof TOPOLOGIES)[0])[1]()
    const opened = new Activity(on.primitives, 'opened')
    const other = new Activity(on.primitives, 'other')
    const cohorts = new Cohorts(on.primitives, 'weekly', { index: opened.index })
    const own = new Activity(on.primitives, 'opened', { index: new OwnIndex(on.primitives, 'opened') })
    const one = opened.on(first)
    const refused: [Promise<unknown>, string][] = [
      [cohorts.combine('a', 'and', [one]), 'bitmaps.length: expected an integer from 2 to 32, got 1'],
      [cohorts.combine('a', 'not', [one, one]), 'bitmaps.length: expected an integer from 1 to 1'],
      [cohorts.combine('a', 'and', [one, other.on(first)]), 'those of the same index, got one of another'],
      [cohorts.combine('a', 'and', [one, own.on(first) as never]), 'those of the same index, got one of another'],
      [cohorts.combine('a', 'nand' as never, [one, one]), "how: expected 'and' or"],
      [cohorts.combine('a b', 'and', [one, one]), 'name: expected 1 to 64'],
      [cohorts.combine('a', 'and', [one, {} as never]), 'bitmaps: expected what'],
      [cohorts.combine('a', 'not', [one], { population: 0 }), 'population: expected an integer'],
      [opened.retention({ from: first, days: 32 }), 'days: expected an integer from 2 to 31'],
    ]
    for (const [call, message] of refused) await expect(call).rejects.toThrow(message)
    await on.close()
  })
})
