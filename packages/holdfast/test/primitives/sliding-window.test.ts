import fc from 'fast-check'
import { Primitives, SlidingWindow, type SlidingWindowOptions } from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { whileAway } from './support/away.js'
import { PATIENT } from './support/patient.js'
import { ExactModel, WeightedModel, weight } from './support/sliding-model.js'
import { type On, onSingle, SECRET, TOPOLOGIES } from './support/topologies.js'

const MAX = Number.MAX_SAFE_INTEGER
/** The beginning of a minute. */
const START = Date.UTC(2026, 6, 2, 14, 30)
const after = (ms: number): Date => new Date(START + ms)
const at = after(0)
const TEN: SlidingWindowOptions = { windowMs: 60_000, limit: 10 }
const KINDS = [
  ['two counts', {}],
  ['a log', { exact: true }],
] as const

describe.each(TOPOLOGIES)('sliding window on %s', (_, open) => {
  let on: On
  beforeAll(async () => {
    on = await open()
  })
  afterAll(() => on.close())

  describe.each(KINDS)('of %s', (_, kind) => {
    const make = (operation = on.operation(), options = {}) =>
      new SlidingWindow(on.primitives, operation, { ...TEN, ...kind, ...options })

    it('missing key: counts from nothing, and neither reading nor giving back makes a key', async () => {
      const operation = on.operation()
      const window = make(operation)
      const nothing = { count: 0, left: 10, resetAfterMs: 0 }
      expect(await window.peek('user', { at, by: 10 })).toEqual({ allowed: true, retryAfterMs: 0, ...nothing })
      expect(await window.refund('user', { at, by: 5 })).toEqual(nothing)
      expect(await window.reset('user')).toBe(false)
      expect(await on.keys(operation)).toEqual([])
    })

    it('existing key: adds to what is there, each scope by itself; takes back the newest; forgets', async () => {
      const window = make()
      expect(await window.add('user', { at, by: 4 })).toMatchObject({ allowed: true, count: 4, left: 6 })
      expect((await window.add('user', { at: after(30_000), by: 3 })).count).toBe(7)
      expect((await window.add('other', { at })).count).toBe(1)
      expect((await window.refund('user', { at: after(30_000), by: 4 })).count).toBe(3)
      expect(await window.refund('user', { at: after(30_000), by: MAX })).toEqual({
        count: 0,
        left: 10,
        resetAfterMs: 0,
      })
      expect((await window.add('user', { at: after(30_000) })).count).toBe(1)
      expect(await window.reset('user')).toBe(true)
      expect((await window.peek('user', { at: after(30_000) })).count).toBe(0)
    })

    it('existing key: a refused call changes nothing, and says when to come again', async () => {
      const operation = on.operation()
      const window = make(operation)
      await window.add('user', { at, by: 9 })
      const [key = ''] = await on.keys(operation)
      await on.redis.pexpire(key, 100_000)
      const before = await on.redis.dumpBuffer(key)
      const refused = await window.add('user', { at: after(1_000), by: 2 })
      expect(refused).toMatchObject({ allowed: false, count: 9, left: 1 })
      expect(await on.redis.dumpBuffer(key)).toEqual(before)
      expect(await on.redis.pttl(key)).toBeLessThanOrEqual(100_000)
      const due = 1_000 + refused.retryAfterMs
      expect((await window.add('user', { at: after(due - 1), by: 2 })).allowed).toBe(false)
      expect((await window.add('user', { at: after(due), by: 2 })).allowed).toBe(true)
    })

    it('existing key: a clock that goes back forgets nothing and counts nothing twice', async () => {
      const window = make()
      await window.add('user', { at: after(60_000), by: 10 })
      expect(await window.add('user', { at })).toMatchObject({ allowed: false, count: 10 })
      await window.refund('user', { at, by: 1 })
      expect(await window.add('user', { at })).toMatchObject({ allowed: true, count: 10 })
      expect((await window.peek('user', { at: after(60_000) })).count).toBe(10)
    })

    it('ttl present: as long as something counts and a buffer', async () => {
      const operation = on.operation()
      const window = make(operation, { bufferMs: 30_000 })
      const counts = 'exact' in kind ? 60_000 : 120_000
      expect((await window.add('user', { at })).resetAfterMs).toBe(counts)
      const [key = ''] = await on.keys(operation)
      expect(await on.redis.pttl(key)).toBeLessThanOrEqual(counts + 30_000)
      expect(await on.redis.pttl(key)).toBeGreaterThan(counts + 20_000)
      // By a clock that is a minute behind it takes a minute longer.
      await window.add('user', { at: after(-60_000) })
      expect(await on.redis.pttl(key)).toBeGreaterThan(counts + 80_000)
      await window.refund('user', { at })
      expect(await on.redis.pttl(key)).toBeGreaterThan(0)
    })

    it('wrong state: a limit that was lowered below what is counted refuses until enough is gone', async () => {
      const operation = on.operation()
      await make(operation).add('user', { at, by: 10 })
      const lower = make(operation, { limit: 4 })
      const refused = await lower.add('user', { at, by: 4 })
      expect(refused).toMatchObject({ allowed: false, count: 10, left: 0, retryAfterMs: refused.resetAfterMs })
      expect((await lower.add('user', { at: after(refused.retryAfterMs), by: 4 })).allowed).toBe(true)
    })

    it('expired: what is gone counts for nothing', async () => {
      const operation = on.operation()
      const window = make(operation, { windowMs: 1, bufferMs: 0 })
      await window.add('user', { by: 10 })
      await expect.poll(() => on.keys(operation)).toEqual([])
      expect((await window.peek('user')).count).toBe(0)
    })

    it('wrong type, serialization: something else under the key is told and left as it is', async () => {
      const operation = on.operation()
      const window = make(operation)
      await window.add('user', { at })
      const [key = ''] = await on.keys(operation)
      const spoils: (() => Promise<unknown>)[] = [
        () => on.redis.lpush(key, 'x'),
        ...('exact' in kind
          ? ['x', '1:1', '0000000000000001', '0000000000000001:x', '9999999999999999:1'].flatMap((member) => [
              () => on.redis.zadd(key, START, member),
              () => on.redis.zadd(key, 'inf', member),
            ])
          : ['', '5', '0:1', `${START}:1:x`, `${START}:-1:0`, `${START + 1}:1:0`, `${START}:9007199254740992:0`].map(
              (text) => () => on.redis.set(key, text),
            )),
      ]
      on.counted('sliding')
      for (const spoil of spoils) {
        await on.redis.del(key)
        await spoil()
        const before = await on.redis.dumpBuffer(key)
        for (const call of [window.add, window.refund, window.peek]) {
          await expect(call.call(window, 'user', { at })).rejects.toMatchObject({
            code: 'value_damaged',
            operation,
            redisPattern: 'hf:app:sliding:v1',
          })
        }
        expect(await on.redis.dumpBuffer(key)).toEqual(before)
      }
      expect(on.counted('sliding')).toEqual({ damaged: 3 * spoils.length })
      expect(await window.reset('user')).toBe(true)
    })

    it('concurrency, metrics: of many at once from several processes as many get through as the limit says', async () => {
      on.counted('sliding')
      const operation = on.operation()
      const other = await Primitives.connect({ redis: on.redis, secret: SECRET, ...PATIENT })
      const windows = [on.primitives, other].map(
        (primitives) => new SlidingWindow(primitives, operation, { ...TEN, ...kind, limit: 300 }),
      )
      const answers = await Promise.all(
        Array.from({ length: 250 }, () => windows.map((window) => window.add('user', { at }))).flat(),
      )
      const counts = answers.filter(({ allowed }) => allowed).map(({ count }) => count)
      expect(counts.sort((a, b) => a - b)).toEqual(Array.from({ length: 300 }, (_, n) => n + 1))
      await other.close()
      const { allowed = 0, refused = 0 } = on.counted('sliding')
      expect(allowed + refused).toBe(250)
      await windows[0]?.refund('user', { at })
      await windows[0]?.reset('user')
      expect(on.counted('sliding')).toEqual({ refunded: 1, reset: 1 })
    })

    it('keys: one a scope and length, in which no word of the scope stands, and a tenant has its own', async () => {
      const operation = on.operation()
      await make(operation).add('+4912345')
      await new SlidingWindow(on.primitives.forTenant('acme'), operation, { ...TEN, ...kind }).add('+4912345')
      const [acme = '', ours = '', ...more] = await on.keys(operation)
      const part = 'exact' in kind ? 'log:60000' : 'sliding:60000'
      expect(acme).toMatch(new RegExp(`^hf:app:sliding:v1:acme:${operation}:\\{[0-9a-f]{32}\\}:${part}$`))
      expect(ours).toMatch(new RegExp(`^hf:app:sliding:v1:default:${operation}:\\{[0-9a-f]{32}\\}:${part}$`))
      expect(more).toEqual([])
    })

    it('model: any sequence of calls does what counting by hand does, to the ms', async () => {
      const terms = fc.record({ windowMs: fc.integer({ min: 1, max: 40 }), limit: fc.integer({ min: 1, max: 30 }) })
      const call = fc.record({
        what: fc.constantFrom('add', 'add', 'add', 'peek', 'refund', 'reset'),
        share: fc.integer({ min: 1, max: 1_000 }),
        step: fc.oneof(fc.constant(0), fc.integer({ min: -10, max: 20 }), fc.integer({ min: -30, max: 100 })),
      })
      await fc.assert(
        fc.asyncProperty(terms, fc.array(call, { maxLength: 30 }), async ({ windowMs, limit }, calls) => {
          const window = make(on.operation(), { windowMs, limit })
          const model = 'exact' in kind ? new ExactModel(windowMs, limit) : new WeightedModel(windowMs, limit)
          let ms = START
          for (const { what, share, step } of calls) {
            ms += step
            const by = Math.ceil((limit * share) / 1_000)
            const call = { by, at: new Date(ms) }
            if (what === 'reset') {
              await window.reset('user')
              model.reset()
            } else if (what === 'refund') {
              expect(await window.refund('user', call)).toEqual(model.refund(by, ms))
            } else {
              expect(await window[what]('user', call)).toEqual(model.ask(by, ms, what === 'add'))
            }
          }
        }),
        { numRuns: 40 },
      )
    })
  })

  it('existing key: without a limit everything is counted', async () => {
    const window = new SlidingWindow(on.primitives, on.operation())
    expect(await window.add('user', { at, by: 1_000 })).toEqual({
      allowed: true,
      count: 1_000,
      left: null,
      retryAfterMs: 0,
      resetAfterMs: 120_000,
    })
    expect((await window.peek('user', { at: after(75_000) })).count).toBe(750)
    expect((await window.refund('user', { at: after(75_000), by: 500 })).left).toBeNull()
  })

  it('script return type: exact up to 2^53 − 1, and past it a typed error that adds nothing', async () => {
    on.counted('sliding')
    const window = new SlidingWindow(on.primitives, on.operation())
    expect((await window.add('user', { at, by: MAX - 1 })).count).toBe(MAX - 1)
    await expect(window.add('user', { at, by: 2 })).rejects.toMatchObject({ code: 'counter_overflow', by: 2 })
    expect((await window.add('user', { at })).count).toBe(MAX)
    await expect(window.add('user', { at })).rejects.toMatchObject({ code: 'counter_overflow', by: 1 })
    expect(on.counted('sliding')).toEqual({ allowed: 2, overflow: 2 })
  })

  it('script return type: the time to come again is exact where quotients are not', async () => {
    // 1 / 49 * 49 is less than 1.
    const window = new SlidingWindow(on.primitives, on.operation(), { windowMs: 49, limit: 50 })
    const begins = START - (START % 49)
    await window.add('user', { at: new Date(begins), by: 49 })
    expect(await window.peek('user', { at: new Date(begins + 49), by: 49 })).toMatchObject({
      count: 49,
      retryAfterMs: 48,
    })
  })

  it('script return type: a window that is over is weighed exactly, however long it is and however much it counted', async () => {
    const terms = fc.oneof(
      fc.record({ windowMs: fc.integer({ min: 1, max: 94_906_265 }), most: fc.maxSafeInteger().map(Math.abs) }),
      fc.record({ windowMs: fc.integer({ min: 94_906_266, max: 34_560_000_000 }), most: fc.constant(null) }),
    )
    const shares = fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.double({ min: 0, max: 1, noNaN: true }))
    await fc.assert(
      fc.asyncProperty(terms, shares, async ({ windowMs, most }, [ofLimit, ofWindow]) => {
        const limit = Math.max(1, most ?? Math.floor(MAX / windowMs))
        const window = new SlidingWindow(on.primitives, on.operation(), { windowMs, limit })
        const begins = 20 * 34_560_000_000 - ((20 * 34_560_000_000) % windowMs)
        const before = Math.max(1, Math.floor(limit * ofLimit))
        const ms = begins + windowMs + Math.floor((windowMs - 1) * ofWindow)
        await window.add('user', { by: before, at: new Date(begins) })
        const { count, allowed, retryAfterMs } = await window.peek('user', { by: limit, at: new Date(ms) })
        expect(count).toBe(weight(before, ms, windowMs))
        expect(allowed).toBe(false)
        // Everything is free once the window that is over counts for nothing: not a ms before that.
        expect(ms + retryAfterMs).toBe(begins + 2 * windowMs)
        const rest = Math.max(1, limit - Math.floor(count / 2))
        const half = await window.peek('user', { by: rest, at: new Date(ms) })
        const then = ms + half.retryAfterMs
        expect(weight(before, then, windowMs) + rest <= limit || then === begins + 2 * windowMs).toBe(true)
        if (half.retryAfterMs > 0) expect(weight(before, then - 1, windowMs) + rest).toBeGreaterThan(limit)
      }),
      { numRuns: 60 },
    )
  })

  it('ttl kept: taking back does not move the end of a log', async () => {
    const operation = on.operation()
    const window = new SlidingWindow(on.primitives, operation, { ...TEN, exact: true })
    await window.add('user', { at, by: 5 })
    const [key = ''] = await on.keys(operation)
    await on.redis.pexpire(key, 40_000)
    // All entries go but the rest of one, which is written anew.
    expect((await window.refund('user', { at, by: 4 })).count).toBe(1)
    expect(await on.redis.pttl(key)).toBeGreaterThan(0)
    expect(await on.redis.pttl(key)).toBeLessThanOrEqual(40_000)
  })

  it('existing key: a log never has more entries than the limit', async () => {
    const operation = on.operation()
    const window = new SlidingWindow(on.primitives, operation, { windowMs: 10, limit: 20, exact: true })
    for (let ms = 0; ms < 100; ms += 1) {
      await Promise.all(Array.from({ length: 4 }, () => window.add('user', { at: after(ms) })))
      const [key = ''] = await on.keys(operation)
      expect(await on.redis.zcard(key)).toBeLessThanOrEqual(20)
    }
  })

  it('takes the time from Redis, so that all processes have the same', async () => {
    const slow = await open({ now: () => 0 })
    const operation = slow.operation()
    await new SlidingWindow(slow.primitives, operation, TEN).add('user')
    const [key = ''] = await slow.keys(operation)
    const begins = Number((await slow.redis.get(key))?.split(':')[0])
    expect(Math.abs(begins - Date.now())).toBeLessThan(200_000)
    await slow.close()
  })
})

describe('sliding window', () => {
  it('redis away: refuses, as unavailable', async () => {
    await whileAway(async (primitives) => {
      const window = new SlidingWindow(primitives, 'login', TEN)
      await expect(window.add('user')).rejects.toMatchObject({ code: 'unavailable', retryable: true })
      await expect(window.peek('user')).rejects.toMatchObject({ code: 'unavailable' })
    })
  })

  it.each<[string, SlidingWindowOptions, string]>([
    ['no window', { windowMs: 0 }, 'windowMs: expected an integer from 1'],
    ['no limit', { limit: 0 }, 'limit: expected an integer from 1'],
    ['a log of no limit', { exact: true }, 'limit: expected an integer from 1 to 10000, got nothing'],
    ['a log without end', { exact: true, limit: 10_001 }, 'limit: expected an integer from 1 to 10000, got 10001'],
    [
      'a year and more than numbers can weigh',
      { windowMs: 31_536_000_000, limit: 1_000_000 },
      'limit: expected an integer from 1 to 285616, got 1000000',
    ],
    ['a word for a flag', { exact: 'yes' as never }, 'exact: expected true or false'],
  ])('can not be made with %s', async (_, options, message) => {
    const on = await onSingle()
    expect(() => new SlidingWindow(on.primitives, 'login', options)).toThrow(message)
    await on.close()
  })

  it.each([
    ['more than ever passes', { by: 11 }, 'by: expected an integer from 1 to 10, got 11'],
    ['nothing', { by: 0 }, 'by: expected an integer from 1 to 10, got 0'],
    ['a number for a date', { at: 5 as never }, 'at: expected a Date, got 5'],
  ])('refuses %s', async (_, call, message) => {
    const on = await onSingle()
    await expect(new SlidingWindow(on.primitives, 'login', TEN).add('user', call)).rejects.toThrow(message)
    expect(await on.keys('login')).toEqual([])
    await on.close()
  })
})
