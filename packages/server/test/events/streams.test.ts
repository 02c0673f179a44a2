import { request } from 'node:http'
import { beforeAll, describe, expect, it } from 'vitest'
import { Api, type Caller, openWallet } from '../support/api.js'
import { EventReader } from '../support/sse.js'

let api: Api
let key: string
let call: Caller

beforeAll(async () => {
  api = await Api.start({ streams: { heartbeatMs: 100 } })
  key = await api.key()
  call = api.as(key)
})

const credit = (path: string, name: string, amount = 1) =>
  call('POST', `${path}/credits`, { body: { amount }, key: name })
const debit = (path: string, name: string, amount: number) =>
  call('POST', `${path}/debits`, { body: { amount }, key: name })
const idOf = (path: string): string => path.split('/').at(-1) as string
const seqs = (reader: EventReader, path: string): number[] =>
  reader.events
    .filter(({ event, data }) => event === 'entry.appended' && data.wallet === idOf(path))
    .map(({ data }) => data.entry.seq)

describe('a stream', () => {
  it('tells what happens from when it was opened, as the answers told it', async () => {
    const path = await openWallet(call)
    const reader = await EventReader.open(api.url, key)
    expect([reader.status, reader.contentType]).toEqual([200, 'text/event-stream'])
    const receipt = (await credit(path, 'a', 7)).body
    const [told] = await reader.until((events) => events.length > 0)
    expect(told).toEqual({
      id: expect.stringMatching(/^[\w-]{22}$/),
      event: 'entry.appended',
      data: {
        id: `${receipt.entry.hash}:entry.appended`,
        event: 'entry.appended',
        at: receipt.entry.at,
        wallet: idOf(path),
        entry: receipt.entry,
      },
    })
    await reader.cut()
  })

  it('goes on behind the last event that was seen, whatever happened meanwhile', async () => {
    const path = await openWallet(call)
    const first = await EventReader.open(api.url, key)
    await credit(path, 'a')
    await first.until(() => seqs(first, path).length === 1)
    await first.cut()
    for (const name of ['b', 'c', 'd']) await credit(path, name)
    const second = await EventReader.open(api.url, key, { lastEventId: first.lastEventId })
    await credit(path, 'e')
    await second.until(() => seqs(second, path).length === 4)
    expect(seqs(second, path)).toEqual([3, 4, 5, 6])
    // Also from the middle: each event has a place of its own.
    const [, third] = second.events.filter(({ data }) => data.wallet === idOf(path))
    const again = await EventReader.open(api.url, key, { lastEventId: third?.id })
    await again.until(() => seqs(again, path).length === 2)
    expect(seqs(again, path)).toEqual([5, 6])
    await Promise.all([second.cut(), again.cut()])
  })

  it('can be come back to before anything happened, and while nothing does', async () => {
    const path = await openWallet(call)
    const silent = await EventReader.open(api.url, key, { path: `${path}/events` })
    await silent.until(() => silent.heartbeats >= 2)
    expect(silent.events).toEqual([])
    await silent.cut()
    await credit(path, 'a')
    const back = await EventReader.open(api.url, key, { path: `${path}/events`, lastEventId: silent.lastEventId })
    await back.until((events) => events.length === 1)
    expect(seqs(back, path)).toEqual([2])
    await back.cut()
  })

  it('of one wallet tells of that alone', async () => {
    const [mine, other] = [await openWallet(call), await openWallet(call)]
    const reader = await EventReader.open(api.url, key, { path: `${mine}/events` })
    for (let n = 0; n < 5; n += 1) {
      await credit(other, `x${n}`)
      await credit(mine, `x${n}`)
    }
    await reader.until((events) => events.length === 5)
    expect(seqs(reader, mine)).toEqual([2, 3, 4, 5, 6])
    expect(reader.events).toHaveLength(5)
    await reader.cut()
  })

  it('tells of many wallets under load each in order and completely, to all who listen', async () => {
    const wallets = await Promise.all(Array.from({ length: 10 }, () => openWallet(call, 0)))
    const readers = await Promise.all(Array.from({ length: 5 }, () => EventReader.open(api.url, key)))
    await Promise.all(
      wallets.map((path) => Promise.all(Array.from({ length: 60 }, (_, n) => credit(path, `load-${n}`)))),
    )
    const all = Array.from({ length: 60 }, (_, n) => n + 1)
    for (const reader of readers) {
      await reader.until(() => wallets.every((path) => seqs(reader, path).length === 60))
      for (const path of wallets) expect(seqs(reader, path)).toEqual(all)
      await reader.cut()
    }
  })
})

describe('events', () => {
  it('are those that were asked for', async () => {
    const path = await openWallet(call)
    const reader = await EventReader.open(api.url, key, {
      path: `${path}/events?events=hold.expired,balance.low&balanceLow=500`,
    })
    await debit(path, 'a', 400)
    await debit(path, 'b', 150)
    await debit(path, 'c', 1)
    await credit(path, 'd', 200)
    await debit(path, 'e', 300)
    await call('POST', `${path}/holds`, { body: { amount: 10, ttl: 1 }, key: 'soon' })
    await credit(path, 'f')
    await reader.until((events) => events.some(({ event }) => event === 'hold.expired'))
    expect(reader.events.map(({ event, data: { id, at, ...facts } }) => [event, facts])).toEqual([
      ['balance.low', { event: 'balance.low', wallet: idOf(path), seq: 3, available: 450, threshold: 500 }],
      ['balance.low', { event: 'balance.low', wallet: idOf(path), seq: 6, available: 349, threshold: 500 }],
      ['hold.expired', { event: 'hold.expired', wallet: idOf(path), seq: 8, hold: 'soon', captured: 0, returned: 10 }],
    ])
    await reader.cut()
  })

  it('tell once when a session can set aside no more', async () => {
    const path = await openWallet(call, 400)
    const reader = await EventReader.open(api.url, key, { path: `${path}/events?events=session.final` })
    const body = { by: 'units', rate: 3, reserve: 100 }
    await call('POST', `${path}/sessions`, { body, key: 'chat' })
    for (const total of [50, 90, 100, 110]) await call('POST', `${path}/sessions/chat/tick`, { body: { total } })
    await call('POST', `${path}/sessions/chat/end`, { body: { total: 120 } })
    // Short from the beginning: told with the entry that began it.
    await call('POST', `${path}/sessions`, { body, key: 'poor' })
    await reader.until((events) => events.length === 2)
    expect(reader.events.map(({ data }) => [data.session, data.charged, data.reserved, data.left])).toEqual([
      ['chat', 270, 400, 130],
      ['poor', 0, 40, 40],
    ])
    await reader.cut()
  })

  it('tell once of a hold that is about to expire: not of short ones, not of sessions, not of those that are settled', async () => {
    const soon = await Api.start({ eventsExpiringMs: 4_000, streams: { heartbeatMs: 100 } })
    const key = await soon.key()
    const call = soon.as(key)
    const path = await openWallet(call)
    const reader = await EventReader.open(soon.url, key, { path: `${path}/events?events=hold.expiring,hold.expired` })
    await call('POST', `${path}/sessions`, { body: { by: 'units', rate: 1, reserve: 5, heartbeat: 8_000 }, key: 's' })
    await call('POST', `${path}/holds`, { body: { amount: 1, ttl: 2_000 }, key: 'short' })
    await call('POST', `${path}/holds`, { body: { amount: 2, ttl: 8_000 }, key: 'settled' })
    const held = await call('POST', `${path}/holds`, { body: { amount: 3, ttl: 8_000 }, key: 'long' })
    await call('POST', `${path}/holds/settled/settle`, { body: { total: 2 }, key: 'settled-end' })
    await reader.until((events) => events.some(({ event, data }) => event === 'hold.expired' && data.hold === 'long'))
    const expiring = reader.events.filter(({ event }) => event === 'hold.expiring')
    expect(expiring.map(({ data: { id, at, event, ...facts } }) => facts)).toEqual([
      { wallet: idOf(path), hold: 'long', expiresAt: held.body.expiresAt, left: 3 },
    ])
    const [told] = expiring
    expect(held.body.expiresAt - told?.data.at).toBeLessThanOrEqual(4_000)
    expect(held.body.expiresAt - told?.data.at).toBeGreaterThan(0)
    await reader.cut()
  })

  it('tell of what audits find, by the wallet', async () => {
    const path = await openWallet(call)
    const { hash } = (await credit(path, 'a')).body.entry
    const reader = await EventReader.open(api.url, key, { path: '/v1/events?events=audit.finding' })
    const { rows } = await query(`SELECT ref FROM holdfast.wallets WHERE head = '\\x${hash}'`)
    const finding = {
      cause: 'journal_gap',
      shard: 1,
      tenant: 'default',
      ref: rows[0].ref.replaceAll('-', ''),
      seq: 2,
      expected: 2,
      found: 3,
      action: 'reported',
    } as const
    api.backend.events.noteFindings([finding, { ...finding, tenant: 'other', ref: '' }])
    await reader.until((events) => events.length === 1)
    const { tenant, ...facts } = finding
    expect(reader.events[0]?.data).toMatchObject({ event: 'audit.finding', wallet: idOf(path), finding: facts })
    await reader.cut()
  })
})

async function query(sql: string) {
  const { default: pg } = await import('pg')
  const client = new pg.Client(api.databaseUrl)
  await client.connect()
  return client.query(sql).finally(() => client.end())
}

describe('a reader that takes nothing', () => {
  it('is given up, and nobody else waits for it', async () => {
    // Longer than this process may stand still: then the one that reads takes nothing either.
    const impatient = await Api.start({ streams: { stallMs: 5_000 } })
    const key = await impatient.key()
    const call = impatient.as(key)
    const path = await openWallet(call, 0)
    const quick = await EventReader.open(impatient.url, key)
    const asked = request(`${impatient.url}/v1/events`, { headers: { authorization: `Bearer ${key}` } }, (response) => {
      response.once('error', () => {})
      response.socket.pause()
    }).end()
    await until(async () => (await metricOf(impatient, 'events_streams')) === 2)
    // More than the buffers of both ends take.
    const metadata = { text: 'x'.repeat(3_000) }
    for (let batch = 0; batch < 40; batch += 1) {
      const keys = Array.from({ length: 50 }, (_, n) => `${batch}-${n}`)
      await Promise.all(keys.map((key) => call('POST', `${path}/credits`, { body: { amount: 1, metadata }, key })))
    }
    await until(async () => (await metricOf(impatient, 'events_streams')) === 1)
    expect(await metricOf(impatient, 'events_streams_cut_total')).toBe(1)
    await quick.until((events) => events.length === 2_000)
    expect(quick.events.map(({ data }) => data.entry.seq)).toEqual(Array.from({ length: 2_000 }, (_, n) => n + 1))
    await quick.cut()
    asked.destroy()
  })
})

async function metricOf(of: Api, name: string): Promise<number> {
  const { body } = await of.as(null)('GET', '/metrics')
  return Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (.+)$`, 'm').exec(body)?.[1] ?? Number.NaN)
}

async function until(done: () => Promise<boolean>): Promise<void> {
  while (!(await done())) await new Promise((resolve) => setTimeout(resolve, 20))
}
