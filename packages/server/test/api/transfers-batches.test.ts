import { beforeAll, describe, expect, it } from 'vitest'
import { Api, type Caller, openWallet } from '../support/api.js'

let api: Api
let call: Caller
beforeAll(async () => {
  api = await Api.start()
  call = api.as(await api.key())
})

const idOf = (path: string) => decodeURIComponent(path.split('/').at(-1) as string)

describe('a transfer', () => {
  it('moves money and a fee, once', async () => {
    const [a, b] = [await openWallet(call, 100), await openWallet(call, 0)]
    const body = { from: idOf(a), to: idOf(b), amount: 70, fee: 5, metadata: { why: 'gift' } }
    const first = await call('POST', '/v1/transfers', { body, key: 't' })
    expect(first).toMatchObject({
      status: 200,
      body: { amount: 70, fee: 5, replayed: false, from: { available: 25 }, to: { available: 70 } },
    })
    const again = await call('POST', '/v1/transfers', { body, key: 't' })
    expect(again.body).toMatchObject({ replayed: true, from: { available: 25 }, to: { available: 70 } })
    expect((await call('POST', '/v1/transfers', { body: { ...body, amount: 71 }, key: 't' })).status).toBe(422)
    expect((await call('GET', b)).body.available).toBe(70)
  })

  it('is refused clearly', async () => {
    const a = await openWallet(call, 100)
    const from = idOf(a)
    const attempt = async (body: object, key?: string) =>
      (await call('POST', '/v1/transfers', { body, ...(key && { key }) })).body.code
    expect(await attempt({ from, to: 'nobody', amount: 1 }, 'k1')).toBe('wallet_not_found')
    expect(await attempt({ from, to: from, amount: 1 }, 'k2')).toBe('invalid_argument')
    expect(await attempt({ from, to: 'x', amount: 0 }, 'k3')).toBe('invalid_amount')
    expect(await attempt({ from, to: 'x', amount: 1, fee: -1 }, 'k4')).toBe('invalid_amount')
    expect(await attempt({ from, to: 'x', amount: 1 })).toBe('key_required')
    const b = await openWallet(call, 0)
    expect(await attempt({ from, to: idOf(b), amount: 101 }, 'k5')).toBe('insufficient_funds')
  })
})

describe('a batch', () => {
  it('runs every operation by itself, and answers in their order', async () => {
    const [a, b] = [await openWallet(call, 100), await openWallet(call, 100)]
    await call('POST', `${b}/holds`, { body: { amount: 50, ttl: 60_000 }, key: 'h' })
    await call('POST', `${b}/sessions`, { body: { by: 'units', rate: 1, reserve: 10 }, key: 's' })
    const operations = [
      { operation: 'credit', wallet: idOf(a), key: 'c', amount: 5 },
      { operation: 'debit', wallet: idOf(b), key: 'd', amount: 1_000 },
      { operation: 'capture', wallet: idOf(b), hold: 'h', key: 'cap', amount: 20, metadata: [1] },
      { operation: 'tick', wallet: idOf(b), session: 's', total: 4 },
      { operation: 'debit', wallet: 'nobody', key: 'd', amount: 1 },
      { operation: 'hold', wallet: idOf(a), key: '~mine', amount: 1, ttl: 1 },
    ]
    const { status, body } = await call('POST', '/v1/batch', { body: { operations } })
    expect(status).toBe(200)
    expect(body.results).toMatchObject([
      { status: 200, body: { available: 105, replayed: false } },
      { status: 409, body: { code: 'insufficient_funds', requestId: expect.any(String) } },
      { status: 200, body: { hold: { left: 30 }, entry: { metadata: [1] } } },
      { status: 200, body: { charged: 4 } },
      { status: 404, body: { code: 'wallet_not_found' } },
      { status: 400, body: { code: 'invalid_argument' } },
    ])
    const again = await call('POST', '/v1/batch', { body: { operations: operations.slice(0, 1) } })
    expect(again.body.results).toMatchObject([{ status: 200, body: { available: 105, replayed: true } }])
  })

  it('answers as the operation by itself would have', async () => {
    const a = await openWallet(call, 100)
    const single = await call('POST', `${a}/holds`, { body: { amount: 10, ttl: 60_000 }, key: 'h' })
    const operations = [{ operation: 'hold', wallet: idOf(a), key: 'h', amount: 10, ttl: 60_000 }]
    const { results } = (await call('POST', '/v1/batch', { body: { operations } })).body
    expect(results[0].body).toEqual({ ...single.body, receipt: { ...single.body.receipt, replayed: true } })
  })

  it('that is not understood does nothing', async () => {
    const a = await openWallet(call, 100)
    const good = { operation: 'credit', wallet: idOf(a), key: 'c', amount: 5 }
    const cases: [unknown, string][] = [
      [{ operations: [] }, 'body.operations: expected not fewer than 1 items, got an array'],
      [{ operations: [good, { ...good, key: undefined }] }, 'body.operations.1.key: expected a value, got nothing'],
      [{ operations: [good, { ...good, amount: -1 }] }, 'body.operations.1.amount: expected >= 1, got -1'],
      [{ operations: [good, { ...good, ttl: 1 }] }, 'body.operations.1.ttl: expected no such member, got one'],
      [
        { operations: [good, { ...good, operation: 'steal' }] },
        'body.operations.1: expected an operation that there is',
      ],
      [{ operations: Array.from({ length: 101 }, () => good) }, 'body.operations: expected not more than 100 items'],
    ]
    for (const [body, detail] of cases) {
      const refused = await call('POST', '/v1/batch', { body })
      expect(refused.status).toBe(400)
      expect(refused.body.detail).toContain(detail)
    }
    expect((await call('GET', a)).body.available).toBe(100)
  })

  it('asks of the caller what each operation asks', async () => {
    const a = await openWallet(call, 100)
    const operations = [
      { operation: 'debit', wallet: idOf(a), key: 'd', amount: 1 },
      { operation: 'credit', wallet: idOf(a), key: 'c', amount: 1 },
      { operation: 'debit', wallet: 'other', key: 'd', amount: 1 },
    ]
    const spender = api.as(await api.key(['spend'], { walletPrefix: idOf(a) }))
    const { results } = (await spender('POST', '/v1/batch', { body: { operations } })).body
    expect(results.map(({ status }: { status: number }) => status)).toEqual([200, 403, 403])
  })
})
