import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { termsFromRecord } from '../../src/api/sale/recorded-items.js'
import { checkSchedule } from '../../src/api/sale/schedule-terms.js'
import { checkTerms } from '../../src/api/sale/terms.js'
import { Holdfast, type HoldfastError, type ScheduleOptions } from '../../src/index.js'
import { QUERIES } from '../../src/postgres/queries.generated.js'

const HOUR = 3_600_000

let hf: Holdfast
let other: Holdfast
let urls: { redis: string; postgres: string }
beforeAll(async () => {
  urls = { redis: await freshRedis(), postgres: await freshDatabase() }
  const connect = () => Holdfast.connect({ ...urls, audit: false })
  ;[hf, other] = await Promise.all([connect(), connect()])
})
afterAll(async () => void (await Promise.all([hf.close(), other.close()])))

describe('items by a template', () => {
  it('are made anew for each slot, by whoever opens it from what is on record', async () => {
    // In its own name too, what looks like a place is not one.
    const mine = hf.saleSchedule('odd {n}')
    const items = { id: '{sale}/{startsAt}/{n}', count: 3, quantity: 2 }
    const options = { every: HOUR, ahead: HOUR, perUser: 5, limit: 5, items }
    expect(await mine.start(options)).toMatchObject({ items: 3, version: 1 })
    expect(await mine.start(options)).toMatchObject({ version: 1 })
    await mine.stop()
    // Who has nothing but the record opens what comes next.
    const theirs = other.saleSchedule('odd {n}')
    const before = (await theirs.slots()).length
    await theirs.start({ ...options, ahead: 3 * HOUR })
    const slots = await theirs.slots()
    expect(slots.length).toBeGreaterThan(before)
    for (const { sale, startsAt } of slots) {
      const listed = await other.sale(sale).items()
      expect(listed.map(({ id, quantity }) => [id, quantity])).toEqual(
        [1, 2, 3].map((n) => [`${sale}/${startsAt}/${n}`, 2]),
      )
      expect(await other.sale(sale).status()).toMatchObject({ limit: 5, stock: 5 })
    }
    await theirs.stop()
    // A list in its place, and back: each a change.
    expect(await mine.start({ ...options, items: [{ id: 'a', quantity: 9 }] })).toMatchObject({ items: 1, version: 3 })
    expect(await mine.start(options)).toMatchObject({ items: 3, version: 4 })
    await mine.stop()
  })

  it.each([
    ['items.id', { id: 'a', count: 2 }],
    ['items.id', { id: '{n}{slot}', count: 2 }],
    ['items.id', { id: '', count: 1 }],
    ['items.id of the last', { id: `${'x'.repeat(250)}{n}`, count: 100_000 }],
    ['items.id of the last', { id: `${'x'.repeat(240)}{sale}`, count: 1 }],
    ['items.count', { id: '{n}', count: 100_001 }],
    ['items.count', { id: '{n}' }],
    ['items.quantity', { id: '{n}', count: 1, quantity: 0 }],
    ['items', 'a'],
    ['limit', { id: '{n}', count: 3, quantity: 2 }],
  ])('refuses %s that can not be, before any I/O: %j', async (name, items) => {
    const options = { every: HOUR, perUser: 1, limit: name === 'limit' ? 7 : 1, items } as unknown as ScheduleOptions
    const error = (await hf
      .saleSchedule('bad')
      .start(options)
      .catch((error) => error)) as HoldfastError
    expect(error).toMatchObject({ code: 'invalid_argument', message: expect.stringMatching(`^${name}: expected`) })
    expect(await hf.saleSchedule('bad').get()).toBeNull()
  })
})

describe('what is on record', () => {
  const slot = { startsAt: 5, endsAt: 10, sale: 's' }
  it.each([
    ['a list', [['a', 2] as const, ['\u00e9"\\', 1] as const], [{ id: 'a', quantity: 2 }, { id: '\u00e9"\\' }]],
    ['a template', { id: '{sale}-{n}', count: 3, quantity: 4 }, [1, 2, 3].map((n) => ({ id: `s-${n}`, quantity: 4 }))],
    [
      'a long one',
      { id: '{startsAt}-{n}', count: 10_001, quantity: 1 },
      Array.from({ length: 10_001 }, (_, n) => ({ id: `5-${n + 1}` })),
    ],
  ])('makes the same sale as its items by themselves would: %s', async (_, recorded, items) => {
    for (const options of [{ perUser: 2 }, { perUser: 1, limit: 2, buckets: 3, reserve: 'purchase', checkoutTtl: 9 }]) {
      const made = await termsFromRecord(options, recorded, slot)
      expect(made).toEqual(checkTerms({ ...options, startsAt: 5, endsAt: 10, items }))
    }
  })

  it('is opened in its turn where there are many items, and whoever comes later finds it whole', async () => {
    const items = { id: '{sale}-{n}', count: 1_500 }
    // No slot ends in the middle of this: the one after it would not be open at once.
    const offset = (Date.now() + HOUR / 2) % HOUR
    const mine = Array.from({ length: 5 }, (_, n) => hf.forTenant(`turn${n % 2}`).saleSchedule(`large${n}`))
    await Promise.all(
      mine.map((schedule) => schedule.start({ every: HOUR, offset, ahead: HOUR, perUser: 1, buckets: 2, items })),
    )
    for (const schedule of mine) {
      for (const sale of [await schedule.current(), await schedule.next()]) {
        expect(await sale?.status()).toMatchObject({ stock: 1_500, items: 1_500 })
      }
      await schedule.stop()
    }
  })
})

describe('a slot that can not be finished', () => {
  it('is tried again after some seconds, however often the schedule is looked at', async () => {
    const failedAt: number[] = []
    const log = (_: string, event: string) => event === 'sale_slot_failed' && failedAt.push(performance.now())
    const mine = await Holdfast.connect({ ...urls, audit: false, telemetry: { log } })
    const schedule = mine.saleSchedule('damaged')
    await schedule.start({ every: 24 * HOUR, ahead: 100, perUser: 1, items: [{ id: 'a' }] })
    await schedule.stop()
    const client = new pg.Client(urls.postgres)
    await client.connect()
    const [slot] = await schedule.slots()
    const sql = `UPDATE holdfast.sales SET ready = false, terms = terms || '{"limit": -5}' WHERE id = $1`
    await client.query(sql, [slot?.sale])
    await client.end()
    await schedule.start()
    await expect.poll(() => failedAt.length, { timeout: 30_000 }).toBeGreaterThan(1)
    await mine.close()
    expect((failedAt[1] as number) - (failedAt[0] as number)).toBeGreaterThan(2_000)
  })
})

describe('how much a schedule opens', () => {
  const refusal = (options: object) =>
    hf
      .saleSchedule('much')
      .start({ perUser: 1, ...options } as ScheduleOptions)
      .catch((error: HoldfastError) => [error.code, error.message])

  it('is up to a thousand items for each second of a slot, and a million ahead', async () => {
    const items = (count: number) => ({ id: '{n}', count })
    expect(await refusal({ every: 1_000, items: items(1_001) })).toEqual([
      'invalid_argument',
      'items: expected at most 1000 where `every` is 1000, got 1001',
    ])
    const listed = Array.from({ length: 1_001 }, (_, n) => ({ id: `${n}` }))
    expect(await refusal({ every: 1_000, items: listed })).toContain('invalid_argument')
    expect(await refusal({ every: 100_000, ahead: 1_000_001, items: items(100_000) })).toEqual([
      'invalid_argument',
      'ahead: expected at most 1000000 where each sale has 100000 items, got 1000001',
    ])
    expect(await refusal({ every: 1_000, ahead: 100_001, items: [{ id: 'a' }] })).toContain('invalid_argument')
    expect(await hf.saleSchedule('much').get()).toBeNull()
    expect(checkSchedule('much', { every: 1_000, ahead: 100_000, perUser: 1, items: items(1_000) }).items).toEqual({
      ...items(1_000),
      quantity: 1,
    })
  })

  it('is told from a template without making what that stands for', () => {
    const items = { id: '{sale}/{n}', count: 100_000, quantity: 1_000_000_000 }
    const options = { every: HOUR, perUser: 1, limit: 100_000 * 1_000_000_000, items }
    for (let n = 0; n < 300; n += 1) expect(checkSchedule('much', options).items).toEqual(items)
    expect(() => checkSchedule('much', { ...options, limit: options.limit + 1 })).toThrow('limit: expected')
  }, 20_000)
})

describe('schedules of a tenant', () => {
  it('are listed by their ids, with what their sales are opened with', async () => {
    const mine = hf.forTenant('lister')
    const items = [{ id: 'a' }]
    const terms = { limit: 1, checkoutTtl: 60_000, reserve: 'purchase', buckets: 2 } as const
    await mine.saleSchedule('b').start({ every: HOUR, perUser: 2, items })
    await mine.saleSchedule('a').start({ every: 2 * HOUR, offset: HOUR, ahead: 5_000, perUser: 1, items, ...terms })
    await mine.saleSchedule('c').start({ every: HOUR, perUser: 2, items: () => items })
    await mine.saleSchedule('b').pause()
    const [first, ...none] = await mine.saleSchedules({ limit: 1 })
    expect(none).toEqual([])
    expect(first).toMatchObject({ id: 'a', every: 2 * HOUR, offset: HOUR, ahead: 5_000, perUser: 1, ...terms })
    expect(first).toEqual(await mine.saleSchedule('a').get())
    expect(await mine.saleSchedules({ after: 'a' })).toMatchObject([
      { id: 'b', limit: null, checkoutTtl: null, reserve: 'checkout', buckets: 1, items: 1, paused: true },
      { id: 'c', items: null, paused: false },
    ])
    expect(await hf.forTenant('nobody').saleSchedules()).toEqual([])
    await expect(mine.saleSchedules({ limit: 0 })).rejects.toMatchObject({ code: 'invalid_argument' })
    await Promise.all(['a', 'b', 'c'].map((id) => mine.saleSchedule(id).stop()))
  })

  it('are read without the lists of their items, however long those are', async () => {
    const mine = hf.forTenant('long')
    const items = Array.from({ length: 50_000 }, (_, n) => ({ id: `${Math.random()}-${n}` }))
    const schedule = mine.saleSchedule('list')
    // Paused before there is anything to open.
    await schedule.start({ every: HOUR, ahead: 100, perUser: 1, items: [{ id: 'a' }] })
    await schedule.pause()
    expect(await schedule.start({ every: HOUR, ahead: 100, perUser: 1, items })).toMatchObject({ items: 50_000 })
    await schedule.stop()
    const client = new pg.Client({ connectionString: urls.postgres, options: '-c search_path=holdfast' })
    await client.connect()
    for (const [query, values] of [
      [QUERIES.readSchedule, ['long', 'list']],
      [QUERIES.listSchedules, ['long', '', 100]],
    ] as const) {
      const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${query}`, [...values])
      const { 'Shared Hit Blocks': hit, 'Shared Read Blocks': read } = rows[0]['QUERY PLAN'][0].Plan
      expect(hit + read).toBeLessThan(50)
    }
    await client.end()
  })
})
