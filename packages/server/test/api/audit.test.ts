import { Redis } from 'ioredis'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { tamper } from '../../../holdfast/test/audit/support/drift.js'
import { Api, type Caller, openWallet } from '../support/api.js'
import { Receiver } from '../support/receiver.js'

let api: Api
let call: Caller
let redis: Redis
let postgres: pg.Client
let path: string
let id: string
let shard: number

beforeAll(async () => {
  api = await Api.start({ auditRepair: true })
  call = api.as(await api.key())
  redis = new Redis(api.redisUrl)
  postgres = new pg.Client(api.databaseUrl)
  await postgres.connect()
  await postgres.query("SET search_path = 'holdfast'")
})
afterAll(async () => {
  redis.disconnect()
  await postgres.end()
})
beforeEach(async () => {
  path = await openWallet(call, 100)
  id = path.split('/').at(-1) as string
  const { rows } = await postgres.query('SELECT shard FROM audits JOIN wallets ON ref = wallet WHERE id = $1', [id])
  shard = rows[0].shard
})

const damage = (by = 500, wallet = id) => tamper({ redis, postgres } as never, wallet, 'available', by)
const findingsOf = async (caller: Caller, wallet = id, query = '') =>
  (await caller('GET', `/v1/audit/findings${query}`)).body.data.filter(
    (one: { wallet: string }) => one.wallet === wallet,
  )
/** Of the shard that the test's wallet is in. */
const audit = (options: object = {}, caller = call) => caller('POST', '/v1/audit', { body: { shard, ...options } })

it('finds, puts right, and lists what it found', async () => {
  await damage()
  const { status, body } = await call('POST', '/v1/audit')
  expect(status).toBe(200)
  expect(body).toEqual({
    shards: expect.arrayContaining([0, 63]),
    busy: [],
    blind: [],
    counts: { found: 1, repaired: 1, unrepaired: 0 },
    durationMs: expect.any(Number),
  })
  const [finding, ...others] = await findingsOf(call)
  expect(others).toEqual([])
  expect(finding).toEqual({
    id: expect.any(Number),
    wallet: id,
    ref: expect.stringMatching(/^[0-9a-f]{32}$/),
    shard: expect.any(Number),
    cause: 'hot_state_differs',
    field: 'available',
    expected: 100,
    found: 600,
    action: 'repaired',
    firstAt: expect.any(Number),
    lastAt: finding.firstAt,
    times: 1,
  })
  expect((await call('GET', path)).body.available).toBe(100)
  expect((await audit()).body.counts).toEqual({ found: 0, repaired: 0, unrepaired: 0 })
  expect(await findingsOf(call)).toEqual([finding])
})

it('changes nothing where that is asked for, and counts how often the same is found', async () => {
  await damage()
  const { body } = await audit({ repair: false })
  expect(body.counts).toEqual({ found: 1, repaired: 0, unrepaired: 1 })
  const [first] = await findingsOf(call)
  expect(first).toMatchObject({ action: 'reported', found: 600, times: 1 })

  await damage(1)
  await audit()
  const [again, ...others] = await findingsOf(call)
  expect(others).toEqual([])
  expect(again).toEqual({ ...first, action: 'repaired', found: 601, lastAt: again.lastAt, times: 2 })
  expect(again.lastAt).toBeGreaterThanOrEqual(first.lastAt)
  expect(await findingsOf(call, id, `?since=${again.lastAt}`)).toEqual([again])
  expect(await findingsOf(call, id, `?since=${again.lastAt + 1}`)).toEqual([])
})

it('repairs nothing on a server that may not', async () => {
  const { redisUrl, databaseUrl } = api
  const careful = await Api.start({ redisUrl, databaseUrl, auditRepair: false })
  await damage()
  expect((await audit({ repair: true }, careful.as(await careful.key()))).body.counts.unrepaired).toBe(1)
  expect((await audit()).body.counts.repaired).toBe(1)
})

it('gives findings a page at a time', async () => {
  await damage()
  const { body: all } = await call('GET', '/v1/audit/findings')
  await audit()
  const { body: first } = await call('GET', '/v1/audit/findings?limit=1')
  expect(first.data).toHaveLength(1)
  expect(first.next).toBe(first.data[0].id)
  const { body: rest } = await call('GET', `/v1/audit/findings?after=${first.next}`)
  expect(rest.next).toBeNull()
  expect([...first.data, ...rest.data]).toHaveLength(all.data.length + 1)
})

it('tells a tenant of its own wallets alone, and a key of those it is for', async () => {
  const theirs = api.as(await api.key(['admin'], { tenant: 'others' }))
  await damage()
  expect((await audit({}, theirs)).body.counts).toEqual({ found: 0, repaired: 0, unrepaired: 0 })
  expect(await findingsOf(theirs)).toEqual([])
  expect(await findingsOf(call)).toHaveLength(1)
  const narrow = api.as(await api.key(['admin'], { walletPrefix: id }))
  expect((await narrow('GET', '/v1/audit/findings')).body.data).toEqual(await findingsOf(call))
  const elsewhere = api.as(await api.key(['admin'], { walletPrefix: 'x' }))
  expect((await elsewhere('GET', '/v1/audit/findings')).body.data).toEqual([])
  expect(await audit({}, narrow)).toMatchObject({ status: 403, body: { code: 'forbidden' } })
})

it('tells webhooks of what it found, as audits do that run by themselves', async () => {
  const told = await Receiver.start()
  await call('POST', '/v1/webhooks', { body: { url: told.url, events: ['audit.finding'] } })
  await damage()
  await audit()
  await expect
    .poll(() => told.taken.map(({ body: { event, wallet } }) => [event, wallet]), { timeout: 30_000 })
    .toContainEqual(['audit.finding', id])
})

/** An audit of the shard waits for who has it. */
const keepBusy = (until: number) =>
  postgres.query("UPDATE audit_shards SET holder = 'somebody', lease_until = $2 WHERE shard = $1", [shard, until])

it('takes one at a time, and bad input not at all', async () => {
  await keepBusy(Date.now() + 600_000)
  // One of them waits for the shard, whichever comes first; the other is answered at once.
  const both = [audit(), audit()]
  expect((await Promise.race(both)).body).toMatchObject({ code: 'rate_limited', retryAfter: 5 })
  await keepBusy(0)
  expect((await Promise.all(both)).map(({ status }) => status).toSorted()).toEqual([200, 429])
  expect((await call('POST', '/v1/audit', { body: { shard: 64 } })).body).toMatchObject({
    argument: 'body.shard',
    detail: 'body.shard: expected an integer from 0 to 63, got 64',
  })
  for (const body of [{ shard: -1 }, { shard: 1.5 }, { shard: '1' }, { shard: 64 }, { full: 'yes' }, { what: 1 }]) {
    expect(await audit(body)).toMatchObject({ status: 400, body: { code: 'invalid_argument' } })
  }
  for (const query of ['after=-1', 'limit=0', 'limit=1001', 'since=x']) {
    expect((await call('GET', `/v1/audit/findings?${query}`)).status).toBe(400)
  }
})

it('does not keep a server from stopping', async () => {
  const { redisUrl, databaseUrl } = api
  const other = await Api.start({ redisUrl, databaseUrl })
  const caller = other.as(await other.key())
  await keepBusy(Date.now() + 600_000)
  const both = [audit({}, caller), audit({}, caller)]
  expect((await Promise.race(both)).status).toBe(429)
  await other.close()
  const codes = (await Promise.all(both)).map(({ status, body }) => `${status} ${body.code}`)
  expect(codes.toSorted()).toEqual(['429 rate_limited', '503 unavailable'])
  await keepBusy(0)
})
