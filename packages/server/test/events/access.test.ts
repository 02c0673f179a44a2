import { beforeAll, describe, expect, it } from 'vitest'
import { Api, type Caller } from '../support/api.js'
import { EventReader } from '../support/sse.js'
import { unlessStalled } from '../support/stalls.js'

let api: Api
let key: string
let call: Caller

beforeAll(async () => {
  api = await Api.start({ streams: { heartbeatMs: 50 } })
  key = await api.key()
  call = api.as(key)
  for (const id of ['eu-1', 'eu-2', 'us-1']) await open(call, id)
})

async function open(call: Caller, id: string): Promise<void> {
  const { status } = await call('PUT', `/v1/wallets/${id}`, { body: { currency: 'usd' } })
  expect(status).toBe(200)
}

let credits = 0
async function credit(call: Caller, id: string): Promise<void> {
  credits += 1
  await call('POST', `/v1/wallets/${id}/credits`, { body: { amount: 1 }, key: `credit-${credits}` })
}

const wallets = ({ events }: EventReader): string[] => events.map(({ data }) => data.wallet)

describe('who listens', () => {
  it('hears of its own tenant alone, and can not come back from where another was', async () => {
    const other = await api.key(undefined, { tenant: 'other' })
    await open(api.as(other), 'eu-1')
    const [mine, theirs] = [await EventReader.open(api.url, key), await EventReader.open(api.url, other)]
    await credit(api.as(other), 'eu-1')
    await credit(call, 'us-1')
    await credit(call, 'eu-1')
    await credit(api.as(other), 'eu-1')
    await mine.until((events) => events.length === 2)
    await theirs.until((events) => events.length === 2)
    expect([wallets(mine), wallets(theirs)]).toEqual([
      ['us-1', 'eu-1'],
      ['eu-1', 'eu-1'],
    ])
    const hashes = mine.events.map(({ data }) => data.entry.hash)
    for (const { data } of theirs.events) expect(hashes).not.toContain(data.entry.hash)

    // A place in the feed tells nothing of others, and is a place for everybody.
    const back = await EventReader.open(api.url, other, { lastEventId: mine.events[0]?.id })
    await credit(api.as(other), 'eu-1')
    await back.until((events) => events.some(({ data }) => data.entry.seq === 3))
    expect(new Set(wallets(back))).toEqual(new Set(['eu-1']))
    for (const { data } of back.events) expect(hashes).not.toContain(data.entry.hash)
    // The same place never looks the same: nobody can see by it that others were at work.
    const seen = new Set<string>()
    await back.until(() => seen.add(back.lastEventId).size > 3)
    await Promise.all([mine.cut(), theirs.cut(), back.cut()])
  })

  it('with a key for some wallets hears of those', async () => {
    const eu = await api.key(['read'], { walletPrefix: 'eu-' })
    const reader = await EventReader.open(api.url, eu)
    for (const id of ['us-1', 'eu-1', 'us-1', 'eu-2']) await credit(call, id)
    await reader.until((events) => events.length === 2)
    expect(wallets(reader)).toEqual(['eu-1', 'eu-2'])
    const refused = await EventReader.open(api.url, eu, { path: '/v1/wallets/us-1/events' })
    expect([refused.status, refused.problem.code]).toEqual([403, 'forbidden'])
    // Where it was before is no way around it.
    const place = reader.lastEventId
    await credit(call, 'us-1')
    await credit(call, 'eu-1')
    const back = await EventReader.open(api.url, eu, { lastEventId: place })
    await back.until((events) => events.length === 1)
    expect(wallets(back)).toEqual(['eu-1'])
    await Promise.all([reader.cut(), back.cut()])
  })

  it('with a wallet token hears of its wallet, whichever way it asks', async () => {
    const { token } = (await call('POST', '/v1/wallets/eu-1/tokens', { body: { scopes: ['read'] } })).body
    const readers = [
      await EventReader.open(api.url, token),
      await EventReader.open(api.url, token, { path: '/v1/wallets/eu-1/events' }),
    ]
    for (const id of ['eu-2', 'us-1', 'eu-1']) await credit(call, id)
    for (const reader of readers) {
      await reader.until((events) => events.length === 1)
      expect(wallets(reader)).toEqual(['eu-1'])
      await reader.cut()
    }
    const refused = await EventReader.open(api.url, token, { path: '/v1/wallets/eu-2/events' })
    expect([refused.status, refused.problem.code]).toEqual([403, 'forbidden'])
  })

  it('has to be allowed to read', async () => {
    const spender = await api.key(['spend', 'fund', 'admin'])
    for (const path of ['/v1/events', '/v1/wallets/eu-1/events']) {
      const refused = await EventReader.open(api.url, spender, { path })
      expect([refused.status, refused.contentType, refused.problem.code, refused.problem.scope]).toEqual([
        403,
        'application/problem+json',
        'forbidden',
        'read',
      ])
    }
    expect((await EventReader.open(api.url, 'hf_nobody')).problem.code).toBe('unauthenticated')
  })

  it('is cut off within a second when its key is revoked, and so are the tokens that were made with it', async () => {
    const stays = await EventReader.open(api.url, key)
    await unlessStalled(async () => {
      const { text, key: made } = await api.backend.keys.create({ tenant: 'default', name: 'brief', scopes: ['read'] })
      const { token } = (await api.as(text)('POST', '/v1/wallets/eu-1/tokens', { body: { scopes: ['read'] } })).body
      const readers = [await EventReader.open(api.url, text), await EventReader.open(api.url, token)]
      await api.backend.keys.revoke(made.id)
      const revokedAt = performance.now()
      for (const reader of readers) await reader.end()
      expect(performance.now() - revokedAt).toBeLessThan(1_000)
    })
    await credit(call, 'eu-1')
    await stays.until((events) => events.length === 1)
    await stays.cut()
  })

  it('is cut off when its token expires', async () => {
    const asked = await call('POST', '/v1/wallets/eu-1/tokens', { body: { scopes: ['read'], ttl: 1_000 } })
    const reader = await EventReader.open(api.url, asked.body.token)
    await reader.end()
    expect(Date.now()).toBeGreaterThanOrEqual(asked.body.expiresAt)
  })
})

describe('what is asked wrongly', () => {
  it.each([
    ['/v1/events?events=entry.apended', undefined, 400, 'invalid_argument', 'query.events: expected some of entry.'],
    ['/v1/events?events=', undefined, 400, 'invalid_argument', 'query.events: expected some of'],
    ['/v1/events?balanceLow=much', undefined, 400, 'invalid_argument', 'query.balanceLow: expected an integer'],
    ['/v1/events', 'yesterday', 400, 'invalid_argument', 'header.last-event-id: expected the id of an event'],
    ['/v1/events', 'A'.repeat(22), 410, 'events_gone', 'The events after this one are not there any more'],
    ['/v1/wallets/nobody/events', undefined, 404, 'wallet_not_found', ''],
    ['/v1/wallets/a%00b/events', undefined, 400, 'invalid_argument', ''],
  ])('is told what is wrong: %s %s', async (path, lastEventId, status, code, detail) => {
    const refused = await EventReader.open(api.url, key, { path, lastEventId })
    expect([refused.status, refused.contentType, refused.problem.code]).toEqual([
      status,
      'application/problem+json',
      code,
    ])
    expect(refused.problem.detail).toContain(detail)
  })

  it('more streams than there may be are refused, and may come later', async () => {
    const small = await Api.start({ streams: { streamsMax: 1 } })
    const key = await small.key()
    const first = await EventReader.open(small.url, key)
    const second = await EventReader.open(small.url, key)
    expect([second.status, second.problem.code, second.problem.retryable]).toEqual([503, 'unavailable', true])
    await first.cut()
    let third = await EventReader.open(small.url, key)
    while (third.status === 503) third = await EventReader.open(small.url, key)
    expect(third.status).toBe(200)
    await third.cut()
  })
})
