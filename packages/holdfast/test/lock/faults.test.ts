/** What a lock is worth when processes and servers fail: real ones of both. */
import { type RedisHandle, startRedis } from '@holdfast/services'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { type ConnectOptions, Holdfast, type Wallet } from '../../src/index.js'
import { lockRenew, lockTake } from '../../src/redis/scripts.generated.js'
import { refusal, until } from '../api/support/paths.js'
import { type FaultyProxy, startProxy } from '../redis/support/proxy.js'
import { Holders } from './support/holders.js'

/**
 *     holder (process) ───────▶ Redis, Postgres
 *     this process ─▶ proxy ──▶ Redis, Postgres
 */
let server: RedisHandle
let holders: Holders
let direct: ConnectOptions & { redis: string; postgres: string }
let redisProxy: FaultyProxy
let postgresProxy: FaultyProxy
let hf: Holdfast
let wallet: Wallet
let count = 0

/** Renewed in time by a process that stands still for a moment. */
const TTL = 5_000
/** Of one that may lose it at any time. */
const SHORT_TTL = 1_000

beforeAll(async () => {
  holders = await Holders.prepare()
  server = await startRedis({ source: 'installed' })
  direct = {
    redis: server.url,
    postgres: await freshDatabase(),
    timeout: 60_000,
    redisOptions: { commandTimeoutMs: 20_000, connectTimeoutMs: 20_000 },
    postgresOptions: { connectTimeoutMs: 20_000, statementTimeoutMs: 20_000 },
    engine: { sweepEveryMs: 600_000 },
  }
  redisProxy = await startProxy(Number(new URL(direct.redis).port))
  postgresProxy = await startProxy(Number(new URL(direct.postgres).port))
  const behind = (proxy: FaultyProxy, url: string) => Object.assign(new URL(url), { port: String(proxy.port) }).href
  hf = await Holdfast.connect({
    ...direct,
    redis: behind(redisProxy, direct.redis),
    postgres: behind(postgresProxy, direct.postgres),
  })
})
afterAll(async () => {
  redisProxy.behave()
  postgresProxy.behave()
  await hf.close()
  await holders.stop()
  await Promise.all([redisProxy.close(), postgresProxy.close()])
  await server.stop()
})
beforeEach(() => {
  count += 1
  wallet = hf.wallet(`wallet-${count}`)
})

/** Tries until the lock is had. */
async function taken(): Promise<number> {
  let token = 0
  await until(async () => {
    token = await wallet.exclusive((lock) => lock.token).catch(() => 0)
    return token > 0
  })
  return token
}

describe('a process that holds the lock', () => {
  it('and dies: others have it when its time is over, with a larger token', async () => {
    const holder = await holders.start(direct, wallet.id, TTL)
    expect(await refusal(wallet.exclusive(() => 1))).toMatchObject({ code: 'lock_busy' })
    await holder.kill()
    const killedAt = Date.now()
    expect(await taken()).toBeGreaterThan(holder.token)
    expect(Date.now() - killedAt).toBeLessThan(TTL + 10_000)
  })

  it('and is paused: others have it; when it wakes it is told so, and takes nothing from them', async () => {
    const holder = await holders.start(direct, wallet.id, SHORT_TTL)
    holder.pause()
    let asleep = true
    await until(() =>
      wallet
        .exclusive(
          async ({ token, signal }) => {
            expect(token).toBeGreaterThan(holder.token)
            holder.resume()
            asleep = false
            // It has heard, tried to go on, and given back what is not its own any more.
            expect(await holder.end).toEqual({ type: 'lost', code: 'lock_lost' })
            expect(await refusal(wallet.exclusive(() => 1))).toMatchObject({ code: 'lock_busy' })
            expect(signal.aborted).toBe(false)
          },
          { ttl: 60_000 },
        )
        .then(
          () => true,
          (error) => (asleep ? false : Promise.reject(error)),
        ),
    )
  })

  it('and lets it go', async () => {
    const holder = await holders.start(direct, wallet.id, 60_000)
    holder.letGo()
    expect(await holder.end).toEqual({ type: 'released' })
    expect(await wallet.exclusive(({ token }) => token)).toBeGreaterThan(holder.token)
  })
})

describe('Redis', () => {
  it('that lost its memory: who had the lock is told, and tokens go on growing', async () => {
    const holder = await holders.start(direct, wallet.id, SHORT_TTL)
    await server.kill()
    await server.restart()
    expect(await taken()).toBeGreaterThan(holder.token)
    expect(await holder.end).toEqual({ type: 'lost', code: 'lock_lost' })
  })

  it.each([
    ['lock_take', lockTake],
    ['lock_renew', lockRenew],
  ])('that ran %s and could not say so is asked again', async (_, script) => {
    const lost = redisProxy.cutReplyTo(script.sha1)
    expect(await wallet.exclusive(() => 'done')).toBe('done')
    await lost
  })

  it('that is away for less than the ttl costs nobody the lock', async () => {
    const redis = new Redis(direct.redis)
    const done = wallet.exclusive(
      async ({ signal }) => {
        redisProxy.refuse()
        const [key = ''] = await redis.keys('*:lock:*')
        // One renewal has failed by then.
        await until(async () => (await redis.pttl(key)) < 5_500)
        redisProxy.behave()
        await until(async () => (await redis.pttl(key)) > 8_000)
        return signal.aborted
      },
      { ttl: 9_000 },
    )
    expect(await done).toBe(false)
    redis.disconnect()
  })

  it('that is away for longer: work is told before anybody else can have the lock', async () => {
    const redis = new Redis(direct.redis)
    // When this process ran last, and before that: one that stands still can't be told until it goes on.
    let [before, last] = [Date.now(), Date.now()]
    const running = setInterval(() => {
      ;[before, last] = [last, Date.now()]
    }, 5)
    let [toldAt, endsAt] = [0, 0]
    await wallet.exclusive(
      async ({ signal }) => {
        redisProxy.refuse()
        const told = new Promise<number>((resolve) => signal.addEventListener('abort', () => resolve(before)))
        const [key = ''] = await redis.keys('*:lock:*')
        endsAt = await redis.pexpiretime(key)
        toldAt = await told
      },
      { ttl: 4_000 },
    )
    clearInterval(running)
    redis.disconnect()
    expect(toldAt).toBeGreaterThan(0)
    expect(toldAt).toBeLessThan(endsAt)
    expect(await refusal(wallet.exclusive(() => 1))).toMatchObject({ code: 'unavailable', retryable: true })
    redisProxy.behave()
    await taken()
  })
})

describe('Postgres', () => {
  it('that is away: no token, no lock, and nobody is kept waiting by it', async () => {
    postgresProxy.refuse()
    expect(await refusal(wallet.exclusive(() => 1, { ttl: 60_000 }))).toMatchObject({ code: 'unavailable' })
    postgresProxy.behave()
    await taken()
  })

  it('that gives the token too late: who has lost the lock meanwhile does not begin', async () => {
    const redis = new Redis(direct.redis)
    const locks = () => redis.keys('*:lock:*')
    postgresProxy.hold()
    const late = refusal(wallet.exclusive(() => 'begun', { ttl: 60_000 }))
    await until(async () => (await locks()).length === 1)
    // As when its time is over.
    await redis.del(...(await locks()))
    const holder = await holders.start(direct, wallet.id, 60_000)
    postgresProxy.behave()
    expect(await late).toMatchObject({ code: 'lock_busy' })
    holder.letGo()
    expect(await holder.end).toEqual({ type: 'released' })
    redis.disconnect()
  })

  it('that says nothing: the caller waits as long as it wants, and what comes later is given back', async () => {
    postgresProxy.hold()
    expect(await refusal(wallet.exclusive(() => 1, { ttl: 60_000, timeout: 50 }))).toMatchObject({ code: 'timeout' })
    postgresProxy.behave()
    await taken()
  })
})
