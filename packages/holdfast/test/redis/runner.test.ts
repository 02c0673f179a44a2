import { inspect } from 'node:util'
import { type RedisHandle, startRedis } from '@holdfast/services'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { RedisConnection, RedisScriptRunner, ScriptError } from '../../src/redis/index.js'
import { ScriptCommand } from '../../src/redis/script-command.js'
import type { Telemetry } from '../../src/telemetry/index.js'
import { countNever, countSafe, script } from './support/scripts.js'

let server: RedisHandle
let owner: Redis
let connection: RedisConnection
let runner: RedisScriptRunner
/** What telemetry heard since the test began. */
const heard: unknown[] = []
const gauges = new Map<string, () => number>()
const telemetry: Telemetry = {
  count: (metric, labels) => heard.push([metric, labels]),
  observe: (metric, value, labels) => heard.push([metric, value > 0 && value < 5, labels]),
  gauge(metric, read) {
    gauges.set(metric, read)
    return () => gauges.delete(metric)
  },
}
const retries = () => heard.filter((event) => (event as unknown[])[0] === 'redis_retries_total')

beforeAll(async () => {
  server = await startRedis({ source: 'installed' })
  owner = new Redis(server.url)
  connection = new RedisConnection(server.url, { telemetry })
  runner = new RedisScriptRunner(connection)
  await connection.ready()
})
afterAll(async () => {
  runner.close()
  await connection.close()
  owner.disconnect()
  await server.stop()
})
beforeEach(async () => {
  await owner.flushall()
  heard.length = 0
})

describe('a call against the contract is not sent:', () => {
  const fixed = script('fixed', 'keys 2 | resend safe', 'return 1')
  const variable = script('variable', 'keys 1+ | resend safe', 'return #KEYS')
  const batch = script('batch', 'keys 1 | resend safe | batch 8 ARGV[2]', "return redis.call('INCR', KEYS[1])")

  it('too few or too many keys', async () => {
    await expect(runner.run(fixed, ['k'], [])).rejects.toThrow('script fixed: expected 2 keys, got 1')
    await expect(runner.run(fixed, ['k', 'k', 'k'], [])).rejects.toThrow('script fixed: expected 2 keys, got 3')
    await expect(runner.run(variable, [], [])).rejects.toThrow('script variable: expected at least 1 keys, got 0')
    expect(await runner.run(variable, ['k', 'k', 'k'], [])).toBe(3)
  })

  it('more commands than the batch cap, or none named', async () => {
    for (const count of [9, 1e9, -1, 1.5, 'x']) {
      await expect(runner.run(batch, ['k'], ['x', count])).rejects.toThrow(
        'script batch: expected at most 8 commands in ARGV[2], got',
      )
    }
    await expect(runner.run(batch, ['k'], [])).rejects.toThrow('got NaN')
    expect(await runner.run(batch, ['k'], ['x', 8])).toBe(1)
    expect(await runner.run(batch, ['k'], ['x', '8'])).toBe(2)
  })
})

describe('a script that breaks', () => {
  it('is an internal error with its name and the words of Redis, without the arguments', async () => {
    const broken = script('broken', 'keys 1 | resend safe', "return redis.call('INCR', KEYS[1], ARGV[1])")
    const error = await runner.run(broken, ['maria@example.com'], ['s3cret']).catch((error: unknown) => error)
    expect(error).toBeInstanceOf(ScriptError)
    expect(error).toMatchObject({ script: 'broken', outcome: 'unknown' })
    expect((error as Error).message).toMatch(/^script broken: ERR Wrong number of args calling Redis command/)
    expect(inspect(error, { depth: 9, showHidden: true })).not.toMatch(/s3cret|maria/)
  })

  it('is not tried again', async () => {
    const half = script('half', 'keys 1 | resend safe', "redis.call('INCR', KEYS[1]) error('half way')")
    await expect(runner.run(half, ['k'], [])).rejects.toThrow(/^script half: .*half way/)
    expect(await owner.get('k')).toBe('1')
    expect(retries()).toEqual([])
  })
})

describe('a server that refuses', () => {
  it('because it is a replica now: nothing ran, tried again three times', async () => {
    await owner.replicaof('127.0.0.1', 1)
    try {
      const error = await runner.run(countNever, ['k'], []).catch((error: unknown) => error)
      expect(error).toMatchObject({ code: 'unavailable', outcome: 'not_executed' })
      expect((error as Error).message).toMatch(
        /^count-never on Redis at 127\.0\.0\.1:\d+: READONLY .*; it did not run$/,
      )
      expect(retries().length).toBe(3)
    } finally {
      await owner.replicaof('NO', 'ONE')
    }
    expect(await runner.run(countNever, ['k'], [])).toBe(1)
  })

  it('for want of memory: nothing ran, not tried again', async () => {
    await runner.run(countNever, ['k'], [])
    await owner.config('SET', 'maxmemory', '1')
    try {
      await expect(runner.run(countNever, ['k'], [])).rejects.toMatchObject({ outcome: 'not_executed' })
      await expect(runner.run(countNever, ['k'], [])).rejects.toThrow(/: OOM .*; it did not run$/)
    } finally {
      await owner.config('SET', 'maxmemory', '0')
    }
    expect(retries()).toEqual([])
    expect(await owner.get('k')).toBe('1')
  })

  it('because another script runs for too long: nothing ran, tried again', async () => {
    await owner.config('SET', 'busy-reply-threshold', '1')
    try {
      const long = owner.eval('local n = 0 while n < 3e7 do n = n + 1 end return n', 0)
      await Promise.all([
        long,
        runner.run(countNever, ['k'], []).catch((error: unknown) => {
          expect(error).toMatchObject({ outcome: 'not_executed' })
        }),
      ])
      expect(retries()).toContainEqual(['redis_retries_total', { reason: 'busy' }])
    } finally {
      await owner.config('SET', 'busy-reply-threshold', '5000')
    }
  })
})

it('refuses more calls at a time than it may have under way', async () => {
  const narrow = new RedisScriptRunner(connection, { callsMax: 3 })
  const calls = Array.from({ length: 5 }, () => narrow.run(countSafe, ['k'], []))
  const results = await Promise.allSettled(calls)
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled', 'rejected', 'rejected'])
  expect((results[3] as PromiseRejectedResult).reason).toMatchObject({
    code: 'unavailable',
    outcome: 'not_executed',
    limit: 3,
    message: '3 Redis calls are under way, the most allowed',
  })
  expect(await narrow.run(countSafe, ['k'], [])).toBe(4)
  narrow.close()
})

it('times every call by script and outcome, and shows what is under way', async () => {
  const counting = new RedisScriptRunner(connection)
  const inFlight = () => gauges.get('redis_commands_in_flight')?.()
  const queued = () => gauges.get('redis_command_queue_length')?.()
  const calls = [counting.run(countSafe, ['k'], []), counting.run(countSafe, ['k'], [])]
  expect([inFlight(), queued()]).toEqual([2, 0])
  await Promise.all(calls)
  expect([inFlight(), queued()]).toEqual([0, 0])
  await counting.run(script('oops', 'keys 0 | resend safe', 'error(1)'), [], []).catch(() => {})
  const timed = (command: string, outcome: string) => ['redis_command_duration_seconds', true, { command, outcome }]
  const durations = heard.filter((event) => (event as unknown[])[0] === 'redis_command_duration_seconds')
  expect(durations).toEqual([timed('count-safe', 'ok'), timed('count-safe', 'ok'), timed('oops', 'error')])
  counting.close()
  expect(gauges.has('redis_commands_in_flight')).toBe(false)
})

it('never sends a call that was given up before it was sent, and replies stay in step', async () => {
  const client = owner.duplicate()
  try {
    const given = new ScriptCommand(countNever, true, ['k'], [])
    given.reject(new Error('given up'))
    await expect(given.promise).rejects.toThrow('given up')
    client.sendCommand(given)
    const next = new ScriptCommand(countNever, true, ['other'], [])
    client.sendCommand(next)
    expect(await next.promise).toBe(1)
    expect([given.sent, next.sent]).toEqual([false, true])
    expect(await client.get('k')).toBeNull()
    expect(await client.echo('still in step')).toBe('still in step')
  } finally {
    client.disconnect()
  }
})

it('works with the server in WebAssembly, where no other is installed', async () => {
  const wasm = await startRedis({ source: 'wasm' })
  const other = new RedisConnection(wasm.url)
  try {
    await other.ready()
    expect(await new RedisScriptRunner(other).run(countNever, ['k'], [])).toBe(1)
  } finally {
    await other.close()
    await wasm.stop()
  }
})
