import { Holdfast } from 'holdfast'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SCOPES } from '../../src/access/index.js'
import { Api, type Caller } from '../support/api.js'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const HOURLY = { every: HOUR, perUser: 10, items: [{ id: 'a', quantity: 5 }, { id: 'b' }] }

let api: Api
let key: string
let call: Caller
let pool: pg.Pool
beforeAll(async () => {
  api = await Api.start({ sales: { saleSchedulesMs: 100 } })
  key = await api.key()
  call = api.as(key)
  pool = new pg.Pool({ connectionString: api.databaseUrl, max: 1 })
})
afterAll(() => pool?.end())

const path = (id: string): string => `/v1/sale-schedules/${id}`
const put = (id: string, body: object, by = call) => by('PUT', path(id), { body })

interface Slot {
  startsAt: number
  endsAt: number
  sale: string
  ready: boolean
}
const slotsOf = async (id: string, by = call): Promise<Slot[]> => (await by('GET', `${path(id)}/slots`)).body.data

/** What stands in the table of sales: there may be none that is of no slot. */
async function salesOf(schedule: string): Promise<string[]> {
  const sql = `SELECT id FROM holdfast.sales WHERE id ~ ('^' || $1 || '-[0-9]+$') ORDER BY id`
  return (await pool.query<{ id: string }>(sql, [schedule])).rows.map(({ id }) => id)
}

async function expectOneSaleASlot(schedule: string): Promise<void> {
  const slots = (await slotsOf(schedule)).toReversed()
  for (const [n, { startsAt }] of slots.entries()) if (n > 0) expect(startsAt).toBe(slots[n - 1]?.endsAt)
  const sales = await salesOf(schedule)
  expect(sales.slice(0, slots.length)).toEqual(slots.map(({ sale }) => sale))
}

describe('a schedule over HTTP', () => {
  it('is put, read, bought from, changed and listed', async () => {
    const made = await put('hourly', { ...HOURLY, ahead: HOUR, checkoutTtl: 60_000 })
    const terms = { perUser: 10, limit: null, checkoutTtl: 60_000, reserve: 'checkout', buckets: 1 }
    const grid = { every: HOUR, offset: 0, ahead: HOUR, items: 2 }
    expect(made).toMatchObject({
      status: 200,
      body: { id: 'hourly', ...grid, ...terms, version: 1, paused: false, openedUntil: expect.any(Number) },
    })
    expect((await put('hourly', { ...HOURLY, ahead: HOUR, checkoutTtl: 60_000 })).body).toMatchObject({ version: 1 })
    expect((await call('GET', path('hourly'))).body).toMatchObject({ version: 1, ...grid, ...terms })

    const current = (await call('GET', `${path('hourly')}/current`)).body
    expect(current).toMatchObject({ id: expect.stringMatching(/^hourly-\d{10}$/), stock: 6, perUser: 10, open: true })
    const next = (await call('GET', `${path('hourly')}/next`)).body
    expect(next).toMatchObject({ stock: 6, startsAt: current.endsAt })
    const order = { body: { user: 'ann', items: [{ id: 'b' }] }, key: 'k' }
    const checkout = await call('POST', `/v1/sales/${current.id}/checkouts`, order)
    expect((await call('POST', `/v1/checkouts/${checkout.body.code}/purchase`)).status).toBe(200)
    expect((await call('POST', `/v1/sales/${next.id}/checkouts`, order)).body.code).toBe('sale_not_active')

    const opened = await slotsOf('hourly')
    const page = (await call('GET', `${path('hourly')}/slots?limit=1`)).body
    expect(page).toMatchObject({ data: [opened[0]], next: opened[0]?.startsAt })
    const rest = (await call('GET', `${path('hourly')}/slots?after=${page.next}`)).body
    expect(rest).toEqual({ data: opened.slice(1), next: null })
    await expectOneSaleASlot('hourly')

    expect((await put('hourly', { ...HOURLY, ahead: HOUR, perUser: 1 })).body).toMatchObject({ version: 2, perUser: 1 })
    // Slots that are open stay as they are.
    expect((await call('GET', `/v1/sales/${next.id}`)).body.perUser).toBe(10)
    await put('daily', { ...HOURLY, every: DAY, offset: 6 * HOUR })
    const first = (await call('GET', '/v1/sale-schedules?limit=1')).body
    expect(first).toMatchObject({ data: [{ id: 'daily', offset: 6 * HOUR }], next: 'daily' })
    const others = (await call('GET', '/v1/sale-schedules?after=daily')).body
    expect(others).toMatchObject({ data: [{ id: 'hourly', version: 2 }], next: null })
  })

  it('makes items by a template, anew for each slot', async () => {
    await put('made', { every: DAY, ahead: DAY, perUser: 2, items: { id: '{sale}:{n}', count: 250, quantity: 2 } })
    for (const which of ['current', 'next']) {
      const { id, stock } = (await call('GET', `${path('made')}/${which}`)).body
      expect(stock).toBe(500)
      const { data, next } = (await call('GET', `/v1/sales/${id}/items?after=248`)).body
      expect(data.map(({ id, quantity }: { id: string; quantity: number }) => [id, quantity])).toEqual([
        [`${id}:249`, 2],
        [`${id}:250`, 2],
      ])
      expect(next).toBeNull()
    }
  })

  it('counts against the rate of a key by how many items it asks for', async () => {
    // A key that is at rest may ask for more than its rate, once: then it has debts of more than a minute.
    const slow = await Api.start({ keyRate: 2 })
    const by = slow.as(await slow.key())
    const many = { every: DAY, ahead: 100, perUser: 1, items: { id: '{n}', count: 15_000 } }
    expect((await put('many', many, by)).status).toBe(200)
    expect(await put('more', many, by)).toMatchObject({ status: 429, body: { code: 'rate_limited' } })
  })

  it('pauses on every server, and goes on where it is resumed', async () => {
    const other = await Api.start({
      databaseUrl: api.databaseUrl,
      redisUrl: api.redisUrl,
      sales: { saleSchedulesMs: 100 },
    })
    const body = { ...HOURLY, every: 1_000, ahead: 300 }
    await put('paused', body)
    expect((await other.as(key)('POST', `${path('paused')}/pause`)).body).toMatchObject({ paused: true })
    expect((await call('POST', `${path('paused')}/pause`)).body).toMatchObject({ paused: true })
    const running = async () => (await call('GET', `${path('paused')}/current`)).body.code
    await expect.poll(running, { timeout: 20_000 }).toBe('sale_not_found')
    const opened = await slotsOf('paused')
    const namesOf = (slots: Slot[]) => slots.map(({ sale }) => sale)
    // Also who puts it anew does not open any.
    expect((await put('paused', { ...body, perUser: 3 })).body).toMatchObject({ paused: true, version: 2 })
    expect(namesOf(await slotsOf('paused'))).toEqual(namesOf(opened))
    expect((await call('POST', `${path('paused')}/resume`)).body).toMatchObject({ paused: false })
    const [last] = await slotsOf('paused')
    expect(last?.startsAt).toBeGreaterThan(opened[0]?.startsAt as number)
    await expect
      .poll(async () => (await slotsOf('paused')).length, { timeout: 20_000 })
      .toBeGreaterThan(opened.length + 2)
    await call('POST', `${path('paused')}/pause`)
  })

  it('whose answer was lost is on record once, however often it is put', async () => {
    const away = new AbortController()
    const lost = call('PUT', path('lost'), { body: { ...HOURLY, every: DAY }, signal: away.signal }).catch(() => null)
    const isThere = async () => (await call('GET', path('lost'))).status
    await expect.poll(isThere, { timeout: 20_000 }).toBe(200)
    away.abort()
    await lost
    const answers = await Promise.all(Array.from({ length: 8 }, () => put('lost', { ...HOURLY, every: DAY })))
    expect(answers.map(({ status, body }) => [status, body.version])).toEqual(Array(8).fill([200, 1]))
    await expectOneSaleASlot('lost')
  })

  it('is on record also where its sale can not be opened, and goes on when nothing is in the way any more', async () => {
    const startsAt = Math.floor(Date.now() / DAY) * DAY
    const stamp = new Date(startsAt).toISOString().slice(0, 10).replaceAll('-', '')
    const terms = { items: [{ id: 'a' }], perUser: 1, startsAt, endsAt: startsAt + 1 }
    await call('PUT', `/v1/sales/blocked-${stamp}00`, { body: terms })
    const blocked = await put('blocked', { ...HOURLY, every: DAY })
    expect(blocked).toMatchObject({ status: 409, body: { code: 'sale_exists', retryable: false } })
    expect((await call('GET', path('blocked'))).body).toMatchObject({ version: 1, openedUntil: null })
    expect((await call('GET', `${path('blocked')}/slots`)).body).toEqual({ data: [], next: null })
    // By its number, and never by its id, the log tells which it is.
    const failure = () => api.lines.find((line) => line.includes('sale_slot_failed')) ?? ''
    await expect.poll(failure, { timeout: 20_000 }).not.toBe('')
    const sql = 'SELECT id FROM holdfast.sale_schedules WHERE number = $1'
    expect((await pool.query(sql, [JSON.parse(failure()).schedule])).rows).toEqual([{ id: 'blocked' }])
    expect(failure()).not.toContain('blocked')
    const moved = await put('blocked', { ...HOURLY, every: DAY, offset: 1_000 })
    expect(moved).toMatchObject({ status: 200, body: { version: 2, openedUntil: expect.any(Number) } })
  })
})

describe('who may', () => {
  it('sell puts and pauses, read looks on; a key for some wallets or a token neither', async () => {
    await put('roles', { ...HOURLY, every: DAY })
    const reads = ['', '/slots', '/current'].map((last) => ['GET', `${path('roles')}${last}`] as const)
    const changes = ['/pause', '/resume'].map((last) => ['POST', `${path('roles')}${last}`] as const)
    const all = [['GET', '/v1/sale-schedules'] as const, ...reads, ...changes]
    const statuses = async (credential: string) => [
      (await put('roles', { ...HOURLY, every: DAY }, api.as(credential))).status,
      ...(await Promise.all(all.map(async ([method, url]) => (await api.as(credential)(method, url)).status))),
    ]
    expect(await statuses(await api.key(['sell']))).toEqual([200, 403, 403, 403, 403, 200, 200])
    expect(await statuses(await api.key(['read']))).toEqual([403, 200, 200, 200, 200, 403, 403])
    expect(await statuses(await api.key(['buy', 'spend', 'fund', 'admin', 'flags']))).toEqual(Array(7).fill(403))
    expect(await statuses(await api.key(SCOPES, { walletPrefix: 'eu-' }))).toEqual(Array(7).fill(403))
    const { token } = (await call('POST', '/v1/wallets/w/tokens', { body: { scopes: ['read', 'spend'] } })).body
    expect(await statuses(token)).toEqual(Array(7).fill(403))
  })

  it('of another tenant finds nothing, and has schedules of its own', async () => {
    await put('mine', { ...HOURLY, every: DAY })
    const evil = api.as(await api.key(SCOPES, { tenant: 'evil' }))
    for (const [method, last] of [
      ['GET', ''],
      ['GET', '/slots'],
      ['GET', '/current'],
      ['GET', '/next'],
      ['POST', '/pause'],
      ['POST', '/resume'],
    ] as const) {
      const answer = await evil(method, `${path('mine')}${last}`)
      expect([answer.status, answer.body.code]).toEqual([404, 'schedule_not_found'])
    }
    await put('mine', { ...HOURLY, every: DAY, perUser: 1 }, evil)
    expect((await evil('GET', '/v1/sale-schedules')).body.data).toMatchObject([{ id: 'mine', perUser: 1 }])
    expect((await call('GET', path('mine'))).body).toMatchObject({ perUser: 10, version: 1 })
  })

  it.each([
    [{ every: 999 }, 'body.every'],
    [{ every: undefined }, 'body.every'],
    [{ offset: -1 }, 'body.offset'],
    [{ offset: HOUR }, 'offset'],
    [{ ahead: 99 }, 'body.ahead'],
    [{ items: [] }, 'body.items'],
    [{ items: 'a' }, 'body.items'],
    [{ items: [{ id: 'a', quantity: 0 }] }, 'body.items.0.quantity'],
    [{ items: { id: 'x{n}' } }, 'body.items.count'],
    [{ items: { id: 'x{n}', count: 100_001 } }, 'body.items.count'],
    [{ items: { id: 'x{n}', count: 2, price: 1 } }, 'body.items.price'],
    [{ items: { id: 'x', count: 2 } }, 'items.id'],
    [{ items: { id: '{m}{n}', count: 2 } }, 'items.id'],
    [{ startsAt: 0 }, 'body.startsAt'],
    [{ limit: 7 }, 'limit'],
  ])('is told what is wrong with %j', async (terms, argument) => {
    const answer = await put('wrong', { ...HOURLY, ...terms })
    expect([answer.status, answer.body.code, answer.body.argument]).toEqual([400, 'invalid_argument', argument])
    expect((await call('GET', path('wrong'))).body.code).toBe('schedule_not_found')
    expect((await put('x'.repeat(231), HOURLY)).body).toMatchObject({ code: 'invalid_argument' })
  })
})

describe('servers', () => {
  it('open what another put on record, one sale a slot, and leave to a program what only that can make', async () => {
    const lines = api.lines.length
    const settings = { databaseUrl: api.databaseUrl, redisUrl: api.redisUrl }
    // One that only answers: what is put there is driven by the others.
    const passive = await Api.start({ ...settings, sales: { saleSchedulesMs: 0 } })
    const third = await Api.start({ ...settings, sales: { saleSchedulesMs: 150 } })
    await put('driven', { ...HOURLY, every: 1_000, ahead: 5_000 }, passive.as(key))
    const program = api.backend.holdfast.saleSchedule('program')
    await program.start({ every: 1_000, ahead: 1_000, perUser: 1, items: () => [{ id: 'a' }] })
    await program.stop()
    const { version } = (await call('GET', path('program'))).body
    expect((await passive.as(key)('POST', `${path('program')}/resume`)).body).toMatchObject({ items: null, version })
    const left = await slotsOf('program')

    const before = await slotsOf('driven')
    const more = async () => (await slotsOf('driven')).length
    await expect.poll(more, { timeout: 30_000 }).toBeGreaterThan(before.length + 1)
    await third.close()
    const then = await more()
    await expect.poll(more, { timeout: 30_000 }).toBeGreaterThan(then + 1)
    await call('POST', `${path('driven')}/pause`)
    await expectOneSaleASlot('driven')
    expect(await slotsOf('program')).toEqual(left)
    const failed = [...api.lines.slice(lines), ...third.lines]
      .filter((line) => line.includes('sale_slot_failed'))
      // Who is closed in the middle of a slot leaves it to the others, and says so.
      .filter((line) => !line.includes('Holdfast is being closed'))
    expect(failed).toEqual([])
  })

  it('that start finish what those that died have left, however long ago', async () => {
    const settings = { databaseUrl: api.databaseUrl, redisUrl: api.redisUrl }
    const passive = await Api.start({ ...settings, sales: { saleSchedulesMs: 0 } })
    // Not due, so that none of those that run has to do with it.
    await put('left', { ...HOURLY, every: 400 * DAY, ahead: 1_000 }, passive.as(key))
    const { id } = (await call('GET', `${path('left')}/current`)).body
    const isReady = async () => (await slotsOf('left')).find(({ sale }) => sale === id)?.ready
    // As it is when a process dies before it has noted that all buckets are filled.
    await pool.query('UPDATE holdfast.sales SET ready = false WHERE id = $1', [id])
    await pool.query('UPDATE holdfast.sale_slots SET opened_at = opened_at - 3600000 WHERE sale = $1', [id])
    await Api.start({ ...settings, sales: { saleSchedulesMs: 60_000 } })
    await expect.poll(isReady, { timeout: 20_000 }).toBe(true)
    expect((await call('GET', `/v1/sales/${id}`)).body).toMatchObject({ stock: 6, sold: 0 })
  })

  it('stop when a program takes over what was listed, and go on when it is listed again', async () => {
    const listed = { ...HOURLY, every: 1_000, ahead: 1_000 }
    await put('both', listed)
    await put('beside', listed)
    const program = await Holdfast.connect({ redis: api.redisUrl, postgres: api.databaseUrl, audit: false })
    await program.saleSchedule('both').start({ ...listed, items: () => [{ id: 'made' }] })
    await program.close()
    // What the program does not open, nobody can. A server that goes on trying would fail several times a slot of the other.
    const failures = () => api.lines.filter((line) => line.includes('sale_slot_failed')).length
    const failuresMeanwhile = async () => {
      const [before, slots] = [failures(), (await slotsOf('beside')).length]
      await expect.poll(async () => (await slotsOf('beside')).length, { timeout: 20_000 }).toBeGreaterThan(slots + 2)
      return failures() - before
    }
    await expect.poll(failuresMeanwhile, { timeout: 60_000 }).toBe(0)
    const running = async () => (await call('GET', `${path('both')}/current`)).body.code
    await expect.poll(running, { timeout: 20_000 }).toBe('sale_not_found')
    await put('both', listed)
    const opened = (await slotsOf('both')).length
    await expect.poll(async () => (await slotsOf('both')).length, { timeout: 30_000 }).toBeGreaterThan(opened + 1)
    for (const id of ['both', 'beside']) await call('POST', `${path(id)}/pause`)
  }, 240_000)
})
