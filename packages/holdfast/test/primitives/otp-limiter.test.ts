import fc from 'fast-check'
import { OtpLimiter, type OtpLimiterOptions, Primitives } from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { whileAway } from './support/away.js'
import { PATIENT } from './support/patient.js'
import { type On, onSingle, SECRET, TOPOLOGIES } from './support/topologies.js'

const START = Date.UTC(2026, 6, 2, 14, 30)
const MINUTE_MS = 60_000
const after = (minutes: number): Date => new Date(START + minutes * MINUTE_MS)
const at = after(0)
const PHONE = '+49 171 2345678'

describe.each(TOPOLOGIES)('OTP limiter on %s', (_, open) => {
  let on: On
  beforeAll(async () => {
    on = await open()
  })
  afterAll(() => on.close())

  it('missing key: five attempts are left at first, and reading makes no key', async () => {
    const operation = on.operation()
    const limiter = new OtpLimiter(on.primitives, operation)
    expect(await limiter.peek(PHONE, { at })).toEqual({ allowed: true, attemptsLeft: 5, retryAfterMs: 0 })
    expect(await limiter.succeeded(PHONE)).toBe(false)
    expect(await on.keys(operation)).toEqual([])
  })

  it('existing key: five attempts in any ten minutes, not in each minute', async () => {
    const limiter = new OtpLimiter(on.primitives, on.operation(), { cooldownMs: 0 })
    for (const minute of [0, 2, 4, 6, 8]) {
      expect(await limiter.attempt(PHONE, { at: after(minute) })).toMatchObject({ allowed: true })
    }
    for (const minute of [8, 9, 9.99]) {
      expect(await limiter.attempt(PHONE, { at: after(minute) })).toMatchObject({ allowed: false, attemptsLeft: 0 })
    }
    // The first of them is ten minutes old.
    expect(await limiter.attempt(PHONE, { at: after(10) })).toEqual({
      allowed: true,
      attemptsLeft: 0,
      retryAfterMs: 2 * MINUTE_MS,
    })
    expect((await limiter.attempt(PHONE, { at: after(11.99) })).allowed).toBe(false)
    expect((await limiter.attempt(PHONE, { at: after(12) })).allowed).toBe(true)
  })

  it('wrong state: after the last attempt nothing is let through until the cool-down is over', async () => {
    const limiter = new OtpLimiter(on.primitives, on.operation(), { cooldownMs: 30 * MINUTE_MS })
    const lefts: number[] = []
    for (const minute of [0, 1, 2, 3]) {
      lefts.push((await limiter.attempt(PHONE, { at: after(minute) })).attemptsLeft)
    }
    expect(lefts).toEqual([4, 3, 2, 1])
    expect(await limiter.attempt(PHONE, { at: after(4) })).toEqual({
      allowed: true,
      attemptsLeft: 0,
      retryAfterMs: 30 * MINUTE_MS,
    })
    // All of them have left the window by then.
    const refused = { allowed: false, attemptsLeft: 0, retryAfterMs: 4 * MINUTE_MS }
    expect(await limiter.attempt(PHONE, { at: after(30) })).toEqual(refused)
    expect(await limiter.peek(PHONE, { at: after(30) })).toEqual(refused)
    expect(await limiter.attempt(PHONE, { at: after(34) })).toEqual({
      allowed: true,
      attemptsLeft: 4,
      retryAfterMs: 0,
    })
  })

  it('wrong state: who goes on trying is not kept out for longer, and nothing changes', async () => {
    const operation = on.operation()
    const limiter = new OtpLimiter(on.primitives, operation)
    for (let n = 0; n < 5; n += 1) await limiter.attempt(PHONE, { at })
    const keys = await on.keys(operation)
    const before = await Promise.all(keys.map((key) => on.redis.dumpBuffer(key)))
    for (let minute = 0; minute < 10; minute += 1) {
      expect((await limiter.attempt(PHONE, { at: after(minute) })).retryAfterMs).toBe((10 - minute) * MINUTE_MS)
    }
    expect(await Promise.all(keys.map((key) => on.redis.dumpBuffer(key)))).toEqual(before)
    expect((await limiter.attempt(PHONE, { at: after(10) })).allowed).toBe(true)
  })

  it('wrong state: each further cool-down is longer, if that is asked for, up to the most; success ends it', async () => {
    const limiter = new OtpLimiter(on.primitives, on.operation(), {
      attempts: 1,
      windowMs: MINUTE_MS,
      cooldownMs: MINUTE_MS,
      cooldownGrowth: 3,
      cooldownMaxMs: 10 * MINUTE_MS,
    })
    let now = 0
    const waits: number[] = []
    for (let n = 0; n < 5; n += 1) {
      const { allowed, retryAfterMs } = await limiter.attempt(PHONE, { at: after(now) })
      expect(allowed).toBe(true)
      waits.push(retryAfterMs / MINUTE_MS)
      now += retryAfterMs / MINUTE_MS
    }
    expect(waits).toEqual([1, 3, 9, 10, 10])
    expect(await limiter.succeeded(PHONE)).toBe(true)
    expect((await limiter.attempt(PHONE, { at: after(0) })).retryAfterMs).toBe(MINUTE_MS)
  })

  it('existing key: success gives all attempts anew, also during a cool-down, and of this number only', async () => {
    const limiter = new OtpLimiter(on.primitives, on.operation())
    for (let n = 0; n < 5; n += 1) await limiter.attempt(PHONE, { at })
    await limiter.attempt('+49 171 2345679', { at })
    expect(await limiter.succeeded(PHONE)).toBe(true)
    expect((await limiter.peek(PHONE, { at })).attemptsLeft).toBe(5)
    expect((await limiter.peek('+49 171 2345679', { at })).attemptsLeft).toBe(4)
  })

  it('ttl present, ttl kept: attempts end with the window, cool-downs when they are not remembered any more', async () => {
    const operation = on.operation()
    const limiter = new OtpLimiter(on.primitives, operation, { cooldownGrowth: 2, cooldownMaxMs: 60 * MINUTE_MS })
    for (let n = 0; n < 5; n += 1) await limiter.attempt(PHONE, { at })
    const keys = await on.keys(operation)
    const ttls = async () => Promise.all(keys.map((key) => on.redis.pttl(key)))
    for (const [i, most] of [11 * MINUTE_MS, 70 * MINUTE_MS].entries()) {
      expect((await ttls())[i]).toBeLessThanOrEqual(most)
      expect((await ttls())[i]).toBeGreaterThan(most - MINUTE_MS)
    }
    for (const key of keys) await on.redis.pexpire(key, 30_000)
    await limiter.attempt(PHONE, { at })
    await limiter.peek(PHONE, { at })
    for (const ttl of await ttls()) expect(ttl).toBeLessThanOrEqual(30_000)
  })

  it('expired: what is gone does not count', async () => {
    const operation = on.operation()
    const limiter = new OtpLimiter(on.primitives, operation, { attempts: 1 })
    await limiter.attempt(PHONE)
    for (const key of await on.keys(operation)) await on.redis.pexpire(key, 1)
    await expect.poll(() => on.keys(operation)).toEqual([])
    expect((await limiter.peek(PHONE)).attemptsLeft).toBe(1)
  })

  it('wrong type, serialization: something else under a key is told and left as it is', async () => {
    const operation = on.operation()
    const limiter = new OtpLimiter(on.primitives, operation, { attempts: 1 })
    await limiter.attempt(PHONE, { at })
    const [log = '', cooldown = ''] = await on.keys(operation)
    const spoils: [string, () => Promise<unknown>][] = [
      [log, () => on.redis.set(log, 'x')],
      [log, () => on.redis.zadd(log, START, 'x')],
      [cooldown, () => on.redis.lpush(cooldown, 'x')],
      ...['', '5', '5:', '5:-1', '5:1:1', '9007199254740992:1'].map((text): [string, () => Promise<unknown>] => [
        cooldown,
        () => on.redis.set(cooldown, text),
      ]),
    ]
    on.counted('otp')
    for (const [key, spoil] of spoils) {
      const good = await on.redis.dumpBuffer(key)
      await on.redis.del(key)
      await spoil()
      const before = await Promise.all([log, cooldown].map((one) => on.redis.dumpBuffer(one)))
      for (const call of [limiter.attempt, limiter.peek]) {
        await expect(call.call(limiter, PHONE, { at })).rejects.toMatchObject({ code: 'value_damaged', operation })
      }
      expect(await Promise.all([log, cooldown].map((one) => on.redis.dumpBuffer(one)))).toEqual(before)
      await on.redis.restore(key, 0, good as Buffer, 'REPLACE')
    }
    expect(on.counted('otp')).toEqual({ damaged: 2 * spoils.length })
    expect(await limiter.succeeded(PHONE)).toBe(true)
  })

  it('concurrency, metrics: of many at once from several processes, in any spelling, five get through', async () => {
    on.counted('otp')
    const operation = on.operation()
    const other = await Primitives.connect({ redis: on.redis, secret: SECRET, ...PATIENT })
    const limiters = [on.primitives, other].map(
      (primitives) => new OtpLimiter(primitives, operation, { country: '49' }),
    )
    const spellings = [PHONE, '0171 2345678', '0049171/2345678', '+49 (0) 171-234 56 78']
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, n) =>
        limiters.map((limiter) => limiter.attempt(spellings[n % spellings.length] as string, { at })),
      ).flat(),
    )
    expect(answers.filter(({ allowed }) => allowed)).toHaveLength(5)
    await other.close()
    const { allowed = 0, refused = 0 } = on.counted('otp')
    expect(allowed + refused).toBe(100)
    await limiters[0]?.succeeded(PHONE)
    for (let n = 0; n < 6; n += 1) await limiters[0]?.attempt(PHONE, { at })
    expect(on.counted('otp')).toEqual({ succeeded: 1, allowed: 5, cooldown: 1, refused: 1 })
  })

  it('keys: no digit of the number stands in a key or in what is logged', async () => {
    const operation = on.operation()
    const limiter = new OtpLimiter(on.primitives, operation, { attempts: 1 })
    await limiter.attempt(PHONE, { at })
    const keys = await on.keys(operation)
    const scope = `hf:app:otp:v1:default:${operation}:\\{[0-9a-f]{32}\\}`
    expect(keys[0]).toMatch(new RegExp(`^${scope}:attempts$`))
    expect(keys[1]).toMatch(new RegExp(`^${scope}:cooldown$`))
    expect(keys).toHaveLength(2)
    expect(on.logged.at(-1)).toEqual({
      event: 'otp_cooldown',
      facts: {
        tenantId: 'default',
        operation,
        keyHashPrefix: expect.stringMatching(/^hmac_[0-9a-f]{8}$/),
        redisPattern: 'hf:app:otp:v1',
        number: 1,
        retryAfterMs: 10 * MINUTE_MS,
      },
    })
  })

  it('script return type: as many attempts and as long a cool-down as there can be', async () => {
    const limiter = new OtpLimiter(on.primitives, on.operation(), {
      attempts: 1_000,
      cooldownMs: 400 * 24 * 60 * MINUTE_MS,
      cooldownGrowth: 100,
    })
    const answers = await Promise.all(Array.from({ length: 1_001 }, () => limiter.attempt(PHONE, { at })))
    expect(answers.filter(({ allowed }) => allowed)).toHaveLength(1_000)
    expect(answers.at(-1)?.retryAfterMs).toBe(400 * 24 * 60 * MINUTE_MS)
  })

  it('model: any sequence of calls does what a list of times does', async () => {
    const terms = fc.record({
      attempts: fc.integer({ min: 1, max: 4 }),
      windowMs: fc.integer({ min: 1, max: 30 }),
      cooldownMs: fc.integer({ min: 0, max: 60 }),
      cooldownGrowth: fc.integer({ min: 1, max: 3 }),
    })
    const call = fc.record({
      what: fc.constantFrom('attempt', 'attempt', 'attempt', 'attempt', 'peek', 'succeeded'),
      step: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 40 })),
    })
    await fc.assert(
      fc.asyncProperty(terms, fc.array(call, { maxLength: 40 }), async (terms, calls) => {
        const limiter = new OtpLimiter(on.primitives, on.operation(), { ...terms, cooldownMaxMs: 200 + MINUTE_MS })
        let times: number[] = []
        let cooldowns = 0
        let closedUntil = 0
        let ms = START
        const isFree = (ms: number): boolean =>
          ms >= closedUntil && times.filter((time) => time > ms - terms.windowMs).length < terms.attempts
        const answer = (allowed: boolean) => {
          let retryAfterMs = 0
          while (!isFree(ms + retryAfterMs)) retryAfterMs += 1
          const counted = times.filter((time) => time > ms - terms.windowMs).length
          return { allowed, retryAfterMs, attemptsLeft: retryAfterMs > 0 ? 0 : terms.attempts - counted }
        }
        for (const { what, step } of calls) {
          ms += step
          if (what === 'succeeded') {
            await limiter.succeeded(PHONE)
            times = []
            cooldowns = 0
            closedUntil = 0
          } else if (what === 'peek') {
            expect(await limiter.peek(PHONE, { at: new Date(ms) })).toEqual(answer(isFree(ms)))
          } else {
            const allowed = isFree(ms)
            if (allowed) times.push(ms)
            const counted = times.filter((time) => time > ms - terms.windowMs).length
            if (allowed && counted === terms.attempts && terms.cooldownMs > 0) {
              closedUntil = ms + Math.min(200 + MINUTE_MS, terms.cooldownMs * terms.cooldownGrowth ** cooldowns)
              cooldowns += 1
            }
            expect(await limiter.attempt(PHONE, { at: new Date(ms) })).toEqual(answer(allowed))
          }
        }
      }),
      { numRuns: 40 },
    )
  })
})

describe('OTP limiter', () => {
  it('redis away: refuses, as unavailable', async () => {
    await whileAway(async (primitives) => {
      const limiter = new OtpLimiter(primitives, 'login')
      await expect(limiter.attempt(PHONE)).rejects.toMatchObject({ code: 'unavailable', retryable: true })
      await expect(limiter.succeeded(PHONE)).rejects.toMatchObject({ code: 'unavailable' })
    })
  })

  it.each<[string, OtpLimiterOptions, string]>([
    ['no attempts', { attempts: 0 }, 'attempts: expected an integer from 1 to 1000, got 0'],
    ['a country with a +', { country: '+49' }, 'country: expected 1 to 3 digits, no 0 first'],
    ['a country as a number', { country: 49 as never }, 'country: expected 1 to 3 digits'],
    [
      'a cool-down above the most',
      { cooldownMs: 2_000, cooldownMaxMs: 1_000 },
      'cooldownMaxMs: expected an integer from 2000',
    ],
    ['one that shrinks', { cooldownGrowth: 0.5 }, 'cooldownGrowth: expected an integer from 1 to 100, got 0.5'],
  ])('can not be made with %s', async (_, options, message) => {
    await withSingle(async (primitives) => {
      expect(() => new OtpLimiter(primitives, 'login', options)).toThrow(message)
    })
  })
})

async function withSingle(use: (primitives: Primitives) => Promise<void>): Promise<void> {
  const on = await onSingle()
  try {
    await use(on.primitives)
  } finally {
    await on.close()
  }
}
