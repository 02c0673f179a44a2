import { type PostgresHandle, type RedisHandle, startPostgres, startRedis } from '@holdfast/services'
import { FeatureFlags, type FeatureFlagsOptions, Primitives } from 'holdfast/primitives'
import pg from 'pg'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { FlagCopy } from '../../src/primitives/flags/copy.js'
import { PATIENT } from './support/patient.js'
import { counting, holding } from './support/runners.js'
import { type On, onSingle, SECRET, TOPOLOGIES } from './support/topologies.js'

const author = { by: 'alice' }
/** Generous: the machine may be busy. */
const SOON_MS = 20_000
const AWAY = 'redis://127.0.0.1:1'
const opened: { close(): unknown }[] = []
const counts = new Map<string, number>()
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close()
  counts.clear()
})

/** Also counts how often Postgres is asked for flags. */
async function connect(redis: On['redis'] | string, postgres: string): Promise<Primitives> {
  const primitives = await Primitives.connect({
    redis,
    postgres,
    secret: SECRET,
    ...PATIENT,
    telemetry: {
      observe(_, __, { query = '' } = {}) {
        counts.set(query, (counts.get(query) ?? 0) + 1)
      },
    },
  })
  opened.push(primitives)
  return primitives
}

function watching(primitives: Primitives, options: FeatureFlagsOptions = {}): FeatureFlags {
  const flags = new FeatureFlags(primitives, options)
  opened.push(flags)
  return flags
}

describe.each(TOPOLOGIES)('how far a process may be behind, on %s', (_, open) => {
  async function begin() {
    const database = await freshDatabase()
    const on = await open({ postgres: database })
    opened.push(on)
    const tenant = on.operation()
    /** One whose changes never reach Redis, as of a process that dies right after the commit. */
    const mute = new FeatureFlags((await connect(AWAY, database)).forTenant(tenant))
    return { on, database, tenant, mute }
  }

  it('concurrency: a change that Redis never heard of is in force within the bound, and no age is ever too small', async () => {
    const { on, database, tenant, mute } = await begin()
    const stalenessMs = 4_000
    await mute.put('a', { on: true, percentage: 0 }, author)
    const readers = await Promise.all(
      Array.from({ length: 3 }, async () => {
        const flags = watching((await connect(on.redis, database)).forTenant(tenant), { stalenessMs })
        await flags.ready()
        return flags
      }),
    )
    const postgres = new pg.Client(database)
    await postgres.connect()
    opened.push({ close: () => postgres.end() })
    const copy = new FlagCopy(on.primitives.forTenant(tenant).context).scope.key('copy')
    const change = await mute.kill('a', author)
    expect(change).toMatchObject({ result: 'changed', announced: false })
    const committedAt = performance.now()
    // The time that this process could not run, or its servers did not answer, is no fault of the flags.
    let lostMs = 0
    let seen = 0
    for (let at = committedAt; seen < readers.length; ) {
      const rest = new Promise((resolve) => setTimeout(resolve, 10))
      await Promise.all([rest, postgres.query('SELECT 1'), on.redis.exists(copy)])
      const now = performance.now()
      lostMs += Math.max(0, now - at - 15)
      at = now
      seen = 0
      for (const flags of readers) {
        const { because, ageMs } = flags.explain('a', 'user-17')
        if (because === 'killed') seen += 1
        // What was asked for after the commit has it.
        else expect(now - (ageMs as number)).toBeLessThanOrEqual(committedAt + 2)
      }
      expect(now - committedAt - lostMs).toBeLessThan(stalenessMs)
    }
    await vi.waitFor(() => expect(readers.every(({ standing }) => standing.isFresh)).toBe(true), SOON_MS)
  })

  it('has one of all processes ask Postgres', async () => {
    const { on, database, tenant, mute } = await begin()
    await mute.put('a', { on: true }, author)
    const stalenessMs = 1_600
    const primitives = (await connect(on.redis, database)).forTenant(tenant)
    const readers = Array.from({ length: 12 }, () => watching(primitives, { stalenessMs }))
    await Promise.all(readers.map((one) => one.ready()))
    counts.clear()
    const startedAt = performance.now()
    await vi.waitFor(() => expect(counts.get('readFlags')).toBeGreaterThanOrEqual(3), SOON_MS)
    // Who asks has 200 ms for it before another is told to, and one may have been at it. Of twelve that each asked for themselves there
    // would be more.
    expect(counts.get('readFlags')).toBeLessThanOrEqual(2 + (performance.now() - startedAt) / 200)
    expect(readers.every((one) => one.isOn('a', 'u'))).toBe(true)
  })
})

describe('a process that looks at flags', () => {
  /** A poll each 10 ms. */
  const SHORT = { stalenessMs: 80 }
  const manyPolls = () => new Promise((resolve) => setTimeout(resolve, 300))

  it('does not look on once its connections are closed', async () => {
    const on = await onSingle({ withPostgres: true })
    opened.push(on)
    const { primitives, counts: calls } = counting(on.primitives)
    const flags = watching(primitives, SHORT)
    await flags.ready()
    await vi.waitFor(() => expect(calls.flags_read).toBeGreaterThan(3), SOON_MS)
    await on.primitives.close()
    const before = calls.flags_read
    await manyPolls()
    expect(calls.flags_read).toBe(before)
    await expect(flags.ready()).rejects.toMatchObject({ code: 'unavailable' })
  })

  it('looks once at a time, also when it was stopped and started while it looked', async () => {
    const on = await onSingle({ withPostgres: true })
    opened.push(on)
    const { primitives: counted, counts: calls } = counting(on.primitives)
    const { primitives, isHeld, letGo } = holding(counted, 'flags_read')
    // The next poll is minutes away.
    const flags = watching(primitives, { stalenessMs: 3_600_000, defaults: {} })
    const readies = [flags.ready()]
    await isHeld
    flags.close()
    readies.push(flags.ready())
    letGo()
    await Promise.all(readies)
    await manyPolls()
    // One that both have waited for, and no second one of its own before the next poll is due.
    expect(calls.flags_read).toBe(1)
  })
})

describe('flags without their servers', () => {
  it('redis away: Postgres is asked instead, seldom, and changes still come through', async () => {
    const redis = await startRedis({ source: 'installed' })
    opened.push({ close: () => redis.stop() })
    const database = await freshDatabase()
    const primitives = await connect(redis.url, database)
    const flags = watching(primitives, { stalenessMs: 800 })
    await flags.put('a', { on: true }, author)
    await flags.ready()
    await redis.stop()
    const elsewhere = new FeatureFlags(await connect(AWAY, database))
    expect(await elsewhere.kill('a', author)).toMatchObject({ result: 'changed', announced: false })
    await vi.waitFor(() => expect(flags.explain('a', 'u').because).toBe('killed'), SOON_MS)
    counts.clear()
    const startedAt = performance.now()
    await vi.waitFor(() => expect(counts.get('readFlags')).toBeGreaterThanOrEqual(3), SOON_MS)
    // Each 400 ms at most.
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(2 * 400 - 50)
    expect(await flags.unkill('a', author)).toMatchObject({ result: 'changed', announced: false })
    expect(flags.isOn('a', 'u')).toBe(true)
  })

  it('redis away: a process starts from Postgres alone', async () => {
    const database = await freshDatabase()
    const flags = watching(await connect(AWAY, database))
    await flags.put('a', { on: true }, author)
    await flags.ready()
    expect(flags.explain('a', 'u')).toMatchObject({ on: true, because: 'percentage' })
  })

  it('expired, missing key: without Postgres the copy in Redis serves; without both the last known flags, with their age', async () => {
    const [redis, postgres] = await servers()
    const primitives = await connect(redis.url, postgres.url)
    const stalenessMs = 800
    const flags = watching(primitives, { stalenessMs })
    const cautious = watching(primitives, { stalenessMs, lastKnownForMs: 1_000, defaults: { b: true } })
    await flags.put('a', { on: true }, author)
    await Promise.all([flags.ready(), cautious.ready()])
    await postgres.stop()

    const late = watching(primitives, { stalenessMs })
    await late.ready()
    expect(late.isOn('a', 'u')).toBe(true)
    await vi.waitFor(() => expect(flags.standing.isFresh).toBe(false), SOON_MS)
    await expect(flags.kill('a', author)).rejects.toMatchObject({ code: 'unavailable' })

    await redis.stop()
    const { ageMs } = flags.explain('a', 'u')
    await vi.waitFor(() => expect(flags.explain('a', 'u').ageMs).toBeGreaterThan((ageMs as number) + 500), SOON_MS)
    expect(flags.explain('a', 'u')).toMatchObject({ on: true, because: 'percentage', version: 1 })
    expect(flags.standing).toMatchObject({ revision: 1, isFresh: false })
    await vi.waitFor(() => expect(cautious.explain('a', 'u')).toMatchObject({ on: false, because: 'too_old' }), SOON_MS)
    expect(cautious.isOn('b', 'u')).toBe(true)

    const cold = watching(primitives)
    await expect(cold.ready()).rejects.toMatchObject({ code: 'unavailable', retryable: true })
    expect(() => cold.isOn('a', 'u')).toThrow(expect.objectContaining({ code: 'unavailable' }))
    const declared = watching(primitives, { defaults: { a: true } })
    await declared.ready()
    expect(declared.explain('a', 'u')).toMatchObject({ on: true, because: 'unread', version: null, ageMs: null })
    expect(declared.isOn('b', 'u')).toBe(false)
  }, 120_000)
})

async function servers(): Promise<[RedisHandle, PostgresHandle]> {
  const both = await Promise.all([startRedis({ source: 'installed' }), startPostgres({ source: 'installed' })])
  for (const one of both) opened.push({ close: () => one.stop() })
  return both
}
