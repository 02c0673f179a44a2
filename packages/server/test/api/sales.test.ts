import { beforeAll, describe, expect, it } from 'vitest'
import { SCOPES } from '../../src/access/index.js'
import { Api, type Caller } from '../support/api.js'

const HOUR = 3_600_000
const TERMS = { perUser: 10, startsAt: Date.now() - 1_000, endsAt: Date.now() + HOUR }

let api: Api
let call: Caller
beforeAll(async () => {
  api = await Api.start()
  call = api.as(await api.key())
})

let keys = 0
const checkOut = (sale: string, user: string, items: object[], by = call) => {
  keys += 1
  return by('POST', `/v1/sales/${sale}/checkouts`, { body: { user, items }, key: `k${keys}` })
}
const open = (sale: string, terms: object, by = call) =>
  by('PUT', `/v1/sales/${sale}`, { body: { ...TERMS, ...terms } })

describe('a sale over HTTP', () => {
  it('is opened, checked out of, bought, and looked at', async () => {
    const items = [{ id: 'poster', quantity: 500 }, { id: 'guitar' }]
    const opened = await open('friday', { items, checkoutTtl: 60_000 })
    expect(opened).toMatchObject({
      status: 200,
      body: { id: 'friday', stock: 501, reserved: 0, sold: 0, items: 2, limit: 501, open: true, checkoutTtlMs: 60_000 },
    })
    expect((await open('friday', { items, checkoutTtl: 60_000 })).body).toEqual(opened.body)
    expect(await open('friday', { items, perUser: 9 })).toMatchObject({ status: 409, body: { code: 'sale_exists' } })

    const order = { body: { user: 'ann', items: [{ id: 'guitar' }] }, key: 'ann-1' }
    const first = await call('POST', '/v1/sales/friday/checkouts', order)
    expect(first).toMatchObject({ status: 200, body: { items: [{ id: 'guitar', quantity: 1 }], replayed: false } })
    const again = await call('POST', '/v1/sales/friday/checkouts', order)
    expect(again.body).toEqual({ ...first.body, replayed: true })
    const more = await checkOut('friday', 'ann', [{ id: 'poster', quantity: 2 }])
    expect(more.body.code).toBe(first.body.code)
    expect(await call('GET', '/v1/sales/friday/checkouts?user=ann')).toMatchObject({
      status: 200,
      body: { code: first.body.code, items: more.body.items },
    })
    const path = `/v1/checkouts/${first.body.code}`
    expect((await call('GET', path)).body).toMatchObject({ sale: 'friday', status: 'open', items: more.body.items })
    expect((await call('GET', '/v1/sales/friday')).body).toMatchObject({ stock: 498, reserved: 3, sold: 0 })

    expect(await checkOut('friday', 'bob', [{ id: 'guitar' }])).toMatchObject({
      status: 409,
      body: { code: 'sold_out', item: 'guitar', left: 0 },
    })
    expect((await checkOut('friday', 'ann', [{ id: 'guitar' }])).body.code).toBe('duplicate_item')
    expect((await checkOut('friday', 'ann', [{ id: 'poster', quantity: 11 }])).body).toMatchObject({
      code: 'duplicate_item',
    })
    expect((await checkOut('friday', 'eve', [{ id: 'poster', quantity: 11 }])).body).toMatchObject({
      code: 'user_limit',
      left: 10,
    })

    const bought = await call('POST', `${path}/purchase`)
    expect(bought).toMatchObject({ status: 200, body: { items: more.body.items, replayed: false } })
    const repeated = await call('POST', `${path}/purchase`, { body: { take: 'left' } })
    expect(repeated.body).toEqual({ ...bought.body, replayed: true })
    expect((await call('GET', path)).body).toMatchObject({
      status: 'purchased',
      items: more.body.items,
      closedAt: bought.body.at,
    })
    expect(await call('DELETE', path)).toMatchObject({ status: 409, body: { code: 'checkout_closed' } })
    expect((await call('GET', '/v1/sales/friday/checkouts?user=ann')).body.code).toBe('checkout_not_found')
    expect((await call('GET', '/v1/sales/friday')).body).toMatchObject({ stock: 498, reserved: 0, sold: 3 })
  })

  it('gives back what is cancelled, and closes', async () => {
    await open('back', { items: [{ id: 'a' }] })
    const { code } = (await checkOut('back', 'ann', [{ id: 'a' }])).body
    expect(await call('DELETE', `/v1/checkouts/${code}`)).toMatchObject({ status: 200, body: { replayed: false } })
    expect((await call('DELETE', `/v1/checkouts/${code}`)).body).toEqual({ replayed: true })
    expect((await call('GET', `/v1/checkouts/${code}`)).body).toMatchObject({ status: 'cancelled', items: [] })
    const second = await checkOut('back', 'bob', [{ id: 'a' }])
    expect((await call('POST', '/v1/sales/back/close')).body).toMatchObject({ open: false, reserved: 1 })
    expect((await call('POST', '/v1/sales/back/close')).status).toBe(200)
    expect((await checkOut('back', 'eve', [{ id: 'a' }])).body.code).toBe('sale_not_active')
    expect((await call('POST', `/v1/checkouts/${second.body.code}/purchase`)).status).toBe(200)
  })

  it('lists sales and items a page at a time, with what is left of each item', async () => {
    const items = Array.from({ length: 5 }, (_, n) => ({ id: `i${n}`, quantity: 4 }))
    await open('list-a', { items, buckets: 2 })
    await open('list-b', { items: [{ id: 'x' }] })
    const bought = await checkOut('list-a', 'ann', [{ id: 'i1', quantity: 2 }])
    await call('POST', `/v1/checkouts/${bought.body.code}/purchase`)
    await checkOut('list-a', 'bob', [{ id: 'i1' }, { id: 'i3' }])
    const first = (await call('GET', '/v1/sales/list-a/items?limit=3')).body
    expect(first.data).toEqual([
      { number: 1, id: 'i0', quantity: 4, left: 4 },
      { number: 2, id: 'i1', quantity: 4, left: 1 },
      { number: 3, id: 'i2', quantity: 4, left: 4 },
    ])
    const rest = (await call('GET', `/v1/sales/list-a/items?limit=3&after=${first.next}`)).body
    expect(rest).toMatchObject({ data: [{ id: 'i3', left: 3 }, { id: 'i4' }], next: null })
    expect((await call('GET', '/v1/sales/list-a/items?after=9007199254740990')).body.data).toEqual([])
    const page = (await call('GET', '/v1/sales?after=list-&limit=1')).body
    expect(page).toMatchObject({ data: [{ id: 'list-a', stock: 16, reserved: 2, sold: 2 }], next: 'list-a' })
    const all = (await call('GET', '/v1/sales?after=list-a')).body
    expect(all.data.map(({ id }: { id: string }) => id)).toEqual(['list-b'])
    for (const path of ['', '/items', '/events']) {
      expect(await call('GET', `/v1/sales/none${path}`)).toMatchObject({
        status: 404,
        body: { code: 'sale_not_found' },
      })
    }
  })

  it('takes a list of items that is larger than other bodies may be, from who may sell', async () => {
    const items = Array.from({ length: 20_000 }, (_, n) => ({ id: `item-${String(n).padStart(10, '0')}` }))
    expect(await open('large', { items })).toMatchObject({ status: 200, body: { stock: 20_000 } })
    const buyer = api.as(await api.key(['buy', 'read']))
    expect((await open('large', { items }, buyer)).status).toBe(403)
    expect((await checkOut('large', 'x'.repeat(300_000), [{ id: 'a' }])).body.code).toBe('too_large')
  })

  it.each([
    [{ items: [] }, 'body.items'],
    [{ items: [{ id: 'a', quantity: 0 }] }, 'body.items.0.quantity'],
    [{ items: [{ id: 'a', price: 5 }] }, 'body.items.0.price'],
    [{ items: [{ id: 'a' }], perUser: '2' }, 'body.perUser'],
    [{ items: [{ id: 'a' }], buckets: 65 }, 'body.buckets'],
    [{ items: [{ id: 'a' }, { id: 'a' }] }, 'items'],
    [{ items: [{ id: 'a' }], endsAt: 5 }, 'endsAt'],
  ])('refuses terms that make no sense: %j', async (terms, argument) => {
    const answer = await open('wrong', terms)
    expect([answer.status, answer.body.code, answer.body.argument]).toEqual([400, 'invalid_argument', argument])
    expect((await call('GET', '/v1/sales/wrong')).status).toBe(404)
  })
})

describe('who may', () => {
  it('sell, buy and look on are three; a key for some wallets or a token none of them', async () => {
    await open('roles', { items: [{ id: 'a', quantity: 9 }] })
    const token = (await call('POST', '/v1/wallets/w/tokens', { body: { scopes: ['read', 'spend'] } })).body.token
    const narrow = await api.key(SCOPES, { walletPrefix: 'eu-' })
    for (const credential of [token, narrow]) {
      const by = api.as(credential)
      expect((await by('GET', '/v1/sales/roles')).status).toBe(403)
      expect((await by('GET', '/v1/sales')).status).toBe(403)
      expect((await by('GET', '/v1/sales/roles/events')).status).toBe(403)
      expect((await checkOut('roles', 'ann', [{ id: 'a' }], by)).status).toBe(403)
      expect((await open('roles-2', { items: [{ id: 'a' }] }, by)).status).toBe(403)
    }
  })

  it('a code is worth nothing to another tenant, and not told from one that is none', async () => {
    await open('mine', { items: [{ id: 'a' }] })
    const { code } = (await checkOut('mine', 'ann', [{ id: 'a' }])).body
    const evil = api.as(await api.key(SCOPES, { tenant: 'evil' }))
    await open('mine', { items: [{ id: 'a' }] }, evil)
    const made = code.replace(/.$/, (last: string) => (last === 'A' ? 'Q' : 'A'))
    for (const [by, tried] of [
      [evil, code],
      [call, made],
      [call, 'none'],
    ] as const) {
      for (const [method, path] of [
        ['GET', `/v1/checkouts/${tried}`],
        ['POST', `/v1/checkouts/${tried}/purchase`],
        ['DELETE', `/v1/checkouts/${tried}`],
      ] as const) {
        const answer = await by(method, path)
        expect([answer.status, answer.body.code]).toEqual([404, 'checkout_not_found'])
      }
    }
    expect((await evil('GET', '/v1/sales?after=&limit=10')).body.data).toMatchObject([{ id: 'mine', stock: 1 }])
    expect((await call('GET', `/v1/checkouts/${code}`)).body.status).toBe('open')
  })

  it('reads no code, no user and no sale in logs or metrics', async () => {
    await open('quiet-sale', { items: [{ id: 'a' }] })
    const { code } = (await checkOut('quiet-sale', 'quiet-user', [{ id: 'a' }])).body
    await call('GET', '/v1/sales/quiet-sale/checkouts?user=quiet-user')
    await call('POST', `/v1/checkouts/${code}/purchase`)
    await call('DELETE', `/v1/checkouts/${code}`)
    await checkOut('quiet-sale', 'other', [{ id: 'a' }])
    const { body: metrics } = await call('GET', '/metrics')
    for (const hidden of [code, 'quiet-user', 'quiet-sale']) {
      expect([hidden, api.lines.some((line) => line.includes(hidden)), metrics.includes(hidden)]).toEqual([
        hidden,
        false,
        false,
      ])
    }
    expect(metrics).toMatch(/holdfast_sale_results_total\{operation="checkout",result="sold_out"\} \d/)
    expect(metrics).toMatch(/holdfast_sale_results_total\{operation="purchase",result="done"\} \d/)
    expect(metrics).toMatch(/holdfast_sale_results_total\{operation="cancel",result="checkout_closed"\} \d/)
    expect(metrics).toMatch(/holdfast_sale_units_total\{operation="purchase"\} \d/)
    expect(metrics).toMatch(/holdfast_sale_duration_seconds_count\{operation="checkout"\} \d/)
  })
})
