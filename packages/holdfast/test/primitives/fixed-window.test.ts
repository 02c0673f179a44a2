import fc from 'fast-check'
import { FixedWindow } from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { whileAway } from './support/away.js'
import { type On, TOPOLOGIES } from './support/topologies.js'

const MAX = Number.MAX_SAFE_INTEGER
const at = new Date('2026-07-02T14:30:59.999Z')

describe.each(TOPOLOGIES)('fixed window on %s', (_, open) => {
  let on: On
  beforeAll(async () => {
    on = await open()
  })
  afterAll(() => on.close())

  it('missing key: the first call counts from nothing, and reading makes no key', async () => {
    const operation = on.operation()
    const window = new FixedWindow(on.primitives, operation)
    expect(await window.peek('user', { at })).toEqual({
      count: 0,
      window: '202607021430',
      endsAt: new Date('2026-07-02T14:31:00.000Z'),
    })
    expect(await window.refund('user', { at })).toMatchObject({ count: 0 })
    expect(await window.reset('user', { at })).toBe(false)
    expect(await on.keys(operation)).toEqual([])
    expect(await window.add('user', { at })).toMatchObject({ count: 1 })
  })

  it('existing key: adds to what is there, each window and each scope by itself', async () => {
    const window = new FixedWindow(on.primitives, on.operation())
    expect((await window.add('user', { at, by: 5 })).count).toBe(5)
    expect((await window.add('user', { at })).count).toBe(6)
    expect((await window.add('other', { at })).count).toBe(1)
    const next = new Date('2026-07-02T14:31:00.000Z')
    expect(await window.add('user', { at: next })).toMatchObject({ count: 1, window: '202607021431' })
    expect((await window.refund('user', { at, by: 2 })).count).toBe(4)
    expect((await window.refund('user', { at, by: 100 })).count).toBe(0)
    expect((await window.peek('user', { at })).count).toBe(0)
    expect(await window.reset('user', { at })).toBe(true)
  })

  it('existing key, ttl present: windows of two lengths that begin together are two', async () => {
    const operation = on.operation()
    const minutes = new FixedWindow(on.primitives, operation, { windowMs: 60_000, bufferMs: 0 })
    const fives = new FixedWindow(on.primitives, operation, { windowMs: 300_000, bufferMs: 0 })
    expect(await minutes.add('user', { at, by: 3 })).toMatchObject({ count: 3, window: '202607021430' })
    expect(await fives.add('user', { at })).toMatchObject({ count: 1, window: '202607021430' })
    const ttls = await Promise.all((await on.keys(operation)).map((key) => on.redis.pttl(key)))
    expect(Math.max(...ttls)).toBeGreaterThan(60_000)
  })

  it('ttl present, ttl kept: from the first write on, the window and a buffer; later calls do not move it', async () => {
    const operation = on.operation()
    const window = new FixedWindow(on.primitives, operation, { windowMs: 60_000, bufferMs: 30_000 })
    await window.add('user', { at })
    const [key = ''] = await on.keys(operation)
    expect(await on.redis.pttl(key)).toBeGreaterThan(80_000)
    expect(await on.redis.pttl(key)).toBeLessThanOrEqual(90_000)
    await on.redis.pexpire(key, 40_000)
    await window.add('user', { at })
    await window.refund('user', { at })
    expect(await on.redis.pttl(key)).toBeLessThanOrEqual(40_000)
  })

  it('expired: a window that is gone begins anew', async () => {
    const operation = on.operation()
    const window = new FixedWindow(on.primitives, operation, { windowMs: 1, bufferMs: 0 })
    await window.add('user', { at, by: 7 })
    await expect.poll(() => on.keys(operation)).toEqual([])
    expect((await window.peek('user', { at })).count).toBe(0)
  })

  it('wrong type, serialization: something else under the key is told and left as it is', async () => {
    const operation = on.operation()
    const window = new FixedWindow(on.primitives, operation)
    await window.add('user', { at })
    const [key = ''] = await on.keys(operation)
    for (const spoil of [
      () => on.redis.del(key).then(() => on.redis.lpush(key, 'x')),
      () => on.redis.set(key, '1.5'),
      () => on.redis.set(key, '9007199254740992'),
      () => on.redis.set(key, '-1'),
      () => on.redis.set(key, ''),
    ]) {
      await spoil()
      const before = await on.redis.dump(key)
      on.counted('window')
      for (const call of [window.add, window.refund, window.peek]) {
        await expect(call.call(window, 'user', { at })).rejects.toMatchObject({
          code: 'value_damaged',
          operation,
          redisPattern: 'hf:app:window:v1',
        })
      }
      expect(await on.redis.dump(key)).toBe(before)
      expect(on.counted('window')).toEqual({ damaged: 3 })
    }
    await on.redis.set(key, '01')
    await expect(window.add('user', { at })).rejects.toMatchObject({ code: 'value_damaged' })
    // What is told of one does not cost those that went in the same call.
    const [bad, good] = await Promise.allSettled([window.add('user', { at }), window.add('other', { at })])
    expect([bad.status, good.status]).toEqual(['rejected', 'fulfilled'])
    expect(await window.reset('user', { at })).toBe(true)
  })

  it('script return type: exact up to 2^53 − 1, and past it a typed error that adds nothing', async () => {
    const window = new FixedWindow(on.primitives, on.operation())
    expect((await window.add('user', { at, by: MAX - 1 })).count).toBe(MAX - 1)
    await expect(window.add('user', { at, by: 2 })).rejects.toMatchObject({ code: 'counter_overflow', by: 2 })
    expect((await window.add('user', { at })).count).toBe(MAX)
    await expect(window.add('user', { at, by: MAX })).rejects.toMatchObject({ code: 'counter_overflow' })
    expect((await window.peek('user', { at })).count).toBe(MAX)
  })

  it('concurrency, metrics: many at once are each counted once', async () => {
    on.counted('window')
    const window = new FixedWindow(on.primitives, on.operation())
    const counts = await Promise.all(Array.from({ length: 500 }, () => window.add('user', { at })))
    expect(counts.map(({ count }) => count).sort((a, b) => a - b)).toEqual(Array.from({ length: 500 }, (_, n) => n + 1))
    expect(on.counted('window')).toEqual({ added: 500 })
  })

  it('keys: no word of the scope stands in them, and a tenant has its own', async () => {
    const operation = on.operation()
    const acme = on.primitives.forTenant('acme')
    await new FixedWindow(on.primitives, operation).add('+4912345', { at })
    await new FixedWindow(acme, operation).add('+4912345', { at })
    const keys = await on.keys(operation)
    expect(keys).toHaveLength(2)
    const scope = '[0-9a-f]{32}'
    expect(keys[0]).toMatch(new RegExp(`^hf:app:window:v1:acme:${operation}:\\{${scope}\\}:60000:202607021430$`))
    expect(keys[1]).toMatch(new RegExp(`^hf:app:window:v1:default:${operation}:\\{${scope}\\}:60000:202607021430$`))
    const [hashes] = [keys.map((key) => /\{(.*)\}/.exec(key)?.[1])]
    expect(new Set(hashes).size).toBe(2)
  })

  it('model: any sequence of calls does what a map of numbers does', async () => {
    const call = fc.record({
      what: fc.constantFrom('add', 'add', 'refund', 'peek', 'reset'),
      scope: fc.constantFrom('a', 'b'),
      by: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constant(MAX)),
      minute: fc.integer({ min: 0, max: 2 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(call, { maxLength: 30 }), async (calls) => {
        const window = new FixedWindow(on.primitives, on.operation())
        const model = new Map<string, number>()
        for (const { what, scope, by, minute } of calls) {
          const at = new Date(Date.UTC(2026, 6, 2, 14, minute))
          const name = `${scope}${minute}`
          const before = model.get(name) ?? 0
          if (what === 'peek') expect((await window.peek(scope, { at })).count).toBe(before)
          else if (what === 'reset') {
            expect(await window.reset(scope, { at })).toBe(model.delete(name))
          } else if (what === 'refund') {
            const after = Math.max(0, before - by)
            if (model.has(name)) model.set(name, after)
            expect((await window.refund(scope, { at, by })).count).toBe(after)
          } else if (before > MAX - by) {
            await expect(window.add(scope, { at, by })).rejects.toMatchObject({ code: 'counter_overflow' })
          } else {
            model.set(name, before + by)
            expect((await window.add(scope, { at, by })).count).toBe(before + by)
          }
        }
      }),
      { numRuns: 25 },
    )
  })
})

describe('fixed window', () => {
  it('redis away: refuses, as unavailable', async () => {
    await whileAway(async (primitives) => {
      const window = new FixedWindow(primitives, 'login')
      await expect(window.add('user')).rejects.toMatchObject({ code: 'unavailable', retryable: true })
      await expect(window.peek('user')).rejects.toMatchObject({ code: 'unavailable' })
    })
  })

  it.each([
    [60_000, '202607021430'],
    [3_600_000, '2026070214'],
    [86_400_000, '20260702'],
    [90_000, '20260702143000'],
    [250, '20260702143059750'],
  ])('names a window of %d ms by its beginning in UTC', async (windowMs, name) => {
    await withSingle(async ({ primitives }) => {
      const { window, count } = await new FixedWindow(primitives, 'named', { windowMs }).add(`${windowMs}`, { at })
      expect({ window, count }).toEqual({ window: name, count: 1 })
    })
  })

  it.each<[string, (on: On) => unknown, string]>([
    [
      'an operation with blanks',
      ({ primitives }) => new FixedWindow(primitives, 'log in'),
      'operation: expected 1 to 64',
    ],
    [
      'no window',
      ({ primitives }) => new FixedWindow(primitives, 'login', { windowMs: 0 }),
      'windowMs: expected an integer',
    ],
    ['an empty scope', ({ primitives }) => new FixedWindow(primitives, 'login').add(''), 'scope: expected 1 to 1024'],
    [
      'a number among the words',
      ({ primitives }) => new FixedWindow(primitives, 'login').add(['a', 491_712_345_678 as never]),
      'scope: expected a string, got a number',
    ],
    [
      'a connection that nobody has waited for',
      ({ primitives }) => new FixedWindow(Promise.resolve(primitives) as never, 'login').add('a'),
      'primitives: expected what Primitives.connect resolves to, got nothing',
    ],
    ['no words', ({ primitives }) => new FixedWindow(primitives, 'login').add([]), 'scope: expected a string or some'],
    [
      'a fraction',
      ({ primitives }) => new FixedWindow(primitives, 'login').add('u', { by: 0.5 }),
      'by: expected an integer',
    ],
    [
      'a number for a date',
      ({ primitives }) => new FixedWindow(primitives, 'login').peek('u', { at: 5 as never }),
      'at: expected a Date',
    ],
  ])('refuses %s', async (_, act, message) => {
    await withSingle(async (on) => {
      await expect(async () => act(on)).rejects.toThrow(message)
      expect(await on.keys('login')).toEqual([])
    })
  })
})

async function withSingle(use: (on: On) => Promise<void>): Promise<void> {
  const on = await (TOPOLOGIES[0] as (typeof TOPOLOGIES)[0])[1]()
  try {
    await use(on)
  } finally {
    await on.close()
  }
}
