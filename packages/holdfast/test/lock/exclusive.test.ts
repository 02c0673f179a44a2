import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis, sharedCluster } from '../../../../test/servers.js'
import { Holdfast, HoldfastError, type Lock, type Wallet } from '../../src/index.js'
import { refusal, until } from '../api/support/paths.js'

/** On a machine that stands still for a moment Redis is not taken to be away. */
const PATIENT = { redisOptions: { commandTimeoutMs: 20_000, connectTimeoutMs: 20_000 }, timeout: 20_000 }

let redisUrl: string
let redis: Redis
let hf: Holdfast
let other: Holdfast
let takes = 0
let wallets = 0

beforeAll(async () => {
  redisUrl = await freshRedis()
  redis = new Redis(redisUrl)
  const options = { redis: redisUrl, postgres: await freshDatabase(), engine: { sweepEveryMs: 600_000 }, ...PATIENT }
  hf = await Holdfast.connect(options)
  other = await Holdfast.connect({
    ...options,
    telemetry: {
      observe: (_, __, labels) => {
        if (labels?.command === 'lock_take') takes += 1
      },
    },
  })
})
afterAll(async () => {
  await Promise.all([hf.close(), other.close()])
  redis.disconnect()
})

/** The same wallet, as two processes have it. */
function both(): [Wallet, Wallet] {
  wallets += 1
  return [hf.wallet(`wallet-${wallets}`), other.wallet(`wallet-${wallets}`)]
}

const lockKeys = () => redis.keys('*:lock:*')

/** Work that lasts until it is told to end. */
function lasting(wallet: Wallet, options?: Parameters<Wallet['exclusive']>[1]) {
  let end = () => {}
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  let begin: (lock: Lock) => void = () => {}
  const begun = new Promise<Lock>((resolve) => {
    begin = resolve
  })
  const done = wallet.exclusive(async (lock) => {
    begin(lock)
    await ended
    return 'done'
  }, options)
  return { begun, end, done }
}

describe('work under a lock', () => {
  it('gives its result, or its error, and leaves nothing behind', async () => {
    const [wallet] = both()
    expect(await wallet.exclusive(() => 42)).toBe(42)
    expect(await wallet.exclusive(async () => 'later')).toBe('later')
    await expect(wallet.exclusive(() => Promise.reject(new Error('mine')))).rejects.toThrow('mine')
    const sync = () => {
      throw new Error('at once')
    }
    await expect(wallet.exclusive(sync)).rejects.toThrow('at once')
    expect(await lockKeys()).toEqual([])
  })

  it('is alone, whoever else tries', async () => {
    const [wallet, elsewhere] = both()
    let inside = 0
    let most = 0
    let done = 0
    const work = async () => {
      inside += 1
      most = Math.max(most, inside)
      await new Promise((resolve) => setTimeout(resolve, 5))
      inside -= 1
      done += 1
    }
    const caller = async (one: Wallet) => {
      for (let n = 0; n < 5; n += 1) {
        await until(() =>
          one.exclusive(work).then(
            () => true,
            (error) => !HoldfastError.is(error, 'lock_busy') && Promise.reject(error),
          ),
        )
      }
    }
    await Promise.all([wallet, elsewhere, wallet, elsewhere].map(caller))
    expect([most, done]).toEqual([1, 20])
  })

  it('has a token that grows from one to the next, over wallets and processes', async () => {
    const tokens: number[] = []
    for (const wallet of [...both(), ...both()]) {
      tokens.push(await wallet.exclusive(({ token }) => token))
      tokens.push(await wallet.exclusive(({ token }) => token))
    }
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b))
  })

  it('keeps nobody from the wallet itself', async () => {
    const [wallet, elsewhere] = both()
    await wallet.open({ currency: 'usd' })
    await wallet.exclusive(async () => {
      expect(await elsewhere.credit(5, { key: 'a' })).toMatchObject({ available: 5 })
      expect(await wallet.debit(5, { key: 'b' })).toMatchObject({ available: 0 })
    })
  })

  it('lasts longer than the ttl: the lock is renewed', async () => {
    const [wallet, elsewhere] = both()
    const work = lasting(wallet, { ttl: 5_000 })
    const { signal } = await work.begun
    const started = Date.now()
    await until(() => Date.now() - started > 6_000)
    expect(signal.aborted).toBe(false)
    expect(await refusal(elsewhere.exclusive(() => 1))).toMatchObject({ code: 'lock_busy' })
    work.end()
    expect(await work.done).toBe('done')
    expect(await elsewhere.exclusive(() => 1)).toBe(1)
  })
})

describe('a lock that somebody else has', () => {
  it('is tried for three times more, then it is lock_busy, with a text for users', async () => {
    const [wallet, elsewhere] = both()
    const work = lasting(wallet)
    await work.begun
    takes = 0
    const started = Date.now()
    const error = await refusal(elsewhere.exclusive(() => 1))
    const tookMs = Date.now() - started
    expect(error).toMatchObject({ code: 'lock_busy', status: 423, retryable: true })
    expect(error.message).toBe('Something else is being done with this wallet right now. Please try again in a moment.')
    expect(error.retryAfterMs).toBeGreaterThan(0)
    expect(error.retryAfterMs).toBeLessThanOrEqual(5_000)
    expect(takes).toBe(4)
    expect(tookMs).toBeGreaterThanOrEqual(340)
    expect(tookMs).toBeLessThan(6_000)
    work.end()
    await work.done
  })

  it('is had as soon as it is free', async () => {
    const [wallet, elsewhere] = both()
    const work = lasting(wallet)
    const { token } = await work.begun
    const next = elsewhere.exclusive((lock) => lock.token)
    setTimeout(work.end, 50)
    expect(await next).toBeGreaterThan(token)
  })

  it('is waited for no longer than the caller wants', async () => {
    const [wallet, elsewhere] = both()
    const work = lasting(wallet)
    await work.begun
    expect(await refusal(elsewhere.exclusive(() => 1, { timeout: 30 }))).toMatchObject({
      code: 'timeout',
      timeoutMs: 30,
    })
    const controller = new AbortController()
    const call = refusal(elsewhere.exclusive(() => 1, { signal: controller.signal }))
    setImmediate(() => controller.abort())
    expect(await call).toMatchObject({ code: 'aborted' })
    expect(await refusal(elsewhere.exclusive(() => 1, { signal: AbortSignal.abort() }))).toMatchObject({
      code: 'aborted',
    })
    work.end()
    await work.done
    // Those who gave up took nothing with them.
    expect(await wallet.exclusive(() => 1)).toBe(1)
    expect(await lockKeys()).toEqual([])
  })

  it('is not the same as the lock of another tenant, or of another wallet', async () => {
    const [wallet] = both()
    const work = lasting(wallet)
    await work.begun
    expect(
      await hf
        .forTenant('acme')
        .wallet(wallet.id)
        .exclusive(() => 1),
    ).toBe(1)
    expect(await both()[0].exclusive(() => 2)).toBe(2)
    work.end()
    await work.done
  })
})

describe('a lock that is lost', () => {
  it('because Redis forgot it: work is told, the next has a larger token, and is left alone', async () => {
    const [wallet, elsewhere] = both()
    const first = lasting(wallet, { ttl: 6_000 })
    const { token, signal } = await first.begun
    await redis.del(...(await lockKeys()))
    const second = lasting(elsewhere)
    expect((await second.begun).token).toBeGreaterThan(token)
    await until(() => signal.aborted)
    expect(signal.reason).toMatchObject({ code: 'lock_lost', status: 423, retryable: true })
    // Only the work knows what it did: its result is its result.
    first.end()
    expect(await first.done).toBe('done')
    expect(await lockKeys()).toHaveLength(1)
    expect((await second.begun).signal.aborted).toBe(false)
    second.end()
    await second.done
  })

  it('before its holder has heard of it: what is given back is not the lock of somebody else', async () => {
    const [wallet, elsewhere] = both()
    const first = lasting(wallet, { ttl: 60_000 })
    await first.begun
    await redis.del(...(await lockKeys()))
    const second = lasting(elsewhere, { ttl: 60_000 })
    await second.begun
    first.end()
    expect(await first.done).toBe('done')
    expect(await refusal(wallet.exclusive(() => 1))).toMatchObject({ code: 'lock_busy' })
    second.end()
    await second.done
  })

  it('because this process was too busy to renew it', async () => {
    const [wallet] = both()
    const work = lasting(wallet, { ttl: 1_000 })
    const { signal } = await work.begun
    // It stands still for longer than the lock lasts.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_500)
    await until(() => signal.aborted)
    expect(signal.reason).toMatchObject({ code: 'lock_lost' })
    work.end()
    await work.done
  })

  it('because Holdfast was closed: work is told at once', async () => {
    const third = await Holdfast.connect({ redis: await freshRedis(), postgres: await freshDatabase() })
    const work = lasting(third.wallet('w'))
    const { signal } = await work.begun
    await third.close()
    expect(signal.reason).toMatchObject({ code: 'lock_lost' })
    expect(await refusal(third.wallet('w').exclusive(() => 1))).toMatchObject({ code: 'unavailable' })
    work.end()
    expect(await work.done).toBe('done')
  })
})

describe('the signal of the caller', () => {
  it('reaches the work, which keeps the lock until it has stopped', async () => {
    const [wallet, elsewhere] = both()
    const controller = new AbortController()
    const work = lasting(wallet, { signal: controller.signal })
    const { signal } = await work.begun
    controller.abort()
    expect(signal.reason).toMatchObject({ code: 'aborted' })
    expect(await refusal(elsewhere.exclusive(() => 1))).toMatchObject({ code: 'lock_busy' })
    work.end()
    await work.done
    expect(await elsewhere.exclusive(() => 1)).toBe(1)
  })
})

it('is refused as broken where somebody else has put something in its place', async () => {
  const [wallet] = both()
  const work = lasting(wallet)
  await work.begun
  const [key] = (await lockKeys()) as [string]
  work.end()
  await work.done
  await redis.hset(key, 'a', 1)
  expect(await refusal(wallet.exclusive(() => 1))).toMatchObject({ code: 'internal_error' })
  await redis.del(key)
})

it('works on a Cluster', async () => {
  const redis = { cluster: await sharedCluster() }
  const cluster = await Holdfast.connect({ redis, postgres: await freshDatabase(), ...PATIENT })
  const wallet = cluster.wallet('w')
  await wallet.exclusive(async () => {
    expect(await refusal(wallet.exclusive(() => 1))).toMatchObject({ code: 'lock_busy' })
  })
  expect(await wallet.exclusive(() => 1)).toBe(1)
  await cluster.close()
})
