import fc from 'fast-check'
import { type Limit, Limits, Primitives } from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { whileAway } from './support/away.js'
import { BucketModel } from './support/bucket-model.js'
import { PATIENT } from './support/patient.js'
import { ExactModel, FixedModel, WeightedModel } from './support/sliding-model.js'
import { type On, onSingle, SECRET, TOPOLOGIES } from './support/topologies.js'

/** The beginning of a day. */
const START = Date.UTC(2026, 6, 2)
const after = (ms: number): Date => new Date(START + ms)
const at = after(0)
const LIMITS = {
  burst: { kind: 'bucket', capacity: 10, refillMs: 1_000 },
  minute: { kind: 'sliding', limit: 20, windowMs: 60_000 },
  hour: { kind: 'sliding', limit: 25, windowMs: 3_600_000, exact: true },
  day: { kind: 'fixed', limit: 30, windowMs: 86_400_000 },
} as const satisfies Record<string, Limit>

describe.each(TOPOLOGIES)('limits on %s', (_, open) => {
  let on: On
  beforeAll(async () => {
    on = await open()
  })
  afterAll(() => on.close())

  it('missing key: everything is left at first, and neither reading nor giving back makes a key', async () => {
    const operation = on.operation()
    const limits = new Limits(on.primitives, operation, LIMITS)
    const { allowed, refusedBy, retryAfterMs, limits: each } = await limits.peek('user', { at, cost: 10 })
    expect({ allowed, refusedBy, retryAfterMs }).toEqual({ allowed: true, refusedBy: [], retryAfterMs: 0 })
    expect(each.day).toEqual({ allowed: true, left: 30, retryAfterMs: 0, resetAfterMs: 0 })
    expect(await limits.refund('user', { at })).toEqual({
      burst: { left: 10, resetAfterMs: 0 },
      minute: { left: 20, resetAfterMs: 0 },
      hour: { left: 25, resetAfterMs: 0 },
      day: { left: 30, resetAfterMs: 0 },
    })
    expect(await limits.reset('user')).toBe(false)
    expect(await on.keys(operation)).toEqual([])
  })

  it('existing key: takes from all, and says what is left of each', async () => {
    const limits = new Limits(on.primitives, on.operation(), LIMITS)
    const first = await limits.consume('user', { at, cost: 10 })
    expect(first.allowed).toBe(true)
    expect(first.limits).toEqual({
      burst: { allowed: true, left: 0, retryAfterMs: 0, resetAfterMs: 1_000 },
      minute: { allowed: true, left: 10, retryAfterMs: 0, resetAfterMs: 120_000 },
      hour: { allowed: true, left: 15, retryAfterMs: 0, resetAfterMs: 3_600_000 },
      day: { allowed: true, left: 20, retryAfterMs: 0, resetAfterMs: 86_400_000 },
    })
    expect((await limits.consume('other', { at })).limits.day.left).toBe(29)
    const given = await limits.refund('user', { at, cost: 4 })
    expect(Object.values(given).map(({ left }) => left)).toEqual([4, 14, 19, 24])
    expect(await limits.reset('user')).toBe(true)
    expect((await limits.peek('user', { at })).limits.minute.left).toBe(20)
  })

  it('existing key: where one refuses none is charged, and it says which and when to come again', async () => {
    const operation = on.operation()
    const limits = new Limits(on.primitives, operation, LIMITS)
    await limits.consume('user', { at, cost: 10 })
    const keys = await on.keys(operation)
    const dumps = () => Promise.all(keys.map((key) => on.redis.dumpBuffer(key)))
    const before = await dumps()
    const tooFast = await limits.consume('user', { at: after(200), cost: 5 })
    expect(tooFast).toMatchObject({ allowed: false, refusedBy: ['burst'], retryAfterMs: 300 })
    expect(tooFast.limits.minute).toMatchObject({ allowed: true, left: 10 })
    expect(await dumps()).toEqual(before)
    // Several at once, and the last of them tells when.
    await limits.consume('user', { at: after(1_000), cost: 10 })
    const then = await dumps()
    const tooMuch = await limits.consume('user', { at: after(1_000), cost: 6 })
    expect(tooMuch.refusedBy).toEqual(['burst', 'minute', 'hour'])
    expect(tooMuch.retryAfterMs).toBe(tooMuch.limits.hour.retryAfterMs)
    expect(await dumps()).toEqual(then)
    const due = 1_000 + tooMuch.retryAfterMs
    expect((await limits.consume('user', { at: after(due - 1), cost: 6 })).refusedBy).toEqual(['hour'])
    expect((await limits.consume('user', { at: after(due), cost: 6 })).allowed).toBe(true)
  })

  it('existing key: a call can cost differently in each, and what costs nothing is not held up', async () => {
    const limits = new Limits(on.primitives, on.operation(), {
      requests: { kind: 'sliding', limit: 2, windowMs: 60_000 },
      tokens: { kind: 'bucket', capacity: 10_000, refillMs: 60_000 },
    })
    expect((await limits.consume('user', { at, cost: { tokens: 9_000 } })).limits).toMatchObject({
      requests: { left: 1 },
      tokens: { left: 1_000 },
    })
    expect((await limits.consume('user', { at, cost: { tokens: 1_001 } })).refusedBy).toEqual(['tokens'])
    expect((await limits.consume('user', { at, cost: { tokens: 1_000 } })).allowed).toBe(true)
    expect((await limits.consume('user', { at, cost: { tokens: 0 } })).refusedBy).toEqual(['requests'])
    expect((await limits.refund('user', { at, cost: { requests: 0, tokens: 500 } })).tokens.left).toBe(500)
    expect((await limits.consume('user', { at, cost: { requests: 0, tokens: 500 } })).allowed).toBe(true)
  })

  it('existing key: limits of several subjects are decided together within a group', async () => {
    const operation = on.operation()
    const limits = new Limits(on.primitives, operation, {
      user: { kind: 'fixed', limit: 2, windowMs: 60_000, per: 'subject' },
      ip: { kind: 'fixed', limit: 3, windowMs: 60_000, per: 'subject' },
      tenant: { kind: 'fixed', limit: 100, windowMs: 60_000 },
    })
    const from = (user: string, ip: string) => ({ at, subjects: { user, ip } })
    await limits.consume('acme', from('anna', '203.0.113.7'))
    await limits.consume('acme', from('anna', '203.0.113.7'))
    const anna = await limits.consume('acme', from('anna', '203.0.113.8'))
    expect(anna.refusedBy).toEqual(['user'])
    expect(anna.limits.ip.left).toBe(3)
    const bert = await limits.consume('acme', from('bert', '203.0.113.7'))
    expect(Object.values(bert.limits).map(({ left }) => left)).toEqual([1, 0, 97])
    expect((await limits.consume('acme', from('cleo', '203.0.113.7'))).refusedBy).toEqual(['ip'])
    expect((await limits.consume('other', from('anna', '203.0.113.7'))).allowed).toBe(true)
    const tags = (await on.keys(operation)).map((key) => /\{(.*)\}/.exec(key)?.[1])
    expect(new Set(tags).size).toBe(2)
    expect(await limits.reset('acme', { subjects: { user: 'anna', ip: '203.0.113.7' } })).toBe(true)
    expect((await limits.peek('acme', from('anna', '203.0.113.7'))).limits.user.left).toBe(2)
  })

  it('ttl present: each limit has the end that it would have by itself', async () => {
    const operation = on.operation()
    const limits = new Limits(on.primitives, operation, LIMITS)
    await limits.consume('user', { at, cost: 10 })
    const keys = await on.keys(operation)
    const ttls = await Promise.all(keys.map((key) => on.redis.pttl(key)))
    const most = [61_000, 86_460_000, 3_660_000, 180_000]
    expect(keys.map((key) => /\}:(\w+):/.exec(key)?.[1])).toEqual(['burst', 'day', 'hour', 'minute'])
    for (const [i, ttl] of ttls.entries()) {
      expect(ttl).toBeLessThanOrEqual(most[i] as number)
      expect(ttl).toBeGreaterThan((most[i] as number) - 40_000)
    }
  })

  it('expired: what is gone counts for nothing, and the others go on', async () => {
    const operation = on.operation()
    const limits = new Limits(on.primitives, operation, {
      moment: { kind: 'fixed', limit: 1, windowMs: 1, bufferMs: 0 },
      day: { kind: 'fixed', limit: 5, windowMs: 86_400_000 },
    })
    await limits.consume('user', { at })
    await expect.poll(() => on.keys(operation)).toHaveLength(1)
    expect((await limits.consume('user', { at })).limits).toMatchObject({ moment: { left: 0 }, day: { left: 3 } })
  })

  it('wrong state: a limit that was lowered below what is used of it refuses, and only what it costs', async () => {
    const operation = on.operation()
    await new Limits(on.primitives, operation, LIMITS).consume('user', { at, cost: 10 })
    const lower = new Limits(on.primitives, operation, {
      minute: { kind: 'sliding', limit: 5, windowMs: 60_000 },
      day: { kind: 'fixed', limit: 30, windowMs: 86_400_000 },
    })
    expect((await lower.consume('user', { at })).refusedBy).toEqual(['minute'])
    expect((await lower.consume('user', { at, cost: { minute: 0 } })).limits.day.left).toBe(19)
  })

  it('wrong type, serialization: something else under one key is told, and no other is charged', async () => {
    const operation = on.operation()
    const limits = new Limits(on.primitives, operation, LIMITS)
    await limits.consume('user', { at })
    const keys = await on.keys(operation)
    on.counted('limits')
    for (const key of keys) {
      const good = await on.redis.dumpBuffer(key)
      await on.redis.del(key)
      await on.redis.hset(key, 'x', 'y')
      const before = await Promise.all(keys.map((one) => on.redis.dumpBuffer(one)))
      for (const what of ['consume', 'refund', 'peek'] as const) {
        await expect(limits[what]('user', { at })).rejects.toMatchObject({ code: 'value_damaged', operation })
      }
      expect(await Promise.all(keys.map((one) => on.redis.dumpBuffer(one)))).toEqual(before)
      await on.redis.restore(key, 0, good as Buffer, 'REPLACE')
    }
    expect(on.counted('limits')).toEqual({ damaged: 12 })
    // A log that is spoilt in the middle, where only giving back looks.
    const log = keys.find((key) => key.includes(':hour:')) as string
    await limits.consume('user', { at, cost: 4 })
    await limits.consume('user', { at })
    await on.redis.zrem(log, '0000000000000005:4')
    await on.redis.zadd(log, START, '0000000000000005:x')
    const before = await Promise.all(keys.map((one) => on.redis.dumpBuffer(one)))
    await expect(limits.refund('user', { at, cost: 3 })).rejects.toMatchObject({ code: 'value_damaged' })
    expect(await Promise.all(keys.map((one) => on.redis.dumpBuffer(one)))).toEqual(before)
  })

  it('script return type: exact up to the largest limits that there are', async () => {
    const most = Number.MAX_SAFE_INTEGER
    const limits = new Limits(on.primitives, on.operation(), {
      bucket: { kind: 'bucket', capacity: most, refillMs: 1 },
      sliding: { kind: 'sliding', limit: most, windowMs: 1_000 },
      fixed: { kind: 'fixed', limit: most, windowMs: 86_400_000 },
    })
    const { limits: each } = await limits.consume('user', { at, cost: most - 1 })
    expect(Object.values(each).map(({ left }) => left)).toEqual([1, 1, 1])
    expect((await limits.consume('user', { at, cost: 2 })).refusedBy).toEqual(['bucket', 'sliding', 'fixed'])
    expect((await limits.consume('user', { at })).allowed).toBe(true)
  })

  it('concurrency, metrics: of many at once from several processes the tightest decides, and all agree', async () => {
    on.counted('limits')
    const operation = on.operation()
    const other = await Primitives.connect({ redis: on.redis, secret: SECRET, ...PATIENT })
    const both = [on.primitives, other].map((primitives) => new Limits(primitives, operation, LIMITS))
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => both.map((limits) => limits.consume('user', { at }))).flat(),
    )
    expect(answers.filter(({ allowed }) => allowed)).toHaveLength(10)
    const { limits: each } = await (both[0] as Limits<keyof typeof LIMITS>).peek('user', { at })
    expect(Object.values(each).map(({ left }) => left)).toEqual([0, 10, 15, 20])
    await other.close()
    const { allowed = 0, refused = 0 } = on.counted('limits')
    expect(allowed + refused).toBe(100)
    await both[0]?.refund('user', { at })
    await both[0]?.reset('user')
    expect(on.counted('limits')).toEqual({ refunded: 1, reset: 1 })
  })

  it('keys: all of a scope lie in one slot, and no word of scope or subject stands in them', async () => {
    const operation = on.operation()
    const limits = new Limits(on.primitives, operation, { ...LIMITS, day: { ...LIMITS.day, per: 'subject' } })
    await limits.consume('anna@example.com', { subjects: { day: '203.0.113.7' } })
    const keys = await on.keys(operation)
    const scope = `hf:app:limits:v1:default:${operation}:\\{[0-9a-f]{32}\\}`
    const parts = ['burst:bucket', 'day:[0-9a-f]{32}:fixed:86400000', 'hour:log:3600000', 'minute:sliding:60000']
    expect(keys).toHaveLength(4)
    for (const [i, key] of keys.entries()) expect(key).toMatch(new RegExp(`^${scope}:${parts[i]}$`))
    expect(new Set(keys.map((key) => /\{.*\}/.exec(key)?.[0])).size).toBe(1)
  })

  it('model: any sequence of calls does what the limits do by themselves, if all of them agree', async () => {
    const windowMs = fc.integer({ min: 1, max: 40 })
    const limit = fc.integer({ min: 2, max: 20 })
    const terms = fc.record({ windowMs: fc.tuple(windowMs, windowMs, windowMs, windowMs), limit })
    const call = fc.record({
      what: fc.constantFrom('consume', 'consume', 'consume', 'peek', 'refund', 'reset'),
      cost: fc.integer({ min: 1, max: 2 }),
      step: fc.oneof(fc.constant(0), fc.integer({ min: -10, max: 20 })),
    })
    await fc.assert(
      fc.asyncProperty(terms, fc.array(call, { maxLength: 30 }), async ({ windowMs, limit }, calls) => {
        const limits = new Limits(on.primitives, on.operation(), {
          a: { kind: 'bucket', capacity: limit, refillMs: windowMs[0] },
          b: { kind: 'sliding', limit, windowMs: windowMs[1] },
          c: { kind: 'sliding', limit, windowMs: windowMs[2], exact: true },
          d: { kind: 'fixed', limit, windowMs: windowMs[3] },
        })
        const models = [
          new BucketModel(limit, limit, windowMs[0]),
          new WeightedModel(windowMs[1], limit),
          new ExactModel(windowMs[2], limit),
          new FixedModel(windowMs[3], limit),
        ]
        let ms = START
        for (const { what, cost, step } of calls) {
          ms += step
          const call = { cost, at: new Date(ms) }
          if (what === 'reset') {
            await limits.reset('user')
            for (const model of models) model.reset()
          } else if (what === 'refund') {
            const given = await limits.refund('user', call)
            expect(Object.values(given)).toEqual(models.map((model) => withoutCount(model.refund(cost, ms))))
          } else {
            const would = models.map((model) => model.ask(cost, ms, false))
            const allowed = would.every((one) => one.allowed)
            const takes = allowed && what === 'consume'
            const answer = await limits[what]('user', call)
            expect(answer).toMatchObject({ allowed, retryAfterMs: Math.max(...would.map((one) => one.retryAfterMs)) })
            const expected = takes ? models.map((model) => model.ask(cost, ms, true)) : would
            expect(Object.values(answer.limits)).toEqual(expected.map(withoutCount))
          }
        }
      }),
      { numRuns: 40 },
    )
  })
})

function withoutCount(answer: object): object {
  return Object.fromEntries(Object.entries(answer).filter(([name]) => name !== 'count'))
}

describe('limits', () => {
  it('redis away: refuse, as unavailable', async () => {
    await whileAway(async (primitives) => {
      const limits = new Limits(primitives, 'login', LIMITS)
      await expect(limits.consume('user')).rejects.toMatchObject({ code: 'unavailable', retryable: true })
      await expect(limits.peek('user')).rejects.toMatchObject({ code: 'unavailable' })
    })
  })

  it('may have any name, also those that objects have by themselves', async () => {
    const on = await onSingle()
    const given =
      '{"constructor":{"kind":"fixed","limit":5,"windowMs":60000},"__proto__":{"kind":"fixed","limit":5,"windowMs":60000}}'
    const limits = new Limits<string>(on.primitives, 'login', JSON.parse(given))
    expect((await limits.consume('user', { at })).limits).toEqual(
      JSON.parse(given, (_, value) =>
        value.kind ? { allowed: true, left: 4, retryAfterMs: 0, resetAfterMs: 60_000 } : value,
      ),
    )
    expect((await limits.consume('user', { at, cost: {}, subjects: {} })).limits.constructor).toMatchObject({ left: 3 })
    await on.close()
  })

  const fixed: Limit = { kind: 'fixed', limit: 1, windowMs: 1 }
  it.each<[string, unknown, string]>([
    ['none', {}, 'limits: expected 1 to 8 limits by their names, got 0'],
    ['nine', Object.fromEntries(Array.from({ length: 9 }, (_, n) => [`n${n}`, fixed])), 'limits: expected 1 to 8'],
    ['a list', [fixed], 'limits: expected an object, got an array'],
    ['a name with blanks', { 'a minute': fixed }, 'the name of a limit: expected 1 to 32 characters'],
    ['no kind', { minute: { limit: 1, windowMs: 1 } }, "kind: expected 'bucket' or 'sliding' or 'fixed', got nothing"],
    ['no limit', { minute: { kind: 'sliding', windowMs: 1 } }, 'limit: expected an integer from 1'],
    [
      'a subject that is none',
      { minute: { ...fixed, per: 'user' } },
      "per: expected 'scope' or 'subject', got a string",
    ],
    ['no window', { minute: { kind: 'fixed', limit: 1 } }, 'windowMs: expected an integer from 1'],
  ])('can not be made with %s', async (_, limits, message) => {
    const on = await onSingle()
    expect(() => new Limits(on.primitives, 'login', limits as never)).toThrow(message)
    await on.close()
  })

  it.each<[string, object, string]>([
    ['more than one of them ever has', { cost: 11 }, 'cost of burst: expected an integer from 0 to 10, got 11'],
    ['a cost of none of them', { cost: { week: 1 } }, 'cost: expected only names of limits, got a string of 4'],
    ['a word', { cost: 'much' }, 'cost of burst: expected an integer from 0 to 10, got a string of 4 characters'],
    ['a subject of none of them', { subjects: { week: 'x' } }, 'subjects: expected only names of limits'],
    ['an empty subject', { subjects: { day: '' } }, 'subject of day: expected 1 to 1024 characters'],
    ['no subject', { subjects: {} }, 'subject of day: expected a string or some strings, got nothing'],
    ['no subjects', {}, 'subject of day: expected a string or some strings, got nothing'],
    ['one that is empty after all', { subjects: { day: undefined } }, 'subject of day: expected a string or some'],
    [
      'a subject of a limit that has none',
      { subjects: { day: 'x', hour: 'x' } },
      'subjects: expected only names of li',
    ],
  ])('refuse %s', async (_, call, message) => {
    const on = await onSingle()
    const limits = new Limits(on.primitives, 'login', { ...LIMITS, day: { ...LIMITS.day, per: 'subject' } })
    for (const ask of ['consume', 'peek'] as const) await expect(limits[ask]('user', call)).rejects.toThrow(message)
    expect(await on.keys('login')).toEqual([])
    await on.close()
  })

  it('neither give back nor forget what is of a subject that nobody named', async () => {
    const on = await onSingle()
    const limits = new Limits(on.primitives, 'login', { day: { ...LIMITS.day, per: 'subject' } })
    for (const ask of ['refund', 'reset'] as const) {
      await expect(limits[ask]('user')).rejects.toMatchObject({ code: 'invalid_argument' })
    }
    await on.close()
  })
})
