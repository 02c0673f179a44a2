import { type PostgresHandle, type RedisHandle, startPostgres, startRedis } from '@holdfast/services'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type HoldfastProcess, holdfast, run } from './support/holdfast.js'

let redis: RedisHandle
let postgres: PostgresHandle

beforeAll(async () => {
  ;[redis, postgres] = await Promise.all([startRedis({ source: 'installed' }), startPostgres({ durable: false })])
})
afterAll(async () => {
  await Promise.all([redis?.stop(), postgres?.stop()])
})

async function start(healthTimeoutMs = 20_000): Promise<{ server: HoldfastProcess; url: string }> {
  const env = { REDIS_URL: redis.url, DATABASE_URL: postgres.url }
  const flags = ['--port', '0', '--migrate', '--health-timeout-ms', `${healthTimeoutMs}`]
  const server = await holdfast(['serve', ...flags], { env })
  return { server, url: await server.ready() }
}

async function readiness(url: string): Promise<{ status: number; type: string | null; body: Record<string, unknown> }> {
  const response = await fetch(`${url}/health/ready`)
  return {
    status: response.status,
    type: response.headers.get('content-type'),
    body: (await response.json()) as Record<string, unknown>,
  }
}

/** Asks until it is ready again: that it comes by itself is the point, not when. */
async function untilReady(url: string): Promise<void> {
  for (;;) {
    if ((await readiness(url)).status === 200) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

describe('health, on real servers', () => {
  it('is ready, and says how long each took', async () => {
    const { url } = await start()
    const { status, body } = await readiness(url)
    expect(status).toBe(200)
    expect(body).toEqual({
      status: 'ready',
      checks: {
        redis: { status: 'up', durationMs: expect.any(Number) },
        postgres: { status: 'up', durationMs: expect.any(Number) },
      },
    })
    expect((await fetch(`${url}/health`)).status).toBe(200)
    expect(await (await fetch(`${url}/health/live`)).json()).toMatchObject({ status: 'live' })
  })

  it('is not ready when Postgres dies, stays alive, and recovers by itself', async () => {
    const { server, url } = await start()
    await postgres.kill()
    const { status, type, body } = await readiness(url)
    expect([status, type]).toEqual([503, 'application/problem+json'])
    expect(body).toMatchObject({ code: 'unavailable', retryable: true, away: ['postgres'], stopping: false })
    expect((await fetch(`${url}/health/live`)).status).toBe(200)
    expect(JSON.stringify(body)).not.toMatch(/127\.0\.0\.1/)

    await postgres.restart()
    await untilReady(url)
    // An answer may be faster than the line about it.
    await vi.waitFor(
      () => expect(server.stderr).toMatch(/"event":"dependency_away".*"event":"dependency_back"/s),
      20_000,
    )
  })

  it('is degraded when Redis dies, and does what it says it can', async () => {
    const { server, url } = await start()
    const env = { DATABASE_URL: postgres.url, REDIS_URL: redis.url }
    const { stdout } = await run(['keys', 'create', '--json'], { env })
    const headers = { authorization: `Bearer ${JSON.parse(stdout).key}`, 'content-type': 'application/json' }
    const wallet = `${url}/v1/wallets/without-redis`
    await fetch(wallet, { method: 'PUT', headers, body: '{"currency":"usd"}' })
    await redis.kill()
    const { status, body } = await readiness(url)
    expect(status).toBe(200)
    expect(body).toMatchObject({
      status: 'degraded',
      checks: { redis: { status: 'away' }, postgres: { status: 'up' } },
    })
    const credit = await fetch(`${wallet}/credits`, {
      method: 'POST',
      headers: { ...headers, 'idempotency-key': 'k' },
      body: '{"amount":7}',
    })
    expect([credit.status, await credit.json()]).toMatchObject([200, { available: 7, durability: 'ledger' }])

    await redis.restart()
    await vi.waitFor(async () => expect((await readiness(url)).body.status).toBe('ready'), 20_000)
    await vi.waitFor(() => expect(server.stderr).toMatch(/"event":"dependency_back"/), 20_000)
  })

  it.each([
    ['redis', 200],
    ['postgres', 503],
  ] as const)('answers in bounded time when %s hangs, and recovers', async (name, expected) => {
    // Longer than a machine stands still; less than a call waits by itself for an answer of Postgres.
    const { url } = await start(3_000)
    const dependency = name === 'redis' ? redis : postgres
    dependency.pause()
    try {
      const startedAt = performance.now()
      const { status, body } = await readiness(url)
      expect(performance.now() - startedAt).toBeLessThan(12_000)
      expect(status).toBe(expected)
      expect((body.checks as Record<string, { status: string }>)[name]?.status).toBe('away')
    } finally {
      dependency.resume()
    }
    await vi.waitFor(async () => expect((await readiness(url)).body.status).toBe('ready'), 20_000)
  })

  it('shows what it measured of Redis and Postgres', async () => {
    const { url } = await start()
    await readiness(url)
    const metrics = await (await fetch(`${url}/metrics`)).text()
    expect(metrics).toMatch(/postgres_query_duration_seconds_count\{query="ping",outcome="ok"\} [1-9]/)
    expect(metrics).toMatch(/postgres_pool_connections\{state="total"\} [1-9]/)
    expect(metrics).toContain('redis_connections{state="ready"} 1\n')
    expect(metrics).toMatch(
      /http_request_duration_seconds_count\{method="GET",route="\/health\/ready",status="2xx"\} 1\n/,
    )
  })

  it('writes nothing of what callers send, at the most talkative level', async () => {
    const env = { REDIS_URL: redis.url, DATABASE_URL: postgres.url }
    const server = await holdfast(['serve', '--port', '0', '--migrate', '--log-level', 'trace'], { env })
    const url = await server.ready()
    const headers = { authorization: 'Bearer hf_live_abcdef', 'idempotency-key': 'order-17', cookie: 'session=hunter2' }
    const requests = [
      '/v1/wallets/user_42?token=hunter2',
      '/health/ready?token=hunter2',
      '/%zz/user_42',
      '/docs?user_42',
    ]
    for (const path of requests) await (await fetch(`${url}${path}`, { headers })).text()
    const body = '{"wallet": "user_42", "email": "alice@example.com"'
    await fetch(`${url}/v1/wallets/user_42`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body,
    })
    const { stdout, stderr } = await server.stop()
    expect(stderr.match(/"event":"request"/g)?.length).toBeGreaterThanOrEqual(4)
    for (const hidden of [
      'user_42',
      'hunter2',
      'hf_live',
      'order-17',
      'alice',
      new URL(postgres.url).password || 'none!',
    ]) {
      expect(stdout + stderr).not.toContain(hidden)
    }
  })
})
