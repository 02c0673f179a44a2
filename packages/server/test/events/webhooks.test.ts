import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { Api, type Caller, openWallet } from '../support/api.js'
import { isSigned, Receiver } from '../support/receiver.js'

let api: Api
let key: string
let call: Caller

beforeAll(async () => {
  api = await Api.start()
  key = await api.key()
  call = api.as(key)
})

const idOf = (path: string): string => path.split('/').at(-1) as string
const credit = (path: string, name: string, amount = 1, by = call) =>
  by('POST', `${path}/credits`, { body: { amount }, key: name })

let prefixes = 0
/** A webhook for wallets of a test's own, and a way to open them. */
async function hook(body: object = {}, by = call) {
  const receiver = await Receiver.start()
  prefixes += 1
  const walletPrefix = `t${process.pid}-${prefixes}-`
  const asked = { url: receiver.url, walletPrefix, ...body }
  const { status, body: made } = await by('POST', '/v1/webhooks', { body: asked })
  expect([status, made.code]).toEqual([200, undefined])
  const wallet = async (name: string): Promise<string> => {
    const path = `/v1/wallets/${walletPrefix}${name}`
    await by('PUT', path, { body: { currency: 'usd' } })
    return path
  }
  return { receiver, made, wallet }
}

const facts = async (id: string, by = call) => (await by('GET', `/v1/webhooks/${id}`)).body
const PATIENT = { timeout: 20_000 }

async function sql(text: string) {
  const client = new pg.Client(api.databaseUrl)
  await client.connect()
  return client.query(text).finally(() => client.end())
}

describe('a webhook', () => {
  it('is told what happens: signed, with the id of the event, the wallet in order', async () => {
    const { receiver, made, wallet } = await hook()
    expect(made).toMatchObject({ id: expect.stringMatching(/^wh_/), secret: expect.stringMatching(/^whsec_.{43}$/) })
    const path = await wallet('a')
    const receipts = []
    for (const name of ['a', 'b', 'c']) receipts.push((await credit(path, name)).body)
    await receiver.until(({ taken }) => taken.length === 3)
    expect(receiver.seqs(idOf(path))).toEqual([1, 2, 3])
    for (const [n, received] of receiver.taken.entries()) {
      const { entry } = receipts[n]
      const id = `${entry.hash}:entry.appended`
      expect(received.body).toEqual({ id, event: 'entry.appended', at: entry.at, wallet: idOf(path), entry })
      expect(received.headers).toMatchObject({ 'holdfast-delivery': id, 'content-type': 'application/json' })
      expect(isSigned(received, made.secret)).toBe(true)
      expect(isSigned({ ...received, raw: received.raw.replace('usd', 'eur').concat(' ') }, made.secret)).toBe(false)
      expect(isSigned(received, `${made.secret}x`)).toBe(false)
    }
    const listed = await call('GET', '/v1/webhooks')
    expect(JSON.stringify(listed.body)).not.toContain(made.secret)
    expect(listed.body.data.find(({ id }: { id: string }) => id === made.id)).toMatchObject({
      url: receiver.url,
      waiting: 0,
      dead: 0,
      failingSince: null,
    })
  })

  it('gets the events that it was made for', async () => {
    const { receiver, wallet } = await hook({ events: ['balance.low'], balanceLow: 50 })
    const path = await wallet('a')
    await credit(path, 'a', 100)
    await call('POST', `${path}/debits`, { body: { amount: 60 }, key: 'b' })
    await receiver.until(({ taken }) => taken.length === 1)
    expect(receiver.taken[0]?.body).toMatchObject({ event: 'balance.low', available: 40, threshold: 50, seq: 2 })
  })

  it('that does not take an event gets it again, and what came after it waits; other wallets do not', async () => {
    const { receiver, made, wallet } = await hook()
    const [stuck, free] = [await wallet('stuck'), await wallet('free')]
    let refusals = 3
    receiver.answer = ({ body }) =>
      body.wallet === idOf(stuck) && body.entry.key === 'b' && refusals-- > 0 ? 500 : 200
    for (const name of ['a', 'b', 'c', 'd']) {
      await credit(stuck, name)
      await credit(free, name)
    }
    await receiver.until(({ taken }) => taken.length === 8)
    expect(receiver.seqs(idOf(stuck))).toEqual([1, 2, 3, 4])
    expect(receiver.seqs(idOf(free))).toEqual([1, 2, 3, 4])
    const tries = receiver.received.filter(({ body }) => body.wallet === idOf(stuck) && body.entry.key === 'b')
    expect(tries).toHaveLength(4)
    // The same message each time, signed anew.
    expect(new Set(tries.map(({ raw, headers }) => `${raw} ${headers['holdfast-delivery']}`)).size).toBe(1)
    for (const one of tries) expect(isSigned(one, made.secret)).toBe(true)
    const [first, second, third] = tries.map(({ at }) => at) as [number, number, number]
    expect(second - first).toBeGreaterThanOrEqual(20)
    expect(third - second).toBeGreaterThanOrEqual(40)
    await expect.poll(() => facts(made.id), PATIENT).toMatchObject({ waiting: 0, failingSince: null })
  })

  it('that is dead is left alone, others are told all the while, and it gets everything in order when it is back', async () => {
    const impatient = await Api.start({ deliveries: { timeoutMs: 400 } })
    const by = impatient.as(await impatient.key())
    const dead = await hook({}, by)
    const well = await hook({ walletPrefix: dead.made.walletPrefix }, by)
    const paths = await Promise.all(['a', 'b', 'c'].map((name) => dead.wallet(name)))
    dead.receiver.answer = () => 0
    for (let n = 0; n < 20; n += 1) for (const path of paths) await credit(path, `${n}`, 1, by)
    // At least once: an answer may have come too late.
    const toldTo = ({ receiver }: typeof dead, path: string) => [...new Set(receiver.seqs(idOf(path)))]
    const all = Array.from({ length: 20 }, (_, n) => n + 1)
    await well.receiver.until(() => paths.every((path) => toldTo(well, path).length === 20))
    for (const path of paths) expect(toldTo(well, path)).toEqual(all)
    const isFailing = { failingSince: expect.any(Number) }
    await expect.poll(() => facts(dead.made.id, by), PATIENT).toMatchObject(isFailing)
    const knocks = dead.receiver.received.length
    expect(knocks).toBeLessThan(40)
    const metrics = (await impatient.as(null)('GET', '/metrics')).body
    expect(Number(/^webhooks_failing_seconds (.+)$/m.exec(metrics)?.[1])).toBeGreaterThan(0)

    dead.receiver.answer = () => 200
    await dead.receiver.until(() => paths.every((path) => toldTo(dead, path).length === 20))
    for (const path of paths) expect(toldTo(dead, path)).toEqual(all)
    const isWell = { waiting: 0, dead: 0, failingSince: null }
    await expect.poll(() => facts(dead.made.id, by), PATIENT).toMatchObject(isWell)
  })

  it('does not lead elsewhere, and is not listened to for long', async () => {
    const { receiver, wallet, made } = await hook()
    const trap = await Receiver.start()
    const path = await wallet('a')
    const answers = [
      () => 302,
      // More than anybody wants to hear, but a yes.
      (response: { writeHead(status: number): void; write(text: string): void }) => {
        response.writeHead(200)
        for (let n = 0; n < 200; n += 1) response.write('x'.repeat(1_000))
        return 200
      },
    ]
    receiver.answer = (_, response) => {
      if (receiver.received.length === 1) response.setHeader('location', trap.url)
      return (answers[receiver.received.length - 1] ?? (() => 204))(response)
    }
    await credit(path, 'a')
    await credit(path, 'b')
    await receiver.until(() => new Set(receiver.seqs(idOf(path))).size === 2)
    expect(trap.received).toEqual([])
    expect(receiver.received.length).toBe(3)
    await expect.poll(() => facts(made.id), PATIENT).toMatchObject({ waiting: 0 })
  })

  it('is told nothing more once it is deleted', async () => {
    // Whoever serves it would not hear of that by himself before the test is over.
    const slow = await Api.start({ deliveries: { pollMs: 1_500 } })
    const by = slow.as(await slow.key())
    const { receiver, made, wallet } = await hook({}, by)
    const other = await hook({ walletPrefix: made.walletPrefix }, by)
    const path = await wallet('a')
    await credit(path, 'a', 1, by)
    for (const one of [receiver, other.receiver]) await one.until(({ taken }) => taken.length === 1)
    await sleep(50)
    expect(await by('DELETE', `/v1/webhooks/${made.id}`)).toMatchObject({ status: 200, body: { id: made.id } })
    await credit(path, 'b', 1, by)
    await other.receiver.until(({ taken }) => taken.length === 2)
    await sleep(100)
    expect(receiver.received).toHaveLength(1)
    expect(await by('GET', `/v1/webhooks/${made.id}`)).toMatchObject({
      status: 404,
      body: { code: 'webhook_not_found' },
    })
  })
})

describe('what is not taken within a day', () => {
  it('is dead, lets the next through, is listed, and is told again when somebody asks', async () => {
    const { receiver, made, wallet } = await hook()
    const path = await wallet('a')
    receiver.answer = ({ body }) => (body.entry.key === 'poison' ? 500 : 200)
    await credit(path, 'poison')
    await credit(path, 'after')
    await expect.poll(() => facts(made.id), PATIENT).toMatchObject({ waiting: 2 })
    // That one alone: after five tries nothing is taken at all, and then the next would be dead with it.
    const poison = `webhook = '${made.id}' AND body LIKE '%"poison"%'`
    await sql(`UPDATE holdfast.webhook_deliveries SET created_at = created_at - 86400001 WHERE ${poison}`)
    await receiver.until(() => receiver.seqs(idOf(path)).includes(2))
    const listed = await call('GET', `/v1/webhooks/${made.id}/dead`)
    expect(listed.body).toEqual({
      data: [
        {
          id: expect.any(Number),
          event: 'entry.appended',
          data: receiver.received[0]?.body,
          tries: expect.any(Number),
          reason: 'status 500',
          deadAt: expect.any(Number),
        },
      ],
      next: null,
    })
    await expect.poll(() => facts(made.id), PATIENT).toMatchObject({ waiting: 0, dead: 1 })
    receiver.answer = () => 200
    const id = listed.body.data[0].id
    const nobody = await call('POST', `/v1/webhooks/${made.id}/replay`, { body: { deliveries: [id + 1] } })
    expect(nobody.body).toEqual({ replayed: 0 })
    const replayed = await call('POST', `/v1/webhooks/${made.id}/replay`, { body: { deliveries: [id] } })
    expect(replayed.body).toEqual({ replayed: 1 })
    await receiver.until(() => receiver.seqs(idOf(path)).includes(1))
    await expect.poll(() => facts(made.id), PATIENT).toMatchObject({ waiting: 0, dead: 0 })
  })

  it('by an address that takes nothing at all is dead too, also what is still in the feed', async () => {
    const { receiver, made, wallet } = await hook()
    const path = await wallet('a')
    receiver.answer = () => 500
    await credit(path, 'first')
    await expect.poll(() => facts(made.id), PATIENT).toMatchObject({ failingSince: expect.any(Number) })
    for (let n = 0; n < 10; n += 1) await credit(path, `${n}`)
    await expect.poll(async () => (await sql('SELECT FROM holdfast.feed_inbox')).rowCount, PATIENT).toBe(0)
    await sql(`UPDATE holdfast.feed SET at = at - 86400001`)
    await sql(`UPDATE holdfast.webhook_deliveries SET created_at = created_at - 86400001 WHERE webhook = '${made.id}'`)
    await expect.poll(() => facts(made.id), PATIENT).toMatchObject({ dead: 11, waiting: 0 })
    receiver.answer = () => 200
    expect((await call('POST', `/v1/webhooks/${made.id}/replay`, { body: {} })).body).toEqual({ replayed: 11 })
    await receiver.until(() => receiver.seqs(idOf(path)).length >= 11)
    expect(receiver.seqs(idOf(path)).slice(0, 11)).toEqual(Array.from({ length: 11 }, (_, n) => n + 1))
  })
})

describe('who may', () => {
  it('is one who administers, with a key, in its own tenant and within its prefix', async () => {
    const { made } = await hook()
    const other = api.as(await api.key(undefined, { tenant: 'other' }))
    const spender = api.as(await api.key(['read', 'spend', 'fund']))
    const elsewhere = api.as(await api.key(undefined, { walletPrefix: 'elsewhere-' }))
    for (const [method, path] of [
      ['GET', ''],
      ['DELETE', ''],
      ['GET', '/dead'],
      ['POST', '/replay'],
    ] as const) {
      const asked = `/v1/webhooks/${made.id}${path}`
      const body = method === 'POST' ? { body: {} } : {}
      expect(await other(method, asked, body)).toMatchObject({ status: 404, body: { code: 'webhook_not_found' } })
      expect(await elsewhere(method, asked, body)).toMatchObject({ status: 404 })
      expect(await spender(method, asked, body)).toMatchObject({ status: 403, body: { scope: 'admin' } })
    }
    expect((await other('GET', '/v1/webhooks')).body).toEqual({ data: [] })
    expect((await elsewhere('GET', '/v1/webhooks')).body).toEqual({ data: [] })
    const url = 'https://example.com/'
    expect(await elsewhere('POST', '/v1/webhooks', { body: { url, walletPrefix: 'eu-' } })).toMatchObject({
      status: 403,
    })
    // Without a choice it is all that the key is for, and no more.
    const own = await elsewhere('POST', '/v1/webhooks', { body: { url, events: ['audit.finding'] } })
    expect(own.body.walletPrefix).toBe('elsewhere-')
    await elsewhere('DELETE', `/v1/webhooks/${own.body.id}`)
  })

  it.each([
    ['http://example.com/', 'body.url: expected https, got http://'],
    ['ftp://example.com/', 'body.url: expected https, got ftp://'],
    ['example.com', 'body.url: expected a URL such as'],
    ['https://user:secret@example.com/', 'body.url: expected no user and no password'],
    ['https://10.0.0.7/', 'body.url: expected a public address'],
    ['https://169.254.169.254/latest', 'body.url: expected a public address'],
    ['https://[::1]/', 'body.url: expected a public address'],
    ['https://[::ffff:10.0.0.1]/', 'body.url: expected a public address'],
    ['https://2130706433/', 'body.url: expected a public address'],
    ['https://0x7f.1/', 'body.url: expected a public address'],
    ['http://localhost:9/', 'body.url: expected https'],
  ])('chooses where, but not everywhere: %s', async (url, detail) => {
    if (url.includes('2130706433') || url.includes('0x7f')) {
      // These are 127.0.0.1 in other words, and that is a host that this server allows.
      const strict = await Api.start({ webhookHosts: [] })
      const refused = await strict.as(await strict.key())('POST', '/v1/webhooks', { body: { url } })
      expect([refused.status, refused.body.detail]).toEqual([400, expect.stringContaining(detail)])
      return
    }
    const refused = await call('POST', '/v1/webhooks', { body: { url } })
    expect([refused.status, refused.body.code, refused.body.argument]).toEqual([400, 'invalid_argument', 'body.url'])
    expect(refused.body.detail).toContain(detail)
  })

  it('gets nowhere inside by a name that leads there', async () => {
    const strict = await Api.start({ webhookHosts: [], deliveries: { pollMs: 50, backoffMs: 20 } })
    const key = await strict.key()
    const made = await strict.as(key)('POST', '/v1/webhooks', { body: { url: 'https://localhost:9/' } })
    expect(made.status).toBe(200)
    await openWallet(strict.as(key))
    const reason = async () => {
      const client = new pg.Client(strict.databaseUrl)
      await client.connect()
      const { rows } = await client.query('SELECT reason FROM holdfast.webhook_deliveries WHERE tries > 0')
      await client.end()
      return rows[0]?.reason
    }
    await expect.poll(reason, PATIENT).toBe('the address is not public')
  })

  it.each([
    ['POST', '', { url: 'https://example.com/', walletPrefix: 'a\u0000' }, 'body.walletPrefix'],
    ['POST', '', { url: 'https://example.com/', events: ['none'] }, 'body.events.0'],
    ['POST', '', { url: 'https://example.com/', events: [] }, 'body.events'],
    ['POST', '', { url: 'https://example.com/', balanceLow: 1.5 }, 'body.balanceLow'],
    ['POST', '', { url: 'https://example.com/', secret: 'of my own' }, 'body.secret'],
    ['POST', '', {}, 'body.url'],
    ['POST', '/wh_1/replay', { deliveries: ['1'] }, 'body.deliveries.0'],
    ['GET', '/a%00b', undefined, 'path.webhook'],
  ])('is told what is wrong with %s /v1/webhooks%s %j', async (method, path, body, argument) => {
    const refused = await call(method, `/v1/webhooks${path}`, body ? { body } : {})
    expect([refused.status, refused.body.argument]).toEqual([400, argument])
    expect(refused.headers.get('content-type')).toBe('application/problem+json')
  })

  it('has a bounded number of them', async () => {
    const crowd = await api.key(undefined, { tenant: 'crowd' })
    const body = { url: 'https://example.com/', events: ['audit.finding'] }
    for (let n = 0; n < 50; n += 1) expect((await api.as(crowd)('POST', '/v1/webhooks', { body })).status).toBe(200)
    const more = await api.as(crowd)('POST', '/v1/webhooks', { body })
    expect([more.status, more.body.limit]).toEqual([400, 50])
  })
})

it('nothing secret is in the log', () => {
  const lines = api.lines.join('\n')
  expect(lines).not.toMatch(/whsec_|holdfast-signature/)
})
