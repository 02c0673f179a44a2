import { beforeAll, describe, expect, it } from 'vitest'
import { Api, type Caller, openWallet } from '../support/api.js'

let api: Api
let call: Caller
beforeAll(async () => {
  api = await Api.start()
  call = api.as(await api.key())
})

const RECEIPT = {
  entry: expect.objectContaining({ seq: expect.any(Number), hash: expect.stringMatching(/^[0-9a-f]{40}$/) }),
  available: expect.any(Number),
  reserved: expect.any(Number),
  replayed: false,
  durability: 'ledger',
}

describe('a wallet', () => {
  it('is opened by PUT: the same again changes nothing, other parameters are refused', async () => {
    const body = { currency: 'usd', creditLimit: 50, metadata: { plan: ['pro', null, 1.5] } }
    const first = await call('PUT', '/v1/wallets/opened', { body })
    expect(first).toMatchObject({
      status: 200,
      body: { id: 'opened', ...body, available: 0, status: 'active', seq: 0 },
    })
    expect((await call('PUT', '/v1/wallets/opened', { body })).body).toEqual(first.body)
    expect(await call('PUT', '/v1/wallets/opened', { body: { currency: 'eur' } })).toMatchObject({
      status: 409,
      body: { code: 'wallet_exists', currency: 'usd', creditLimit: 50, docs: '/errors/wallet_exists' },
    })
  })

  it('is read as it stands, and is not found where there is none', async () => {
    const path = await openWallet(call, 500)
    const { body } = await call('GET', path)
    expect(body).toMatchObject({ available: 500, reserved: 0, creditLimit: 0, status: 'active', seq: 1 })
    expect((await call('GET', `${path}?pending=true`)).body).toEqual(body)
    for (const below of ['', '/at?seq=0', '/entries', '/holds', '/holds/h', '/holds/h/explain', '/sessions/s']) {
      expect(await call('GET', `/v1/wallets/nobody${below}`)).toMatchObject({
        status: 404,
        body: { code: 'wallet_not_found' },
      })
    }
  })

  it('keeps metadata as it is, whatever its members are called', async () => {
    const metadata = JSON.parse(
      '{"__proto__":{"admin":true},"constructor":{"prototype":{"x":1}},"b":{"__proto__":null}}',
    )
    const path = await openWallet(call, 0)
    const opened = await call('PUT', `${path}-2`, { body: { currency: 'usd', metadata } })
    expect(opened.status).toBe(200)
    const batched = {
      operations: [{ operation: 'credit', wallet: path.split('/').at(-1), key: 'b', amount: 1, metadata }],
    }
    const { results } = (await call('POST', '/v1/batch', { body: batched })).body
    const credited = await call('POST', `${path}/credits`, { body: { amount: 1, metadata }, key: 'c' })
    const { data: entries } = (await call('GET', `${path}/entries`)).body
    const kept = [opened.body, results[0].body.entry, credited.body.entry, ...entries]
    for (const one of kept) expect(JSON.stringify(one.metadata)).toBe(JSON.stringify(metadata))
    // Beside the metadata they are members that nobody knows.
    const body = JSON.parse('{"amount":1,"__proto__":{"metadata":1}}')
    expect(await call('POST', `${path}/credits`, { body, key: 'd' })).toMatchObject({
      status: 400,
      body: { code: 'invalid_argument', argument: 'body.__proto__' },
    })
  })

  it.each(['user@example.com', 'a/b', '%', 'é 😀', 'x'.repeat(255), '😀'.repeat(255)])(
    'may have an id that a path has to encode: %s',
    async (id) => {
      const path = `/v1/wallets/${encodeURIComponent(id)}`
      expect(await call('PUT', path, { body: { currency: 'usd' } })).toMatchObject({ status: 200, body: { id } })
      expect((await call('GET', path)).body.id).toBe(id)
    },
  )

  it('is credited, debited and refunded, with receipts', async () => {
    const path = await openWallet(call, 0)
    const metadata = { order: 7 }
    const credit = await call('POST', `${path}/credits`, { body: { amount: 500, metadata, counter: 'card' }, key: 'c' })
    expect(credit).toMatchObject({ status: 200, body: { ...RECEIPT, available: 500 } })
    expect(credit.body.entry).toMatchObject({ kind: 'credit', key: 'c', amount: 500, counter: 'card', metadata })
    const debit = await call('POST', `${path}/debits`, { body: { amount: 200 }, key: 'd' })
    expect(debit).toMatchObject({ status: 200, body: { ...RECEIPT, available: 300 } })
    const { seq } = debit.body.entry
    const refund = await call('POST', `${path}/refunds`, { body: { seq, amount: 50 }, key: 'r' })
    expect(refund.body).toMatchObject({ ...RECEIPT, available: 350, entry: { kind: 'refund', of: seq } })
    expect(await call('POST', `${path}/refunds`, { body: { seq, amount: 151 }, key: 'r2' })).toMatchObject({
      status: 409,
      body: { code: 'refund_exceeded', left: 150 },
    })
    expect(await call('POST', `${path}/refunds`, { body: { seq: 99, amount: 1 }, key: 'r3' })).toMatchObject({
      status: 404,
      body: { code: 'entry_not_found' },
    })
    expect(await call('POST', `${path}/debits`, { body: { amount: 351 }, key: 'd2' })).toMatchObject({
      status: 409,
      body: { code: 'insufficient_funds', available: 350, retryable: false },
    })
  })

  it('is frozen, unfrozen, given credit and closed', async () => {
    const path = await openWallet(call, 10)
    expect((await call('POST', `${path}/freeze`, { key: 'f' })).body).toMatchObject(RECEIPT)
    expect((await call('POST', `${path}/debits`, { body: { amount: 1 }, key: 'd' })).body.code).toBe('wallet_frozen')
    expect((await call('POST', `${path}/unfreeze`, { key: 'u', body: { metadata: 'ok' } })).status).toBe(200)
    expect((await call('POST', `${path}/credit-limit`, { body: { amount: 5 }, key: 'l' })).status).toBe(200)
    expect((await call('POST', `${path}/debits`, { body: { amount: 15 }, key: 'd' })).body.available).toBe(-5)
    expect((await call('POST', `${path}/close`, { key: 'x' })).body.code).toBe('wallet_not_empty')
    await call('POST', `${path}/credits`, { body: { amount: 5 }, key: 'c' })
    expect((await call('POST', `${path}/close`, { key: 'x' })).status).toBe(200)
    expect((await call('POST', `${path}/credits`, { body: { amount: 5 }, key: 'c2' })).body.code).toBe('wallet_closed')
    expect((await call('GET', path)).body.status).toBe('closed')
  })

  it('has a journal, read in pages, and balances of the past', async () => {
    const path = await openWallet(call, 0)
    for (let n = 1; n <= 5; n += 1) await call('POST', `${path}/credits`, { body: { amount: n }, key: `c${n}` })
    const first = await call('GET', `${path}/entries?limit=2`)
    expect(first.body.data.map(({ amount }: { amount: number }) => amount)).toEqual([1, 2])
    expect(first.body.next).toBe(2)
    const rest = await call('GET', `${path}/entries?limit=100&after=${first.body.next}`)
    expect(rest.body.data.map(({ amount }: { amount: number }) => amount)).toEqual([3, 4, 5])
    expect(rest.body.next).toBeNull()
    expect((await call('GET', `${path}/entries?after=5`)).body).toEqual({ data: [], next: null })

    expect((await call('GET', `${path}/at?seq=3`)).body).toMatchObject({ available: 6, seq: 3, complete: true })
    const { at } = rest.body.data[1]
    expect((await call('GET', `${path}/at?time=${at}`)).body.available).toBeGreaterThanOrEqual(10)
    expect(await call('GET', `${path}/at?seq=6`)).toMatchObject({
      status: 404,
      body: { code: 'entry_not_found', lastSeq: 5 },
    })
    for (const query of ['', '?seq=1&time=1', '?seq=-1', '?time=x']) {
      expect((await call('GET', `${path}/at${query}`)).body.code).toBe('invalid_argument')
    }
  })
})

describe('the list of wallets', () => {
  it('goes by id, in pages, and has those of one tenant only', async () => {
    const mine = api.as(await api.key(undefined, { tenant: 'lists' }))
    const ids = ['a', 'B', 'ä', 'a/b', 'aa', '😀', 'z']
    for (const id of ids) {
      await mine('PUT', `/v1/wallets/${encodeURIComponent(id)}`, { body: { currency: 'usd', metadata: { id } } })
    }
    const byBytes = ids.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    const found: string[] = []
    let after: string | null = ''
    while (after !== null) {
      const { body }: { body: { data: { id: string; metadata: unknown }[]; next: string | null } } = await mine(
        'GET',
        `/v1/wallets?limit=2&after=${encodeURIComponent(after)}`,
      )
      expect(body.data.length).toBeLessThanOrEqual(2)
      for (const { id, metadata } of body.data) expect(metadata).toEqual({ id })
      found.push(...body.data.map(({ id }) => id))
      after = body.next
    }
    expect(found).toEqual(byBytes)
  })

  it('of a key for some wallets has those alone', async () => {
    const all = api.as(await api.key(undefined, { tenant: 'some' }))
    for (const id of ['eu', 'eu-1', 'eu-2', 'ev', 'us-1']) {
      await all('PUT', `/v1/wallets/${id}`, { body: { currency: 'usd' } })
    }
    const some = api.as(await api.key(['read'], { tenant: 'some', walletPrefix: 'eu-' }))
    const ids = (await some('GET', '/v1/wallets')).body.data.map(({ id }: { id: string }) => id)
    expect(ids).toEqual(['eu-1', 'eu-2'])
    expect((await some('GET', '/v1/wallets?after=eu-1&limit=1')).body).toMatchObject({
      data: [{ id: 'eu-2' }],
      next: 'eu-2',
    })
    expect((await some('GET', '/v1/wallets?after=zz')).body).toEqual({ data: [], next: null })
  })
})
