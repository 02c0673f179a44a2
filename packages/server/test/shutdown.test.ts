import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { type PostgresHandle, startPostgres } from '@holdfast/services'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { freshRedis } from '../../../test/servers.js'
import { type HoldfastProcess, holdfast } from './support/holdfast.js'

let postgres: PostgresHandle
beforeAll(async () => {
  postgres = await startPostgres({ durable: false })
})
afterEach(() => postgres.resume())
afterAll(() => postgres?.stop())

/**
 * A request that is slow for a real reason: Postgres is held, so that the question whether it is ready has to wait for the
 * health timeout.
 */
async function startWithSlowRequest({ slowMs, graceMs }: { slowMs: number; graceMs: number }) {
  const server = await holdfast(
    ['serve', '--port', '0', '--migrate', '--health-timeout-ms', `${slowMs}`, '--shutdown-timeout-ms', `${graceMs}`],
    { env: { REDIS_URL: await freshRedis(), DATABASE_URL: postgres.url } },
  )
  const url = await server.ready()
  postgres.pause()
  const answer = fetch(`${url}/health/ready`).then(
    async (response) => ({ status: response.status, body: await response.json() }),
    (error: Error) => error,
  )
  await untilInFlight(url)
  return { server, url, answer }
}

/** It has to be seen while it is under way, also by one who stands still for a moment. */
const SLOW = { slowMs: 5_000, graceMs: 30_000 }

/** The slow one, and the one that asks. */
async function untilInFlight(url: string): Promise<void> {
  const deadline = performance.now() + 30_000
  for (;;) {
    const metrics = await (await fetch(`${url}/metrics`)).text()
    if (/^http_requests_in_flight 2$/m.test(metrics)) return
    const [inFlight] = /^http_requests_in_flight .*$/m.exec(metrics) ?? ['nothing of it']
    if (performance.now() > deadline) throw new Error(`The slow request was never seen under way: ${inFlight}`)
  }
}

async function untilRefused(url: string): Promise<void> {
  for (;;) {
    const refused = await fetch(`${url}/health/live`).then(
      () => false,
      () => true,
    )
    if (refused) return
  }
}

const isRunning = (server: HoldfastProcess) => {
  try {
    return process.kill(server.pid, 0)
  } catch {
    return false
  }
}

describe('a stop', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)(
    'by %s finishes what is in flight, takes nothing new, and exits with 0',
    async (signal) => {
      const { server, url, answer } = await startWithSlowRequest(SLOW)
      server.signal(signal)
      await untilRefused(url)
      expect(isRunning(server)).toBe(true)
      expect(await answer).toMatchObject({ status: 503, body: { away: ['postgres'], stopping: true } })
      postgres.resume()
      expect(await server.ended).toMatchObject({ code: 0, signal: null })
    },
  )

  it('cuts what does not end in time, and exits with 1', async () => {
    const { server, answer } = await startWithSlowRequest({ slowMs: 20_000, graceMs: 300 })
    const startedAt = performance.now()
    server.signal('SIGTERM')
    expect(await answer).toBeInstanceOf(Error)
    postgres.resume()
    expect(await server.ended).toMatchObject({ code: 1, signal: null })
    expect(performance.now() - startedAt).toBeLessThan(12_000)
  })

  it('takes a signal that comes twice at the same moment, as under npm, for one', async () => {
    const { server, answer } = await startWithSlowRequest(SLOW)
    server.signal('SIGINT')
    server.signal('SIGTERM')
    expect(await answer).toMatchObject({ status: 503 })
    postgres.resume()
    expect(await server.ended).toMatchObject({ code: 0 })
  })

  it('is over at once when it is asked for again', async () => {
    const { server, answer } = await startWithSlowRequest({ slowMs: 20_000, graceMs: 60_000 })
    const startedAt = performance.now()
    const asking = setInterval(() => server.signal('SIGTERM'), 100)
    const ended = await server.ended
    clearInterval(asking)
    expect(ended).toMatchObject({ code: 143 })
    expect(performance.now() - startedAt).toBeLessThan(12_000)
    expect(await answer).toBeInstanceOf(Error)
  })

  it('does not wait for connections that are only kept open', async () => {
    const server = await holdfast(['serve', '--port', '0', '--migrate'], {
      env: { REDIS_URL: await freshRedis(), DATABASE_URL: postgres.url },
    })
    const url = await server.ready()
    const agent = new Agent({ keepAlive: true })
    const [response] = (await once(get(`${url}/health/live`, { agent }), 'response')) as [IncomingMessage]
    response.resume()
    await once(response, 'end')
    const startedAt = performance.now()
    expect(await server.stop()).toMatchObject({ code: 0 })
    // Waited for, it would be cut after ten seconds.
    expect(performance.now() - startedAt).toBeLessThan(9_000)
    agent.destroy()
  })
})
