import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import type { FastifyInstance } from 'fastify'
import { HoldfastError, Postgres, RedisConnection } from 'holdfast'
import { Type } from 'typebox'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../test/servers.js'
import { createApp } from '../src/app.js'
import { Readiness } from '../src/health/index.js'
import { type Backend, openBackend } from '../src/lifecycle/index.js'
import { createLogger } from '../src/logging/index.js'
import { createMetrics } from '../src/metrics/index.js'
import { SALE_DEFAULTS } from './support/settings.js'

let app: FastifyInstance
let lines: string[]
let backend: Backend
let redis: RedisConnection
let postgres: Postgres

beforeAll(async () => {
  redis = new RedisConnection(await freshRedis())
  postgres = new Postgres(await freshDatabase())
  const connections = { redis, postgres, close: async () => {} }
  const { telemetry } = createMetrics(createLogger('silent'))
  backend = await openBackend(connections, {
    keyRate: 1_000,
    keyConcurrent: 1_000,
    auditIntervalMs: 0,
    auditRepair: false,
    keySampleMs: 0,
    eventsKeepMs: 604_800_000,
    eventsExpiringMs: 0,
    ...SALE_DEFAULTS,
    telemetry,
  })
})
afterAll(async () => {
  await backend.close()
  await Promise.all([redis.close(), postgres.close()])
})

/** The application with a few routes of the tests' own, to see how every route behaves. */
async function makeApp(): Promise<FastifyInstance> {
  lines = []
  const logger = createLogger('trace', { write: (line: string) => void lines.push(line) })
  const metrics = createMetrics(logger)
  const readiness = new Readiness({}, { timeoutMs: 100, telemetry: metrics.telemetry })
  app = await createApp({ logger, metrics, readiness, version: '1.2.3', ...backend })
  const body = Type.Object(
    { amount: Type.Integer({ minimum: 1 }), beyond: Type.Optional(Type.String({ enum: ['reject', 'available'] })) },
    { additionalProperties: false },
  )
  const querystring = Type.Object({ limit: Type.Optional(Type.Integer({ maximum: 100 })) })
  app.post('/tried/:id/debits', { schema: { body, querystring } }, async (request) => ({ query: request.query }))
  app.get('/rejected', async () => {
    throw new HoldfastError('insufficient_funds', 'expected at most 42, got 100', { available: 42, status: 'poor' })
  })
  app.get('/away', async () => {
    throw new HoldfastError('unavailable', 'Postgres at 10.0.0.1:5432 was lost', { host: '10.0.0.1', waitMs: 700 })
  })
  app.get('/broken', async () => {
    throw new TypeError("Cannot read properties of undefined (reading 'secret_table')")
  })
  return app
}
afterEach(() => app?.close())

const debit = (payload: unknown, url = '/tried/user_42/debits') =>
  app.inject({ method: 'POST', url, payload: payload as object })

describe('an error', () => {
  it('is a problem with code, facts and the id of the request', async () => {
    await makeApp()
    const response = await app.inject({ url: '/rejected', headers: { 'x-request-id': 'trace-1' } })
    expect(response.statusCode).toBe(409)
    expect(response.headers['content-type']).toBe('application/problem+json')
    expect(response.json()).toEqual({
      type: 'urn:holdfast:error:insufficient_funds',
      title: 'insufficient funds',
      status: 409,
      detail: 'expected at most 42, got 100',
      code: 'insufficient_funds',
      retryable: false,
      available: 42,
      requestId: 'trace-1',
      docs: '/errors/insufficient_funds',
    })
  })

  it('of ours tells the caller its code and nothing of what is behind, and the log everything', async () => {
    await makeApp()
    const away = await app.inject('/away')
    expect([away.statusCode, away.json().code, away.json().retryable]).toEqual([503, 'unavailable', true])
    expect(away.json().waitMs).toBe(700)
    expect(away.body).not.toContain('10.0.0.1')
    const broken = await app.inject('/broken')
    expect([broken.statusCode, broken.json().code]).toEqual([500, 'internal_error'])
    expect(broken.body).not.toContain('secret_table')
    const failures = lines.map((line) => JSON.parse(line)).filter(({ event }) => event === 'request_failed')
    expect(failures).toEqual([
      expect.objectContaining({ code: 'unavailable', requestId: away.json().requestId }),
      expect.objectContaining({ code: 'internal_error', err: expect.objectContaining({ type: 'TypeError' }) }),
    ])
    expect(failures[1].err.message).toContain('secret_table')
  })

  it.each(['/nothing', '/v1/wallets/a/b/c', '/health/ready/x', '/%zz'])(
    'of a path that is not there: %s',
    async (url) => {
      await makeApp()
      const response = await app.inject(url)
      expect(response.headers['content-type']).toBe('application/problem+json')
      expect(response.json()).toMatchObject(
        url === '/%zz'
          ? { status: 400, code: 'invalid_argument' }
          : {
              status: 404,
              code: 'route_not_found',
              detail: 'There is nothing at GET of this path: /docs shows what there is',
            },
      )
    },
  )

  it('of a method that is not there', async () => {
    await makeApp()
    const response = await app.inject({ method: 'DELETE', url: '/health/live' })
    expect(response.json()).toMatchObject({ status: 404, code: 'route_not_found' })
  })

  it.each([
    [{ amount: '100' }, 'body.amount: expected an integer, got "100"'],
    [{ amount: 1.5 }, 'body.amount: expected an integer, got 1.5'],
    [{ amount: 0 }, 'body.amount: expected >= 1, got 0'],
    [{ amount: null }, 'body.amount: expected an integer, got null'],
    [{}, 'body.amount: expected a value, got nothing'],
    [{ amount: 1, amuont: 2 }, 'body.amuont: expected no such member, got one'],
    [{ amount: 1, beyond: 'all' }, 'body.beyond: expected one of reject, available, got "all"'],
    [{ amount: 'x'.repeat(1000) }, `body.amount: expected an integer, got "${'x'.repeat(59)}…`],
    [[1], 'body: expected an object, got an array'],
  ])('of a body names the place, what was expected and what came: %j', async (payload, detail) => {
    await makeApp()
    const response = await debit(payload)
    expect(response.statusCode).toBe(400)
    expect(response.json()).toMatchObject({ code: 'invalid_argument', detail })
  })

  it('of a query says so, while numbers in it are read out of text', async () => {
    await makeApp()
    const tooMuch = await debit({ amount: 1 }, '/tried/user_42/debits?limit=101')
    expect(tooMuch.json().detail).toBe('query.limit: expected <= 100, got 101')
    const fine = await debit({ amount: 1 }, '/tried/user_42/debits?limit=99')
    expect(fine.json()).toEqual({ query: { limit: 99 } })
  })

  it.each([
    ['{"amount": 1', 'application/json', 400, 'invalid_argument'],
    ['', 'application/json', 400, 'invalid_argument'],
    ['<amount>1</amount>', 'application/xml', 400, 'invalid_argument'],
    [JSON.stringify({ amount: 1, beyond: 'x'.repeat(300_000) }), 'application/json', 413, 'too_large'],
  ])('of a body that is no JSON or too large: %.20s', async (payload, type, status, code) => {
    await makeApp()
    const response = await app.inject({
      method: 'POST',
      url: '/tried/user_42/debits',
      payload,
      headers: { 'content-type': type },
    })
    expect(response.json()).toMatchObject({ status, code })
  })

  it('of a body of another kind names the header that is missing', async () => {
    await makeApp()
    const type = 'application/x-www-form-urlencoded'
    const url = '/tried/user_42/debits'
    const response = await app.inject({ method: 'POST', url, payload: '{}', headers: { 'content-type': type } })
    expect(response.json()).toMatchObject({
      status: 400,
      argument: 'header.content-type',
      detail:
        'header.content-type: expected application/json, got something else. Add the header Content-Type: application/json',
    })
  })

  it('of what is not even HTTP is a problem too', async () => {
    await makeApp()
    await app.listen({ host: '127.0.0.1', port: 0 })
    const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1')
    socket.end('HELLO there\r\n\r\n')
    const answer = await text(socket)
    expect(answer).toMatch(/^HTTP\/1.1 400 /)
    expect(answer).toContain('content-type: application/problem+json')
    expect(JSON.parse(answer.split('\r\n\r\n')[1] as string)).toMatchObject({ code: 'invalid_argument' })
  })
})

describe('every answer', () => {
  it.each(['/health/live', '/nothing', '/rejected', '/metrics', '/openapi.json', '/docs'])(
    'carries security headers and an id: %s',
    async (url) => {
      await makeApp()
      const { headers } = await app.inject(url)
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
        'cross-origin-resource-policy': 'same-origin',
        'content-security-policy': expect.stringMatching(/default-src 'none'.*frame-ancestors 'none'/),
        'x-request-id': expect.stringMatching(/^[\w-]{36}$/),
      })
      expect(headers).not.toHaveProperty('x-powered-by')
      expect(headers).not.toHaveProperty('server')
    },
  )

  it('repeats the id that came, unless it could do harm', async () => {
    await makeApp()
    const idFor = async (id: string) =>
      (await app.inject({ url: '/', headers: { 'x-request-id': id } })).headers['x-request-id']
    expect(await idFor('trace-1.2_3')).toBe('trace-1.2_3')
    for (const harmful of ['alice@example.com', 'a b', 'x'.repeat(65), '{"a":1}']) {
      expect(await idFor(harmful)).toMatch(/^[\w-]{36}$/)
    }
  })
})

describe('what is measured and logged', () => {
  it('names the route by its pattern, and nothing that the caller sent', async () => {
    await makeApp()
    await app.inject({
      method: 'POST',
      url: '/tried/user_42/debits?token=hunter2',
      headers: { authorization: 'Bearer hf_live_abcdef', 'idempotency-key': 'order-17', cookie: 'session=hunter2' },
      payload: { amount: 1 },
    })
    await app.inject('/v1/customers/user_42?token=hunter2')
    const metrics = (await app.inject('/metrics')).body
    expect(metrics).toContain(
      'http_request_duration_seconds_count{method="POST",route="/tried/:id/debits",status="2xx"} 1\n',
    )
    expect(metrics).toContain('http_request_duration_seconds_count{method="GET",route="none",status="4xx"} 1\n')
    expect(metrics).toContain('\nhttp_requests_in_flight 1\n')

    const requests = lines.map((line) => JSON.parse(line)).filter(({ event }) => event === 'request')
    expect(requests[0]).toEqual({
      level: 'info',
      time: expect.any(String),
      event: 'request',
      requestId: expect.any(String),
      method: 'POST',
      route: '/tried/:id/debits',
      status: 200,
      durationMs: expect.any(Number),
    })
    for (const hidden of ['user_42', 'hunter2', 'hf_live', 'order-17']) {
      expect(lines.join('')).not.toContain(hidden)
      expect(metrics).not.toContain(hidden)
    }
  })

  it('logs probes only when asked for details', async () => {
    await makeApp()
    await app.inject('/health/live')
    await app.inject('/metrics')
    const levels = lines
      .map((line) => JSON.parse(line))
      .filter(({ event }) => event === 'request')
      .map(({ level }) => level)
    expect(levels).toEqual(['debug', 'debug'])
  })
})

describe('the description of the API', () => {
  interface OpenApi {
    openapi: string
    info: { version: string }
    paths: Record<
      string,
      Record<string, { operationId?: string; summary?: string; tags?: string[]; responses: object }>
    >
  }

  it('is OpenAPI 3.1 and covers every public route', async () => {
    await makeApp()
    const response = await app.inject('/openapi.json')
    expect(response.headers['content-type']).toBe('application/json; charset=utf-8')
    const { openapi, info, paths } = response.json<OpenApi>()
    expect([openapi, info.version]).toEqual(['3.1.0', '1.2.3'])
    const own = ['/health/live', '/health/ready', '/health', '/metrics', '/openapi.json']
    expect(Object.keys(paths)).toEqual(expect.arrayContaining(own))
    const operations = own.flatMap((path) => Object.values(paths[path] ?? {}))
    for (const operation of operations)
      expect(operation).toMatchObject({ summary: expect.any(String), tags: [expect.any(String)] })
    const ids = operations.map(({ operationId }) => operationId)
    expect(new Set(ids).size).toBe(own.length)
    expect(Object.keys(paths['/health/ready']?.get?.responses ?? {})).toEqual(['200', '503'])
  })

  it('has a page for people that loads nothing from elsewhere', async () => {
    await makeApp()
    const page = await app.inject('/docs')
    expect([page.statusCode, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
    const references = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, reference]) => reference as string)
    expect(references.length).toBeGreaterThan(3)
    for (const reference of references) {
      expect(reference).toMatch(/^\/docs\//)
      expect([reference, (await app.inject(reference)).statusCode]).toEqual([reference, 200])
    }
    const initializer = (await app.inject('/docs/static/swagger-initializer.js')).body
    expect(initializer).toContain('"validatorUrl":null')
    expect(page.headers['content-security-policy']).not.toMatch(/https?:|upgrade-insecure/)
  })
})
