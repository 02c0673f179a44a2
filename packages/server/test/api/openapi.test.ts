import { beforeAll, describe, expect, it } from 'vitest'
import { ERRORS } from '../../../holdfast/src/errors/index.js'
import { SCOPES } from '../../src/access/index.js'
import { Api, type Caller, openWallet } from '../support/api.js'
import { bodyOf, Contract, type Described, type OpenApi, operationsOf } from '../support/openapi.js'

let api: Api
let call: Caller
let document: OpenApi
let operations: Described[]
beforeAll(async () => {
  api = await Api.start()
  call = api.as(await api.key())
  document = (await call('GET', '/openapi.json')).body
  operations = operationsOf(document)
})

function* refsIn(value: unknown): Generator<string> {
  if (typeof value !== 'object' || value === null) return
  if ('$ref' in value && typeof value.$ref === 'string') yield value.$ref
  for (const one of Object.values(value)) yield* refsIn(one)
}

/** From the tree that the router prints: four characters a level. */
function routesOf({ app }: Api): string[] {
  const above: string[] = []
  return app
    .printRoutes({ commonPrefix: false })
    .split('\n')
    .flatMap((line) => {
      const match = /^([│ ]*)[├└]── (\S*)(?: \((.*)\))?$/.exec(line)
      if (!match) return []
      const [, indent = '', part = '', methods = ''] = match
      const depth = indent.length / 4
      above[depth] = (above[depth - 1] ?? '') + part
      return methods === '' ? [] : methods.split(', ').map((method) => `${method} ${above[depth]}`)
    })
}

describe('the description', () => {
  it('is OpenAPI 3.1 with a scheme for who calls', () => {
    expect(document.openapi).toBe('3.1.0')
    expect(document.components.securitySchemes).toMatchObject({ bearer: { type: 'http', scheme: 'bearer' } })
  })

  it('has every route of the server, and none that is not there', () => {
    const described = operations.map(({ method, path }) => `${method} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`)
    const own = routesOf(api).filter((route) => !/^(HEAD|OPTIONS) |\/docs/.test(route))
    expect(own.length).toBeGreaterThan(30)
    expect(described.sort()).toEqual(own.sort())
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length)
  })

  it('says of every operation what it does, takes and answers', () => {
    const tags = document.tags.map(({ name }) => name)
    for (const operation of operations) {
      const { operationId, summary, path, method, parameters = [], responses } = operation
      expect([path, operationId]).toEqual([path, expect.stringMatching(/^[a-z]+[A-Za-z]+$/)])
      expect([path, summary.length > 5]).toEqual([path, true])
      expect([path, operation.tags.every((tag) => tags.includes(tag))]).toEqual([path, true])
      const inPath = parameters.filter((one) => one.in === 'path').map(({ name }) => name)
      expect(inPath.sort()).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string).sort())
      expect(Object.keys(responses)[0]).toBe('200')
      for (const [status, response] of Object.entries(responses)) {
        expect([path, status, typeof response.description, response.content !== undefined]).toEqual([
          path,
          status,
          'string',
          true,
        ])
        expect([path, response.description]).not.toEqual([path, 'Default Response'])
      }
      if (!path.startsWith('/v1/')) continue
      expect(operation.security).toEqual([
        {
          bearer: expect.toSatisfy((scopes: string[]) =>
            scopes.every((one) => (SCOPES as readonly string[]).includes(one)),
          ),
        },
      ])
      expect(Object.keys(responses)).toEqual(
        expect.arrayContaining(['400', '401', '403', '413', '429', '500', '503', '504']),
      )
      const keyed = parameters.find(({ name }) => name === 'idempotency-key')
      if (keyed) expect([path, keyed.required, '422' in responses]).toEqual([path, true, true])
      if (method === 'POST' || method === 'PUT') expect([path, bodyOf(operation)?.type]).toEqual([path, 'object'])
    }
  })

  it('asks for no parameter that has a default', () => {
    const byDefault = operations.flatMap(({ parameters = [] }) =>
      parameters.filter(({ schema }) => 'default' in schema),
    )
    expect(byDefault.length).toBeGreaterThan(5)
    expect(byDefault.filter(({ required }) => required)).toEqual([])
  })

  it('asks for a body where something in it is needed, and for none elsewhere', async () => {
    const isRequired = (id: string) => operations.find(({ operationId }) => operationId === id)?.requestBody?.required
    expect(['openWallet', 'creditWallet', 'openSale', 'createCheckout'].map(isRequired)).toEqual(Array(4).fill(true))
    expect(['runAudit', 'closeWallet', 'closeSale', 'purchaseCheckout'].map(isRequired)).toEqual(Array(4).fill(false))
  })

  it('refers to nothing that is not in it', () => {
    const refs = [...new Set(refsIn(document))]
    expect(refs).toContain('#/components/schemas/Problem')
    for (const ref of refs) {
      const name = ref.replace('#/components/schemas/', '')
      expect([ref, name in document.components.schemas]).toEqual([ref, true])
    }
    expect(Object.keys(document.components.schemas)).toEqual(
      expect.arrayContaining(['Wallet', 'Entry', 'Hold', 'Session']),
    )
  })

  it('lists the codes that there are', () => {
    expect(document.components.schemas.Problem?.properties?.code?.enum).toEqual(Object.keys(ERRORS))
  })
})

describe('what the server answers', () => {
  it('is what the description says, member by member', async () => {
    const contract = new Contract(document)
    const path = await openWallet(call)
    const id = path.split('/').at(-1) as string
    const other = await openWallet(call, 0)
    const checked = new Set<string>()
    const check = async (method: string, url: string, body?: object, key?: string) => {
      const answer = await call(method, url, { ...(body && { body }), ...(key && { key }) })
      const pathname = url.split('?')[0] as string
      const operation = operations.find(
        (one) => one.method === method && new RegExp(`^${one.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(pathname),
      ) as Described
      const type = answer.headers.get('content-type') as string
      expect([method, url, answer.status, contract.mistakeIn(operation, answer.status, type, answer.body)]).toEqual([
        method,
        url,
        answer.status,
        null,
      ])
      if (answer.status === 200) checked.add(operation.operationId)
      return answer
    }
    await check('PUT', '/v1/wallets/described', { currency: 'usd', metadata: null })
    await check('GET', '/v1/wallets?limit=1')
    await check('GET', path)
    await check('POST', `${path}/credits`, { amount: 100, metadata: { a: 1 } }, 'c')
    const debit = await check('POST', `${path}/debits`, { amount: 10 }, 'd')
    await check('POST', `${path}/refunds`, { seq: debit.body.entry.seq, amount: 5 }, 'r')
    await check('POST', `${path}/holds`, { amount: 100, ttl: 60_000, metadata: [] }, 'h')
    await check('GET', `${path}/holds`)
    await check('GET', `${path}/holds/h`)
    await check('POST', `${path}/holds/h/captures`, { amount: 1 }, 'h1')
    await check('POST', `${path}/holds/h/extend`, { ttl: 90_000 }, 'h2')
    await check('POST', `${path}/holds/h/settle`, { total: 50 }, 'h3')
    await check('GET', `${path}/holds/h`)
    await check('GET', `${path}/holds/h/explain`)
    await check('POST', `${path}/holds`, { amount: 100, ttl: 60_000 }, 'i')
    await check('POST', `${path}/holds/i/release`, undefined, 'i1')
    await check('POST', `${path}/sessions`, { by: 'units', rate: 1, reserve: 10 }, 's')
    await check('POST', `${path}/sessions/s/tick`, { total: 1 })
    await check('GET', `${path}/sessions/s`)
    await check('POST', `${path}/sessions/s/end`)
    await check('POST', `${path}/sessions`, { by: 'time', rate: 1, per: 1_000, reserve: 10_000 }, 't')
    await check('GET', `${path}/sessions/t`)
    await check('POST', `${path}/sessions/t/end`)
    await check('GET', `${path}/at?seq=2`)
    await check('GET', `${path}/entries`)
    await check('POST', '/v1/transfers', { from: id, to: other.split('/').at(-1), amount: 1 }, 'x')
    await check('POST', '/v1/batch', { operations: [{ operation: 'credit', wallet: id, key: 'b', amount: 1 }] })
    await check('POST', `${path}/tokens`, { scopes: ['read'] })
    await check('POST', `${path}/credit-limit`, { amount: 5 }, 'l')
    await check('POST', `${path}/freeze`, undefined, 'f')
    await check('POST', `${path}/unfreeze`, undefined, 'u')
    await check('POST', '/v1/wallets/described/close', undefined, 'z')
    const hook = { url: 'https://example.com/', events: ['audit.finding'], balanceLow: 5 }
    const webhook = `/v1/webhooks/${(await check('POST', '/v1/webhooks', hook)).body.id}`
    await check('GET', '/v1/webhooks')
    await check('GET', webhook)
    await check('GET', `${webhook}/dead`)
    await check('POST', `${webhook}/replay`, {})
    await check('DELETE', webhook)
    await check('POST', '/v1/audit', { shard: 0 })
    await check('GET', '/v1/audit/findings')
    const condition = { attribute: 'country', test: 'in', value: ['DE'] }
    const rules = [{ when: [condition, { attribute: 'plan', test: 'exists' }], serve: 12.5 }]
    await check('PUT', '/v1/flags/described', { on: true, percentage: 50, rules, why: 'to see', version: 0 })
    await check('GET', '/v1/flags')
    await check('GET', '/v1/flags/described')
    await check('POST', '/v1/flags/described/evaluate', { subject: 'user-17', attributes: { country: 'FR', age: 5 } })
    await check('POST', '/v1/flags/described/kill', { why: 'payments fail' })
    await check('POST', '/v1/flags/described/unkill')
    await check('DELETE', '/v1/flags/described?why=done')
    await check('GET', '/v1/flag-changes?flag=described')
    const terms = {
      items: [{ id: 'a', quantity: 9 }, { id: 'b' }],
      perUser: 5,
      startsAt: 0,
      endsAt: Date.now() + 60_000,
    }
    await check('PUT', '/v1/sales/described', terms)
    await check('GET', '/v1/sales?limit=1')
    await check('GET', '/v1/sales/described')
    const order = { user: 'ann', items: [{ id: 'a' }, { id: 'b' }] }
    const { code } = (await check('POST', '/v1/sales/described/checkouts', order, 'o')).body
    await check('GET', '/v1/sales/described/checkouts?user=ann')
    await check('GET', `/v1/checkouts/${code}`)
    await check('POST', `/v1/checkouts/${code}/purchase`)
    await check('GET', `/v1/checkouts/${code}`)
    const second = await check('POST', '/v1/sales/described/checkouts', { ...order, items: [{ id: 'a' }] }, 'p')
    await check('DELETE', `/v1/checkouts/${second.body.code}`)
    const third = await check('POST', '/v1/sales/described/checkouts', { ...order, items: [{ id: 'a' }] }, 'r')
    const pay = { wallet: id, price: { a: 2 }, counter: 'shop', metadata: { order: 1 } }
    await check('POST', `/v1/checkouts/${third.body.code}/purchase`, { pay })
    await check('GET', '/v1/sales/described/attempts?user=ann&limit=2')
    await check('GET', '/v1/sales/described/items')
    await check('POST', '/v1/sales/described/close')
    const schedule = '/v1/sale-schedules/described'
    const { startsAt: _, endsAt: __, ...template } = { ...terms, every: 86_400_000, ahead: 86_400_000 }
    await check('PUT', schedule, template)
    await check('PUT', schedule, { ...template, items: { id: '{sale}-{n}', count: 9, quantity: 2 }, limit: 3 })
    await check('GET', '/v1/sale-schedules')
    await check('GET', schedule)
    await check('GET', `${schedule}/slots?limit=1`)
    await check('GET', `${schedule}/current`)
    await check('GET', `${schedule}/next`)
    await check('POST', `${schedule}/pause`)
    await check('POST', `${schedule}/resume`)
    await check('GET', '/health/live')
    await check('GET', '/health/ready')
    await check('GET', '/health')
    await check('GET', '/openapi.json')
    const rest = operations.map(({ operationId }) => operationId).filter((one) => !checked.has(one))
    // Text, pages and streams, which no schema of JSON describes.
    expect(rest.sort()).toEqual(['getError', 'getMetrics', 'streamEvents', 'streamSaleEvents', 'streamWalletEvents'])

    for (const [method, url, body, key] of [
      ['GET', '/v1/wallets/none', undefined, undefined],
      ['POST', `${path}/debits`, { amount: 1 }, undefined],
      ['POST', `${path}/debits`, { amount: 10 ** 9 }, 'dd'],
      ['POST', `${path}/debits`, { amount: 11 }, 'd'],
      ['POST', `${path}/holds/none/release`, {}, 'n'],
      ['PUT', path, { currency: 'eur' }, undefined],
      ['GET', webhook, undefined, undefined],
      ['GET', '/v1/sales/none', undefined, undefined],
      ['PUT', '/v1/sales/described', { ...terms, perUser: 6 }, undefined],
      ['POST', '/v1/sales/described/checkouts', order, undefined],
      ['POST', '/v1/sales/described/checkouts', order, 'q'],
      ['POST', '/v1/checkouts/none/purchase', {}, undefined],
      ['POST', '/v1/checkouts/none/purchase', { pay: { wallet: id, price: -1 } }, undefined],
      ['GET', '/v1/sales/none/attempts', undefined, undefined],
      ['PUT', schedule, { ...template, items: 5 }, undefined],
      ['GET', '/v1/sale-schedules/none', undefined, undefined],
      ['GET', '/v1/sale-schedules/none/current', undefined, undefined],
      ['POST', '/v1/sale-schedules/none/pause', undefined, undefined],
      ['DELETE', `/v1/checkouts/${code}`, undefined, undefined],
      ['POST', '/v1/webhooks', { url: 'http://example.com/' }, undefined],
      ['GET', '/v1/flags/described', undefined, undefined],
      ['PUT', '/v1/flags/described', { on: true, version: 7 }, undefined],
    ] as const) {
      const { status } = await check(method, url, body, key)
      expect(status).toBeGreaterThanOrEqual(400)
    }
  })

  it('links to a page about every code', async () => {
    for (const code of Object.keys(ERRORS)) {
      const page = await call('GET', `/errors/${code}`)
      expect([code, page.status, page.headers.get('content-type')]).toEqual([code, 200, 'text/html; charset=utf-8'])
      expect(page.body).toContain(`<h1>${code}</h1>`)
    }
    expect(await call('GET', '/errors/<script>')).toMatchObject({ status: 400, body: { code: 'invalid_argument' } })
  })
})
