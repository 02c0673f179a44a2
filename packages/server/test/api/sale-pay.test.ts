import { once } from 'node:events'
import { connect } from 'node:net'
import { beforeAll, describe, expect, it } from 'vitest'
import { SCOPES } from '../../src/access/index.js'
import { Api, type Caller, openWallet } from '../support/api.js'

let api: Api
let other: Api
let key: string
let call: Caller
beforeAll(async () => {
  api = await Api.start()
  key = await api.key()
  call = api.as(key)
  other = await Api.start({ databaseUrl: api.databaseUrl, redisUrl: api.redisUrl })
})

let sales = 0

/** A checkout of two posters and a guitar, in a sale of its own. */
async function checkOut(by = call, terms: object = {}): Promise<{ path: string; sale: string }> {
  sales += 1
  const sale = `paid-${sales}`
  const items = [{ id: 'poster', quantity: 5 }, { id: 'guitar' }]
  const times = { startsAt: 0, endsAt: Date.now() + 3_600_000 }
  await by('PUT', `/v1/sales/${sale}`, { body: { items, perUser: 5, ...times, ...terms } })
  const body = { user: 'ann', items: [{ id: 'poster', quantity: 2 }, { id: 'guitar' }] }
  const { body: checkout } = await by('POST', `/v1/sales/${sale}/checkouts`, { body, key: 'k' })
  return { path: `/v1/checkouts/${checkout.code}`, sale }
}

const PRICE = { poster: 100, guitar: 500 }
const idOf = (path: string): string => path.split('/').at(-1) as string
const balanceOf = async (wallet: string) => {
  const { available, reserved } = (await call('GET', wallet)).body
  return [available, reserved]
}

describe('a purchase that is paid out of a wallet', () => {
  it('has a price for whatever an item is called', async () => {
    const wallet = await openWallet(call)
    const items = [{ id: '__proto__' }, { id: 'constructor' }]
    await call('PUT', '/v1/sales/names', { body: { items, perUser: 2, startsAt: 0, endsAt: Date.now() + 3_600_000 } })
    const { code } = (await call('POST', '/v1/sales/names/checkouts', { body: { user: 'ann', items }, key: 'k' })).body
    const buy = (price: string) =>
      fetch(`${api.url}/v1/checkouts/${code}/purchase`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: `{"pay":{"wallet":"${idOf(wallet)}","price":${price}}}`,
      }).then((answer) => answer.json())
    const wrong = { code: 'invalid_amount', argument: expect.stringContaining('body.pay.price') }
    expect(await buy('{"__proto__":"x","constructor":20}')).toMatchObject(wrong)
    expect(await buy('{"__proto__":{"constructor":1}}')).toMatchObject(wrong)
    expect(await buy('{"__proto__":300,"constructor":20}')).toMatchObject({ paid: { amount: 320 }, replayed: false })
    expect(await balanceOf(wallet)).toEqual([680, 0])
  })

  it('moves stock and money together, tells out of which hold, and is the same again', async () => {
    const wallet = await openWallet(call)
    const { path, sale } = await checkOut()
    const pay = { wallet: idOf(wallet), price: PRICE, counter: 'shop', metadata: { order: 7 } }
    const bought = await call('POST', `${path}/purchase`, { body: { pay } })
    const paid = { wallet: idOf(wallet), hold: expect.any(String), amount: 700 }
    expect(bought).toMatchObject({ status: 200, body: { replayed: false, paid } })
    expect(await balanceOf(wallet)).toEqual([300, 0])
    expect((await call('GET', `/v1/sales/${sale}`)).body).toMatchObject({ sold: 3, stock: 3, soldOut: false })
    const { data } = (await call('GET', `${wallet}/entries`)).body
    expect(data.at(-1)).toMatchObject({ kind: 'settle', amount: 700, counter: 'shop', metadata: { order: 7 } })
    const { body: story } = await call('GET', `${wallet}/holds/${bought.body.paid.hold}/explain`)
    expect(story.text).toContain('charged 700 minor units of usd')

    // Whoever asks again, of whichever server, with whatever wallet or price: bought once, and paid for once.
    const rich = await openWallet(call)
    for (const body of [{ pay }, {}, { pay: { wallet: idOf(rich), price: 1 } }]) {
      const again = await other.as(key)('POST', `${path}/purchase`, { body })
      expect(again.body).toEqual({ ...bought.body, replayed: true })
    }
    expect([await balanceOf(wallet), await balanceOf(rich)]).toEqual([
      [300, 0],
      [1_000, 0],
    ])
  })

  it('that is free, or has one price for all, is charged as told; one that nobody pays for says so', async () => {
    const wallet = await openWallet(call)
    const once = await checkOut()
    const pay = { wallet: idOf(wallet), price: 10 }
    // What is preferred does not matter here: money is committed before it is acknowledged.
    const headers = { prefer: 'durability=memory' }
    expect((await call('POST', `${once.path}/purchase`, { body: { pay }, headers })).body.paid.amount).toBe(30)
    const free = await checkOut()
    const given = await call('POST', `${free.path}/purchase`, {
      body: { pay: { ...pay, price: { poster: 0, guitar: 0 } } },
    })
    expect(given).toMatchObject({ status: 200, body: { paid: { amount: 0 } } })
    const unpaid = await checkOut()
    expect((await call('POST', `${unpaid.path}/purchase`)).body.paid).toBeNull()
    expect(await balanceOf(wallet)).toEqual([970, 0])
  })

  it('refused by the wallet leaves the checkout, refused by the sale leaves the wallet', async () => {
    const poor = await openWallet(call, 699)
    const { path, sale } = await checkOut()
    const pay = { wallet: idOf(poor), price: PRICE }
    expect(await call('POST', `${path}/purchase`, { body: { pay } })).toMatchObject({
      status: 409,
      body: { code: 'insufficient_funds', available: 699, side: 'wallet', retryable: false },
    })
    expect(await call('POST', `${path}/purchase`, { body: { pay: { ...pay, wallet: 'nobody' } } })).toMatchObject({
      status: 404,
      body: { code: 'wallet_not_found', side: 'wallet' },
    })
    await call('POST', `${poor}/freeze`, { key: 'f' })
    expect((await call('POST', `${path}/purchase`, { body: { pay } })).body.code).toBe('wallet_frozen')
    expect((await call('GET', `/v1/sales/${sale}`)).body).toMatchObject({ reserved: 3, sold: 0 })
    expect((await call('GET', path)).body.status).toBe('open')

    const wallet = await openWallet(call)
    await call('DELETE', path)
    const refused = await call('POST', `${path}/purchase`, { body: { pay: { ...pay, wallet: idOf(wallet) } } })
    expect(refused).toMatchObject({ status: 409, body: { code: 'checkout_closed' } })
    expect(await balanceOf(wallet)).toEqual([1_000, 0])
  })

  it('charges what was sold, where only some is left', async () => {
    const wallet = await openWallet(call)
    const noted = await checkOut(call, { reserve: 'purchase' })
    const body = { user: 'bob', items: [{ id: 'poster', quantity: 4 }] }
    const first = await call('POST', `/v1/sales/${noted.sale}/checkouts`, { body, key: 'b' })
    await call('POST', `/v1/checkouts/${first.body.code}/purchase`)
    const pay = { wallet: idOf(wallet), price: PRICE }
    const refused = await call('POST', `${noted.path}/purchase`, { body: { pay } })
    expect(refused).toMatchObject({ status: 409, body: { code: 'sold_out', item: 'poster', left: 1 } })
    const bought = await call('POST', `${noted.path}/purchase`, { body: { pay, take: 'left' } })
    expect(bought.body).toMatchObject({
      items: [{ id: 'guitar', quantity: 1 }],
      paid: { amount: 500 },
      replayed: false,
    })
    expect(await balanceOf(wallet)).toEqual([500, 0])
  })

  it('whose answer was lost is charged once: who asks again gets it', async () => {
    const wallet = await openWallet(call)
    const { path } = await checkOut()
    const payload = JSON.stringify({ pay: { wallet: idOf(wallet), price: PRICE } })
    const { hostname, port } = new URL(api.url)
    const socket = connect(Number(port), hostname)
    await once(socket, 'connect')
    socket.write(
      `POST ${path}/purchase HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n` +
        `content-type: application/json\r\ncontent-length: ${payload.length}\r\n\r\n${payload}`,
    )
    // Done, and nobody has read what came of it.
    await expect.poll(async () => (await call('GET', path)).body.status, { timeout: 20_000 }).toBe('purchased')
    socket.destroy()
    const again = await other.as(key)('POST', `${path}/purchase`, { body: JSON.parse(payload) })
    expect(again).toMatchObject({ status: 200, body: { replayed: true, paid: { amount: 700 } } })
    await expect.poll(() => balanceOf(wallet), { timeout: 20_000 }).toEqual([300, 0])
  })

  it('asked for by a crowd at two servers, out of several wallets, is paid for once', async () => {
    const wallets = await Promise.all(Array.from({ length: 4 }, () => openWallet(call)))
    const { path } = await checkOut()
    const elsewhere = other.as(key)
    const answers = await Promise.all(
      Array.from({ length: 16 }, (_, n) => {
        const pay = { wallet: idOf(wallets[n % 4] as string), price: PRICE }
        return (n % 2 ? call : elsewhere)('POST', `${path}/purchase`, { body: { pay } })
      }),
    )
    expect(new Set(answers.map(({ status, body }) => `${status} ${body.paid?.hold}`)).size).toBe(1)
    expect(answers.filter(({ body }) => !body.replayed).length).toBe(1)
    await expect
      .poll(async () => (await Promise.all(wallets.map(balanceOf))).toSorted(), { timeout: 20_000 })
      .toEqual([
        [1_000, 0],
        [1_000, 0],
        [1_000, 0],
        [300, 0],
      ])
  })
})

describe('who pays', () => {
  it('needs a key that may spend as well as buy, and nothing happens without', async () => {
    const wallet = await openWallet(call)
    const { path } = await checkOut()
    const pay = { wallet: idOf(wallet), price: PRICE }
    for (const [scopes, missing] of [
      [['buy', 'read', 'fund', 'sell', 'admin'], 'spend'],
      [['spend', 'read'], 'buy'],
    ] as const) {
      const refused = await api.as(await api.key(scopes))('POST', `${path}/purchase`, { body: { pay } })
      expect(refused).toMatchObject({ status: 403, body: { code: 'forbidden', scope: missing } })
    }
    const narrow = await api.key(SCOPES, { walletPrefix: 'w-' })
    const { body: token } = await call('POST', `${wallet}/tokens`, { body: { scopes: ['read', 'spend'] } })
    for (const credential of [narrow, token.token]) {
      expect((await api.as(credential)('POST', `${path}/purchase`, { body: { pay } })).status).toBe(403)
    }
    expect((await call('GET', path)).body.status).toBe('open')
    expect(await balanceOf(wallet)).toEqual([1_000, 0])
    const enough = api.as(await api.key(['buy', 'spend']))
    expect((await enough('POST', `${path}/purchase`, { body: { pay } })).status).toBe(200)
  })

  it('pays out of no wallet of another tenant', async () => {
    const wallet = await openWallet(call)
    const evil = api.as(await api.key(SCOPES, { tenant: 'evil' }))
    const { path } = await checkOut(evil)
    const refused = await evil('POST', `${path}/purchase`, { body: { pay: { wallet: idOf(wallet), price: PRICE } } })
    expect(refused).toMatchObject({ status: 404, body: { code: 'wallet_not_found' } })
    expect(await balanceOf(wallet)).toEqual([1_000, 0])
  })

  it.each([
    [{ wallet: 'w' }, 'body.pay.price', 'invalid_argument'],
    [{ price: 1 }, 'body.pay.wallet', 'invalid_argument'],
    [{ wallet: 'w', price: -1 }, 'body.pay.price', 'invalid_amount'],
    [{ wallet: 'w', price: 1.5 }, 'body.pay.price', 'invalid_amount'],
    [{ wallet: 'w', price: '1' }, 'body.pay.price', 'invalid_amount'],
    [{ wallet: 'w', price: { poster: -1 } }, 'body.pay.price.poster', 'invalid_amount'],
    [{ wallet: 'w', price: [1] }, 'body.pay.price', 'invalid_amount'],
    [{ wallet: 'w', price: 1, amount: 5 }, 'body.pay.amount', 'invalid_argument'],
    [{ wallet: '', price: 1 }, 'body.pay.wallet', 'invalid_argument'],
    [{ wallet: 'w', price: { poster: 1 } }, 'pay.price', 'invalid_argument'],
    [{ wallet: 'w', price: Number.MAX_SAFE_INTEGER }, 'pay.price', 'invalid_amount'],
  ])('is told what is wrong with %j', async (pay, argument, code) => {
    const { path } = await checkOut()
    const answer = await call('POST', `${path}/purchase`, { body: { pay } })
    expect([answer.status, answer.body.code, answer.body.argument]).toEqual([400, code, argument])
    expect((await call('GET', path)).body.status).toBe('open')
  })
})
