import { beforeAll, describe, expect, it } from 'vitest'
import { SCOPES, type Scope } from '../../src/access/index.js'
import { type Answer, Api, type Caller, openWallet } from '../support/api.js'

let api: Api
let call: Caller
beforeAll(async () => {
  api = await Api.start()
  call = api.as(await api.key())
})

/** Every route below /v1 and the scope that it asks for; null: the answer depends on what is in the body. */
const ROUTES: [method: string, path: string, scope: Scope | null, body?: object][] = [
  ['GET', '/v1/wallets', 'read'],
  ['PUT', '/v1/wallets/{id}', 'fund', { currency: 'usd' }],
  ['GET', '/v1/wallets/{id}', 'read'],
  ['GET', '/v1/wallets/{id}/at', 'read'],
  ['GET', '/v1/wallets/{id}/entries', 'read'],
  ['GET', '/v1/wallets/{id}/holds', 'read'],
  ['GET', '/v1/wallets/{id}/holds/{hold}', 'read'],
  ['GET', '/v1/wallets/{id}/holds/{hold}/explain', 'read'],
  ['GET', '/v1/wallets/{id}/sessions/{session}', 'read'],
  ['POST', '/v1/wallets/{id}/credits', 'fund', { amount: 1 }],
  ['POST', '/v1/wallets/{id}/refunds', 'fund', { seq: 1, amount: 1 }],
  ['POST', '/v1/wallets/{id}/debits', 'spend', { amount: 1 }],
  ['POST', '/v1/wallets/{id}/holds', 'spend', { amount: 1, ttl: 1 }],
  ['POST', '/v1/wallets/{id}/holds/{hold}/captures', 'spend', { amount: 1 }],
  ['POST', '/v1/wallets/{id}/holds/{hold}/extend', 'spend', { amount: 1 }],
  ['POST', '/v1/wallets/{id}/holds/{hold}/settle', 'spend', { total: 1 }],
  ['POST', '/v1/wallets/{id}/holds/{hold}/release', 'spend'],
  ['POST', '/v1/wallets/{id}/sessions', 'spend', { by: 'units', rate: 1, reserve: 1 }],
  ['POST', '/v1/wallets/{id}/sessions/{session}/tick', 'spend', { total: 1 }],
  ['POST', '/v1/wallets/{id}/sessions/{session}/end', 'spend', { total: 1 }],
  ['POST', '/v1/transfers', 'spend', { from: 'nobody', to: 'nobody else', amount: 1 }],
  ['POST', '/v1/wallets/{id}/freeze', 'admin'],
  ['POST', '/v1/wallets/{id}/unfreeze', 'admin'],
  ['POST', '/v1/wallets/{id}/credit-limit', 'admin', { amount: 1 }],
  ['POST', '/v1/wallets/{id}/close', 'admin'],
  ['GET', '/v1/events', 'read'],
  ['GET', '/v1/wallets/{id}/events', 'read'],
  ['POST', '/v1/webhooks', 'admin', { url: 'no url' }],
  ['GET', '/v1/webhooks', 'admin'],
  ['GET', '/v1/webhooks/{webhook}', 'admin'],
  ['DELETE', '/v1/webhooks/{webhook}', 'admin'],
  ['GET', '/v1/webhooks/{webhook}/dead', 'admin'],
  ['POST', '/v1/webhooks/{webhook}/replay', 'admin', {}],
  ['POST', '/v1/audit', 'admin', { shard: -1 }],
  ['GET', '/v1/audit/findings', 'admin'],
  ['GET', '/v1/flags', 'flags'],
  ['GET', '/v1/flags/{flag}', 'flags'],
  ['PUT', '/v1/flags/{flag}', 'flags', { on: 'no state' }],
  ['DELETE', '/v1/flags/{flag}', 'flags'],
  ['POST', '/v1/flags/{flag}/kill', 'flags', {}],
  ['POST', '/v1/flags/{flag}/unkill', 'flags', {}],
  ['POST', '/v1/flags/{flag}/evaluate', 'flags', {}],
  ['GET', '/v1/flag-changes', 'flags'],
  ['GET', '/v1/sales', 'read'],
  ['PUT', '/v1/sales/{sale}', 'sell', { items: [{ id: 'a' }], perUser: 1, startsAt: 1, endsAt: 1 }],
  ['GET', '/v1/sales/{sale}', 'read'],
  ['GET', '/v1/sales/{sale}/items', 'read'],
  ['GET', '/v1/sales/{sale}/events', 'read'],
  ['GET', '/v1/sales/{sale}/attempts', 'read'],
  ['GET', '/v1/sale-schedules', 'read'],
  ['PUT', '/v1/sale-schedules/{schedule}', 'sell', { every: 1_000, offset: 1_000, perUser: 1, items: [{ id: 'a' }] }],
  ['GET', '/v1/sale-schedules/{schedule}', 'read'],
  ['GET', '/v1/sale-schedules/{schedule}/slots', 'read'],
  ['GET', '/v1/sale-schedules/{schedule}/current', 'read'],
  ['GET', '/v1/sale-schedules/{schedule}/next', 'read'],
  ['POST', '/v1/sale-schedules/{schedule}/pause', 'sell'],
  ['POST', '/v1/sale-schedules/{schedule}/resume', 'sell'],
  ['POST', '/v1/sales/{sale}/close', 'sell'],
  ['POST', '/v1/sales/{sale}/checkouts', 'buy', { user: 'ann', items: [{ id: 'a' }] }],
  ['GET', '/v1/sales/{sale}/checkouts', 'buy'],
  ['GET', '/v1/checkouts/{code}', 'buy'],
  ['POST', '/v1/checkouts/{code}/purchase', 'buy'],
  ['DELETE', '/v1/checkouts/{code}', 'buy'],
  ['POST', '/v1/batch', null, { operations: [{ operation: 'debit', wallet: 'nobody', key: 'k', amount: 1 }] }],
  ['POST', '/v1/wallets/{id}/tokens', null, { scopes: ['read'] }],
]

/** A stream that is opened does not end: it is asked for something that there is not. */
const fill = (path: string) =>
  path
    .replace('{id}', 'nobody')
    .replace(/\{\w+\}/, 'none')
    .replace(/events$/, 'events?events=none')

/** What a request is turned away with, before anything else is looked at. */
const turnedAway = ({ status, body }: Answer) => (status === 401 || status === 403 ? body.code : null)

describe('every route', () => {
  it('is in the table of this test', async () => {
    const { paths } = (await call('GET', '/openapi.json')).body as { paths: Record<string, Record<string, unknown>> }
    const described = Object.entries(paths)
      .filter(([path]) => path.startsWith('/v1/'))
      .flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`))
    expect(ROUTES.map(([method, path]) => `${method} ${path}`).sort()).toEqual(described.sort())
  })

  it('asks who calls, and says how to tell', async () => {
    const good = await api.key()
    const bad = [null, '', 'hf_', good.slice(0, -1), `${good}x`, good.replace(/.$/, (c) => (c === 'a' ? 'b' : 'a'))]
    for (const [method, path, , body] of ROUTES) {
      for (const credential of bad) {
        const answer = await api.as(credential)(method, fill(path), { ...(body && { body }), key: 'k' })
        expect([method, path, answer.status, answer.body.code]).toEqual([method, path, 401, 'unauthenticated'])
        expect(answer.headers.get('www-authenticate')).toBe('Bearer')
      }
    }
    for (const authorization of [good, `Basic ${good}`, `Bearer ${good} ${good}`, 'Bearer']) {
      expect((await api.as(null)('GET', '/v1/wallets', { headers: { authorization } })).status).toBe(401)
    }
    const lower = await api.as(null)('GET', '/v1/wallets', { headers: { authorization: `bearer  ${good}` } })
    expect(lower.status).toBe(200)
  })

  it.each(SCOPES)('asks for its scope: what a key with %s alone may do', async (scope) => {
    const one = api.as(await api.key([scope]))
    for (const [method, path, needed, body] of ROUTES) {
      if (needed === null) continue
      const answer = await one(method, fill(path), { ...(body && { body }), key: `k-${scope}` })
      expect([method, path, turnedAway(answer)]).toEqual([method, path, needed === scope ? null : 'forbidden'])
      if (needed !== scope) expect(answer.body.scope).toBe(needed)
    }
  })

  it('lets a key for some wallets see and do nothing to others, whether they are there or not', async () => {
    const path = await openWallet(call)
    const some = api.as(await api.key(SCOPES, { walletPrefix: 'mine-' }))
    for (const [method, route, , body] of ROUTES.filter(([, route]) => route.includes('{id}'))) {
      for (const id of [path.split('/').at(-1) as string, 'nobody', 'mine', 'Mine-1']) {
        const filled = fill(route.replace('{id}', id))
        expect(turnedAway(await some(method, filled, { ...(body && { body }), key: 'k' }))).toBe('forbidden')
      }
    }
    expect((await some('PUT', '/v1/wallets/mine-1', { body: { currency: 'usd' } })).status).toBe(200)
    const transfer = { from: 'mine-1', to: path.split('/').at(-1), amount: 1 }
    expect((await some('POST', '/v1/transfers', { body: transfer, key: 't' })).status).toBe(403)
  })

  it('gives credit only to those who may', async () => {
    const fund = api.as(await api.key(['fund']))
    const body = { currency: 'usd', creditLimit: 100 }
    expect(await fund('PUT', '/v1/wallets/indebted', { body })).toMatchObject({ status: 403, body: { scope: 'admin' } })
    expect((await call('GET', '/v1/wallets/indebted')).status).toBe(404)
    expect((await fund('PUT', '/v1/wallets/indebted', { body: { ...body, creditLimit: 0 } })).status).toBe(200)
  })
})

describe('a key', () => {
  it('that has expired is of no use any more', async () => {
    const text = await api.key(SCOPES, { expiresInMs: 5_000 })
    expect((await api.as(text)('GET', '/v1/wallets')).status).toBe(200)
    const status = async () => (await api.as(text)('GET', '/v1/wallets')).status
    await expect.poll(status, { timeout: 30_000 }).toBe(401)
    expect((await api.as(text)('GET', '/v1/wallets')).body.detail).toBe('The key has expired')
  })

  it('is kept as a hash only, and when it was last used is noted', async () => {
    const { text, key } = await api.backend.keys.create({ tenant: 'default', name: 'noted', scopes: ['read'] })
    expect(key.lastUsedAt).toBeNull()
    await api.as(text)('GET', '/v1/wallets')
    const found = await api.backend.keys.find(key.id)
    expect(JSON.stringify({ ...found, hash: found?.hash.toString('latin1') })).not.toContain(text.slice(17))
    const noted = async () => (await api.backend.keys.find(key.id))?.lastUsedAt
    await expect.poll(noted, { timeout: 30_000 }).toBeGreaterThanOrEqual(key.createdAt)
  })

  it('stands in no line of the log, and neither does a token', async () => {
    const text = await api.key()
    const { body } = await api.as(text)('POST', '/v1/wallets/secretive/tokens', { body: { scopes: ['read'] } })
    for (const path of [
      `/v1/wallets?x=${text}`,
      `/v1/wallets/${text}`,
      `/${body.token}`,
      `/v1/wallets/${body.token}`,
    ]) {
      await api.as(text)('GET', path, { headers: { 'x-request-id': text.slice(0, 60) } })
      await api.as(body.token)('GET', path)
    }
    const log = api.lines.join('')
    for (const hidden of [text.slice(16), body.token.slice(4), 'secretive']) expect(log).not.toContain(hidden)
  })
})

describe('two tenants', () => {
  it('have wallets of the same name, and see nothing of each other', async () => {
    const acme = api.as(await api.key(SCOPES, { tenant: 'acme' }))
    const evil = api.as(await api.key(SCOPES, { tenant: 'evil' }))
    const ids = ['shared', 'acme-only', 'a b/c']
    for (const id of ids) {
      const path = `/v1/wallets/${encodeURIComponent(id)}`
      await acme('PUT', path, { body: { currency: 'usd', metadata: { tenant: 'acme' } } })
      await acme('POST', `${path}/credits`, { body: { amount: 1_000 }, key: 'c' })
      await acme('POST', `${path}/holds`, { body: { amount: 100, ttl: 60_000 }, key: 'h' })
      await acme('POST', `${path}/sessions`, { body: { by: 'units', rate: 1, reserve: 10 }, key: 's' })
    }
    await evil('PUT', '/v1/wallets/shared', { body: { currency: 'eur' } })
    const before = await Promise.all(ids.map((id) => acme('GET', `/v1/wallets/${encodeURIComponent(id)}`)))

    const { token } = (await evil('POST', '/v1/wallets/acme-only/tokens', { body: { scopes: ['read', 'spend'] } })).body
    for (const attacker of [evil, api.as(token)]) {
      for (const [method, route, , body] of ROUTES.filter(([, route]) => route.includes('{id}'))) {
        if (method === 'PUT' || route.endsWith('/tokens')) continue
        const path = route.replace('{id}', 'acme-only').replace('{hold}', 'h').replace('{session}', 's')
        const answer = await attacker(method, path + (path.endsWith('/at') ? '?seq=1' : ''), {
          ...(body && { body }),
          key: 'c',
        })
        expect([route, answer.status === 404 || answer.status === 403]).toEqual([route, true])
        const { requestId: _, ...told } = answer.body
        expect(JSON.stringify(told)).not.toMatch(/acme"|1000|900|890/)
      }
    }
    for (const [from, to] of [
      ['acme-only', 'shared'],
      ['shared', 'acme-only'],
    ]) {
      const stolen = await evil('POST', '/v1/transfers', { body: { from, to, amount: 1 }, key: 't' })
      expect(stolen.body.code).toMatch(/^(wallet_not_found|insufficient_funds)$/)
    }
    // What names the tenant otherwise than by the key names nothing.
    for (const headers of [{ 'x-tenant': 'acme' }, { tenant: 'acme' }]) {
      expect((await evil('GET', '/v1/wallets/acme-only?tenant=acme', { headers })).status).toBe(404)
    }
    expect((await evil('GET', '/v1/wallets')).body.data.map(({ id }: { id: string }) => id)).toEqual(['shared'])
    expect((await evil('GET', '/v1/wallets/shared')).body).toMatchObject({ currency: 'eur', available: 0, seq: 0 })
    const after = await Promise.all(ids.map((id) => acme('GET', `/v1/wallets/${encodeURIComponent(id)}`)))
    expect(after.map(({ body }) => body)).toEqual(before.map(({ body }) => body))
  })
})
