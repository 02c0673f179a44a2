import fc from 'fast-check'
import { Marker, Primitives } from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { whileAway } from './support/away.js'
import { PATIENT } from './support/patient.js'
import { type On, onSingle, SECRET, TOPOLOGIES } from './support/topologies.js'
import { twice } from './support/twice.js'

const DAY_MS = 24 * 60 * 60 * 1_000

describe.each(TOPOLOGIES)('marker on %s', (_, open) => {
  let on: On
  beforeAll(async () => {
    on = await open()
  })
  afterAll(() => on.close())

  it('missing key: the first claims it; who has nothing can neither extend nor release', async () => {
    const operation = on.operation()
    const marker = new Marker(on.primitives, operation)
    expect(await marker.peek('order-1')).toEqual({ result: 'free' })
    expect(await marker.extend('order-1', 'a token')).toBe('lost')
    expect(await marker.release('order-1', 'a token')).toBe('lost')
    expect(await on.keys(operation)).toEqual([])
    expect(await marker.tryClaim('order-1')).toEqual({
      result: 'claimed',
      token: expect.stringMatching(/^[0-9a-f]{32}$/),
    })
  })

  it('existing key, wrong state: others hear for how long; released, it can be claimed by others, and by its token no more', async () => {
    const marker = new Marker(on.primitives, on.operation(), { ttlMs: 60_000 })
    const first = await marker.tryClaim('order-1')
    if (first.result !== 'claimed') throw new Error('It was free')
    const second = await marker.tryClaim('order-1')
    expect(second).toEqual({ result: 'exists', leftMs: expect.any(Number) })
    expect(second.result === 'exists' && second.leftMs > 0 && second.leftMs <= 60_000).toBe(true)
    expect(await marker.peek('order-1')).toMatchObject({ result: 'exists' })
    expect(await marker.release('order-1', 'somebody else')).toBe('lost')
    expect(await marker.release('order-1', first.token)).toBe('released')
    expect(await marker.release('order-1', first.token)).toBe('lost')
    expect((await marker.tryClaim('order-1')).result).toBe('claimed')
    expect(await marker.extend('order-1', first.token)).toBe('lost')
    expect(await marker.release('order-1', first.token)).toBe('lost')
    expect((await marker.peek('order-1')).result).toBe('exists')
  })

  it('ttl present, ttl kept: seven days or what was asked for, from the claim; only its owner moves it', async () => {
    const operation = on.operation()
    const marker = new Marker(on.primitives, operation)
    await marker.tryClaim('order-1', { token: 'mine' })
    const [key = ''] = await on.keys(operation)
    expect(await on.redis.pttl(key)).toBeGreaterThan(7 * DAY_MS - 60_000)
    expect(await on.redis.pttl(key)).toBeLessThanOrEqual(7 * DAY_MS)
    expect(await marker.extend('order-1', 'mine', { ttlMs: 60_000 })).toBe('extended')
    expect(await on.redis.pttl(key)).toBeLessThanOrEqual(60_000)
    await marker.tryClaim('order-1')
    await marker.extend('order-1', 'yours')
    await marker.peek('order-1')
    expect(await on.redis.pttl(key)).toBeLessThanOrEqual(60_000)
  })

  it('expired: somebody else can have it, and who had it can neither extend nor release it', async () => {
    const marker = new Marker(on.primitives, on.operation(), { ttlMs: 60_000 })
    await marker.tryClaim('order-1', { token: 'slow', ttlMs: 1 })
    await expect.poll(() => marker.tryClaim('order-1', { token: 'next' })).toEqual({ result: 'claimed', token: 'next' })
    on.logged.length = 0
    expect(await marker.extend('order-1', 'slow')).toBe('lost')
    expect(await marker.release('order-1', 'slow')).toBe('lost')
    expect(on.logged.map(({ event }) => event)).toEqual(['marker_lost', 'marker_lost'])
    expect(await marker.release('order-1', 'next')).toBe('released')
  })

  it('wrong type, serialization: something else under the key is told and left as it is', async () => {
    const operation = on.operation()
    const marker = new Marker(on.primitives, operation)
    await marker.tryClaim('order-1', { token: 'mine' })
    const [key = ''] = await on.keys(operation)
    const spoils: [() => Promise<unknown>, (() => Promise<unknown>)[]][] = [
      [
        () => on.redis.del(key).then(() => on.redis.lpush(key, 'x')),
        [() => marker.extend('order-1', 'mine'), () => marker.release('order-1', 'mine')],
      ],
      [
        () => on.redis.set(key, 'PROCESSING', 'PX', 60_000),
        [() => marker.extend('order-1', 'mine'), () => marker.release('order-1', 'mine')],
      ],
      // One that somebody has made persistent would stand for ever.
      [() => on.redis.set(key, 'a'.repeat(32)), []],
    ]
    for (const [spoil, more] of spoils) {
      await spoil()
      const before = await on.redis.dump(key)
      on.counted('marker')
      const calls = [() => marker.tryClaim('order-1'), () => marker.peek('order-1'), ...more]
      for (const call of calls) {
        await expect(call()).rejects.toMatchObject({
          code: 'value_damaged',
          operation,
          redisPattern: 'hf:app:marker:v1',
        })
      }
      expect(await on.redis.dump(key)).toBe(before)
      expect(on.counted('marker')).toEqual({ damaged: calls.length })
    }
  })

  it('its owner can still put right a marker that lost its end', async () => {
    const operation = on.operation()
    const marker = new Marker(on.primitives, operation)
    await marker.tryClaim('order-1', { token: 'mine' })
    const [key = ''] = await on.keys(operation)
    await on.redis.persist(key)
    expect(await marker.extend('order-1', 'mine', { ttlMs: 60_000 })).toBe('extended')
    expect(await on.redis.pttl(key)).toBeGreaterThan(0)
  })

  it('duplicate: the same claim made again is the same claim, also when a reply is lost and the call runs twice', async () => {
    const marker = new Marker(twice(on.primitives), on.operation())
    expect(await marker.tryClaim('order-1', { token: 'request-7' })).toEqual({ result: 'claimed', token: 'request-7' })
    expect(await marker.tryClaim('order-1', { token: 'request-7' })).toEqual({ result: 'claimed', token: 'request-7' })
    expect((await marker.tryClaim('order-2')).result).toBe('claimed')
    expect((await marker.tryClaim('order-2')).result).toBe('exists')
    expect(await marker.extend('order-1', 'request-7')).toBe('extended')
    // It is released; that the second finds nothing is all that it can tell.
    expect(await marker.release('order-1', 'request-7')).toBe('lost')
    expect(await marker.peek('order-1')).toEqual({ result: 'free' })
  })

  it('concurrency, metrics: of many at once, over several connections, one claims', async () => {
    on.counted('marker')
    const operation = on.operation()
    const other = await Primitives.connect({ redis: on.redis, secret: SECRET, ...PATIENT })
    const markers = [new Marker(on.primitives, operation), new Marker(other, operation)]
    const claims = await Promise.all(Array.from({ length: 500 }, (_, n) => markers[n % 2]?.tryClaim('order-1')))
    expect(claims.filter((claim) => claim?.result === 'claimed')).toHaveLength(1)
    expect(claims.filter((claim) => claim?.result === 'exists')).toHaveLength(499)
    const told = on.counted('marker')
    expect((told.claimed ?? 0) + (told.exists ?? 0)).toBe(250)
    await other.close()
  })

  it('keys: neither the scope nor the token stands in Redis', async () => {
    const operation = on.operation()
    const marker = new Marker(on.primitives, operation)
    await marker.tryClaim(['+4912345', 'order-1'], { token: 'my-secret-token' })
    const keys = await on.keys(operation)
    expect(keys).toEqual([
      expect.stringMatching(new RegExp(`^hf:app:marker:v1:default:${operation}:\\{[0-9a-f]{32}\\}$`)),
    ])
    expect(await on.redis.get(keys[0] as string)).toMatch(/^[0-9a-f]{32}$/)
    const acme = new Marker(on.primitives.forTenant('acme'), operation)
    expect((await acme.tryClaim(['+4912345', 'order-1'])).result).toBe('claimed')
    expect(await acme.release(['+4912345', 'order-1'], 'my-secret-token')).toBe('lost')
  })

  it('script return type: what is left is a whole number of ms, up to 400 days', async () => {
    const marker = new Marker(on.primitives, on.operation(), { ttlMs: 400 * DAY_MS })
    await marker.tryClaim('order-1')
    const look = await marker.peek('order-1')
    expect(look.result === 'exists' && Number.isInteger(look.leftMs) && look.leftMs > 399 * DAY_MS).toBe(true)
  })

  it('model: any sequence of calls does what a map of owners does', async () => {
    const call = fc.record({
      what: fc.constantFrom('tryClaim', 'tryClaim', 'extend', 'release', 'peek'),
      scope: fc.constantFrom('a', 'b'),
      token: fc.constantFrom('mine', 'yours'),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(call, { maxLength: 30 }), async (calls) => {
        const marker = new Marker(on.primitives, on.operation())
        const owners = new Map<string, string>()
        for (const { what, scope, token } of calls) {
          const isOurs = owners.get(scope) === token
          const isFree = !owners.has(scope)
          if (what === 'tryClaim') {
            expect((await marker.tryClaim(scope, { token })).result).toBe(isFree || isOurs ? 'claimed' : 'exists')
            if (isFree) owners.set(scope, token)
          } else if (what === 'peek') {
            expect((await marker.peek(scope)).result).toBe(isFree ? 'free' : 'exists')
          } else if (what === 'extend') {
            expect(await marker.extend(scope, token)).toBe(isOurs ? 'extended' : 'lost')
          } else {
            expect(await marker.release(scope, token)).toBe(isOurs ? 'released' : 'lost')
            if (isOurs) owners.delete(scope)
          }
        }
      }),
      { numRuns: 25 },
    )
  })
})

describe('marker', () => {
  it('redis away: refuses, as unavailable', async () => {
    await whileAway(async (primitives) => {
      const marker = new Marker(primitives, 'import')
      await expect(marker.tryClaim('a')).rejects.toMatchObject({ code: 'unavailable', retryable: true })
      await expect(marker.release('a', 'token')).rejects.toMatchObject({ code: 'unavailable' })
    })
  })

  it.each<[string, (marker: Marker) => Promise<unknown>, string]>([
    ['no time', (marker) => marker.tryClaim('a', { ttlMs: 0 }), 'ttlMs: expected an integer from 1'],
    ['an empty token', (marker) => marker.tryClaim('a', { token: '' }), 'token: expected 1 to 255 characters'],
    ['no token', (marker) => marker.release('a', undefined as never), 'token: expected a string, got nothing'],
    ['a number for a scope', (marker) => marker.peek(491712345678 as never), 'some strings, got a number'],
    ['words that are missing', (marker) => marker.peek(new Array(2)), 'scope: expected a string, got nothing'],
    ['a number among words', (marker) => marker.peek(['a', 491712345678 as never]), 'a string, got a number'],
    ['an empty scope', (marker) => marker.peek(''), 'scope: expected 1 to 1024'],
  ])('refuses %s', async (_, act, message) => {
    const on = await onSingle()
    await expect(act(new Marker(on.primitives, 'refused'))).rejects.toThrow(message)
    expect(await on.keys('refused')).toEqual([])
    await on.close()
  })
})
