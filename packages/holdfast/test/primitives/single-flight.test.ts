import { Primitives, SingleFlight } from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { flightClaim, flightFail, flightGet, flightPut } from '../../src/redis/scripts.generated.js'
import { whileAway } from './support/away.js'
import { PATIENT } from './support/patient.js'
import { counting } from './support/runners.js'
import { type On, onSingle, SECRET, TOPOLOGIES } from './support/topologies.js'

/** Generous: the machine may be busy. */
const SOON = { timeout: 20_000 }

/** A loader that counts, and that can be held. */
function loader<T>(give: (n: number) => T) {
  let open = () => {}
  let gate: Promise<void> | undefined
  const signals: AbortSignal[] = []
  return {
    signals,
    get loads() {
      return signals.length
    },
    hold() {
      gate = new Promise((resolve) => {
        open = resolve
      })
    },
    letGo: () => {
      gate = undefined
      open()
    },
    load: async ({ signal }: { signal: AbortSignal }) => {
      const n = signals.push(signal)
      await gate
      return give(n)
    },
  }
}

describe.each(TOPOLOGIES)('single flight on %s', (_, open) => {
  let on: On
  let others: Primitives[]
  beforeAll(async () => {
    on = await open()
    others = await Promise.all([0, 1, 2].map(() => Primitives.connect({ redis: on.redis, secret: SECRET, ...PATIENT })))
  })
  afterAll(async () => {
    await Promise.all(others.map((other) => other.close()))
    await on.close()
  })

  it('missing key, keys, ttl present: loads once, and keeps it for as long as it may be stale', async () => {
    const operation = on.operation()
    const flight = new SingleFlight(on.primitives, operation, { ttlMs: 60_000, staleMs: 30_000 })
    const price = loader((n) => ({ cents: n, when: new Date(0) }))
    expect(await flight.get('sku of jo@example.com', price.load)).toEqual({
      value: { cents: 1, when: '1970-01-01T00:00:00.000Z' },
      source: 'loaded',
      ageMs: 0,
    })
    const keys = await on.keys(operation)
    expect(keys).toEqual([expect.stringMatching(`^hf:app:flight:v1:default:${operation}:\\{[0-9a-f]{32}\\}$`)])
    expect(await on.redis.pttl(keys[0] as string)).toBeGreaterThan(80_000)
    expect(await on.redis.pttl(keys[0] as string)).toBeLessThanOrEqual(90_000)
  })

  it('existing key, ttl kept: what is fresh is given as it is, to each a copy, and reading does not move its end', async () => {
    const operation = on.operation()
    const { load, ...counted } = loader((n) => [n])
    const flight = new SingleFlight(on.primitives, operation, { ttlMs: 60_000, staleMs: 0, eagerness: 0 })
    const elsewhere = new SingleFlight(others[0] as Primitives, operation, { eagerness: 0 })
    await flight.get('a', load)
    const [key = ''] = await on.keys(operation)
    await on.redis.pexpire(key, 20_000)
    const first = await elsewhere.get('a', load)
    expect(first).toMatchObject({ value: [1], source: 'fresh' })
    expect(first.ageMs).toBeGreaterThanOrEqual(40_000)
    first.value.push(2)
    expect((await elsewhere.get('a', load)).value).toEqual([1])
    expect(await on.redis.pttl(key)).toBeLessThanOrEqual(20_000)
    expect(counted.signals).toHaveLength(1)
    expect((await elsewhere.get('b', load)).value).toEqual([2])
  })

  it('expired: the stale value is given at once, and one loads it anew behind the callers', async () => {
    const operation = on.operation()
    const flights = [on.primitives, ...others].map((one) => new SingleFlight(one, operation, { staleMs: 60_000 }))
    const [flight] = flights as [SingleFlight]
    const price = loader((n) => n)
    await flight.get('a', price.load)
    const [key = ''] = await on.keys(operation)
    await on.redis.pexpire(key, 50_000)
    price.hold()
    const stale = await Promise.all(Array.from({ length: 100 }, (_, n) => flights[n % 4]?.get('a', price.load)))
    expect(new Set(stale.map((one) => `${one?.value} ${one?.source}`))).toEqual(new Set(['1 stale']))
    await expect.poll(() => price.loads, SOON).toBe(2)
    price.letGo()
    await expect.poll(async () => (await flight.get('a', price.load)).value, SOON).toBe(2)
    expect(price.loads).toBe(2)
    await on.redis.del(key)
    expect(await flight.get('a', price.load)).toMatchObject({ value: 3, source: 'loaded' })
  })

  it('concurrency, metrics: 200 callers over four connections on a cold key are one load', async () => {
    on.counted('flight')
    const operation = on.operation()
    const flights = [on.primitives, ...others].map((one) => new SingleFlight(one, operation, { waitMs: 60_000 }))
    const price = loader((n) => n)
    price.hold()
    const calls = Array.from({ length: 200 }, (_, n) => flights[n % 4]?.get('a', price.load))
    await expect.poll(() => price.loads, SOON).toBe(1)
    price.letGo()
    const values = await Promise.all(calls)
    expect(new Set(values.map((one) => one?.value))).toEqual(new Set([1]))
    expect(price.loads).toBe(1)
    const { fresh = 0, loaded = 0 } = on.counted('flight')
    expect(fresh + loaded).toBe(50)
  })

  it('wrong state: what is loaded while it is declared invalid is not kept, nor given to those who ask later', async () => {
    const operation = on.operation()
    const flight = new SingleFlight(on.primitives, operation)
    const elsewhere = new SingleFlight(others[0] as Primitives, operation)
    const price = loader((n) => n)
    price.hold()
    const before = flight.get('a', price.load)
    await expect.poll(() => price.loads, SOON).toBe(1)
    expect(await elsewhere.invalidate('a')).toBe(false)
    const after = elsewhere.get('a', price.load)
    await expect.poll(() => price.loads, SOON).toBe(2)
    price.letGo()
    expect((await after).value).toBe(2)
    // The first one found out, and looked again.
    expect((await before).value).toBe(2)
    expect((await flight.get('a', price.load)).value).toBe(2)
    expect(await flight.invalidate('a')).toBe(true)
    expect((await flight.get('a', price.load)).value).toBe(3)
  })

  it('duplicate: a slow one that lost its marker never writes over a newer value; a call sent twice does no harm', async () => {
    const { runner } = on.primitives.context
    const tag = `{${on.operation()}}`
    const keys = [tag, `${tag}:marker`]
    const get = async (owner: string) => (await runner.run(flightGet, keys, [1, '1 1 ', owner, 60_000])) as unknown[]
    const put = (owner: string, value: string) => runner.run(flightPut, keys, [1, owner, value, 60_000])
    expect(String(await get('old'))).toBe('taken')
    expect(String(await get('old'))).toBe('taken')
    expect(String(await get('new'))).toMatch(/^busy,\d+$/)
    await on.redis.del(`${tag}:marker`)
    expect(String(await get('new'))).toBe('taken')
    expect(await put('old', '1 1 9 9 9 "old"')).toEqual([0])
    expect(await runner.run(flightFail, keys.slice(1), [1, 'old', 60_000])).toEqual([0])
    expect(await put('new', '1 1 9 9 9 "new"')).toEqual([1])
    expect(await put('new', '1 1 9 9 9 "new"')).toEqual([0])
    expect(await put('old', '1 1 9 9 9 "old"')).toEqual([0])
    expect(await on.redis.get(tag)).toBe('1 1 9 9 9 "new"')
    // Whoever has read the value before that does not load it anew.
    const claim = (leftMs: number) => runner.run(flightClaim, keys, [1, 'late', 60_000, leftMs])
    expect(await claim(10_000)).toEqual([-1])
    expect(await on.redis.exists(`${tag}:marker`)).toBe(0)
    expect(await claim(60_000)).toEqual([0])
    await on.redis.del(`${tag}:marker`)
    await on.redis.del(tag)
  })

  it('wrong type, serialization: something else in its place is told and left; another schema is as good as none', async () => {
    const operation = on.operation()
    const flight = new SingleFlight(on.primitives, operation)
    const price = loader((n) => n)
    await flight.get('a', price.load)
    const [key = ''] = await on.keys(operation)
    on.counted('flight')
    for (const spoil of [
      () => on.redis.del(key).then(() => on.redis.lpush(key, 'x')),
      () => on.redis.set(key, '{"cents":1}', 'PX', 60_000),
      () => on.redis.set(key, '1 1 not a header', 'PX', 60_000),
      () => on.redis.set(key, '1 1 60000 0 5 {"cents":', 'PX', 60_000),
      () => on.redis.set(key, '1 1 5 5 5 1'),
    ]) {
      await spoil()
      const before = await on.redis.dump(key)
      await expect(flight.get('a', price.load)).rejects.toMatchObject({ code: 'value_damaged', operation })
      expect(await on.redis.dump(key)).toBe(before)
    }
    expect(price.loads).toBe(1)
    expect(on.counted('flight')).toEqual({ damaged: 5 })
    await on.redis.del(key)
    await flight.get('a', price.load)
    const next = new SingleFlight(on.primitives, operation, { schemaVersion: 2 })
    expect((await next.get('a', price.load)).value).toBe(3)
    expect((await next.get('a', price.load)).source).toBe('fresh')
    expect((await flight.get('a', price.load)).value).toBe(4)
  })

  it('serialization: what JSON does not have, or has too much of, is an error of the loader', async () => {
    const operation = on.operation()
    const flight = new SingleFlight(on.primitives, operation, { bytesMax: 10, failedMs: 1 })
    const cycle: unknown[] = []
    cycle.push(cycle)
    for (const [value, code] of [
      [undefined, 'invalid_argument'],
      [1n, 'invalid_argument'],
      [cycle, 'invalid_argument'],
      ['ten bytes!', 'too_large'],
    ] as const) {
      const error = flight.get(code + typeof value, () => value)
      await expect(error).rejects.toMatchObject({ code })
    }
    expect((await flight.get('fits', () => '8 bytes!')).value).toBe('8 bytes!')
    expect((await flight.get('nothing', () => null)).value).toBe(null)
  })

  it('script return type: text of any kind comes back as it was', async () => {
    const operation = on.operation()
    const flight = new SingleFlight(on.primitives, operation)
    const value = { 'ключ ✓ \u0000': ['\n', '𝄞', Number.MAX_SAFE_INTEGER, -0.5, null, true, ''], '!': '1 1 ' }
    await flight.get('a', () => value)
    expect((await new SingleFlight(others[0] as Primitives, operation).get('a', () => null)).value).toEqual(value)
  })

  it('a loader that fails: its callers get its error, the others a typed one, and for a while nobody tries', async () => {
    const operation = on.operation()
    const flight = new SingleFlight(on.primitives, operation, { failedMs: 60_000, waitMs: 60_000 })
    const elsewhere = new SingleFlight(others[0] as Primitives, operation)
    const broken = loader((): number => {
      throw new Error('upstream is down')
    })
    broken.hold()
    const shared = [flight.get('a', broken.load), flight.get('a', broken.load)]
    await expect.poll(() => broken.loads, SOON).toBe(1)
    const waiting = elsewhere.get('a', broken.load)
    setTimeout(broken.letGo, 300)
    const [first, second, third] = await Promise.allSettled([...shared, waiting])
    expect([first, second]).toEqual(
      [0, 1].map(() => ({ status: 'rejected', reason: expect.objectContaining({ message: 'upstream is down' }) })),
    )
    expect(third).toMatchObject({ status: 'rejected', reason: { code: 'load_failed', retryable: true } })
    const { reason } = third as PromiseRejectedResult
    expect(reason.retryAfterMs).toBeGreaterThan(0)
    expect(reason.retryAfterMs).toBeLessThanOrEqual(60_000)
    await Promise.allSettled(Array.from({ length: 50 }, () => elsewhere.get('a', broken.load)))
    expect(broken.loads).toBe(1)
    expect(on.logged.at(-1)).toMatchObject({ event: 'flight_load_failed', facts: { operation } })
    // What was declared invalid may be tried at once.
    await elsewhere.invalidate('a')
    expect((await elsewhere.get('a', () => 5)).value).toBe(5)
  })

  it('a loader that fails where there is a stale value: that is given on, and tried again later', async () => {
    const operation = on.operation()
    const flight = new SingleFlight(on.primitives, operation, { failedMs: 50, staleMs: 60_000 })
    await flight.get('a', () => 'old')
    await on.redis.pexpire((await on.keys(operation))[0] as string, 50_000)
    let tries = 0
    const load = () => {
      tries += 1
      if (tries < 3) throw new Error('upstream is down')
      return 'new'
    }
    const seen = new Set<string>()
    await expect
      .poll(async () => {
        const { value } = await flight.get('a', load)
        seen.add(value)
        return value
      }, SOON)
      .toBe('new')
    expect([...seen]).toEqual(['old', 'new'])
    expect(tries).toBe(3)
  })

  it('a value that somebody else loads is waited for no longer than is said; then it is an error, or loaded by choice', async () => {
    const operation = on.operation()
    const price = loader((n) => n)
    price.hold()
    const slow = new SingleFlight(on.primitives, operation).get('a', price.load)
    await expect.poll(() => price.loads, SOON).toBe(1)
    const impatient = new SingleFlight(others[0] as Primitives, operation, { waitMs: 50 })
    await expect(impatient.get('a', price.load)).rejects.toMatchObject({ code: 'timeout' })
    const able = new SingleFlight(others[1] as Primitives, operation, { waitMs: 50, afterWait: 'load' })
    const own = loader(() => 'mine')
    const both = await Promise.all([able.get('a', own.load), able.get('a', own.load)])
    expect(both.map(({ value }) => value)).toEqual(['mine', 'mine'])
    expect(own.loads).toBe(1)
    // Also in the process that loads.
    const beside = new SingleFlight(on.primitives, operation, { waitMs: 50 })
    const first = beside.get('b', price.load)
    await expect.poll(() => price.loads, SOON).toBe(2)
    await expect(beside.get('b', price.load)).rejects.toMatchObject({ code: 'timeout' })
    price.letGo()
    expect((await slow).value).toBe(1)
    expect((await first).value).toBe(2)
    // What was loaded without the marker is not kept.
    expect((await able.get('a', own.load)).value).toBe(1)
  })

  it('is never younger than just loaded, also where its end was moved or a clock was put back', async () => {
    const operation = on.operation()
    const flight = new SingleFlight(on.primitives, operation, { ttlMs: 60_000, staleMs: 0 })
    await flight.get('a', () => 1)
    await on.redis.pexpire((await on.keys(operation))[0] as string, 600_000)
    expect(await flight.get('a', () => 2)).toEqual({ value: 1, source: 'fresh', ageMs: 0 })
  })

  it('is loaded early, before it is stale, as its end comes near; not if that is not wanted', async () => {
    const operation = on.operation()
    const times = { ttlMs: 60_000, staleMs: 60_000 }
    const price = loader((n) => n)
    price.hold()
    const eager = new SingleFlight(on.primitives, operation, { ...times, eagerness: 100 })
    const first = eager.get('a', price.load)
    await expect.poll(() => price.loads, SOON).toBe(1)
    // The longer a load takes the earlier the next one begins: this one takes some time.
    setTimeout(price.letGo, 300)
    await first
    const [key = ''] = await on.keys(operation)
    const patient = new SingleFlight(others[0] as Primitives, operation, { ...times, eagerness: 0 })
    // Half a minute before it is stale, while its load took 300 ms and counts a hundredfold.
    await on.redis.pexpire(key, 90_000)
    for (let n = 0; n < 20; n += 1) await patient.get('a', price.load)
    expect(price.loads).toBe(1)
    await expect
      .poll(async () => {
        const { source, value } = await eager.get('a', price.load)
        return `${source} ${value}`
      }, SOON)
      .toBe('fresh 2')
    expect(price.loads).toBe(2)
  })

  it('a load that takes too long is told so, and is a failure', async () => {
    const flight = new SingleFlight(on.primitives, on.operation(), {
      markerMs: 5_000,
      loadMaxMs: 5_000,
      failedMs: 60_000,
    })
    const hanging = loader((n) => n)
    hanging.hold()
    await expect(flight.get('a', hanging.load)).rejects.toMatchObject({ code: 'timeout' })
    expect(hanging.signals[0]?.reason).toMatchObject({ code: 'timeout' })
    hanging.letGo()
    await expect(flight.get('a', hanging.load)).rejects.toMatchObject({ code: 'load_failed' })
    expect(hanging.loads).toBe(1)
  })
})

describe('single flight', () => {
  it('reads large values a few at a time: a call is not longer than its values, nor its answer', async () => {
    const on = await onSingle()
    const { primitives, counts } = counting(on.primitives)
    for (const [bytesMax, calls] of [
      [262_144, 1],
      [1_048_576, 4],
      [16_777_216, 32],
    ] as const) {
      const flight = new SingleFlight(primitives, `price-${bytesMax}`, { bytesMax })
      counts.flight_get = 0
      await Promise.all(Array.from({ length: 32 }, (_, n) => flight.get(`${n}`, () => n)))
      expect(counts.flight_get).toBe(calls)
    }
    await on.close()
  })

  it('redis away: one load at a time in a process, and the last value for as long as it may be stale', async () => {
    await whileAway(async (primitives) => {
      const flight = new SingleFlight(primitives, 'price', { ttlMs: 60_000, failedMs: 60_000 })
      const price = loader((n) => n)
      price.hold()
      const calls = Array.from({ length: 100 }, () => flight.get('a', price.load))
      await expect.poll(() => price.loads, SOON).toBe(1)
      price.letGo()
      expect(new Set((await Promise.all(calls)).map(({ value }) => value))).toEqual(new Set([1]))
      expect(await flight.get('a', price.load)).toMatchObject({ value: 1, source: 'kept' })
      expect(price.loads).toBe(1)
      const broken = loader((): number => {
        throw new Error('upstream is down')
      })
      const failed = await Promise.allSettled(Array.from({ length: 50 }, () => flight.get('b', broken.load)))
      expect(failed.every(({ status }) => status === 'rejected')).toBe(true)
      await expect(flight.get('b', broken.load)).rejects.toMatchObject({ code: 'load_failed' })
      expect(broken.loads).toBe(1)
      await expect(flight.invalidate('a')).rejects.toMatchObject({ code: 'unavailable' })
    })
  }, 30_000)

  it('is over when the connections are closed', async () => {
    const on = await onSingle()
    const flight = new SingleFlight(on.primitives, 'price')
    const price = loader((n) => n)
    price.hold()
    const call = flight.get('a', price.load).catch((error) => error)
    await expect.poll(() => price.loads, SOON).toBe(1)
    await on.close()
    expect(price.signals[0]?.aborted).toBe(true)
    expect(await call).toMatchObject({ code: 'unavailable' })
  })

  it.each<[string, (p: Primitives) => unknown, string]>([
    ['a load that is none', (p) => new SingleFlight(p, 'price').get('a', 5 as never), 'load: expected a function'],
    ['no time', (p) => new SingleFlight(p, 'price', { ttlMs: 0 }), 'ttlMs: expected an integer from 1'],
    ['no time of a call', (p) => new SingleFlight(p, 'price').get('a', () => 1, { ttlMs: -1 }), 'ttlMs: expected'],
    ['a load shorter than its marker', (p) => new SingleFlight(p, 'price', { loadMaxMs: 10 }), 'loadMaxMs: expected'],
    ['an eagerness below 0', (p) => new SingleFlight(p, 'price', { eagerness: -1 }), 'eagerness: expected a number'],
    ['another end', (p) => new SingleFlight(p, 'price', { afterWait: 'x' as never }), "afterWait: expected 'error' or"],
  ])('refuses %s', async (_, act, message) => {
    const on = await onSingle()
    await expect(async () => act(on.primitives)).rejects.toThrow(message)
    expect(await on.keys('price')).toEqual([])
    await on.close()
  })
})
