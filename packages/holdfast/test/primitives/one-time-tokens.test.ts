import fc from 'fast-check'
import { OneTimeTokens, Primitives } from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { tokenIssue } from '../../src/redis/scripts.generated.js'
import { whileAway } from './support/away.js'
import { PATIENT } from './support/patient.js'
import { type On, onSingle, SECRET, TOPOLOGIES } from './support/topologies.js'
import { twice } from './support/twice.js'

const MINUTE_MS = 60_000
const unknown = (because: string | null) => ({ result: 'unknown', because })

describe.each(TOPOLOGIES)('one-time tokens on %s', (_, open) => {
  let on: On
  beforeAll(async () => {
    on = await open()
  })
  afterAll(() => on.close())

  const tokenKey = async (operation: string) =>
    (await on.keys(operation)).find((key) => !key.endsWith(':generation')) as string

  it('missing key: what is no token of ours is unknown, whatever it looks like', async () => {
    const operation = on.operation()
    const resets = new OneTimeTokens(on.primitives, operation)
    const other = await new OneTimeTokens(on.primitives, on.operation()).issue({ subject: 'user-17' })
    for (const token of [
      '',
      'x',
      'x'.repeat(65),
      `${'x'.repeat(64)}\n`,
      'ü'.repeat(65),
      other.token,
      'x'.repeat(1e6),
    ]) {
      expect(await resets.consume(token)).toEqual(unknown(null))
      expect(await resets.peek(token)).toEqual({ result: 'unknown' })
    }
    expect(await resets.revoke('0'.repeat(64))).toBe('unknown')
    await resets.revokeAll('user-17')
    expect(await on.keys(operation)).toEqual([])
  })

  it('existing key, wrong state: a token is used once; one that was used is not revoked, and one that was revoked not used', async () => {
    const resets = new OneTimeTokens<{ mail: string }>(on.primitives, on.operation())
    const issued = await resets.issue({ subject: 'user-17', data: { mail: 'a@b' } })
    expect(issued.expiresAt.getTime() - issued.issuedAt.getTime()).toBe(15 * MINUTE_MS)
    const { issuedAt, expiresAt } = issued
    const about = { subject: 'user-17', data: { mail: 'a@b' }, issuedAt }
    expect(await resets.peek(issued.token)).toEqual({ result: 'live', ...about, expiresAt })
    expect(await resets.consume(issued.token)).toEqual({ result: 'consumed', ...about })
    on.logged.length = 0
    expect(await resets.consume(issued.token)).toEqual(unknown('used'))
    expect(on.logged).toMatchObject([
      { event: 'token_refused', facts: { because: 'used', redisPattern: 'hf:app:token:v1' } },
    ])
    expect(await resets.peek(issued.token)).toEqual({ result: 'unknown' })
    expect(await resets.revoke(issued.id)).toBe('unknown')

    const revoked = await resets.issue({ subject: 'user-17' })
    expect(await resets.revoke(revoked.id)).toBe('revoked')
    expect(await resets.consume(revoked.token)).toEqual(unknown('revoked'))
  })

  it('all tokens of a subject are revoked in one step, no others, and none that come later', async () => {
    const resets = new OneTimeTokens(on.primitives, on.operation())
    const [one, two, other] = await Promise.all(
      ['user-17', 'user-17', 'user-18'].map((subject) => resets.issue({ subject })),
    )
    const used = await resets.issue({ subject: 'user-17' })
    await resets.consume(used.token, { key: 'mine' })
    await resets.revokeAll('user-17')
    await resets.revokeAll('user-17')
    const later = await resets.issue({ subject: 'user-17' })
    expect(await resets.peek(one?.token as string)).toEqual({ result: 'unknown' })
    expect(await resets.consume(one?.token as string)).toEqual(unknown('revoked'))
    expect(await resets.consume(two?.token as string)).toEqual(unknown('revoked'))
    expect(await resets.consume(other?.token as string)).toMatchObject({ result: 'consumed', subject: 'user-18' })
    expect(await resets.consume(later.token)).toMatchObject({ result: 'consumed', subject: 'user-17' })
    // What was used before was used: who has not heard of it still can.
    expect(await resets.consume(used.token, { key: 'mine' })).toMatchObject({ result: 'consumed' })
  })

  it('ttl present, ttl kept: of the token, of the memory that it was used, and of the generation as long as any of its tokens', async () => {
    const operation = on.operation()
    const resets = new OneTimeTokens(on.primitives, operation, { ttlMs: 5 * MINUTE_MS, replayMs: MINUTE_MS })
    const short = await resets.issue({ subject: 'user-17' })
    const key = await tokenKey(operation)
    const generation = (await on.keys(operation)).find((one) => one.endsWith(':generation')) as string
    expect(await on.redis.pttl(key)).toBeGreaterThan(4 * MINUTE_MS)
    expect(await on.redis.pttl(key)).toBeLessThanOrEqual(5 * MINUTE_MS)
    expect(await on.redis.pttl(generation)).toBeLessThanOrEqual(5 * MINUTE_MS)
    await resets.issue({ subject: 'user-17', ttlMs: 60 * MINUTE_MS })
    expect(await on.redis.pttl(generation)).toBeGreaterThan(59 * MINUTE_MS)
    await resets.issue({ subject: 'user-17', ttlMs: 1_000 })
    expect(await on.redis.pttl(generation)).toBeGreaterThan(58 * MINUTE_MS)
    await resets.consume(short.token)
    expect(await on.redis.pttl(key)).toBeLessThanOrEqual(MINUTE_MS)
    expect(await on.redis.pttl(key)).toBeGreaterThan(0)

    const revoked = await resets.issue({ subject: 'user-18' })
    await resets.revoke(revoked.id)
    const keys = (await on.keys(operation)).filter((one) => one.endsWith(revoked.id.slice(32)))
    expect(await on.redis.pttl(keys[0] as string)).toBeGreaterThan(4 * MINUTE_MS)
  })

  it('expired: it is unknown then, and so is who has used it', async () => {
    const resets = new OneTimeTokens(on.primitives, on.operation(), { ttlMs: 1, replayMs: 1 })
    const { token, id } = await resets.issue({ subject: 'user-17' })
    await expect.poll(() => resets.peek(token)).toEqual({ result: 'unknown' })
    expect(await resets.consume(token)).toEqual(unknown(null))
    expect(await resets.revoke(id)).toBe('unknown')
    const used = await resets.issue({ subject: 'user-17', ttlMs: MINUTE_MS })
    expect(await resets.consume(used.token, { key: 'mine' })).toMatchObject({ result: 'consumed' })
    await expect.poll(() => resets.consume(used.token, { key: 'mine' })).toEqual(unknown(null))
  })

  it('duplicate: who has not heard the answer asks again with the same key; a call that runs twice does and says the same', async () => {
    const resets = new OneTimeTokens(twice(on.primitives), on.operation())
    const { token } = await resets.issue({ subject: 'user-17', data: 1 })
    const first = await resets.consume(token, { key: 'request-7' })
    expect(first).toMatchObject({ result: 'consumed', subject: 'user-17', data: 1 })
    expect(await resets.consume(token, { key: 'request-7' })).toEqual(first)
    expect(await resets.consume(token, { key: 'request-8' })).toEqual(unknown('used'))
    expect(await resets.consume(token)).toEqual(unknown('used'))
    const other = await resets.issue({ subject: 'user-17' })
    expect(await resets.consume(other.token)).toMatchObject({ result: 'consumed' })
    const revoked = await resets.issue({ subject: 'user-17' })
    expect(await resets.revoke(revoked.id)).toBe('revoked')
  })

  it('duplicate: a copy of an issue that arrives late brings nothing back that was used or revoked since', async () => {
    const { context } = on.primitives
    const copies: (() => Promise<unknown>)[] = []
    const runner: typeof context.runner = {
      run(script, keys, args) {
        if (script === tokenIssue) copies.push(() => context.runner.run(script, keys, args))
        return context.runner.run(script, keys, args)
      },
    }
    const resets = new OneTimeTokens({ context: { ...context, runner } } as Primitives, on.operation())
    const used = await resets.issue({ subject: 'user-1' })
    const revoked = await resets.issue({ subject: 'user-2' })
    const ended = await resets.issue({ subject: 'user-3' })
    await resets.consume(used.token, { key: 'mine' })
    await resets.revoke(revoked.id)
    await resets.revokeAll('user-3')
    for (const copy of copies) await copy()
    expect(await resets.consume(used.token, { key: 'yours' })).toEqual(unknown('used'))
    expect(await resets.consume(revoked.token)).toEqual(unknown('revoked'))
    expect(await resets.consume(ended.token)).toEqual(unknown('revoked'))
  })

  it('wrong type, serialization: something else under the key is told and left as it is', async () => {
    const operation = on.operation()
    const resets = new OneTimeTokens(on.primitives, operation)
    const { token, id } = await resets.issue({ subject: 'user-17' })
    const key = await tokenKey(operation)
    const value = String(await on.redis.get(key))
    for (const spoil of [
      () => on.redis.del(key).then(() => on.redis.lpush(key, 'x')),
      () => on.redis.set(key, '{"userId":"U-123","used":false}'),
      () => on.redis.set(key, value.replace(/^1/, '2')),
      () => on.redis.set(key, value.replace('LIVE', 'DEAD')),
    ]) {
      await spoil()
      const before = await on.redis.dump(key)
      on.counted('token')
      for (const call of [() => resets.consume(token), () => resets.peek(token), () => resets.revoke(id)]) {
        await expect(call()).rejects.toMatchObject({
          code: 'value_damaged',
          operation,
          redisPattern: 'hf:app:token:v1',
        })
      }
      expect(await on.redis.dump(key)).toBe(before)
      expect(on.counted('token')).toEqual({ damaged: 3 })
    }
    for (const payload of ['', 'null', '5', '{"data":1}', '{"subject":17}']) {
      await on.redis.set(key, value.replace(/\n.*/, `\n${payload}`), 'PX', MINUTE_MS)
      await expect(resets.peek(token)).rejects.toMatchObject({ code: 'value_damaged' })
    }
    const generation = (await on.keys(operation)).find((one) => one.endsWith(':generation')) as string
    await on.redis.set(key, value, 'PX', MINUTE_MS)
    await on.redis.set(generation, 'x')
    await expect(resets.consume(token)).rejects.toMatchObject({ code: 'value_damaged' })
    await expect(resets.issue({ subject: 'user-17' })).rejects.toMatchObject({ code: 'value_damaged' })
    await resets.revokeAll('user-17')
    expect(await resets.consume(token)).toEqual(unknown('revoked'))
  })

  it('concurrency, metrics: of many at once, over several connections, one uses it', async () => {
    on.counted('token')
    const operation = on.operation()
    const other = await Primitives.connect({ redis: on.redis, secret: SECRET, ...PATIENT })
    const both = [new OneTimeTokens(on.primitives, operation), new OneTimeTokens(other, operation)] as const
    const { token } = await both[0].issue({ subject: 'user-17' })
    const used = await Promise.all(Array.from({ length: 400 }, (_, n) => both[n % 2 === 0 ? 0 : 1].consume(token)))
    expect(used.filter(({ result }) => result === 'consumed')).toHaveLength(1)
    const { issued, consumed = 0, refused } = on.counted('token')
    expect(issued).toBe(1)
    expect(consumed + (refused ?? 0)).toBe(200)
    await other.close()
  })

  it('keys: no token and no subject stands in them; a token has 256 random bits, and nothing that is kept can be used', async () => {
    const operation = on.operation()
    const resets = new OneTimeTokens(on.primitives, operation)
    const issued = await Promise.all(Array.from({ length: 50 }, () => resets.issue({ subject: '+4912345' })))
    expect(new Set(issued.map(({ token }) => token)).size).toBe(50)
    const { token, id } = issued[0] as (typeof issued)[0]
    expect(token).toMatch(/^[A-Za-z0-9_-]{65}$/)
    expect(Buffer.from(token.slice(22), 'base64url')).toHaveLength(32)
    const keys = await on.keys(operation)
    expect(keys).toHaveLength(51)
    const scope = `hf:app:token:v1:default:${operation}:\\{[0-9a-f]{32}\\}`
    for (const key of keys) {
      expect(key).toMatch(new RegExp(`^${scope}:([0-9a-f]{32}|generation)$`))
      const value = String(await on.redis.get(key))
      for (const one of issued) expect(value).not.toContain(one.token.slice(22))
      expect(await resets.consume(value.slice(0, 65))).toEqual(unknown(null))
    }
    expect(await resets.consume(id)).toEqual(unknown(null))
    const acme = new OneTimeTokens(on.primitives.forTenant('acme'), operation)
    expect(await acme.consume(token)).toEqual(unknown(null))
    expect((await resets.consume(token)).result).toBe('consumed')
    await resets.consume(token)
    expect(JSON.stringify(on.logged)).toMatch(/token_refused/)
    for (const secret of [token, token.slice(22), '4912345']) expect(JSON.stringify(on.logged)).not.toContain(secret)
  })

  it('script return type: any JSON comes back as it was, and what does not fit is refused before anything is sent', async () => {
    const operation = on.operation()
    const resets = new OneTimeTokens(on.primitives, operation, { dataMaxBytes: 100 })
    for (const data of [null, 0, '', 'a\nb\0c', [], { ü: '𝄞' }, 'x'.repeat(98), undefined]) {
      const { token } = await resets.issue({ subject: 'Ü\u2028 1 LIVE', data })
      expect(await resets.consume(token)).toMatchObject({ result: 'consumed', subject: 'Ü\u2028 1 LIVE', data })
    }
    const before = await on.keys(operation)
    await expect(resets.issue({ subject: 'u', data: 'x'.repeat(99) })).rejects.toMatchObject({
      code: 'too_large',
      limit: 100,
      bytes: 101,
    })
    await expect(resets.issue({ subject: 'u', data: 1n })).rejects.toMatchObject({ code: 'invalid_argument' })
    expect(await on.keys(operation)).toEqual(before)
  })

  it('model: any sequence of calls does what a list of tokens does', async () => {
    const call = fc.record({
      what: fc.constantFrom('issue', 'issue', 'consume', 'consume', 'revoke', 'revoke all', 'peek'),
      subject: fc.constantFrom('a', 'b'),
      which: fc.nat({ max: 5 }),
      key: fc.constantFrom('one', 'two'),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(call, { maxLength: 30 }), async (calls) => {
        const resets = new OneTimeTokens(on.primitives, on.operation())
        const tokens: { token: string; id: string; subject: string; state: string; key?: string }[] = []
        for (const { what, subject, which, key } of calls) {
          const one = tokens[which % Math.max(1, tokens.length)]
          if (what === 'issue') {
            const { token, id } = await resets.issue({ subject })
            tokens.push({ token, id, subject, state: 'live' })
          } else if (what === 'revoke all') {
            await resets.revokeAll(subject)
            for (const other of tokens) if (other.subject === subject && other.state === 'live') other.state = 'revoked'
          } else if (one === undefined) {
          } else if (what === 'peek') {
            expect((await resets.peek(one.token)).result).toBe(one.state === 'live' ? 'live' : 'unknown')
          } else if (what === 'revoke') {
            expect(await resets.revoke(one.id)).toBe(one.state === 'used' ? 'unknown' : 'revoked')
            if (one.state === 'live') one.state = 'revoked'
          } else {
            const isMine = one.state === 'live' || (one.state === 'used' && one.key === key)
            const answer = await resets.consume(one.token, { key })
            if (isMine) expect(answer).toMatchObject({ result: 'consumed', subject: one.subject })
            else expect(answer).toEqual(unknown(one.state))
            if (one.state === 'live') Object.assign(one, { state: 'used', key })
          }
        }
      }),
      { numRuns: 25 },
    )
  })
})

describe('one-time tokens', () => {
  it('redis away: refuses, as unavailable', async () => {
    await whileAway(async (primitives) => {
      const resets = new OneTimeTokens(primitives, 'reset')
      await expect(resets.issue({ subject: 'u' })).rejects.toMatchObject({ code: 'unavailable', retryable: true })
      await expect(resets.consume('x'.repeat(65))).rejects.toMatchObject({ code: 'unavailable' })
      await expect(resets.revokeAll('u')).rejects.toMatchObject({ code: 'unavailable' })
    })
  })

  it.each<[string, (tokens: OneTimeTokens) => Promise<unknown>, string]>([
    ['no subject', (tokens) => tokens.issue({} as never), 'subject: expected a string, got nothing'],
    ['no time', (tokens) => tokens.issue({ subject: 'u', ttlMs: 0 }), 'ttlMs: expected an integer from 1'],
    ['no token', (tokens) => tokens.consume(undefined as never), 'token: expected a string, got nothing'],
    ['a number', (tokens) => tokens.consume(491712345678 as never), 'token: expected a string, got a number'],
    ['an empty key', (tokens) => tokens.consume('x', { key: '' }), 'key: expected 1 to 255 characters'],
    ['a token for an id', (tokens) => tokens.revoke('x'.repeat(65)), 'id: expected the id of a token, got a string'],
    ['a history without an audit', (tokens) => tokens.history('u'), 'audit: expected true'],
    ['to prune without an audit', (tokens) => tokens.prune(), 'audit: expected true'],
  ])('refuses %s', async (_, act, message) => {
    const on = await onSingle()
    await expect(act(new OneTimeTokens(on.primitives, 'refused'))).rejects.toThrow(message)
    expect(() => new OneTimeTokens(on.primitives, 'refused', { audit: true })).toThrow(
      'postgres: expected a connection',
    )
    expect(await on.keys('refused')).toEqual([])
    await on.close()
  })
})
