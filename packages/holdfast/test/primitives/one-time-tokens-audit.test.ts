import { OneTimeTokens, Primitives } from 'holdfast/primitives'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { PATIENT } from './support/patient.js'
import { type On, onSingle, SECRET, TOPOLOGIES } from './support/topologies.js'

const unknown = (because: string | null) => ({ result: 'unknown', because })

describe.each(TOPOLOGIES)('the audit of one-time tokens on %s', (_, open) => {
  let on: On
  let pool: pg.Pool
  let operation: string
  let resets: OneTimeTokens
  beforeAll(async () => {
    const postgres = await freshDatabase()
    on = await open({ postgres })
    pool = new pg.Pool({ connectionString: postgres, max: 2 })
  })
  beforeEach(() => {
    operation = on.operation()
    resets = new OneTimeTokens(on.primitives, operation)
  })
  afterAll(async () => {
    await pool.end()
    await on.close()
  })

  const events = async (subject: string) =>
    (await resets.history(subject)).map(({ event, because }) => (because === null ? event : `${event} ${because}`))

  it('keeps what became of each token, the newest first, and neither a token nor a subject', async () => {
    const { token, id, issuedAt, expiresAt } = await resets.issue({ subject: 'user-17', data: 'a@b' })
    await resets.consume(token, { key: 'request-7' })
    await resets.consume(token)
    const other = await resets.issue({ subject: 'user-17' })
    await resets.revoke(other.id)
    await resets.consume(other.token)
    await resets.issue({ subject: 'user-18' })
    expect(await events('user-17')).toEqual([
      'refused revoked',
      'revoked',
      'issued',
      'refused used',
      'consumed',
      'issued',
    ])
    const first = (await resets.history('user-17')).at(-1)
    expect(first).toMatchObject({ event: 'issued', because: null, id })
    // By Postgres's clock, and Redis has its own.
    expect(Math.abs((first?.at.getTime() ?? 0) - issuedAt.getTime())).toBeLessThan(60_000)
    expect(Math.abs((first?.expiresAt.getTime() ?? 0) - expiresAt.getTime())).toBeLessThan(60_000)
    expect(await resets.history('user-17', { limit: 2 })).toHaveLength(2)
    const { rows } = await pool.query('SELECT * FROM holdfast.token_events WHERE operation = $1', [operation])
    expect(rows).toHaveLength(7)
    expect(JSON.stringify(rows)).not.toMatch(/user-1|request-7|a@b/)
    for (const secret of [token, other.token]) expect(JSON.stringify(rows)).not.toContain(secret.slice(22))
  })

  it('tells why a token is not known any more, also when Redis has forgotten', async () => {
    const [used, revoked, forgotten, expired] = await Promise.all(
      [1, 2, 3, 4].map((n) => resets.issue({ subject: `user-${n}` })),
    )
    await resets.consume(used?.token as string)
    await resets.revokeAll('user-2')
    await pool.query('UPDATE holdfast.token_events SET expires_at = 1 WHERE operation = $1 AND token = $2', [
      operation,
      expired?.id.slice(32),
    ])
    for (const key of await on.keys(operation)) await on.redis.del(key)
    expect(await resets.consume(used?.token as string)).toEqual(unknown('used'))
    expect(await resets.consume(revoked?.token as string)).toEqual(unknown('revoked'))
    expect(await resets.consume(forgotten?.token as string)).toEqual(unknown('forgotten'))
    expect(await resets.consume(expired?.token as string)).toEqual(unknown('expired'))
    expect(await resets.consume('x'.repeat(65))).toEqual(unknown(null))
    expect(await events('user-3')).toEqual(['refused forgotten', 'issued'])
  })

  it('does not call revoked what nobody has revoked, when Redis has lost only the generation', async () => {
    const { token } = await resets.issue({ subject: 'user-17' })
    for (const key of await on.keys(operation)) if (key.endsWith(':generation')) await on.redis.del(key)
    expect(await resets.consume(token)).toEqual(unknown('forgotten'))
    expect(await events('user-17')).toEqual(['refused forgotten', 'issued'])
  })

  it('a token is used once also when Redis has lost that it was used or revoked', async () => {
    const used = await resets.issue({ subject: 'user-17' })
    const revoked = await resets.issue({ subject: 'user-17' })
    // As a replica that had not heard of it when it became the master.
    const before = await Promise.all(
      (await on.keys(operation)).map(async (key) => [key, await on.redis.get(key)] as const),
    )
    const goBack = async () => {
      for (const [key, value] of before) await on.redis.set(key, String(value), 'PX', 60_000)
    }
    expect((await resets.consume(used.token, { key: 'mine' })).result).toBe('consumed')
    expect(await resets.revoke(revoked.id)).toBe('revoked')
    await goBack()
    expect(await resets.consume(used.token, { key: 'yours' })).toEqual(unknown('used'))
    expect(await resets.consume(revoked.token)).toEqual(unknown('revoked'))
    await goBack()
    // Who has used it is who has used it.
    expect((await resets.consume(used.token, { key: 'mine' })).result).toBe('consumed')
    await goBack()
    await resets.revokeAll('user-17')
    await goBack()
    expect(await resets.consume(used.token, { key: 'yours' })).toEqual(unknown('used'))
  })

  it('revokes in Postgres what Redis has lost', async () => {
    const one = await resets.issue({ subject: 'user-17' })
    const two = await resets.issue({ subject: 'user-17' })
    const before = await Promise.all(
      (await on.keys(operation)).map(async (key) => [key, await on.redis.get(key)] as const),
    )
    for (const [key] of before) await on.redis.del(key)
    expect(await resets.revoke(one.id)).toBe('revoked')
    expect(await resets.revoke(one.id)).toBe('unknown')
    await resets.revokeAll('user-17')
    for (const [key, value] of before) await on.redis.set(key, String(value), 'PX', 60_000)
    expect(await resets.consume(one.token)).toEqual(unknown('revoked'))
    expect(await resets.consume(two.token)).toEqual(unknown('revoked'))
  })

  it('concurrency: of many at once one uses it or one revokes it, and the audit has one end', async () => {
    const { token, id } = await resets.issue({ subject: 'user-17' })
    const [revoked, ...used] = await Promise.all([
      resets.revoke(id),
      ...Array.from({ length: 50 }, () => resets.consume(token)),
    ])
    const consumed = used.filter((one) => typeof one === 'object' && one.result === 'consumed').length
    expect(consumed).toBeLessThanOrEqual(1)
    if (consumed === 0) expect(revoked).toBe('revoked')
    const ends = (await events('user-17')).filter((event) => ['consumed', 'revoked'].includes(event))
    expect(ends).toEqual([consumed === 1 ? 'consumed' : 'revoked'])
  })

  it('who has a token that is of no use can not fill the audit with it', async () => {
    const { token } = await resets.issue({ subject: 'user-17' })
    await resets.consume(token)
    for (let n = 0; n < 25; n += 1) expect(await resets.consume(token)).toEqual(unknown('used'))
    expect((await events('user-17')).filter((event) => event === 'refused used')).toHaveLength(20)
  })

  it('keeps what is asked to be kept: prune removes a bounded number of rows of tokens that expired long ago', async () => {
    await resets.issue({ subject: 'user-17' })
    await resets.issue({ subject: 'user-18' })
    // Another application may want to keep what this one does not.
    const other = new OneTimeTokens({ context: { ...on.primitives.context, owner: 'other' } } as Primitives, operation)
    await other.issue({ subject: 'user-17' })
    await pool.query(
      'UPDATE holdfast.token_events SET expires_at = 1 WHERE operation = $1 AND subject = (SELECT subject FROM holdfast.token_events WHERE operation = $1 ORDER BY id LIMIT 1)',
      [operation],
    )
    let pruned = 0
    for (let gone = 1; gone > 0; pruned += gone) gone = await resets.prune({ limit: 1 })
    expect(pruned).toBeGreaterThanOrEqual(1)
    expect(await resets.history('user-17')).toEqual([])
    expect(await events('user-18')).toEqual(['issued'])
    expect(await other.history('user-17')).toHaveLength(1)
    await expect(resets.prune({ olderThanMs: 1 })).rejects.toThrow('olderThanMs: expected an integer from 86400000')
  })

  it('is left out where it is not wanted', async () => {
    const plain = new OneTimeTokens(on.primitives, operation, { audit: false })
    const { token } = await plain.issue({ subject: 'user-17' })
    expect((await plain.consume(token)).result).toBe('consumed')
    expect(await resets.history('user-17')).toEqual([])
  })
})

describe('the audit of one-time tokens', () => {
  it('is closed when Postgres is away: nothing is given out, used, refused or revoked that is not noted', async () => {
    const on = await onSingle({ withPostgres: true })
    const resets = new OneTimeTokens(on.primitives, 'reset')
    const { token, id } = await resets.issue({ subject: 'user-17' })
    const keys = await on.keys('reset')
    await on.primitives.context.postgres?.close()
    on.counted('token')
    const away = { code: 'unavailable', retryable: true }
    await expect(resets.issue({ subject: 'user-17' })).rejects.toMatchObject(away)
    await expect(resets.revoke(id)).rejects.toMatchObject(away)
    await expect(resets.revokeAll('user-17')).rejects.toMatchObject(away)
    // Redis has used it up: that is not nothing.
    const used = { ...away, outcome: 'unknown' }
    await expect(resets.consume(token, { key: 'mine' })).rejects.toMatchObject(used)
    await expect(resets.consume(token)).rejects.toMatchObject(away)
    expect(on.counted('token')).toEqual({ unavailable: 5 })
    expect(await on.keys('reset')).toEqual(keys)
    await on.close()
  })

  it('who asked while Postgres was away asks again with the same key', async () => {
    const postgres = await freshDatabase()
    const on = await onSingle({ postgres })
    const resets = new OneTimeTokens(on.primitives, 'reset')
    const { token } = await resets.issue({ subject: 'user-17' })
    const cut = await Primitives.connect({ redis: on.redis, postgres, secret: SECRET, ...PATIENT })
    await cut.context.postgres?.close()
    const away = new OneTimeTokens(cut, 'reset').consume(token, { key: 'mine' })
    await expect(away).rejects.toMatchObject({ code: 'unavailable' })
    expect(await resets.consume(token, { key: 'yours' })).toEqual(unknown('used'))
    expect(await resets.consume(token, { key: 'mine' })).toMatchObject({ result: 'consumed', subject: 'user-17' })
    await cut.close()
    await on.close()
  })
})
