import { beforeAll, describe, expect, it } from 'vitest'
import { Limiter } from '../../src/access/limiter.js'
import { Api, type Caller, openWallet } from '../support/api.js'

let api: Api
let call: Caller
beforeAll(async () => {
  api = await Api.start({ corsOrigins: ['https://shop.example.com'], bodyMaxBytes: 20_000 })
  call = api.as(await api.key())
})

describe('a wallet token', () => {
  const mint = async (path: string, scopes: string[], ttl?: number, by = call) =>
    by('POST', `${path}/tokens`, { body: { scopes, ...(ttl && { ttl }) } })

  it('lets a browser use the one wallet, with the scopes that were chosen', async () => {
    const path = await openWallet(call)
    const { status, body } = await mint(path, ['read', 'spend', 'read'])
    expect([status, body.wallet, body.scopes]).toEqual([200, path.split('/').at(-1), ['read', 'spend']])
    expect(body.expiresAt - Date.now()).toBeGreaterThan(890_000)
    const browser = api.as(body.token)
    expect((await browser('GET', path)).body.available).toBe(1_000)
    expect((await browser('POST', `${path}/debits`, { body: { amount: 1 }, key: 'd' })).status).toBe(200)
    const debit = { operation: 'debit', wallet: body.wallet, key: 'd2', amount: 1 }
    const batch = { operations: [debit, { ...debit, wallet: 'other' }] }
    const { results } = (await browser('POST', '/v1/batch', { body: batch })).body
    expect(results.map((one: { status: number }) => one.status)).toEqual([200, 403])
    expect((await browser('POST', `${path}/credits`, { body: { amount: 1 }, key: 'c' })).status).toBe(403)
  })

  it('lets it do nothing else', async () => {
    const [path, other] = [await openWallet(call), await openWallet(call)]
    const browser = api.as((await mint(path, ['read', 'spend', 'fund'])).body.token)
    const attempts = await Promise.all([
      browser('GET', other),
      browser('GET', '/v1/wallets'),
      browser('POST', `${other}/debits`, { body: { amount: 1 }, key: 'd' }),
      browser('POST', `${path}/close`, { key: 'x' }),
      mint(path, ['read'], undefined, browser),
      browser('POST', '/v1/transfers', {
        body: { from: path.split('/').at(-1), to: other.split('/').at(-1), amount: 1 },
        key: 't',
      }),
      browser('POST', `${path}/debits`, { body: { amount: 1 }, key: 'd', headers: { prefer: 'durability=memory' } }),
      browser('POST', '/v1/batch', {
        body: { operations: [{ operation: 'debit', wallet: path.split('/').at(-1), key: 'b', amount: 1 }] },
        headers: { prefer: 'durability=memory' },
      }),
    ])
    expect(attempts.map(({ status, body }) => [status, body.code])).toEqual(attempts.map(() => [403, 'forbidden']))
    expect((await call('GET', path)).body.seq).toBe(1)
  })

  it('may do at most what the key may, for at most a day', async () => {
    const path = await openWallet(call)
    const reader = api.as(await api.key(['read']))
    expect((await mint(path, ['spend'], undefined, reader)).status).toBe(403)
    expect((await mint(path, ['read'], undefined, reader)).status).toBe(200)
    for (const [scopes, ttl] of [
      [['admin'], undefined],
      [[], undefined],
      [['read'], 86_400_001],
      [['read'], 999],
    ] as const) {
      expect((await mint(path, [...scopes], ttl)).body.code).toBe('invalid_argument')
    }
  })

  it('ends with its time, and with the key that it was made with', async () => {
    const path = await openWallet(call)
    const short = api.as((await mint(path, ['read'], 5_000)).body.token)
    expect((await short('GET', path)).status).toBe(200)
    await expect
      .poll(async () => (await short('GET', path)).body.detail, { timeout: 30_000 })
      .toBe('The token has expired')

    const { text, key } = await api.backend.keys.create({ tenant: 'default', name: 'brief', scopes: ['read'] })
    const token = api.as((await mint(path, ['read'], undefined, api.as(text))).body.token)
    expect((await token('GET', path)).status).toBe(200)
    await api.backend.keys.revoke(key.id)
    await expect.poll(async () => (await token('GET', path)).status, { timeout: 20_000 }).toBe(401)
  })

  it('that was changed in any way is none', async () => {
    const [path, other] = [await openWallet(call), await openWallet(call)]
    const { token } = (await mint(path, ['read'])).body as { token: string }
    const [says, signature] = token.slice(4).split('.') as [string, string]
    const claims = JSON.parse(Buffer.from(says, 'base64url').toString()) as unknown[]
    const forged = (change: (claims: unknown[]) => unknown) =>
      `hft_${Buffer.from(JSON.stringify(change([...claims]))).toString('base64url')}.${signature}`
    const texts = [
      forged(([key, , ...rest]) => [key, other.split('/').at(-1), ...rest]),
      forged(([key, wallet, , expiresAt]) => [key, wallet, ['read', 'spend'], expiresAt]),
      forged(([key, wallet, scopes]) => [key, wallet, scopes, Number.MAX_SAFE_INTEGER]),
      forged(() => null),
      `hft_${says}.`,
      `hft_${says}`,
      `hft_${says}.${signature}.x`,
      `hft_${says}.${'A'.repeat(43)}`,
      'hft_.',
      `hft_${signature}.${says}`,
    ]
    for (const text of texts) {
      for (const target of [path, other]) {
        expect([text, (await api.as(text)('GET', target)).status]).toEqual([text, 401])
      }
    }
  })
})

describe('limits', () => {
  it('of a rate: what comes too often is told when to come again', async () => {
    const limited = api.as(await api.key(['read'], { rateMax: 5 }))
    // More than the ten that may come at once, and what is added to them in a few seconds.
    const answers = await Promise.all(Array.from({ length: 60 }, () => limited('GET', '/v1/wallets')))
    const refused = answers.filter(({ status }) => status === 429)
    expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(10)
    expect(refused.length).toBeGreaterThanOrEqual(5)
    expect(refused[0]).toMatchObject({ body: { code: 'rate_limited', limit: 5, retryAfter: 1, retryable: true } })
    expect(refused[0]?.headers.get('retry-after')).toBe('1')
    // Others have buckets of their own.
    expect((await call('GET', '/v1/wallets')).status).toBe(200)
    await expect.poll(async () => (await limited('GET', '/v1/wallets')).status, { timeout: 20_000 }).toBe(200)
  })

  it('of a rate count every operation of a batch', async () => {
    const limited = api.as(await api.key(['spend'], { rateMax: 10 }))
    const batch = (size: number) => ({
      operations: Array.from({ length: size }, (_, n) => ({
        operation: 'debit',
        wallet: 'no',
        key: `${n}`,
        amount: 1,
      })),
    })
    // A full bucket lets it through, and has debts of several seconds then.
    expect((await limited('POST', '/v1/batch', { body: batch(100) })).status).toBe(200)
    expect((await limited('POST', '/v1/batch', { body: batch(15) })).status).toBe(429)
  })

  it('of requests at a time', () => {
    const limiter = new Limiter()
    const limits = { rateMax: 1_000, concurrentMax: 2 }
    limiter.enter('a', limits)
    limiter.enter('a', limits)
    limiter.enter('b', limits)
    expect(() => limiter.enter('a', limits)).toThrow('at most 2 requests at a time')
    limiter.leave('a')
    limiter.enter('a', limits)
  })

  it('of requests at a time are given back when a request ends, however it ends', async () => {
    const limited = api.as(await api.key(['read'], { concurrentMax: 1 }))
    for (let n = 0; n < 20; n += 1) {
      expect((await limited('GET', n % 2 === 0 ? '/v1/wallets' : '/v1/wallets?limit=0')).status).not.toBe(429)
      const leaving = new AbortController()
      const gone = limited('GET', '/v1/wallets', { signal: leaving.signal }).catch(() => null)
      setImmediate(() => leaving.abort())
      await gone
      await expect.poll(async () => (await limited('GET', '/v1/wallets')).status, { timeout: 20_000 }).toBe(200)
    }
  })

  it('of the body, for all and for one key', async () => {
    const path = await openWallet(call)
    const credit = (by: Caller, bytes: number) =>
      by('POST', `${path}/credits`, { body: { amount: 1, metadata: 'x'.repeat(bytes) }, key: 'c' })
    expect(await credit(call, 20_000)).toMatchObject({ status: 413, body: { code: 'too_large' } })
    expect(await credit(call, 5_000)).toMatchObject({ status: 413, body: { limit: 4_096 } })
    const small = api.as(await api.key(['fund'], { bodyMaxBytes: 100 }))
    expect(await credit(small, 200)).toMatchObject({ status: 413, body: { limit: 100 } })
    expect((await credit(small, 10)).status).toBe(200)
    const chunked = await fetch(`${api.url}${path}/credits`, {
      method: 'POST',
      headers: { authorization: `Bearer ${await api.key(['fund'], { bodyMaxBytes: 100 })}`, 'idempotency-key': 'd' },
      body: new Blob(['{"amount":1}']).stream(),
      duplex: 'half',
    } as RequestInit)
    expect(chunked.status).toBe(413)
  })
})

describe('pages of other origins', () => {
  const preflight = (origin: string, path = '/v1/wallets/a/debits', target = api) =>
    fetch(`${target.url}${path}`, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization' },
    })

  it('may call when they are in the list', async () => {
    const asked = await preflight('https://shop.example.com')
    expect(asked.status).toBe(204)
    expect(asked.headers.get('access-control-allow-origin')).toBe('https://shop.example.com')
    expect(asked.headers.get('access-control-allow-headers')).toContain('idempotency-key')
    expect(asked.headers.get('vary')).toBe('origin')
    const answer = await call('GET', '/v1/wallets/none', { headers: { origin: 'https://shop.example.com' } })
    expect(answer.headers.get('access-control-allow-origin')).toBe('https://shop.example.com')
    expect(answer.headers.get('access-control-allow-credentials')).toBeNull()
  })

  it('may not otherwise', async () => {
    for (const origin of ['https://evil.example.com', 'https://shop.example.com.evil.com', 'null']) {
      expect((await preflight(origin)).headers.get('access-control-allow-origin')).toBeNull()
      const answer = await call('GET', '/v1/wallets', { headers: { origin } })
      expect(answer.headers.get('access-control-allow-origin')).toBeNull()
    }
  })

  it('may not at all where nothing is configured, and all may with *', async () => {
    const [none, any] = await Promise.all([Api.start(), Api.start({ corsOrigins: ['*'] })])
    expect((await preflight('https://shop.example.com', '/v1/wallets', none)).status).toBe(404)
    const asked = await preflight('https://any.example.com', '/v1/wallets', any)
    expect(asked.headers.get('access-control-allow-origin')).toBe('*')
  })
})
