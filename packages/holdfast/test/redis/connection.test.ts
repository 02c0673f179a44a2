import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { inspect } from 'node:util'
import { startRedis } from '@holdfast/services'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type ConnectionOptions, RedisConnection, type RedisTarget } from '../../src/redis/index.js'
import type { Telemetry } from '../../src/telemetry/index.js'

function open(target: RedisTarget, options: ConnectionOptions = {}): RedisConnection {
  const connection = new RedisConnection(target, options)
  onTestFinished(() => connection.close())
  return connection
}

/** A port that nobody listens on, and that nobody gets while the test runs. */
async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function failureOf(promise: Promise<unknown>): Promise<Error> {
  return promise.then(
    () => {
      throw new Error('expected a rejection')
    },
    (error: Error) => error,
  )
}

describe('when nobody listens', () => {
  it('tries four times, then says where and why, without credentials', async () => {
    const port = await closedPort()
    const connection = open(`redis://alice:s3cret@127.0.0.1:${port}/2`)
    const startedAt = performance.now()
    const error = await failureOf(connection.ready())
    expect(error).toMatchObject({ code: 'unavailable', outcome: 'not_executed', retryable: true })
    expect(error.message).toBe(
      `Redis at 127.0.0.1:${port} is away: connect ECONNREFUSED 127.0.0.1:${port} (tried 4 times; still trying)`,
    )
    expect(inspect(error)).not.toContain('s3cret')
    // Three waits of 50, 100 and 200 ms, each at least half as long.
    expect(performance.now() - startedAt).toBeGreaterThan(174)
    expect(performance.now() - startedAt).toBeLessThan(20_000)
    // From now on at once: before anything that has to be waited for.
    const later = new Promise((resolve) => setImmediate(resolve, 'later'))
    expect(await Promise.race([failureOf(connection.ready()), later])).toBeInstanceOf(Error)
  })

  it('names the sentinels', async () => {
    const port = await closedPort()
    const connection = open({ sentinels: [{ host: '127.0.0.1', port }], name: 'main', sentinelPassword: 's3cret' })
    await expect(connection.ready()).rejects.toThrow(
      new RegExp(
        `^Redis at sentinel master main \\(127.0.0.1:${port}\\) is away: failed to connect to sentinel 127.0.0.1:${port} because`,
      ),
    )
  })

  it('names the nodes of a Cluster', async () => {
    const port = await closedPort()
    const connection = open({ cluster: [`redis://:s3cret@127.0.0.1:${port}`, { host: '127.0.0.1', port }] })
    await expect(connection.ready()).rejects.toThrow(
      new RegExp(`^Redis at cluster 127.0.0.1:${port}, 127.0.0.1:${port} is away: `),
    )
  })

  it('finds the server when it comes, and tells both', async () => {
    const server = await startRedis({ source: 'installed' })
    onTestFinished(() => server.stop())
    await server.kill()
    const logs: unknown[] = []
    const connection = open(server.url, { telemetry: { log: (level, event) => logs.push([level, event]) } })
    await failureOf(connection.ready())
    expect(logs).toEqual([['warn', 'redis_away']])
    await server.restart()
    await expect.poll(() => connection.take()?.status, { timeout: 20_000 }).toBe('ready')
    await connection.ping()
    expect(logs).toEqual([
      ['warn', 'redis_away'],
      ['info', 'redis_back'],
    ])
  })
})

describe('a server that', () => {
  it('wants another password is named without the one that was tried', async () => {
    const server = await startRedis({ source: 'installed' })
    onTestFinished(() => server.stop())
    const owner = new Redis(server.url)
    await owner.config('SET', 'requirepass', 'right')
    owner.disconnect()
    const error = await failureOf(open(`redis://:wr0ng@127.0.0.1:${server.port}`).ready())
    expect(error.message).toContain('WRONGPASS')
    expect(inspect(error)).not.toContain('wr0ng')
    await open(`redis://:right@127.0.0.1:${server.port}`).ping()
  })

  it('does not have the database is not used with another one', async () => {
    const server = await startRedis({ source: 'installed' })
    onTestFinished(() => server.stop())
    const logs: unknown[] = []
    const telemetry: Telemetry = { log: (level, event, facts) => logs.push([level, event, facts?.reason]) }
    const connection = open(`${server.url}/99`, { telemetry })
    const error = await failureOf(connection.ready())
    const reason = 'database 99: ERR DB index is out of range'
    expect(error).toMatchObject({ code: 'unavailable', outcome: 'not_executed' })
    expect(error.message).toContain(`is away: ${reason} (tried 4 times`)
    expect(connection.take()).toBeUndefined()
    expect(logs).toEqual([['warn', 'redis_away', reason]])
    await open({ port: server.port, db: 15 }).ping()
  })

  it('refuses the password says so, whichever database was wanted', async () => {
    const server = await startRedis({ source: 'installed' })
    onTestFinished(() => server.stop())
    const owner = new Redis(server.url)
    await owner.config('SET', 'requirepass', 'right')
    owner.disconnect()
    const error = await failureOf(open(`redis://:wrong@127.0.0.1:${server.port}/3`).ready())
    expect(error.message).toContain('WRONGPASS')
  })

  it('needs no password is used all the same, and that is told to the log and not to the console', async () => {
    const server = await startRedis({ source: 'installed' })
    onTestFinished(() => server.stop())
    const console = vi.spyOn(globalThis.console, 'warn')
    onTestFinished(() => console.mockRestore())
    const logs: unknown[] = []
    const telemetry: Telemetry = { log: (level, event, facts) => logs.push([level, event, facts?.setting]) }
    const connection = open(`redis://:s3cret@127.0.0.1:${server.port}`, { telemetry })
    await connection.ping()
    await server.kill()
    await expect.poll(() => connection.take()).toBeUndefined()
    await server.restart()
    await expect.poll(() => connection.take()?.status).toBe('ready')
    expect(console).not.toHaveBeenCalled()
    expect(logs.filter((log) => (log as string[])[1] === 'redis_setting')).toEqual([
      ['warn', 'redis_setting', 'password'],
    ])
    expect(JSON.stringify(logs)).not.toContain('s3cret')
  })

  it('accepts connections and says nothing is given up in time', async () => {
    const server = createServer(() => {}).listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const connection = open({ host: '127.0.0.1', port }, { commandTimeoutMs: 100 })
    await expect(connection.ready()).rejects.toThrow(/is away: (Command timed out|Socket timeout)/)
  })

  it('is reached by rediss:// gets a TLS handshake', async () => {
    const firstByte = new Promise<number | undefined>((resolve) => {
      const server = createServer((socket) => {
        socket.on('error', () => {})
        socket.once('data', (data) => {
          resolve(data[0])
          socket.destroy()
        })
      }).listen(0, '127.0.0.1', () => {
        open(`rediss://127.0.0.1:${(server.address() as AddressInfo).port}`)
      })
      onTestFinished(() => void server.close())
    })
    const TLS_HANDSHAKE = 0x16
    expect(await firstByte).toBe(TLS_HANDSHAKE)
  })
})

describe('bad input', () => {
  it.each([
    ['no URL', 'localhost:6379', /expected a URL like redis:/],
    ['another protocol', 'http://s3cret@localhost', /expected a URL like redis:/],
    ['nothing', undefined, /expected a URL, options or an ioredis client, got undefined/],
    ['a Cluster without nodes', { cluster: [] }, /redis.cluster: expected at least one node, got none/],
    ['a database that is none', { db: -1 }, /redis.db: expected the number of a database, got -1/],
    ['half a database', { db: 1.5 }, /redis.db: expected the number of a database, got 1.5/],
    [
      'a database by name',
      { db: 's3cret' },
      /redis.db: expected the number of a database, got a string of 6 characters/,
    ],
    [
      'a database of a Cluster',
      { cluster: ['redis://127.0.0.1'], options: { redisOptions: { db: 1 } } },
      /redis: expected no database, since a Cluster has only one, got one/,
    ],
    ['a client of another make', { duplicate() {} }, /expected a client of the ioredis that holdfast uses/],
  ])('%s', (_, target, message) => {
    const attempt = () => new RedisConnection(target as RedisTarget)
    expect(attempt).toThrow(message)
    expect(attempt).toThrow(expect.objectContaining({ code: 'invalid_argument' }) as Error)
    expect(attempt).not.toThrow(/s3cret/)
  })

  it.each([
    ['connections', 0],
    ['connections', 65],
    ['commandTimeoutMs', 1.5],
    ['commandTimeoutMs', Number.NaN],
    ['connectTimeoutMs', -1],
  ])('%s: %d', (name, value) => {
    expect(() => new RedisConnection('redis://127.0.0.1', { [name]: value })).toThrow(
      `redis ${name}: expected an integer from 1 to`,
    )
  })
})

it('counts its connections by state, and what is made anew', async () => {
  const server = await startRedis({ source: 'installed' })
  onTestFinished(() => server.stop())
  const gauges = new Map<string, () => number>()
  let reconnects = 0
  const telemetry: Telemetry = {
    gauge(_, read, labels) {
      const state = labels?.state as string
      gauges.set(state, read)
      return () => gauges.delete(state)
    },
    count: (metric) => {
      if (metric === 'redis_reconnects_total') reconnects += 1
    },
  }
  const states = () => Object.fromEntries([...gauges].map(([state, read]) => [state, read()]))
  const connection = open(server.url, { connections: 2, telemetry })
  expect(states()).toEqual({ connecting: 2, ready: 0, away: 0, closed: 0 })
  await expect.poll(states, { timeout: 20_000 }).toEqual({ connecting: 0, ready: 2, away: 0, closed: 0 })
  expect(reconnects).toBe(0)
  await server.kill()
  await expect.poll(states, { timeout: 20_000 }).toEqual({ connecting: 0, ready: 0, away: 2, closed: 0 })
  await server.restart()
  await expect.poll(states, { timeout: 20_000 }).toEqual({ connecting: 0, ready: 2, away: 0, closed: 0 })
  expect(reconnects).toBe(2)
  await connection.close()
  expect(gauges.size).toBe(0)
})

it('leaves no socket and no timer behind that keeps a process alive', async () => {
  const port = await closedPort()
  const before = process.getActiveResourcesInfo().length
  const connection = new RedisConnection(`redis://127.0.0.1:${port}`)
  await failureOf(connection.ready())
  await connection.close()
  await expect.poll(() => process.getActiveResourcesInfo().length, { timeout: 20_000 }).toBeLessThanOrEqual(before)
})

describe('a walk over all keys', () => {
  it('tells all of them, or fails: never some as if they were all', async () => {
    const server = await startRedis({ source: 'installed' })
    onTestFinished(() => server.stop())
    const { url } = server
    const redis = new Redis(url)
    onTestFinished(() => redis.disconnect())
    const keys = Array.from({ length: 500 }, (_, n) => `walk:${n}`)
    await redis.mset(Object.fromEntries(keys.map((key) => [key, '1'])))
    const connection = open(url)
    const told: string[] = []
    for await (const portion of connection.scan('walk:*', 10)) told.push(...portion)
    expect(new Set(told)).toEqual(new Set(keys))

    const walk = connection.scan('walk:*', 10)
    await walk.next()
    await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    // A moment later it has another connection, to whoever answers there now.
    await expect
      .poll(
        async () =>
          connection.ping().then(
            () => true,
            () => false,
          ),
        { timeout: 20_000 },
      )
      .toBe(true)
    const rest = (async () => {
      for await (const _ of walk) {
      }
    })()
    expect(await failureOf(rest)).toMatchObject({ code: 'unavailable' })
  })
})
