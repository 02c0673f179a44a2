import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { SCOPES } from '../../src/access/index.js'
import { Api, type Caller } from '../support/api.js'

const TERMS = { perUser: 10, startsAt: 0, endsAt: Date.now() + 3_600_000 }

let api: Api
let key: string
let call: Caller
beforeAll(async () => {
  api = await Api.start()
  key = await api.key()
  call = api.as(key)
})

const open = (sale: string, items: object[], by = call) => by('PUT', `/v1/sales/${sale}`, { body: { ...TERMS, items } })
const checkOut = (sale: string, user: string, item: string, key: string, by = call) =>
  by('POST', `/v1/sales/${sale}/checkouts`, { body: { user, items: [{ id: item }] }, key })

describe('attempts over HTTP', () => {
  it('are all there, in the order of their time, a page at a time; of all users or of one', async () => {
    await open('tried', [{ id: 'a' }, { id: 'b', quantity: 9 }])
    const { code } = (await checkOut('tried', 'ann', 'a', 'k1')).body
    await checkOut('tried', 'ann', 'a', 'k1')
    await checkOut('tried', 'bob', 'a', 'k2')
    await checkOut('tried', 'bob', 'none', 'k3')
    await call('POST', `/v1/checkouts/${code}/purchase`)
    await call('DELETE', `/v1/checkouts/${code}`)
    const { status, body } = await call('GET', '/v1/sales/tried/attempts')
    const items = [{ id: 'a', quantity: 1 }]
    const checkout = createHash('sha256').update(code).digest('hex').slice(0, 32)
    expect([status, body.next]).toEqual([200, null])
    expect(body.data).toMatchObject([
      { kind: 'checkout', outcome: 'accepted', items, checkout },
      { kind: 'checkout', outcome: 'replayed', items, checkout },
      { kind: 'checkout', outcome: 'refused', code: 'sold_out', items },
      { kind: 'purchase', outcome: 'accepted', checkout },
      { kind: 'cancel', outcome: 'refused', code: 'checkout_closed', checkout },
    ])
    expect(JSON.stringify(body)).not.toContain(code)

    const paged: unknown[] = []
    for (let after = ''; ; ) {
      const page = await call('GET', `/v1/sales/tried/attempts?limit=2${after && `&after=${after}`}`)
      paged.push(...page.body.data)
      if (page.body.next === null) break
      after = page.body.next
    }
    expect(paged).toEqual(body.data)
    const ofBob = (await call('GET', '/v1/sales/tried/attempts?user=bob')).body.data
    expect(ofBob).toEqual([body.data[2]])
    const ofAnn = (await call('GET', '/v1/sales/tried/attempts?user=ann')).body.data
    expect(ofAnn).toEqual(body.data.filter((one: unknown) => one !== body.data[2]))
    expect((await call('GET', '/v1/sales/tried/attempts?user=eve')).body).toEqual({ data: [], next: null })
  })

  it('at one server are read at another', async () => {
    await open('elsewhere', [{ id: 'a' }])
    const other = await Api.start({ databaseUrl: api.databaseUrl, redisUrl: api.redisUrl })
    await checkOut('elsewhere', 'ann', 'a', 'k', other.as(key))
    const read = async () => (await call('GET', '/v1/sales/elsewhere/attempts')).body.data.length
    await expect.poll(read, { timeout: 20_000 }).toBe(1)
  })

  it('are for who may look on, in its own tenant', async () => {
    await open('private', [{ id: 'a' }])
    await checkOut('private', 'ann', 'a', 'k')
    const path = '/v1/sales/private/attempts'
    expect((await api.as(await api.key(['read']))('GET', path)).body.data).toHaveLength(1)
    const { token } = (await call('POST', '/v1/wallets/w/tokens', { body: { scopes: ['read'] } })).body
    const narrow = await api.key(SCOPES, { walletPrefix: 'eu-' })
    for (const credential of [await api.key(['buy', 'sell', 'spend', 'admin']), token, narrow]) {
      expect(await api.as(credential)('GET', path)).toMatchObject({ status: 403, body: { code: 'forbidden' } })
    }
    const evil = api.as(await api.key(SCOPES, { tenant: 'evil' }))
    expect(await evil('GET', path)).toMatchObject({ status: 404, body: { code: 'sale_not_found' } })
    await open('private', [{ id: 'a' }], evil)
    expect((await evil('GET', path)).body.data).toEqual([])
  })

  it.each(['after=5', 'after=1-2-x', 'after=1-2-3-4', 'limit=0', 'limit=1001', 'user='])(
    'are not asked for by %s',
    async (query) => {
      const refused = await call('GET', `/v1/sales/tried/attempts?${query}`)
      const argument = `query.${query.split('=')[0]}`
      expect([refused.status, refused.body.code, refused.body.argument]).toEqual([400, 'invalid_argument', argument])
    },
  )

  it('are not recorded by a server that is told not to', async () => {
    const quiet = await Api.start({
      databaseUrl: api.databaseUrl,
      redisUrl: api.redisUrl,
      sales: { saleAttemptsKeepMs: 0 },
    })
    await open('quiet', [{ id: 'a' }, { id: 'b' }])
    await checkOut('quiet', 'ann', 'a', 'k1', quiet.as(key))
    await checkOut('quiet', 'bob', 'b', 'k2')
    await quiet.close()
    const { data } = (await call('GET', '/v1/sales/quiet/attempts')).body
    expect(data).toMatchObject([{ items: [{ id: 'b' }] }])
  })
})

describe('what is sold for good', () => {
  const toldOf = async (by: Api): Promise<number> => {
    const { body } = await by.as(null)('GET', '/metrics')
    return Number(/holdfast_sale_early_rejects_total\{outcome="told"\} (\d+)/.exec(body)?.[1] ?? 0)
  }
  const servers = { databaseUrl: '', redisUrl: '' }
  beforeAll(() => Object.assign(servers, { databaseUrl: api.databaseUrl, redisUrl: api.redisUrl }))

  it.each(['bitmap', 'bloom'] as const)('is refused early by a %s, as it is told to', async (by) => {
    const sales = { saleEarlyReject: by, saleEarlyRejectMs: 20, saleBloomItems: 10 }
    const early = await Api.start({ ...servers, sales })
    const hot = early.as(key)
    await open(`hot-${by}`, [{ id: 'a' }, { id: 'b' }])
    const { code } = (await checkOut(`hot-${by}`, 'ann', 'a', 'k', hot)).body
    await hot('POST', `/v1/checkouts/${code}/purchase`)
    let n = 0
    const refused = async () => {
      n += 1
      const { body } = await checkOut(`hot-${by}`, 'bob', 'a', `k${n}`, hot)
      expect(body).toMatchObject({ code: 'sold_out', item: 'a', left: 0 })
      return toldOf(early)
    }
    await expect.poll(refused, { timeout: 20_000 }).toBeGreaterThan(2)
    // Who had an answer gets it again, and what is not sold can be had.
    expect((await checkOut(`hot-${by}`, 'ann', 'a', 'k', hot)).body).toMatchObject({ code, replayed: true })
    expect((await checkOut(`hot-${by}`, 'bob', 'b', 'kb', hot)).status).toBe(200)
  })

  it('is told before anything else, also before a key that was used for something else since the last look', async () => {
    // One look, and no other while this lasts.
    const early = await Api.start({ ...servers, sales: { saleEarlyRejectMs: 3_600_000 } })
    const hot = early.as(key)
    await open('before', [{ id: 'a' }, { id: 'b', quantity: 9 }])
    const { code } = (await checkOut('before', 'ann', 'a', 'k', hot)).body
    await hot('POST', `/v1/checkouts/${code}/purchase`)
    let n = 0
    const refused = async () => {
      n += 1
      await checkOut('before', 'bob', 'a', `k${n}`, hot)
      return toldOf(early)
    }
    await expect.poll(refused, { timeout: 20_000 }).toBeGreaterThan(0)
    const later = (await checkOut('before', 'bob', 'b', 'later', hot)).body
    expect((await checkOut('before', 'bob', 'a', 'later', hot)).body.code).toBe('sold_out')
    expect((await checkOut('before', 'bob', 'a', 'later')).body.code).toBe('idempotency_conflict')
    // The same again has its answer, whatever was read.
    expect((await checkOut('before', 'bob', 'b', 'later', hot)).body).toEqual({ ...later, replayed: true })
  })

  it('is refused by the engine alone where that is wanted', async () => {
    const late = await Api.start({ ...servers, sales: { saleEarlyReject: 'off', saleEarlyRejectMs: 20 } })
    const hot = late.as(key)
    await open('late', [{ id: 'a' }])
    const { code } = (await checkOut('late', 'ann', 'a', 'k', hot)).body
    await hot('POST', `/v1/checkouts/${code}/purchase`)
    for (let n = 0; n < 30; n += 1) {
      expect((await checkOut('late', 'bob', 'a', `k${n}`, hot)).body.code).toBe('sold_out')
    }
    expect(await toldOf(late)).toBe(0)
  })
})
