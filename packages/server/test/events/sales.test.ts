import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { Api, type Caller, openWallet } from '../support/api.js'
import { Receiver } from '../support/receiver.js'
import { EventReader, type Told } from '../support/sse.js'

const HOUR = 3_600_000
const TERMS = { perUser: 100, startsAt: Date.now() - 1_000, endsAt: Date.now() + HOUR }

let api: Api
let key: string
let call: Caller
beforeAll(async () => {
  api = await Api.start({ streams: { heartbeatMs: 100 } })
  key = await api.key()
  call = api.as(key)
})

const open = (sale: string, terms: object) => call('PUT', `/v1/sales/${sale}`, { body: { ...TERMS, ...terms } })
let keys = 0
async function checkOut(sale: string, user: string, items: object[]): Promise<string> {
  keys += 1
  const answer = await call('POST', `/v1/sales/${sale}/checkouts`, { body: { user, items }, key: `k${keys}` })
  expect(answer.status).toBe(200)
  return answer.body.code
}
const purchase = (code: string) => call('POST', `/v1/checkouts/${code}/purchase`)
const digest = (code: string): string => createHash('sha256').update(code).digest('hex').slice(0, 32)
const namesOf = (events: readonly Told[]): string[] => events.map(({ event }) => event)

describe('events of a sale', () => {
  it('tell all that happens in it, items by their ids and codes by a digest', async () => {
    const reader = await EventReader.open(api.url, key, {
      path: '/v1/events?events=sale.opened,sale.checkout,sale.purchased,sale.cancelled,sale.expired,sale.sold_out,sale.closed',
    })
    await open('told', { items: [{ id: 'a', quantity: 3 }, { id: 'b' }] })
    const ann = await checkOut('told', 'ann', [{ id: 'a', quantity: 2 }])
    await checkOut('told', 'ann', [{ id: 'b' }])
    await purchase(ann)
    await purchase(ann)
    const bob = await checkOut('told', 'bob', [{ id: 'a' }])
    await call('DELETE', `/v1/checkouts/${bob}`)
    await call('POST', '/v1/sales/told/close')
    await open('gone', { items: [{ id: 'a', quantity: 2 }], checkoutTtl: 50 })
    const eve = await checkOut('gone', 'eve', [{ id: 'a' }])
    await reader.until((events) => namesOf(events).includes('sale.expired'))
    const [opened, made, extended, bought, ...rest] = reader.events.map(({ data: { id, at, ...facts } }) => facts)
    const about = { wallet: null, sale: 'told' }
    expect(opened).toEqual({
      ...about,
      event: 'sale.opened',
      terms: expect.objectContaining({ limit: 4, perUser: 100, items: 2, buckets: 1, endsAt: TERMS.endsAt }),
    })
    expect(made).toEqual({
      ...about,
      event: 'sale.checkout',
      checkout: digest(ann),
      items: [{ id: 'a', quantity: 2 }],
      added: [{ id: 'a', quantity: 2 }],
      expiresAt: expect.any(Number),
    })
    expect(extended).toMatchObject({
      checkout: digest(ann),
      items: [
        { id: 'a', quantity: 2 },
        { id: 'b', quantity: 1 },
      ],
      added: [{ id: 'b', quantity: 1 }],
    })
    expect(bought).toMatchObject({
      event: 'sale.purchased',
      checkout: digest(ann),
      quantity: 3,
      items: extended?.items,
    })
    expect(rest.map(({ event, checkout, quantity, reserved }) => ({ event, checkout, quantity, reserved }))).toEqual([
      { event: 'sale.checkout', checkout: digest(bob) },
      { event: 'sale.sold_out', reserved: 1 },
      { event: 'sale.cancelled', checkout: digest(bob), quantity: 1 },
      { event: 'sale.closed' },
      { event: 'sale.opened' },
      { event: 'sale.checkout', checkout: digest(eve) },
      { event: 'sale.expired', checkout: digest(eve), quantity: 1 },
    ])
    expect(new Set(reader.events.map(({ data }) => data.id)).size).toBe(reader.events.length)
    const all = JSON.stringify(reader.events)
    for (const hidden of [ann, bob, eve, '"ann"']) expect(all).not.toContain(hidden)

    // From the place of any of them, and of this sale alone.
    const place = reader.events[2] as Told
    const back = await EventReader.open(api.url, key, { path: '/v1/sales/told/events', lastEventId: place.id })
    await back.until((events) => namesOf(events).includes('sale.closed'))
    const later = reader.events.slice(3).filter(({ data }) => data.sale === 'told')
    expect(back.events.map(({ data }) => data)).toEqual(later.map(({ data }) => data))
    await Promise.all([reader.cut(), back.cut()])
  })

  it('are told to nobody who follows wallets, unless by name', async () => {
    const wallet = await openWallet(call)
    const wallets = await EventReader.open(api.url, key)
    const named = await EventReader.open(api.url, key, { path: '/v1/events?events=sale.purchased' })
    // A wallet of the same name is another thing.
    await call('PUT', '/v1/wallets/quiet', { body: { currency: 'usd' } })
    const one = await EventReader.open(api.url, key, { path: '/v1/wallets/quiet/events?events=sale.purchased' })
    await open('quiet', { items: [{ id: 'a', quantity: 50 }] })
    for (let n = 0; n < 5; n += 1) await purchase(await checkOut('quiet', `u${n}`, [{ id: 'a' }]))
    await call('POST', `${wallet}/credits`, { body: { amount: 1 }, key: 'end' })
    await wallets.until((events) => events.some(({ data }) => data.entry?.key === 'end'))
    await named.until((events) => events.length === 5)
    expect(namesOf(wallets.events).filter((name) => name !== 'entry.appended')).toEqual([])
    expect(wallets.events.every(({ data }) => data.wallet !== null && data.sale === undefined)).toBe(true)
    await one.until(() => one.heartbeats >= 2)
    expect(one.events).toEqual([])
    await Promise.all([wallets.cut(), named.cut(), one.cut()])
  })

  it('are all told to one who comes back, though meanwhile only wallets were followed', async () => {
    const wallet = await openWallet(call)
    const wallets = await EventReader.open(api.url, key)
    await open('late', { items: [{ id: 'a', quantity: 500 }] })
    const path = '/v1/sales/late/events?events=sale.purchased'
    const codes: string[] = []
    const told: string[] = []
    let lastEventId: string | undefined
    for (let round = 0; round < 4; round += 1) {
      const reader = await EventReader.open(api.url, key, { path, lastEventId })
      if (round > 0) await reader.until((events) => events.length === 1)
      codes.push(await checkOut('late', `with-${round}`, [{ id: 'a' }]))
      await purchase(codes.at(-1) as string)
      await reader.until((events) => events.length === (round > 0 ? 2 : 1))
      told.push(...reader.events.map(({ data }) => data.checkout))
      lastEventId = reader.lastEventId
      await reader.cut()
      codes.push(await checkOut('late', `without-${round}`, [{ id: 'a' }]))
      await purchase(codes.at(-1) as string)
      // What was read for those who follow wallets, and is kept in memory, has nothing of the sale.
      await call('POST', `${wallet}/credits`, { body: { amount: 1 }, key: `c${round}` })
      await wallets.until((events) => events.some(({ data }) => data.entry?.key === `c${round}`))
    }
    expect(told).toEqual(codes.slice(0, -1).map(digest))
    await wallets.cut()
  })

  it('of a sale in buckets are told once: that it is closed, and nothing of being sold out', async () => {
    const reader = await EventReader.open(api.url, key, {
      path: '/v1/events?events=sale.opened,sale.sold_out,sale.closed',
    })
    await open('spread', { items: [{ id: 'a', quantity: 4 }], buckets: 4 })
    const users = Array.from({ length: 40 }, (_, n) => `u${n}`)
    for (const user of users) {
      keys += 1
      const order = { body: { user, items: [{ id: 'a' }] }, key: `k${keys}` }
      await call('POST', '/v1/sales/spread/checkouts', order)
    }
    await call('POST', '/v1/sales/spread/close')
    await call('POST', '/v1/sales/spread/close')
    await open('after', { items: [{ id: 'a' }] })
    await reader.until((events) => events.some(({ data }) => data.sale === 'after'))
    expect(reader.events.filter(({ data }) => data.sale === 'spread').map(({ event }) => event)).toEqual([
      'sale.opened',
      'sale.closed',
    ])
    await reader.cut()
  })

  it('leave out nothing that audits find: in a sale, and about no wallet at all', async () => {
    await open('audited', { items: [{ id: 'a' }] })
    const code = await checkOut('audited', 'ann', [{ id: 'a' }])
    const reader = await EventReader.open(api.url, key, { path: '/v1/events?events=audit.finding' })
    const ref = Buffer.from(code.slice(1), 'base64url').toString('hex').slice(0, 32)
    const facts = { shard: 1, seq: 1, expected: 1, found: 2 }
    const finding = { ...facts, tenant: 'default', cause: 'journal_gap', action: 'reported' } as const
    api.backend.events.noteFindings([
      { ...finding, ref },
      { ...finding, ref: '' },
    ])
    await reader.until((events) => events.length === 2)
    expect(reader.events.map(({ data: { wallet, sale, finding } }) => ({ wallet, sale, ref: finding.ref }))).toEqual([
      { wallet: null, sale: 'audited', ref },
      { wallet: null, sale: undefined, ref: '' },
    ])
    await reader.cut()
  })

  it('come by webhook too, in order, to one who named them', async () => {
    const receiver = await Receiver.start()
    const body = { url: receiver.url, events: ['sale.checkout', 'sale.purchased'] }
    expect((await call('POST', '/v1/webhooks', { body })).status).toBe(200)
    await open('hooked', { items: [{ id: 'a', quantity: 9 }] })
    const codes: string[] = []
    for (const user of ['ann', 'bob', 'eve']) {
      const code = await checkOut('hooked', user, [{ id: 'a' }])
      codes.push(code)
      await purchase(code)
    }
    const told = () => receiver.taken.filter(({ body }) => body.sale === 'hooked')
    await receiver.until(() => told().length === 6)
    expect(told().map(({ body }) => [body.event, body.checkout])).toEqual(
      codes.flatMap((code) => [
        ['sale.checkout', digest(code)],
        ['sale.purchased', digest(code)],
      ]),
    )
  })
})
