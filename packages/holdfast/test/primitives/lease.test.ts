import fc from 'fast-check'
import { HoldfastError } from 'holdfast'
import { type HeldLease, Leases, Primitives } from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { KeySpace } from '../../src/primitives/keys.js'
import { leaseTake, lockRelease } from '../../src/redis/scripts.generated.js'
import { whileAway } from './support/away.js'
import { PATIENT } from './support/patient.js'
import { type On, onSingle, SECRET, TOPOLOGIES } from './support/topologies.js'

const LONG = { ttlMs: 60_000 }
/** Generous: the machine may be busy. */
const SOON = { timeout: 20_000 }
/** One that is short may be over before it is had, and is then asked for again. */
const AGAIN = { retry: { times: 100, capMs: 100 } }
const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })

async function held(leases: Leases, scope: string, options = {}): Promise<HeldLease> {
  const acquired = await leases.acquire(scope, options)
  if (acquired.result === 'busy') throw new Error('It was to be free')
  return acquired.lease
}

/** The key of a lock, as the library makes it. */
const lockOf = ({ primitives }: On, operation: string, scope: string): string =>
  new KeySpace(primitives.context, 'lease', operation).scope(scope).base

describe.each(TOPOLOGIES)('leases on %s', (_, open) => {
  let on: On
  let other: Primitives
  beforeAll(async () => {
    on = await open()
    other = await Primitives.connect({ redis: on.redis, secret: SECRET, ...PATIENT })
  })
  afterAll(async () => {
    await other.close()
    await on.close()
  })

  it('missing key, keys, ttl present: a lease is one key, with a token beside it; neither tells whose it is', async () => {
    const operation = on.operation()
    const lease = await held(new Leases(on.primitives, operation), 'invoice 17 of jo@example.com', LONG)
    const keys = await on.keys(operation)
    const base = `hf:app:lease:v1:default:${operation}:\\{[0-9a-f]{32}\\}`
    expect(keys).toEqual([expect.stringMatching(`^${base}$`), expect.stringMatching(`^${base}:token$`)])
    const [lock = '', token = ''] = keys
    expect(await on.redis.pttl(lock)).toBeGreaterThan(50_000)
    expect(await on.redis.pttl(lock)).toBeLessThanOrEqual(60_000)
    expect(await on.redis.pttl(token)).toBeGreaterThan(86_000_000)
    expect(await on.redis.get(token)).toBe(String(lease.token))
    expect(lease.leftMs).toBeLessThanOrEqual(57_000)
    expect(await lease.release()).toBe('released')
    expect(lease.leftMs).toBe(0)
    expect(await on.keys(operation)).toEqual([token])
  })

  it('existing key, duplicate: whoever asks for one that is held gets busy, and how long at most; also its holder', async () => {
    const operation = on.operation()
    const leases = new Leases(on.primitives, operation, LONG)
    const elsewhere = new Leases(other, operation)
    const lease = await held(leases, 'a')
    for (const one of [leases, elsewhere]) {
      const busy = await one.acquire('a')
      expect(busy).toEqual({ result: 'busy', leftMs: expect.any(Number) })
      expect((busy as { leftMs: number }).leftMs).toBeGreaterThan(50_000)
      expect((busy as { leftMs: number }).leftMs).toBeLessThanOrEqual(60_000)
    }
    const beside = await held(elsewhere, 'b')
    expect(await beside.release()).toBe('released')
    expect(await lease.release()).toBe('released')
    expect(await lease.release()).toBe('released')
    expect(await lease.renew()).toBe('lost')
    expect(await (await held(elsewhere, 'a')).release()).toBe('released')
  })

  it('duplicate: a taking whose answer was lost, sent again, is one taking', async () => {
    const { runner } = on.primitives.context
    const tag = `{${on.operation()}}`
    const keys = [tag, `${tag}:token`]
    const first = (await runner.run(leaseTake, keys, [1, 'me', 60_000])) as Buffer[]
    const again = (await runner.run(leaseTake, keys, [1, 'me', 60_000])) as Buffer[]
    expect(Number(again[0])).toBeGreaterThan(Number(first[0]))
    expect(await runner.run(leaseTake, keys, [1, 'you', 60_000])).toEqual([expect.any(Number)])
    expect(await runner.run(lockRelease, keys.slice(0, 1), [1, 'you'])).toEqual([0])
    expect(await runner.run(lockRelease, keys.slice(0, 1), [1, 'me'])).toEqual([1])
    expect(await runner.run(lockRelease, keys.slice(0, 1), [1, 'me'])).toEqual([0])
    await on.redis.del(keys[1] as string)
  })

  it('ttl kept: who finds it busy does not move its end, nor its token', async () => {
    const operation = on.operation()
    const lease = await held(new Leases(on.primitives, operation, { ttlMs: 60_000, autoRenew: false }), 'a')
    const [lock = '', token = ''] = await on.keys(operation)
    await on.redis.pexpire(lock, 40_000)
    await on.redis.pexpire(token, 45_000)
    await new Leases(other, operation).acquire('a', LONG)
    expect(await on.redis.pttl(lock)).toBeLessThanOrEqual(40_000)
    expect(await on.redis.pttl(token)).toBeLessThanOrEqual(45_000)
    expect(await on.redis.get(token)).toBe(String(lease.token))
    expect(await lease.renew()).toBe('renewed')
    expect(await on.redis.pttl(lock)).toBeGreaterThan(50_000)
    await lease.release()
  })

  it('expired: the signal fires before anybody else can have it; then it is lost, and nothing throws', async () => {
    const operation = on.operation()
    const leases = new Leases(on.primitives, operation)
    const lease = await held(leases, 'a', { ttlMs: 1_000, autoRenew: false, ...AGAIN })
    const lock = lockOf(on, operation, 'a')
    await aborted(lease.signal)
    expect(lease.signal.reason).toMatchObject({ code: 'lock_lost' })
    expect(lease.signal.reason.message).toBe('The lease was lost. It was not renewed in time.')
    expect(await lease.renew()).toBe('lost')
    expect(await lease.release()).toBe('lost')
    await expect.poll(() => on.redis.exists(lock), SOON).toBe(0)
    const next = await held(new Leases(other, operation), 'a')
    expect(next.token).toBeGreaterThan(lease.token)
    await next.release()
    expect(on.logged.at(-1)).toMatchObject({ event: 'lease_lost', facts: { operation, tenantId: 'default' } })
  })

  it('wrong state: one that somebody else has by now is neither renewed nor given back', async () => {
    const operation = on.operation()
    const leases = new Leases(on.primitives, operation, LONG)
    const first = await held(leases, 'a')
    const second = await held(leases, 'b')
    const locks = (await on.keys(operation)).filter((key) => !key.endsWith(':token'))
    await on.redis.del(locks[0] as string)
    await on.redis.del(locks[1] as string)
    const thief = [await held(new Leases(other, operation, LONG), 'a'), await held(new Leases(other, operation), 'b')]
    expect(await first.release()).toBe('lost')
    expect(await second.renew()).toBe('lost')
    expect(second.signal.reason).toMatchObject({ code: 'lock_lost', retryable: true })
    expect(await second.release()).toBe('lost')
    for (const lease of thief) expect(await lease.release()).toBe('released')
  })

  it('wrong type, serialization: something else in its place is told, and left as it is', async () => {
    const operation = on.operation()
    const leases = new Leases(on.primitives, operation, LONG)
    const lease = await held(leases, 'a')
    const [lock = '', token = ''] = await on.keys(operation)
    await lease.release()
    on.counted('lease')
    for (const spoil of [
      () => on.redis.lpush(lock, 'x'),
      () => on.redis.set(lock, 'without an end'),
      () => on.redis.set(token, 'no number'),
      () => on.redis.set(token, '9007199254740991'),
      () => on.redis.hset(token, 'a', 'b'),
    ]) {
      await on.redis.del(lock)
      await on.redis.del(token)
      await spoil()
      await expect(leases.acquire('a')).rejects.toMatchObject({ code: 'value_damaged', operation })
      expect(await on.keys(operation)).toHaveLength(1)
    }
    expect(on.counted('lease')).toEqual({ damaged: 5 })
    await on.redis.del(token)
  })

  it('script return type: tokens are exact, and grow whatever the clock of the server has done', async () => {
    const operation = on.operation()
    const leases = new Leases(on.primitives, operation)
    const lease = await held(leases, 'a')
    await lease.release()
    const [token = ''] = await on.keys(operation)
    // As if the clock had been a hundred years ahead, and was put right.
    const ahead = lease.token + 100 * 365 * 86_400 * 1_000_000
    await on.redis.set(token, String(ahead), 'PX', 60_000)
    const next = await held(leases, 'a')
    expect(next.token).toBe(ahead + 1)
    // It stays until the clock has passed it: what came after it would be smaller.
    expect(await on.redis.pttl(token)).toBeGreaterThan(99 * 365 * 86_400 * 1_000)
    await next.release()
  })

  it('concurrency, metrics: many at once over two connections are one after the other, with growing tokens', async () => {
    on.counted('lease')
    const operation = on.operation()
    const tokens: number[] = []
    let inside = 0
    let most = 0
    const retry = { times: 10_000, baseMs: 2, capMs: 40 }
    const callers = Array.from({ length: 60 }, async (_, n) => {
      const leases = new Leases(n % 2 === 0 ? on.primitives : other, operation, { ttlMs: 30_000, retry })
      return leases.using('a', async ({ token }) => {
        inside += 1
        most = Math.max(most, inside)
        tokens.push(token)
        await new Promise((resolve) => setTimeout(resolve, 1))
        inside -= 1
      })
    })
    for (const done of await Promise.all(callers)) expect(done).toEqual({ result: 'done', ended: 'released' })
    expect(most).toBe(1)
    expect(tokens).toHaveLength(60)
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b))
    expect(on.counted('lease')).toEqual({ acquired: 30 })
  })

  it('renews by itself, but not for longer than it may be held', async () => {
    const operation = on.operation()
    const leases = new Leases(on.primitives, operation, { ttlMs: 5_000, heldMaxMs: 7_000 })
    const begunAt = performance.now()
    const lease = await held(leases, 'a')
    await aborted(lease.signal)
    const heldMs = performance.now() - begunAt
    expect(lease.signal.reason.message).toBe('The lease was lost. It was held for as long as it may be.')
    const next = await new Leases(other, operation).acquire('a', { retry: { times: 100, baseMs: 10 } })
    expect(next.result).toBe('acquired')
    // Never before its time was over in Redis.
    expect(performance.now() - begunAt).toBeGreaterThan(heldMs)
  })

  it('that Redis has forgotten: its holder is told at the next renewal', async () => {
    const operation = on.operation()
    const lease = await held(new Leases(on.primitives, operation, { ttlMs: 900, ...AGAIN }), 'a')
    await on.redis.del(lockOf(on, operation, 'a'))
    const next = await held(new Leases(other, operation, LONG), 'a')
    expect(next.token).toBeGreaterThan(lease.token)
    await aborted(lease.signal)
    expect(await lease.release()).toBe('lost')
    expect(await next.release()).toBe('released')
  })

  it('tries again as often as it is told, for no longer than it is told, or until it is free', async () => {
    const operation = on.operation()
    const leases = new Leases(on.primitives, operation, LONG)
    const lease = await held(leases, 'a')
    const elsewhere = new Leases(other, operation)
    expect((await elsewhere.acquire('a', { retry: { times: 2, baseMs: 1 } })).result).toBe('busy')
    expect((await elsewhere.acquire('a', { retry: { times: 10_000, baseMs: 5, maxWaitMs: 100 } })).result).toBe('busy')
    const waiting = elsewhere.acquire('a', { retry: { times: 10_000, baseMs: 5, capMs: 20 } })
    await lease.release()
    const next = await waiting
    expect(next.result).toBe('acquired')
    if (next.result === 'acquired') await next.lease.release()
  })

  it('is waited for no longer than the signal of the caller allows, which then fires that of the lease', async () => {
    const operation = on.operation()
    const leases = new Leases(on.primitives, operation, LONG)
    const controller = new AbortController()
    const { signal } = controller
    const lease = await held(leases, 'a', { signal })
    const waiting = leases.acquire('a', { signal, retry: { times: 10_000, baseMs: 5 } })
    setTimeout(() => controller.abort(), 20)
    await expect(waiting).rejects.toMatchObject({ code: 'aborted' })
    expect(lease.signal.reason).toMatchObject({ code: 'aborted' })
    // The work decides when it is done.
    expect(await leases.acquire('a')).toMatchObject({ result: 'busy' })
    expect(await lease.release()).toBe('released')
    await expect(leases.acquire('a', { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'aborted' })
    await expect.poll(async () => (await leases.acquire('a')).result, SOON).toBe('acquired')
  })

  it('model: any sequence of calls does what a map of holders does', async () => {
    const call = fc.record({
      what: fc.constantFrom('acquire', 'acquire', 'release', 'renew', 'forget'),
      scope: fc.constantFrom('a', 'b'),
      at: fc.nat(),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(call, { maxLength: 25 }), async (calls) => {
        const operation = on.operation()
        const leases = new Leases(on.primitives, operation, { ttlMs: 60_000, autoRenew: false })
        const holders = new Map<string, HeldLease>()
        const taken: Record<string, HeldLease[]> = { a: [], b: [] }
        for (const { what, scope, at } of calls) {
          const ours = taken[scope] as HeldLease[]
          const lease = ours[at % Math.max(1, ours.length)]
          if (what === 'acquire') {
            const acquired = await leases.acquire(scope)
            expect(acquired.result).toBe(holders.has(scope) ? 'busy' : 'acquired')
            if (acquired.result === 'busy') continue
            for (const { token } of ours) expect(acquired.lease.token).toBeGreaterThan(token)
            ours.push(acquired.lease)
            holders.set(scope, acquired.lease)
          } else if (what === 'forget') {
            await on.redis.del(lockOf(on, operation, scope))
            holders.delete(scope)
          } else if (lease && what === 'renew') {
            expect(await lease.renew()).toBe(holders.get(scope) === lease ? 'renewed' : 'lost')
          } else if (lease) {
            expect(await lease.release()).toBe(holders.get(scope) === lease ? 'released' : 'lost')
            if (holders.get(scope) === lease) holders.delete(scope)
            ours.splice(ours.indexOf(lease), 1)
          }
        }
        for (const lease of holders.values()) await lease.release()
      }),
      { numRuns: 20 },
    )
  })

  it('works under a lease: the result of the work, its error, or busy', async () => {
    const leases = new Leases(on.primitives, on.operation(), LONG)
    expect(await leases.using('a', () => 42)).toEqual({ result: 'done', value: 42, ended: 'released' })
    await expect(leases.using('a', () => Promise.reject(new Error('mine')))).rejects.toThrow('mine')
    const both = await leases.using('a', () => leases.using('a', () => 'never'))
    expect(both).toMatchObject({ result: 'done', value: { result: 'busy' }, ended: 'released' })
  })
})

describe('tokens from Postgres', () => {
  it('grow for good: also when Redis forgets everything, and over both sources', async () => {
    const on = await onSingle({ withPostgres: true })
    const leases = new Leases(on.primitives, 'send', LONG)
    expect(leases.tokens).toBe('postgres')
    const tokens: number[] = []
    for (let round = 0; round < 3; round += 1) {
      const lease = await held(leases, 'a')
      tokens.push(lease.token)
      await lease.release()
      await on.redis.flushdb()
    }
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b))
    expect(new Leases(on.primitives, 'send', { tokens: 'redis' }).tokens).toBe('redis')
    await on.close()
  })

  it('are refused where there is none', async () => {
    const on = await onSingle()
    expect(() => new Leases(on.primitives, 'send', { tokens: 'postgres' })).toThrow('postgres: expected a connection')
    expect(new Leases(on.primitives, 'send').tokens).toBe('redis')
    await on.close()
  })
})

describe('leases', () => {
  it('redis away: none is had, and no work is begun', async () => {
    const begun: string[] = []
    await whileAway(async (primitives) => {
      const leases = new Leases(primitives, 'send')
      await expect(leases.acquire('a')).rejects.toMatchObject({ code: 'unavailable', retryable: true })
      const work = () => begun.push('a')
      await expect(leases.using('a', work)).rejects.toMatchObject({ code: 'unavailable' })
    })
    expect(begun).toEqual([])
  })

  it('are lost when the connections are closed', async () => {
    const on = await onSingle()
    const leases = new Leases(on.primitives, 'send', LONG)
    const lease = await held(leases, 'a')
    await on.close()
    expect(lease.signal.reason).toMatchObject({ code: 'lock_lost' })
    expect(await lease.release()).toBe('lost')
    await expect(leases.acquire('a')).rejects.toMatchObject({ code: 'unavailable' })
  })

  it('metrics: each that was asked for is had or not, by reason', async () => {
    const counts: Record<string, number> = {}
    const on = await onSingle({
      telemetry: {
        count(metric, labels = {}) {
          if (!metric.startsWith('redis_lock')) return
          const name = [metric, ...Object.values(labels)].join(' ')
          counts[name] = (counts[name] ?? 0) + 1
        },
      },
    })
    const leases = new Leases(on.primitives, 'send', LONG)
    const lease = await held(leases, 'a')
    await leases.acquire('a', { retry: { times: 3, baseMs: 1 } })
    await leases.acquire('b', { signal: AbortSignal.abort() }).catch(() => {})
    await lease.release()
    expect(counts).toEqual({
      'redis_lock_attempts_total lease': 3,
      'redis_lock_success_total lease': 1,
      'redis_lock_failure_total lease busy': 1,
      'redis_lock_failure_total lease aborted': 1,
    })
    await on.close()
  })

  it.each<[string, (primitives: Primitives) => unknown, string]>([
    ['no time', (p) => new Leases(p, 'send', { ttlMs: 10 }), 'ttlMs: expected an integer from 50'],
    ['an end before its time', (p) => new Leases(p, 'send').acquire('a', { heldMaxMs: 60 }), 'heldMaxMs: expected'],
    ['a retry that is none', (p) => new Leases(p, 'send', { retry: 'often' as never }), "retry: expected 'none'"],
    ['no number of tries', (p) => new Leases(p, 'send', { retry: {} as never }), 'retry.times: expected an integer'],
    [
      'other tokens',
      (p) => new Leases(p, 'send', { tokens: 'none' as never }),
      "tokens: expected 'postgres' or 'redis'",
    ],
    ['work that is none', (p) => new Leases(p, 'send').using('a', 5 as never), 'work: expected a function'],
    ['two servers', (p) => new Leases([p, p], 'send'), 'primitives: expected one, or an odd number of different ones'],
    ['one server three times', (p) => new Leases([p, p, p], 'send'), 'got 3, 1 of them different'],
  ])('refuses %s', async (_, act, message) => {
    const on = await onSingle()
    const error: unknown = await (async () => act(on.primitives))().catch((reason) => reason)
    expect(HoldfastError.is(error, 'invalid_argument')).toBe(true)
    expect((error as HoldfastError).message).toContain(message)
    expect(await on.keys('send')).toEqual([])
    await on.close()
  })
})
