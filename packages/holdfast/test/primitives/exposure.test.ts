import fc from 'fast-check'
import { Activity, Cohorts, Exposure, MappedIndex, OwnIndex, Primitives } from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { whileAway } from './support/away.js'
import { losingReplies } from './support/lost-replies.js'
import { PATIENT } from './support/patient.js'
import { type On, onSingle, SECRET, TOPOLOGIES } from './support/topologies.js'

const variants = ['control', 'short', 'long'] as const

describe.each(TOPOLOGIES)('exposure on %s', (_, open) => {
  let on: On
  beforeAll(async () => {
    on = await open()
  })
  afterAll(() => on.close())

  const keyOf = async (operation: string, part: string) =>
    (await on.keys(operation)).find((key) => key.endsWith(part)) ?? ''

  it('missing key: nobody was exposed, and asking makes no key', async () => {
    const operation = on.operation()
    const checkout = new Exposure(on.primitives, operation, { variants })
    expect(await checkout.variantOf('anna')).toEqual({ isExposed: false })
    expect(await checkout.counts()).toEqual({ control: 0, short: 0, long: 0 })
    expect(await on.keys(operation)).toEqual([])
  })

  it('existing key, duplicate: the first exposure wins, and the answer says which it was', async () => {
    const checkout = new Exposure(on.primitives, on.operation(), { variants })
    expect(await checkout.expose('anna', 'short')).toEqual({ result: 'exposed', variant: 'short' })
    expect(await checkout.expose('anna', 'short')).toEqual({ result: 'repeated', variant: 'short' })
    expect(await checkout.expose('anna', 'control')).toEqual({ result: 'kept', variant: 'short' })
    expect(await checkout.expose('bert', 'control')).toEqual({ result: 'exposed', variant: 'control' })
    expect(await checkout.variantOf('anna')).toEqual({ isExposed: true, variant: 'short' })
    expect(await checkout.variantOf('carl')).toEqual({ isExposed: false })
    expect(await checkout.counts()).toEqual({ control: 1, short: 1, long: 0 })
    expect(await checkout.all().count()).toBe(2)
  })

  it('duplicate: a call that runs twice, because its answer was lost, exposes once', async () => {
    const checkout = new Exposure(losingReplies(on.primitives), on.operation(), { variants })
    expect(await checkout.expose('anna', 'short')).toEqual({ result: 'repeated', variant: 'short' })
    expect(await checkout.counts()).toEqual({ control: 0, short: 1, long: 0 })
  })

  it('wrong state: who has seen a variant that is not declared here, or that was lost, gets no other', async () => {
    const operation = on.operation()
    const index = new MappedIndex(on.primitives, operation)
    const all = new Exposure(on.primitives, operation, { index, variants })
    const old = new Exposure(on.primitives, operation, { index, variants: ['control', 'short'] })
    await all.expose('anna', 'long')
    expect(await old.expose('anna', 'short')).toEqual({ result: 'kept', variant: null })
    expect(await old.variantOf('anna')).toEqual({ isExposed: true, variant: null })
    await on.redis.del(await keyOf(operation, 'variant.long'))
    expect(await all.expose('anna', 'control')).toEqual({ result: 'kept', variant: null })
    // Or the other way round: all who were exposed are lost, and a variant is left.
    await all.expose('bert', 'control')
    await on.redis.del(await keyOf(operation, '.all'))
    expect(await all.expose('bert', 'short')).toEqual({ result: 'kept', variant: 'control' })
  })

  it('wrong state: of an index that was lost nothing is read', async () => {
    const operation = on.operation()
    const checkout = new Exposure(on.primitives, operation, { variants })
    await checkout.expose('anna', 'long')
    await on.redis.del(checkout.index.scope.base)
    expect(await checkout.variantOf('anna')).toEqual({ isExposed: false })
    expect(await checkout.expose('bert', 'short')).toEqual({ result: 'exposed', variant: 'short' })
    expect(await checkout.counts()).toEqual({ control: 0, short: 1, long: 0 })
  })

  it('ttl present, ttl kept: all variants end together, however late the first of one comes', async () => {
    const operation = on.operation()
    const checkout = new Exposure(on.primitives, operation, { variants, ttlMs: 60_000 })
    await checkout.expose('anna', 'short')
    const all = await keyOf(operation, '.all')
    expect(await on.redis.pttl(all)).toBeGreaterThan(30_000)
    expect(await on.redis.pttl(all)).toBeLessThanOrEqual(60_000)
    await on.redis.pexpire(all, 20_000)
    await checkout.expose('bert', 'long')
    await checkout.expose('carl', 'long')
    expect(await on.redis.pttl(await keyOf(operation, 'variant.long'))).toBeLessThanOrEqual(20_000)
    expect(await on.redis.pttl(await keyOf(operation, 'variant.long'))).toBeGreaterThan(5_000)
    expect(await on.redis.pttl(all)).toBeLessThanOrEqual(20_000)
    await on.redis.persist(all)
    await checkout.expose('dora', 'control')
    expect(await on.redis.pttl(await keyOf(operation, 'variant.control'))).toBeGreaterThan(30_000)
  })

  it('expired: an experiment that is over begins anew', async () => {
    const checkout = new Exposure(on.primitives, on.operation(), { variants, ttlMs: 1 })
    await checkout.expose('anna', 'short')
    await expect.poll(() => checkout.all().count()).toBeNull()
    await expect.poll(() => checkout.of('short').count()).toBeNull()
    expect(await checkout.variantOf('anna')).toEqual({ isExposed: false })
  })

  it('wrong type, serialization: something else under a key is told and left as it is', async () => {
    const operation = on.operation()
    const checkout = new Exposure(on.primitives, operation, { variants })
    await checkout.expose('anna', 'short')
    const keys = await on.keys(operation)
    const damage = { code: 'value_damaged', operation, redisPattern: 'hf:app:exposure:v1' }
    for (const key of keys) {
      const good = await on.redis.dumpBuffer(key)
      await on.redis.del(key)
      await on.redis.lpush(key, 'x')
      const before = await Promise.all(keys.map((one) => on.redis.dump(one)))
      on.counted('exposure')
      await expect(checkout.expose('bert', 'long')).rejects.toMatchObject(damage)
      await expect(checkout.variantOf('anna')).rejects.toMatchObject(damage)
      expect(on.counted('exposure')).toEqual({ damaged: 2 })
      expect(await Promise.all(keys.map((one) => on.redis.dump(one)))).toEqual(before)
      expect(await on.keys(operation)).toEqual(keys)
      await on.redis.restore(key, 0, good as never, 'REPLACE')
    }
  })

  it('keys: no word of an id stands in them; bitmaps lie in the slot of the index', async () => {
    const operation = on.operation()
    const index = new MappedIndex(on.primitives, `${operation}-users`)
    const checkout = new Exposure(on.primitives, operation, { index, variants })
    await checkout.expose('anna@example.org', 'long')
    const { generation = '' } = (await index.inspect()) ?? {}
    const base = `hf:app:exposure:v1:default:${operation}:{${index.scope.hash}}:${generation}`
    expect(await on.keys(operation)).toEqual([`${base}.all`, `${base}.variant.long`])
  })

  it('script return type: a full index has no place, and nothing was exposed', async () => {
    const index = new MappedIndex(on.primitives, on.operation(), { populationMax: 1 })
    const checkout = new Exposure(on.primitives, on.operation(), { index, variants })
    await checkout.expose('anna', 'long')
    await expect(checkout.expose('bert', 'long')).rejects.toMatchObject({ code: 'index_full', populationMax: 1 })
    expect(await checkout.all().count()).toBe(1)
  })

  it('concurrency, metrics: many processes at once never put anybody into two variants', async () => {
    const operation = on.operation()
    const others = await Promise.all(
      [1, 2].map(() => Primitives.connect({ redis: on.redis, secret: SECRET, ...PATIENT })),
    )
    const all = [on.primitives, ...others].map((primitives) => new Exposure(primitives, operation, { variants }))
    on.counted('exposure')
    const ids = Array.from({ length: 100 }, (_, n) => `user-${n}`)
    const answers = await Promise.all(
      all.flatMap((checkout, process) =>
        ids.map((id, n) => checkout.expose(id, variants[(process + n) % 3] as 'control')),
      ),
    )
    expect(answers.filter(({ result }) => result === 'exposed')).toHaveLength(100)
    const [checkout] = all as [Exposure<(typeof variants)[number]>]
    const counts = Object.values(await checkout.counts()).reduce((sum, one) => sum + one)
    expect([counts, await checkout.all().count()]).toEqual([100, 100])
    const { exposed = 0, kept = 0, ...rest } = on.counted('exposure')
    expect([exposed + kept, rest]).toEqual([100, {}])
    // Everybody was told what counts.
    for (const [n, id] of ids.entries()) {
      const told = all.map((_, process) => answers[process * 100 + n]?.variant)
      expect([...new Set(told), await checkout.variantOf(id)]).toEqual([told[0], { isExposed: true, variant: told[0] }])
    }
    await Promise.all(others.map((primitives) => primitives.close()))
  })

  it('overlaps with a day of activity as a cohort', async () => {
    const index = new OwnIndex(on.primitives, on.operation())
    const bought = new Activity(on.primitives, on.operation(), { index })
    const checkout = new Exposure(on.primitives, on.operation(), { index, variants })
    for (const [n, variant] of (['control', 'short', 'short', 'long'] as const).entries()) {
      await checkout.expose({ index: n }, variant)
    }
    await bought.markManyActive([{ index: 1 }, { index: 2 }, { index: 3 }, { index: 9 }], { day: '2026-07-02' })
    const cohorts = new Cohorts(on.primitives, on.operation(), { index })
    const day = bought.on('2026-07-02')
    expect(await cohorts.combine('short', 'and', [checkout.of('short'), day])).toMatchObject({ count: 2 })
    expect(await cohorts.combine('unseen', 'andnot', [day, checkout.all()])).toMatchObject({ count: 1 })
  })

  it('model: any sequence of exposures does what a map of first ones does', async () => {
    const call = fc.tuple(fc.integer({ min: 0, max: 12 }), fc.constantFrom(...variants))
    await fc.assert(
      fc.asyncProperty(fc.array(call, { maxLength: 30 }), async (calls) => {
        const checkout = new Exposure(on.primitives, on.operation(), { variants })
        const model = new Map<number, string>()
        for (const [who, variant] of calls) {
          const before = model.get(who)
          if (before === undefined) model.set(who, variant)
          const result = before === undefined ? 'exposed' : before === variant ? 'repeated' : 'kept'
          expect(await checkout.expose(`${who}`, variant)).toEqual({ result, variant: before ?? variant })
        }
        const counts = variants.map((one) => [one, [...model.values()].filter((seen) => seen === one).length])
        expect(await checkout.counts()).toEqual(Object.fromEntries(counts))
        for (const [who, variant] of model) {
          expect(await checkout.variantOf(`${who}`)).toEqual({ isExposed: true, variant })
        }
      }),
      { numRuns: 20 },
    )
  })
})

describe('exposure', () => {
  it('redis away: refuses, as unavailable', async () => {
    await whileAway(async (primitives) => {
      const checkout = new Exposure(primitives, 'checkout', { variants })
      await expect(checkout.expose('anna', 'short')).rejects.toMatchObject({ code: 'unavailable', retryable: true })
      await expect(checkout.variantOf('anna')).rejects.toMatchObject({ code: 'unavailable' })
      await expect(checkout.counts()).rejects.toMatchObject({ code: 'unavailable' })
    })
  })

  it.each<[string, (primitives: Primitives) => unknown, string]>([
    ['one variant', (p) => new Exposure(p, 'x', { variants: ['a'] }), 'variants.length: expected an integer from 2'],
    ['one twice', (p) => new Exposure(p, 'x', { variants: ['a', 'a'] }), 'variants: expected each name once'],
    ['no names', (p) => new Exposure(p, 'x', { variants: ['a', 'B b'] }), 'variants: expected 1 to 64'],
    ['none', (p) => new Exposure(p, 'x', {} as never), 'variants: expected an array'],
    [
      'a variant that is not declared',
      (p) => new Exposure(p, 'x', { variants: ['a', 'b'] }).expose('anna', 'c' as never),
      "variant: expected 'a' or 'b', got a string of 1 characters",
    ],
  ])('refuses %s', async (_, act, message) => {
    const on = await onSingle()
    await expect(async () => act(on.primitives)).rejects.toThrow(message)
    await on.close()
  })
})
