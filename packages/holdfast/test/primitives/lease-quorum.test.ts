/** Leases over three servers that know nothing of each other. */
import { type RedisHandle, startRedis } from '@holdfast/services'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { type HeldLease, Leases, Primitives } from '../../src/primitives/index.js'
import { PATIENT } from './support/patient.js'
import { withRunner } from './support/runners.js'
import { SECRET } from './support/topologies.js'

let servers: RedisHandle[]
let all: Primitives[]
let others: Primitives[]

beforeEach(async () => {
  servers = await Promise.all([0, 1, 2].map(() => startRedis({ source: 'installed' })))
  const connect = () =>
    Promise.all(servers.map(({ url }) => Primitives.connect({ redis: url, secret: SECRET, ...PATIENT })))
  all = await connect()
  others = await connect()
})
afterEach(async () => {
  await Promise.all([...all, ...others].map((primitives) => primitives.close()))
  await Promise.all(servers.map((server) => server.stop()))
})

async function held(leases: Leases): Promise<HeldLease> {
  const acquired = await leases.acquire('a')
  if (acquired.result === 'busy') throw new Error('It was to be free')
  return acquired.lease
}

async function keysOn(server: number): Promise<string[]> {
  const redis = new Redis((servers[server] as RedisHandle).url)
  const keys = await redis.keys('*')
  redis.disconnect()
  return keys.filter((key) => !key.endsWith(':token'))
}

/** From now on the server has nothing, as after a restart without its data. */
async function emptied(server: number): Promise<void> {
  const redis = new Redis((servers[server] as RedisHandle).url)
  await redis.flushall()
  redis.disconnect()
}

const everywhere = () => Promise.all([keysOn(0), keysOn(1), keysOn(2)])
/** Servers have a tenth of it to answer in. */
const LONG = { ttlMs: 60_000 }
/** Generous: the machine may be busy. */
const SOON_MS = 20_000

describe('a lease over three servers', () => {
  it('is on all of them, busy for others, and given back everywhere', async () => {
    const leases = new Leases(all, 'send', LONG)
    const lease = await held(leases)
    await vi.waitFor(async () => expect((await everywhere()).map(({ length }) => length)).toEqual([1, 1, 1]), SOON_MS)
    const busy = await new Leases(others, 'send', LONG).acquire('a')
    expect(busy).toEqual({ result: 'busy', leftMs: expect.any(Number) })
    expect(await lease.renew()).toBe('renewed')
    expect(await lease.release()).toBe('released')
    await vi.waitFor(async () => expect(await everywhere()).toEqual([[], [], []]), SOON_MS)
    expect(await lease.release()).toBe('released')
  })

  it('is not given back by what an earlier try has sent, however late a copy of that arrives', async () => {
    const theirs = await held(new Leases(others, 'send', LONG))
    const releases: (() => Promise<unknown>)[] = []
    const resending = all.map((primitives) =>
      withRunner(primitives, (run) => (script, keys, args) => {
        if (script.name === 'lock_release') releases.push(() => run(script, keys, args))
        return run(script, keys, args)
      }),
    )
    const acquiring = new Leases(resending, 'send', LONG).acquire('a', { retry: { times: 1_000, maxWaitMs: SOON_MS } })
    await vi.waitFor(() => expect(releases.length).toBeGreaterThanOrEqual(3), SOON_MS)
    await theirs.release()
    expect((await acquiring).result).toBe('acquired')
    await Promise.all(releases.map((again) => again()))
    expect(await new Leases(others, 'send', LONG).acquire('a')).toMatchObject({ result: 'busy' })
  })

  it('is had with one server down, and its tokens grow whichever two have given it', async () => {
    const leases = new Leases(all, 'send', LONG)
    const elsewhere = new Leases(others, 'send', LONG)
    const tokens: number[] = []
    for (const [down, server] of servers.entries()) {
      // The clock of one server has been ahead: its tokens are larger than those of the others will be for a long time.
      if (down === 1) {
        const redis = new Redis((servers[2] as RedisHandle).url)
        const [key = ''] = await redis.keys('*:token')
        await redis.set(key, String((tokens.at(-1) as number) + 1_000_000_000_000), 'PX', 100_000_000)
        redis.disconnect()
      }
      await server.pause()
      for (const one of [leases, elsewhere, leases]) {
        const lease = await held(one)
        tokens.push(lease.token)
        expect(await lease.renew()).toBe('renewed')
        expect(await lease.release()).toBe('released')
      }
      await server.resume()
      // It has answered all that it was asked meanwhile.
      await vi.waitFor(async () => expect(await everywhere()).toEqual([[], [], []]), SOON_MS)
    }
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b))
  }, 90_000)

  it('is not to be had with two servers down, and lost if they go down later', async () => {
    const leases = new Leases(all, 'send', { ttlMs: 6_000 })
    // Who did not answer in time is asked again.
    const lease = await vi.waitFor(() => held(leases), SOON_MS)
    await Promise.all([servers[0]?.stop(), servers[1]?.stop()])
    await expect(lease.renew()).rejects.toMatchObject({ code: 'unavailable' })
    await expect(leases.acquire('b')).rejects.toMatchObject({ code: 'unavailable', retryable: true })
    await vi.waitFor(() => expect(lease.signal.aborted).toBe(true), SOON_MS)
    expect(await lease.release()).toBe('lost')
    await vi.waitFor(async () => expect(await keysOn(2)).toEqual([]), SOON_MS)
  }, 90_000)

  it('that one server has forgotten is mended there; that two have forgotten at once is lost', async () => {
    const leases = new Leases(all, 'send', LONG)
    const lease = await held(leases)
    await vi.waitFor(async () => expect((await everywhere()).map(({ length }) => length)).toEqual([1, 1, 1]), SOON_MS)
    // Restarted without its data: until it is connected again it does not vote.
    await servers[0]?.kill()
    await servers[0]?.restart()
    await vi.waitFor(async () => {
      expect(await lease.renew()).toBe('renewed')
      expect(await keysOn(0)).toHaveLength(1)
    }, SOON_MS)
    for (const server of [1, 2]) {
      await emptied(server)
      expect(await lease.renew()).toBe('renewed')
      await vi.waitFor(async () => expect(await keysOn(server)).toHaveLength(1), SOON_MS)
    }
    await Promise.all([emptied(0), emptied(1)])
    expect(await lease.renew()).toBe('lost')
    // The third still has it for the one who lost it, the other two are enough, once the one that was restarted is found again.
    const next = await vi.waitFor(() => held(new Leases(others, 'send', LONG)), SOON_MS)
    expect(next.token).toBeGreaterThan(lease.token)
    await next.release()
  }, 90_000)

  it('has one holder at a time, however many ask', async () => {
    let inside = 0
    let most = 0
    const tokens: number[] = []
    const retry = { times: 10_000, baseMs: 4, capMs: 100 }
    const callers = Array.from({ length: 16 }, (_, n) =>
      new Leases(n % 2 === 0 ? all : others, 'send', { ...LONG, retry }).using('a', async ({ token }) => {
        inside += 1
        most = Math.max(most, inside)
        tokens.push(token)
        await new Promise((resolve) => setTimeout(resolve, 1))
        inside -= 1
      }),
    )
    for (const done of await Promise.all(callers)) expect(done).toMatchObject({ result: 'done' })
    expect(most).toBe(1)
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b))
  }, 90_000)

  it('has tokens from Postgres where one of them is connected with it', async () => {
    const postgres = await freshDatabase()
    const [first, ...rest] = all as [Primitives, Primitives, Primitives]
    const durable = await Primitives.connect({
      redis: (servers[0] as RedisHandle).url,
      postgres,
      secret: SECRET,
      ...PATIENT,
    })
    const leases = new Leases([durable, ...rest], 'send', LONG)
    expect(leases.tokens).toBe('postgres')
    expect(first.context.postgres).toBeNull()
    const tokens: number[] = []
    for (let round = 0; round < 3; round += 1) {
      const lease = await held(leases)
      tokens.push(lease.token)
      expect(await lease.release()).toBe('released')
    }
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b))
    await durable.close()
  })
})
