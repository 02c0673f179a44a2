import { setTimeout as sleep } from 'node:timers/promises'
import { Cluster, Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  type ConnectionOptions,
  Keys,
  RedisConnection,
  RedisScriptRunner,
  type RedisTarget,
  RedisUnavailable,
} from '../../src/redis/index.js'
import { countNever, countSafe, script } from './support/scripts.js'
import { TOPOLOGIES, type Topology } from './support/topologies.js'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 7), shards: 16 })
let used = 0
/** A key that no other test uses. */
const freshKey = () => keys.place(keys.ref(`wallet ${++used}`)).walletKey

/** What can be written to. A Cluster client takes itself to be ready also when none of its nodes is. */
function readyNodes(connection: RedisConnection): number[] {
  const client = connection.take()
  const nodes = client instanceof Cluster ? client.nodes() : client ? [client] : []
  return nodes.filter(({ status }) => status === 'ready').map(({ options }) => options.port as number)
}

/** Which of 'ok', 'not_executed' and 'unknown' a call came to; anything else is a failure of the test. */
async function outcomeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call
    return 'ok'
  } catch (error) {
    if (error instanceof RedisUnavailable) return error.outcome
    throw error
  }
}

describe.each(Object.entries(TOPOLOGIES))('on %s', (name, start) => {
  let redis: Topology
  beforeAll(async () => {
    redis = await start()
  })
  afterAll(() => redis.stop())
  afterEach(() => {
    for (const proxy of redis.proxies) proxy.behave()
  })

  async function connect(options: ConnectionOptions = {}, target: RedisTarget = redis.target) {
    const connection = new RedisConnection(target, options)
    onTestFinished(() => connection.close())
    await connection.ready()
    return { connection, runner: new RedisScriptRunner(connection) }
  }
  /** Whichever server is asked next, its answer is lost, once. */
  const cutReplyTo = async (command: string) => {
    await Promise.race(redis.proxies.map((proxy) => proxy.cutReplyTo(command)))
    for (const proxy of redis.proxies) proxy.behave()
  }
  const stored = async (key: string) => Number(await redis.owner.get(key))

  it('passes keys and arguments in, and replies out', async () => {
    const { runner } = await connect()
    const echo = script('echo', 'keys 2 | resend safe', "return {KEYS[2], ARGV[1], #ARGV[2], {1, false, ARGV[3]}, ''}")
    const [one, other] = [keys.agenda(3), keys.agenda(3)]
    const reply = await runner.run(echo, [one, other], ['höld', Buffer.from([0, 255, 10]), 2 ** 53 - 1])
    const bytes = (text: string) => Buffer.from(text)
    expect(reply).toEqual([bytes(other as string), bytes('höld'), 3, [1, null, bytes('9007199254740991')], bytes('')])
  })

  it('survives SCRIPT FLUSH', async () => {
    const loads: string[] = []
    const { runner } = await connect({ telemetry: { count: (metric) => loads.push(metric) } })
    const key = freshKey()
    await redis.flushScripts()
    expect(await runner.run(countNever, [key], [])).toBe(1)
    expect(await runner.run(countNever, [key], [])).toBe(2)
    expect(loads).toEqual(['redis_script_loads_total'])
    await redis.flushScripts()
    const calls = Array.from({ length: 10 }, () => runner.run(countNever, [key], []))
    expect((await Promise.all(calls)).sort()).toEqual([10, 11, 12, 3, 4, 5, 6, 7, 8, 9])
  })

  it('does not send a `never` script again when its reply is lost', async () => {
    const { runner } = await connect()
    const key = freshKey()
    await runner.run(countNever, [key], [])
    const cut = cutReplyTo(countNever.sha1)
    const error = await runner.run(countNever, [key], []).catch((error: unknown) => error)
    expect(error).toMatchObject({ code: 'unavailable', outcome: 'unknown' })
    expect((error as Error).message).toMatch(/: the connection broke before the answer; it may have run$/)
    await cut
    expect(await stored(key)).toBe(2)
    // And nothing comes after it, on the next connection either.
    expect(await runner.run(countNever, [key], [])).toBe(3)
  })

  it('sends a `safe` script again when its reply is lost', async () => {
    const retries: unknown[] = []
    const { runner } = await connect({ telemetry: { count: (metric, labels) => retries.push([metric, labels]) } })
    const key = freshKey()
    await runner.run(countSafe, [key], [])
    const cut = cutReplyTo(countSafe.sha1)
    expect(await runner.run(countSafe, [key], [])).toBe(3)
    await cut
    expect(retries).toContainEqual(['redis_retries_total', { reason: 'lost' }])
  })

  it('gives up on a server that does not answer, and finds back', async () => {
    const { runner } = await connect({ commandTimeoutMs: 1_000 })
    const key = freshKey()
    await runner.run(countNever, [key], [])
    for (const proxy of redis.proxies) proxy.hold()
    const startedAt = performance.now()
    const error = await runner.run(countNever, [key], []).catch((error: unknown) => error)
    expect(error).toMatchObject({ code: 'unavailable', outcome: 'unknown' })
    expect((error as Error).message).toMatch(/^count-never on Redis at .*: no answer within 1000 ms; it may have run$/)
    expect(performance.now() - startedAt).toBeLessThan(10_000)
    for (const proxy of redis.proxies) proxy.behave()
    await expect.poll(() => outcomeOf(runner.run(countNever, [key], [])), { timeout: 20_000 }).toBe('ok')
  })

  it('leaves a connection that fell silent for a new one', async () => {
    const { runner } = await connect({ commandTimeoutMs: 1_000 })
    const key = freshKey()
    await runner.run(countNever, [key], [])
    for (const proxy of redis.proxies) proxy.freeze()
    expect(await outcomeOf(runner.run(countNever, [key], []))).toBe('unknown')
    await expect.poll(() => outcomeOf(runner.run(countNever, [key], [])), { timeout: 20_000 }).toBe('ok')
  })

  it('waits for a connection, and never runs what it gave up meanwhile', async () => {
    const { connection, runner } = await connect({ commandTimeoutMs: 1_000 })
    const key = freshKey()
    for (const proxy of redis.proxies) proxy.hold()
    for (const proxy of redis.proxies) proxy.cut()
    await expect.poll(() => readyNodes(connection), { timeout: 20_000 }).toEqual([])
    const calls = Array.from({ length: 5 }, () => outcomeOf(runner.run(countNever, [key], [])))
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['not_executed']))
    for (const proxy of redis.proxies) proxy.behave()
    let ran = 0
    await expect
      .poll(
        async () => {
          const outcome = await outcomeOf(runner.run(countNever, [key], []))
          if (outcome !== 'not_executed') ran += 1
          return outcome
        },
        { timeout: 20_000 },
      )
      .toBe('ok')
    expect(await stored(key)).toBeLessThanOrEqual(ran)
  })

  it('lets what was sent be answered when it closes, and refuses what comes after', async () => {
    const { connection, runner } = await connect()
    const key = freshKey()
    await runner.run(countNever, [key], [])
    const calls = Array.from({ length: 20 }, () => outcomeOf(runner.run(countNever, [key], [])))
    await connection.close()
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['ok']))
    await expect(runner.run(countNever, [key], [])).rejects.toMatchObject({ outcome: 'not_executed' })
    await expect(connection.ping()).rejects.toThrow('is closed')
  })

  it('takes a client that was brought as a pattern only', async () => {
    const { owner } = redis
    const brought =
      owner instanceof Redis
        ? owner.duplicate({ keyPrefix: 'theirs:', stringNumbers: true })
        : owner.duplicate([], { keyPrefix: 'theirs:', scaleReads: 'all' })
    onTestFinished(() => brought.disconnect())
    const { connection, runner } = await connect({}, brought)
    const key = freshKey()
    expect(await runner.run(countNever, [key], [])).toBe(1)
    expect(await stored(key)).toBe(1)
    await connection.close()
    expect(await brought.set(key, 'mine')).toBe('OK')
  })

  it('walks over all keys, also of masters that it has not talked to yet', async () => {
    const { runner } = await connect()
    const made = Array.from({ length: 32 }, freshKey)
    for (const key of made) await runner.run(countSafe, [key], [])
    const { connection } = await connect()
    const told = new Set<string>()
    for await (const portion of connection.scan('hf:test:*', 3)) for (const key of portion) told.add(key)
    expect(made.filter((key) => !told.has(key))).toEqual([])
  })

  it('answers a ping on every connection it makes', async () => {
    const { connection } = await connect({ connections: 3 })
    const inTurn = () => new Set([connection.take(), connection.take(), connection.take()])
    await expect.poll(() => inTurn().size, { timeout: 20_000 }).toBe(3)
    await Promise.all([connection.ping(), connection.ping(), connection.ping()])
  })

  it(`survives ${name === 'single' ? 'a restart' : 'a failover'} under load, and never runs a call twice`, async () => {
    const { runner } = await connect({ commandTimeoutMs: 500 })
    const key = freshKey()
    const seen = { ok: 0, unknown: 0, not_executed: 0 }
    let okAfter = 0
    let failedOver = false
    let stop = false
    const caller = async () => {
      while (!stop) {
        const outcome = (await outcomeOf(runner.run(countNever, [key], []))) as keyof typeof seen
        seen[outcome] += 1
        if (failedOver && outcome === 'ok') okAfter += 1
        await sleep(5)
      }
    }
    const callers = Array.from({ length: 8 }, caller)
    await expect.poll(() => seen.ok, { timeout: 20_000 }).toBeGreaterThan(50)
    await redis.failOver(key)
    failedOver = true
    await expect.poll(() => okAfter, { timeout: 60_000 }).toBeGreaterThan(50)
    stop = true
    await Promise.all(callers)
    expect(seen.unknown + seen.not_executed).toBeGreaterThan(0)
    // Redis may have lost what it acknowledged, but nothing can have run that was not sent, or twice.
    expect(await stored(key)).toBeLessThanOrEqual(seen.ok + seen.unknown)
  })
})
