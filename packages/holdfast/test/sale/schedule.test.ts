import { randomUUID } from 'node:crypto'
import { Holdfast, type HoldfastError, type ScheduleOptions } from 'holdfast'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Workers } from '../primitives/support/workers.js'
import type { WorkerOrder } from './support/schedule-worker.js'

const HOUR = 3_600_000
const HOURLY = { every: HOUR, perUser: 10, items: [{ id: 'a', quantity: 5 }, { id: 'b' }] } satisfies ScheduleOptions
const unique = (name: string, count: number) => Array.from({ length: count }, (_, n) => ({ id: `${name}-${n}` }))
const key = () => randomUUID()

let hf: Holdfast
let other: Holdfast
let urls: { redis: string; postgres: string }
let pool: pg.Pool
let workers: Workers
beforeAll(async () => {
  urls = { redis: await freshRedis(), postgres: await freshDatabase() }
  pool = new pg.Pool({ connectionString: urls.postgres, max: 2 })
  const connect = () => Holdfast.connect({ ...urls, audit: false })
  ;[hf, other] = await Promise.all([connect(), connect()])
  workers = await Workers.prepare(new URL('./support/schedule-worker.ts', import.meta.url))
})
afterAll(async () => {
  await workers.stop()
  await Promise.all([hf.close(), other.close()])
  await pool.end()
})

/** What stands in the tables of sales, for a schedule: there may be no sale that is of no slot. */
async function salesOf(schedule: string): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>(
    `SELECT id FROM holdfast.sales WHERE id ~ ('^' || $1 || '-[0-9]+$') ORDER BY id`,
    [schedule],
  )
  return rows.map(({ id }) => id)
}

describe('a schedule', () => {
  it('opens the slot that is running and what is due, once, however many start it how often', async () => {
    const hourly = hf.saleSchedule('hourly')
    expect([await hourly.get(), await hourly.current(), await hourly.next()]).toEqual([null, null, null])
    const from = Date.now()
    const ahead = { ...HOURLY, ahead: HOUR }
    const started = await Promise.all([
      hourly.start(ahead),
      hourly.start(ahead),
      other.saleSchedule('hourly').start(ahead),
      other.saleSchedule('hourly').start(ahead),
    ])
    await hourly.start()
    expect(started[0]).toMatchObject({ id: 'hourly', every: HOUR, offset: 0, items: 2, version: 1, paused: false })
    const slots = await hourly.slots()
    const running = slots.find(({ startsAt, endsAt }) => startsAt <= from && from < endsAt)
    expect(running).toMatchObject({ startsAt: Math.floor(from / HOUR) * HOUR, ready: true, version: 1 })
    expect(slots.length).toBeGreaterThanOrEqual(2)
    expect(slots[0]?.startsAt).toBe(slots[1]?.endsAt)
    expect(await salesOf('hourly')).toEqual(slots.map(({ sale }) => sale).toReversed())
    expect(await hourly.slots({ before: slots[0]?.startsAt as number, limit: 1 })).toEqual([slots[1]])

    const sale = await other.saleSchedule('hourly').current()
    expect(sale?.id).toMatch(/^hourly-\d{10}$/)
    expect(await sale?.status()).toMatchObject({ stock: 6, limit: 6, items: 2, perUser: 10, open: true })
    const checkout = await sale?.checkout({ user: 'ann', items: [{ id: 'a', quantity: 2 }], key: key() })
    await sale?.purchase(checkout?.code as string)
    const next = await hourly.next()
    expect(await next?.status()).toMatchObject({ stock: 6, startsAt: (await sale?.status())?.endsAt })
    await expect(next?.checkout({ user: 'ann', items: [{ id: 'a' }], key: key() })).rejects.toMatchObject({
      code: 'sale_not_active',
    })
    await Promise.all([hourly.stop(), other.saleSchedule('hourly').stop()])
  })

  it('leaves out what was missed while nobody was there: by the clock of Postgres, whatever that of a process says', async () => {
    const [redis, postgres] = [await freshRedis(), await freshDatabase()]
    const mine = await Holdfast.connect({ redis, postgres, audit: false })
    const own = new pg.Pool({ connectionString: postgres, max: 1 })
    const moveBy = (ms: number) =>
      own.query(`CREATE OR REPLACE FUNCTION holdfast.clock_ms() RETURNS bigint LANGUAGE sql VOLATILE AS $$
        SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + ${ms} $$`)
    const schedule = mine.saleSchedule('missed')
    await schedule.start({ ...HOURLY, ahead: 1_000 })
    await schedule.stop()
    const before = await schedule.slots()
    await moveBy(5 * HOUR)
    await schedule.start()
    const after = await schedule.slots()
    const now = Number((await own.query('SELECT holdfast.clock_ms() AS now')).rows[0].now)
    const running = after.find(({ startsAt, endsAt }) => startsAt <= now && now < endsAt)
    expect(running).toMatchObject({ startsAt: Math.floor(now / HOUR) * HOUR, ready: true })
    // Whoever looks in the last second of an hour has opened the next one too, before and after.
    expect(after.slice(-before.length)).toEqual(before)
    expect(after.length - before.length).toBeLessThanOrEqual(2)
    expect((running?.startsAt as number) - (before[0]?.endsAt as number)).toBeGreaterThanOrEqual(3 * HOUR)
    // A clock that is set back opens nothing twice, and nothing that overlaps.
    await moveBy(0)
    await schedule.start()
    expect(await schedule.slots()).toEqual(after)
    await mine.close()
    await own.end()
  })

  it('changes with the next slot that is not open yet, also where slots are of another length', async () => {
    const schedule = hf.saleSchedule('changed')
    await schedule.start({ ...HOURLY, ahead: HOUR })
    const [last] = await schedule.slots()
    const half = { ...HOURLY, every: HOUR / 2, ahead: 2 * HOUR, perUser: 3, items: unique('c', 4) }
    expect(await other.saleSchedule('changed').start(half)).toMatchObject({ version: 2, items: 4 })
    const slots = (await schedule.slots()).toReversed()
    for (const [n, slot] of slots.entries()) if (n > 0) expect(slot.startsAt).toBe(slots[n - 1]?.endsAt)
    const added = slots.filter(({ version }) => version === 2)
    expect(added.length).toBeGreaterThan(0)
    expect(added[0]?.startsAt).toBe(last?.endsAt)
    expect(added.every(({ startsAt, endsAt }) => endsAt - startsAt === HOUR / 2)).toBe(true)
    expect(await hf.sale(added[0]?.sale as string).status()).toMatchObject({ perUser: 3, stock: 4 })
    expect(await hf.sale(last?.sale as string).status()).toMatchObject({ perUser: 10, stock: 6 })
    await Promise.all([schedule.stop(), other.saleSchedule('changed').stop()])
  })

  it('pauses for everybody, also for who starts it, and goes on', async () => {
    const schedule = hf.saleSchedule('paused')
    await expect(schedule.pause()).rejects.toMatchObject({ code: 'schedule_not_found' })
    await expect(schedule.start()).rejects.toMatchObject({ code: 'schedule_not_found' })
    await schedule.start({ ...HOURLY, every: 1_000, ahead: 100 })
    expect(await other.saleSchedule('paused').pause()).toMatchObject({ paused: true })
    // One that was begun before that is still made ready.
    await expect.poll(async () => (await schedule.slots()).every(({ ready }) => ready), { timeout: 20_000 }).toBe(true)
    const opened = await schedule.slots()
    await other.saleSchedule('paused').start()
    await expect.poll(() => schedule.current(), { timeout: 20_000 }).toBeNull()
    expect(await schedule.slots()).toEqual(opened)
    await schedule.resume()
    await expect.poll(() => schedule.current(), { timeout: 20_000 }).not.toBeNull()
    await Promise.all([schedule.stop(), other.saleSchedule('paused').stop()])
    const { openedUntil } = (await schedule.get()) as { openedUntil: number }
    await expect.poll(() => schedule.current(), { timeout: 20_000 }).toBeNull()
    expect((await schedule.get())?.openedUntil).toBe(openedUntil)
  }, 120_000)

  it('takes the items that the first has made for a slot', async () => {
    const made: string[] = []
    const start = (from: Holdfast, name: string) =>
      from.saleSchedule('made').start({
        every: HOUR,
        ahead: 1_000,
        perUser: 1,
        items: async (slot) => {
          made.push(slot.sale)
          return unique(`${name}-${slot.startsAt}`, 3)
        },
      })
    await Promise.all([start(hf, 'one'), start(other, 'two')])
    const sale = await hf.saleSchedule('made').current()
    expect(made).toContain(sale?.id)
    const slot = (await hf.saleSchedule('made').slots()).find((one) => one.sale === sale?.id)
    const take = (name: string) =>
      sale?.checkout({ user: name, items: [{ id: `${name}-${slot?.startsAt}-0` }], key: key() })
    const taken = await Promise.allSettled([take('one'), take('two')])
    expect(taken.filter(({ status }) => status === 'fulfilled').length).toBe(1)
    expect(await sale?.status()).toMatchObject({ items: 3, stock: 2, reserved: 1 })
    await Promise.all([hf, other].map((one) => one.saleSchedule('made').stop()))
  })

  it('says what is wrong with items that are made, and tries again until they are right', async () => {
    const schedule = hf.saleSchedule('wrong')
    let isRight = false
    const options = {
      every: 1_000,
      ahead: 200,
      perUser: 1,
      items: () => {
        if (!isRight) throw new Error('no items today')
        return unique('w', 1)
      },
    }
    await expect(schedule.start(options)).rejects.toThrow('no items today')
    expect(await schedule.slots()).toEqual([])
    await expect(schedule.start({ ...options, items: () => [] })).rejects.toMatchObject({ code: 'invalid_argument' })
    // Who only has what is on record can't make any.
    await expect(other.saleSchedule('wrong').start()).rejects.toMatchObject({ code: 'invalid_argument' })
    isRight = true
    await schedule.start(options)
    isRight = false
    await expect.poll(() => schedule.current(), { timeout: 20_000 }).toBeNull()
    isRight = true
    await expect.poll(() => schedule.current(), { timeout: 20_000 }).not.toBeNull()
    await schedule.stop()
  })

  describe('where there is a sale of the name of its slot', () => {
    const startsAt = Math.floor(Date.now() / (24 * HOUR)) * 24 * HOUR
    const endsAt = startsAt + 24 * HOUR
    const { every: _, ...terms } = HOURLY
    const daily = { ...terms, every: 24 * HOUR, ahead: 100 }
    const nameOf = (schedule: string) =>
      `${schedule}-${new Date(startsAt).toISOString().slice(0, 10).replaceAll('-', '')}00`

    it.each([
      ['times', { endsAt: startsAt + 1 }],
      ['terms', { perUser: 9 }],
      ['items', { items: unique('t', 6) }],
    ])('does not take it with other %s, however often it is tried', async (name, differs) => {
      await hf.sale(nameOf(name)).open({ ...terms, startsAt, endsAt, ...differs })
      const schedule = hf.saleSchedule(name)
      await expect(schedule.start(daily)).rejects.toMatchObject({ code: 'sale_exists' })
      await expect(schedule.start()).rejects.toMatchObject({ code: 'sale_exists' })
      expect([await schedule.slots(), await schedule.current()]).toEqual([[], null])
    })

    it('does not take one that comes while the slot is being opened', async () => {
      const theirs = new pg.Client(urls.postgres)
      await theirs.connect()
      await theirs.query('BEGIN')
      await theirs.query(
        `INSERT INTO holdfast.sales (tenant, id, terms, opened_at) VALUES ('default', $1, '{"buckets": 1}', 0)`,
        [nameOf('meanwhile')],
      )
      // Who waits for the other for too long is told something else.
      const postgresOptions = { lockTimeoutMs: 30_000, statementTimeoutMs: 30_000 }
      const patient = await Holdfast.connect({ ...urls, audit: false, timeout: 30_000, postgresOptions })
      const schedule = patient.saleSchedule('meanwhile')
      const refused = expect(schedule.start(daily)).rejects.toMatchObject({ code: 'sale_exists' })
      const waiting = `SELECT count(*)::integer AS n FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`
      await expect.poll(async () => (await pool.query(waiting)).rows[0].n, { timeout: 20_000 }).toBeGreaterThan(0)
      await theirs.query('COMMIT')
      await theirs.end()
      await refused
      expect(await schedule.slots()).toEqual([])
      await patient.close()
    }, 120_000)

    it('takes one that is the same', async () => {
      await hf.sale(nameOf('same')).open({ ...terms, startsAt, endsAt })
      await hf.saleSchedule('same').start(daily)
      expect((await hf.saleSchedule('same').current())?.id).toBe(nameOf('same'))
      await hf.saleSchedule('same').stop()
    })
  })

  it.each([
    ['every', { ...HOURLY, every: 999 }],
    ['offset', { ...HOURLY, offset: HOUR }],
    ['ahead', { ...HOURLY, ahead: 99 }],
    ['perUser', { ...HOURLY, perUser: 0 }],
    ['items', { ...HOURLY, items: [] }],
    ['items', { ...HOURLY, items: unique('x', 100_001) }],
    ['limit', { ...HOURLY, limit: 7 }],
    ['reserve', { ...HOURLY, items: () => unique('x', 1), reserve: 'never' }],
  ])('refuses %s that can not be, before any I/O', async (name, options) => {
    const error = (await hf
      .saleSchedule('bad')
      .start(options as ScheduleOptions)
      .catch((error) => error)) as HoldfastError
    expect(error).toMatchObject({ code: 'invalid_argument', message: expect.stringContaining(`${name}`) })
    expect(await hf.saleSchedule('bad').get()).toBeNull()
    expect(() => hf.saleSchedule('x'.repeat(231))).toThrow('schedule id')
  })
})

describe('processes', () => {
  /** So close to the end of a slot the server is asked what time it is. */
  const ALLOWED_MS = 1_000
  const SLOT_MS = 2_000
  const order = (schedule: string, more: Partial<WorkerOrder> = {}): WorkerOrder => ({
    ...urls,
    schedule,
    options: { every: SLOT_MS, ahead: 20_000, perUser: 1_000 },
    name: 'w',
    items: 100,
    ...more,
  })

  it('with clocks that differ open one sale a slot, and there is always one to buy from', async () => {
    const begun = [-50_000, 0, 300_000].map((aheadMs, n) => workers.start(order('many', { aheadMs, name: `w${n}` })))
    await expect.poll(() => begun.every(({ told }) => told.includes('started')), { timeout: 30_000 }).toBe(true)
    const schedule = hf.saleSchedule('many')
    const bought = new Map<string, number>()
    let refused = 0
    let doubtUntil = 0
    const buyer = async (user: string) => {
      for (let past = ''; bought.size < 6; ) {
        const asked = performance.now()
        const sale = await schedule.current()
        const told = performance.now()
        // A server's time that took longer to come than is allowed for may be too old for as long as both go by it: a slot, at most.
        if (told - asked >= ALLOWED_MS) doubtUntil = told + SLOT_MS
        const isSure = told >= doubtUntil
        if (!sale) throw new Error('There was a moment without a sale')
        // Told that one is over, whoever asks again is told of the next.
        if (isSure) expect(sale.id > past).toBe(true)
        expect(sale.id >= past).toBe(true)
        const n = bought.get(sale.id) ?? 0
        bought.set(sale.id, n + 1)
        const item = [0, 1, 2].map((w) => `w${w}-${sale.id}-${n}`)
        const answers = await Promise.allSettled(item.map((id) => sale.checkout({ user, items: [{ id }], key: key() })))
        const codes = answers.map((one) => (one.status === 'rejected' ? one.reason.code : 'yes'))
        if (codes.includes('sale_not_active')) {
          if (isSure) refused += 1
          expect((await sale.status())?.startsAt).toBeLessThan(Date.now())
          past = sale.id
        } else if (n < 100) expect(codes.toSorted()).toEqual(['invalid_argument', 'invalid_argument', 'yes'])
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    }
    // Who is killed is not missed.
    const killing = async () => {
      await expect.poll(() => bought.size, { timeout: 60_000 }).toBeGreaterThan(2)
      await begun[0]?.kill()
    }
    await Promise.all([killing(), ...['ann', 'bob'].map(buyer)])
    expect(refused).toBeLessThanOrEqual(2 * bought.size)
    for (const worker of begun) await worker.kill()
    const slots = (await schedule.slots()).toReversed()
    for (const [n, { startsAt, endsAt }] of slots.entries()) {
      expect(endsAt - startsAt).toBe(SLOT_MS)
      if (n > 0) expect(startsAt).toBe(slots[n - 1]?.endsAt)
    }
    expect(await salesOf('many')).toEqual(slots.map(({ sale }) => sale).toSorted())
    for (const { sale, ready } of slots) {
      if (!ready) continue
      const state = await hf.sale(sale).status()
      expect((state?.stock ?? 0) + (state?.reserved ?? 0)).toBe(100)
    }
  }, 120_000)

  it.each(
    ['openSlot', 'openWallet', 'appendOne', 'readySale'].flatMap((statement) => [
      { when: 'before' as const, statement },
      { when: 'after' as const, statement },
    ]),
  )(
    'that die $when $statement leave nothing that another does not finish',
    async (dies) => {
      const schedule = `dies-${dies.when}-${dies.statement}`.toLowerCase()
      const options = { every: 24 * HOUR, ahead: 100, perUser: 10 }
      const worker = workers.start(order(schedule, { options, dies, name: 'dead', items: 7 }))
      expect(await worker.ended).toBeNull()
      const mine = hf.saleSchedule(schedule)
      const begun = await mine.slots()
      const isBegun = !(dies.statement === 'openSlot' && dies.when === 'before')
      expect(begun.length).toBe(isBegun ? 1 : 0)
      expect(begun.some(({ ready }) => ready)).toBe(dies.statement === 'readySale' && dies.when === 'after')
      // Also who only wants to buy does: nobody has to have started it.
      if (isBegun && dies.when === 'after') expect((await mine.current())?.id).toBe(begun[0]?.sale)
      await mine.start({ ...options, items: () => unique('alive', 4) })
      const sale = await mine.current()
      expect(await salesOf(schedule)).toEqual([sale?.id])
      expect(await sale?.status()).toMatchObject({ stock: isBegun ? 7 : 4, sold: 0, reserved: 0 })
      await mine.stop()
    },
    120_000,
  )
})
