import { FeatureFlags, Primitives } from 'holdfast/primitives'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { emptyDatabase, freshDatabase } from '../../../../test/servers.js'
import { FlagCopy, idOf, revisionOf } from '../../src/primitives/flags/copy.js'
import { PATIENT } from './support/patient.js'
import { type On, SECRET, TOPOLOGIES } from './support/topologies.js'

const author = { by: 'alice', why: 'to see' }
const DAY_MS = 86_400_000
/** Generous: the machine may be busy. */
const SOON_MS = 20_000

describe.each(TOPOLOGIES)('feature flags on %s', (_, open) => {
  let on: On
  let database: string
  const opened: { close(): unknown }[] = []
  beforeAll(async () => {
    database = await freshDatabase()
    on = await open({ postgres: database })
  })
  afterAll(async () => {
    for (const one of opened) await one.close()
    await on.close()
  })

  /** Flags of a tenant that nobody else uses. */
  const fresh = (options: ConstructorParameters<typeof FeatureFlags>[1] = {}) => {
    const tenant = on.operation()
    return { tenant, flags: watching(on.primitives, tenant, options) }
  }
  const watching = (of: Primitives, tenant: string, options: ConstructorParameters<typeof FeatureFlags>[1] = {}) => {
    const flags = new FeatureFlags(of.forTenant(tenant), { stalenessMs: 400, ...options })
    opened.push(flags)
    return flags
  }
  /** As another process would. */
  const another = async () => {
    const primitives = await Primitives.connect({ redis: on.redis, postgres: database, secret: SECRET, ...PATIENT })
    opened.push(primitives)
    return primitives
  }
  const keyOf = async (tenant: string) => (await on.keys(tenant)).find((key) => key.endsWith(':copy')) ?? ''

  it('missing key: without a flag the answer is the default, and says so', async () => {
    const { flags } = fresh({ defaults: { 'new-search': true } })
    await flags.ready()
    expect(flags.isOn('new-search', 'user-17')).toBe(true)
    expect(flags.explain('new-checkout', 'user-17')).toMatchObject({ on: false, because: 'unknown', version: null })
    expect(await flags.get('new-checkout')).toBeNull()
    expect(await flags.list()).toEqual([])
    expect(await flags.history()).toEqual([])
    expect(await flags.kill('new-checkout', author)).toEqual({ result: 'missing' })
    expect(await flags.delete('new-checkout', author)).toEqual({ result: 'missing' })
    expect(await flags.change('new-checkout', { on: true }, author)).toEqual({ result: 'missing' })
    expect(await flags.history()).toEqual([])
  })

  it('existing key: a change is in force here at once, in other processes soon, and its history has both sides', async () => {
    const { tenant, flags } = fresh()
    const other = watching(await another(), tenant)
    await Promise.all([flags.ready(), other.ready()])
    const made = await flags.put('new-checkout', { on: true, percentage: 12.5, description: 'The one page' }, author)
    expect(made).toMatchObject({
      result: 'changed',
      announced: true,
      flag: { version: 1, percentage: 12.5, rules: [] },
    })
    expect(flags.explain('new-checkout', 'user-17')).toMatchObject({ because: 'percentage', version: 1 })
    await vi.waitFor(() => expect(other.explain('new-checkout', 'user-17')).toMatchObject({ version: 1 }), SOON_MS)

    await flags.change('new-checkout', { percentage: 100 }, { by: 'bob' })
    expect(flags.isOn('new-checkout', 'user-17')).toBe(true)
    await vi.waitFor(() => expect(other.isOn('new-checkout', 'user-17')).toBe(true), SOON_MS)
    expect(await flags.list()).toMatchObject([{ name: 'new-checkout', percentage: 100, description: 'The one page' }])
    expect(await flags.delete('new-checkout', { by: 'bob' })).toMatchObject({ result: 'changed', flag: null })
    await vi.waitFor(() => expect(other.explain('new-checkout').because).toBe('unknown'), SOON_MS)

    const [deleted, changed, put] = await flags.history({ name: 'new-checkout' })
    expect(put).toEqual({
      revision: 1,
      name: 'new-checkout',
      kind: 'put',
      at: expect.any(Date),
      by: 'alice',
      why: 'to see',
      before: null,
      after: { on: true, percentage: 12.5, rules: [], description: 'The one page', killed: false },
    })
    expect(changed).toMatchObject({ revision: 2, by: 'bob', why: null, before: { percentage: 12.5 } })
    expect(deleted).toMatchObject({ revision: 3, kind: 'delete', before: { percentage: 100 }, after: null })
    expect(await flags.history({ before: 3, limit: 1 })).toMatchObject([{ revision: 2 }])
    expect((await flags.put('new-checkout', { on: true }, author)).result).toBe('changed')
    // No version comes twice, so that nobody takes the new one for the one that it knew.
    expect((await flags.get('new-checkout'))?.version).toBe(4)
  })

  it('wrong state: a version that is not the one there changes nothing, and a killed flag stays killed', async () => {
    const { flags } = fresh()
    await flags.ready()
    expect(await flags.put('a', { on: true }, { ...author, version: 7 })).toEqual({ result: 'conflict', flag: null })
    await flags.put('a', { on: true }, { ...author, version: 0 })
    expect(await flags.put('a', { on: false }, { ...author, version: 0 })).toMatchObject({
      result: 'conflict',
      flag: { on: true, version: 1 },
    })
    expect(await flags.change('a', { on: false }, { ...author, version: 2 })).toMatchObject({ result: 'conflict' })
    expect((await flags.history()).length).toBe(1)

    expect(await flags.kill('a', author)).toMatchObject({ result: 'changed', flag: { killed: true, version: 2 } })
    expect(flags.explain('a', 'user-17')).toMatchObject({ on: false, because: 'killed', version: 2 })
    await flags.put('a', { on: true, percentage: 50 }, author)
    expect(flags.explain('a', 'user-17')).toMatchObject({ on: false, because: 'killed', version: 3 })
    await flags.unkill('a', author)
    expect(flags.explain('a', 'user-17')).toMatchObject({ because: 'percentage', percentage: 50 })
    expect((await flags.history()).map(({ kind }) => kind)).toEqual(['unkill', 'put', 'kill', 'put'])
  })

  it('duplicate: the same again is `unchanged` and leaves no line', async () => {
    const { flags } = fresh()
    const rules = [{ when: [{ attribute: 'n', test: 'lessThan', value: 1.5 } as const], serve: 0.01 }]
    await flags.put('a', { on: true, rules }, author)
    expect(await flags.put('a', { on: true, percentage: 100, rules }, author)).toMatchObject({ result: 'unchanged' })
    await flags.kill('a', author)
    expect(await flags.kill('a', { by: 'bob' })).toMatchObject({ result: 'unchanged', flag: { version: 2 } })
    expect((await flags.history()).length).toBe(2)
    expect(await flags.get('a')).toMatchObject({ rules, killed: true })
  })

  it('concurrency: of many who expect the same version one wins, and changes of different parts all come through', async () => {
    const { tenant, flags } = fresh()
    const others = await Promise.all(Array.from({ length: 3 }, async () => watching(await another(), tenant)))
    await Promise.all(others.map((one) => one.ready()))
    await flags.put('a', { on: false }, author)
    const tries = await Promise.all(
      Array.from({ length: 60 }, (_, n) =>
        (others[n % 3] as FeatureFlags).put('a', { on: true, percentage: n }, { by: `n${n}`, version: 1 }),
      ),
    )
    expect(tries.filter(({ result }) => result === 'changed').length).toBe(1)
    expect(tries.filter(({ result }) => result === 'conflict').length).toBe(59)
    await Promise.all(
      others.flatMap((one, n) => [
        one.change('a', [{ description: 'x' }, { percentage: 33 }, { on: true }][n] ?? {}, author),
        ...Array.from({ length: 20 }, (_, m) => one.put(`f${n}-${m}`, { on: true }, author)),
      ]),
    )
    expect(await flags.get('a')).toMatchObject({ on: true, percentage: 33, description: 'x' })
    const revisions = (await flags.history({ limit: 1_000 })).map(({ revision }) => revision)
    expect(revisions).toEqual(Array.from({ length: revisions.length }, (_, n) => revisions.length - n))
    const last = revisions[0] as number
    await vi.waitFor(() => expect(others.map(({ standing }) => standing.revision)).toEqual([last, last, last]), SOON_MS)
    for (const one of others) expect(one.isOn('f2-19', 'u')).toBe(true)
  })

  it('metrics: what became of changes, and what a process learned', async () => {
    const { tenant, flags } = fresh()
    on.counted('flags')
    await flags.ready()
    await flags.put('a', { on: true }, author)
    await flags.put('a', { on: true }, author)
    await flags.put('a', { on: true }, { ...author, version: 9 })
    await flags.kill('b', author)
    // `updated`: read at first, and after the change.
    expect(on.counted('flags')).toEqual({ updated: 2, changed: 1, unchanged: 1, conflict: 1, missing: 1 })
    expect(on.logged.filter(({ event }) => event === 'flag_changed').at(-1)?.facts).toEqual({
      tenantId: tenant,
      operation: 'all',
      keyHashPrefix: expect.stringMatching(/^hmac_/),
      redisPattern: 'hf:holdfast:flags:v1',
      flag: 'a',
      change: 'put',
    })
    flags.close()
  })

  it('keys, ttl present, ttl kept: one copy for a tenant, with an end that looking does not move', async () => {
    const { tenant, flags } = fresh({ stalenessMs: 3_600_000 })
    await flags.put('a', { on: true }, author)
    expect(await on.keys(tenant)).toEqual([
      expect.stringMatching(/^hf:holdfast:flags:v1:[a-z0-9-]+:all:\{[0-9a-f]{32}\}:copy$/),
    ])
    const key = await keyOf(tenant)
    expect(await on.redis.pttl(key)).toBeGreaterThan(DAY_MS - 60_000)
    await on.redis.pexpire(key, 60_000)
    await flags.ready()
    expect(await on.redis.pttl(key)).toBeLessThanOrEqual(60_000)
    await flags.change('a', { on: false }, author)
    expect(await on.redis.pttl(key)).toBeGreaterThan(DAY_MS - 60_000)
    const other = fresh().tenant
    expect(other).not.toBe(tenant)
    expect(await on.keys(other)).toEqual([])
  })

  it('keys: who shares a database shares the copy, whatever secret it has; another database with that secret has another', async () => {
    const tenant = on.operation()
    const connect = async (postgres: string, secret: string) => {
      const primitives = await Primitives.connect({ redis: on.redis, postgres, secret, ...PATIENT })
      opened.push(primitives)
      return watching(primitives, tenant, { stalenessMs: 3_600_000 })
    }
    await (await connect(database, 'a secret of one application')).put('a', { on: true }, author)
    const reader = await connect(database, 'a secret of another application')
    await reader.ready()
    expect(reader.isOn('a')).toBe(true)
    expect(await on.keys(tenant)).toHaveLength(1)

    const elsewhere = await connect(await emptyDatabase(), 'a secret of one application')
    await elsewhere.ready()
    expect(elsewhere.explain('a').because).toBe('unknown')
    await elsewhere.put('b', { on: true }, author)
    expect((await on.keys(tenant)).filter((key) => key.endsWith(':copy'))).toHaveLength(2)
    const late = await connect(database, SECRET)
    await late.ready()
    expect([late.isOn('a'), late.explain('b').because]).toEqual([true, 'unknown'])
  })

  it('expired: a copy that is gone is written anew by whoever looks next', async () => {
    const { tenant, flags } = fresh()
    await flags.put('a', { on: true }, author)
    await flags.ready()
    await on.redis.del(await keyOf(tenant))
    await vi.waitFor(async () => expect(await keyOf(tenant)).not.toBe(''), SOON_MS)
    expect(await on.redis.pttl(await keyOf(tenant))).toBeGreaterThan(DAY_MS - 60_000)
    expect(flags.isOn('a', 'u')).toBe(true)
  })

  it('wrong type, serialization: something else in place of the copy is told, and flags come from Postgres', async () => {
    const { tenant, flags } = fresh()
    await flags.put('a', { on: true }, author)
    const key = await keyOf(tenant)
    const head = (await on.redis.getrange(key, 0, 39)) as string
    for (const spoil of [
      () => on.redis.set(key, 'x'),
      () => on.redis.set(key, `${head}no flags`),
      () => on.redis.set(key, `${head}[{"name":"a","version":1,"killed":false,"on":"yes"}]`),
      () => on.redis.del(key).then(() => on.redis.lpush(key, 'x')),
    ]) {
      await spoil()
      on.counted('flags')
      const reader = watching(on.primitives, tenant)
      await reader.ready()
      expect(reader.isOn('a', 'u')).toBe(true)
      expect(on.counted('flags')).toMatchObject({ damaged: expect.any(Number), fallback: 1 })
      reader.close()
    }
    // What is a string gets written over, since Postgres has the flags. A list is somebody else's.
    expect(await on.redis.type(key)).toBe('list')
    await on.redis.set(key, 'x')
    const reader = watching(on.primitives, tenant)
    await reader.ready()
    expect(await on.redis.get(key)).toMatch(/^0{15}1[0-9a-f]{6} \d{16}\n\[\{"name":"a"/)
  })

  it('script return type, duplicate: a look tells age and turn, and what runs twice is done once', async () => {
    const { tenant } = fresh()
    const context = on.primitives.forTenant(tenant).context
    const [mine, yours] = [new FlagCopy(context), new FlagCopy(context)]
    const nothing = { id: null, flags: null, ageMs: expect.any(Number) }
    expect(await mine.look(null, 60_000, 60_000)).toEqual({ ...nothing, isTurn: true })
    expect(await mine.look(null, 60_000, 60_000)).toEqual({ ...nothing, isTurn: true })
    expect(await yours.look(null, 60_000, 60_000)).toEqual({ ...nothing, isTurn: false })
    const set = (revision: number) => ({ revision, mark: 42, flags: [] })
    await mine.confirm(set(5), 1_234, false)
    await mine.confirm(set(5), 1_234, false)
    const look = await yours.look(null, 60_000, 60_000)
    expect(look).toMatchObject({ id: idOf(set(5)), flags: [], isTurn: false })
    expect(look.ageMs).toBeGreaterThanOrEqual(1_234)
    expect(await yours.look(idOf(set(5)), 60_000, 60_000)).toMatchObject({ flags: null })
    const last = idOf({ revision: Number.MAX_SAFE_INTEGER, mark: 2 ** 24 - 1 })
    expect(await yours.look(last, 60_000, 60_000)).toMatchObject({ id: idOf(set(5)), flags: [] })
  })

  it('wrong state: an answer from before a change does not undo it, one after Postgres was put back does', async () => {
    const { tenant } = fresh()
    const context = on.primitives.forTenant(tenant).context
    const [slow, writer] = [new FlagCopy(context), new FlagCopy(context)]
    const set = (revision: number) => ({ revision, mark: 42, flags: [] })
    const revision = async () => revisionOf((await writer.look(null, 0, 60_000)).id ?? '')
    await slow.look(null, 0, 60_000)
    await writer.announce(set(6), 0)
    await slow.confirm(set(5), 0, false)
    expect(await revision()).toBe(6)
    await writer.announce(set(4), 0)
    expect(await revision()).toBe(6)
    // Nothing was changed from the question to the answer, and that says 3.
    await writer.confirm(set(3), 0, false)
    expect(await revision()).toBe(3)
  })

  it('wrong state: an answer from before a change does not undo it either when its asker has the turn again', async () => {
    const { tenant } = fresh()
    const context = on.primitives.forTenant(tenant).context
    const [slow, writer] = [new FlagCopy(context), new FlagCopy(context)]
    const set = (revision: number) => ({ revision, mark: 42, flags: [] })
    expect(await slow.look(null, 0, 60_000)).toMatchObject({ isTurn: true })
    await writer.announce(set(6), 0)
    // Its first question is still not answered.
    expect(await slow.look(null, 0, 60_000)).toMatchObject({ isTurn: true })
    await slow.confirm(set(5), 10_000, false)
    expect(revisionOf((await slow.look(null, 60_000, 60_000)).id ?? '')).toBe(6)
  })

  it('wrong state: a copy from the future, of a server whose clock was ahead, is confirmed by the clock that there is', async () => {
    const { tenant } = fresh()
    const copy = new FlagCopy(on.primitives.forTenant(tenant).context)
    const set = (revision: number) => ({ revision, mark: 42, flags: [] })
    for (const revision of [5, 4]) {
      await copy.announce(set(5), 0)
      const ahead = `${Date.now() + 3_600_000}`.padStart(16, '0')
      await on.redis.setrange(await keyOf(tenant), idOf(set(5)).length + 1, ahead)
      expect(await copy.look(idOf(set(5)), 60_000, 60_000)).toMatchObject({ isTurn: true })
      await copy.confirm(set(revision), 0, revision === 5)
      const look = await copy.look(null, 60_000, 60_000)
      expect(look).toMatchObject({ id: idOf(set(revision)), isTurn: false })
      expect(look.ageMs).toBeLessThan(60_000)
    }
  })

  it('wrong state: a change of the same number after Postgres was put back is another one', async () => {
    const { tenant, flags } = fresh()
    await flags.put('a', { on: true }, author)
    await flags.ready()
    const client = new pg.Client(database)
    await client.connect()
    opened.push({ close: () => client.end() })
    // As a restore does, which asks no trigger.
    await client.query('SET session_replication_role = replica')
    for (const table of ['flags', 'flag_heads', 'flag_changes']) {
      await client.query(`DELETE FROM holdfast.${table} WHERE tenant = $1`, [tenant])
    }
    await new FeatureFlags(on.primitives.forTenant(tenant)).put('b', { on: true }, author)
    await vi.waitFor(() => expect(flags.isOn('b', 'u')).toBe(true), SOON_MS)
    expect(flags.explain('a').because).toBe('unknown')
    expect(flags.standing.revision).toBe(1)
  })

  it('keeps its history as it was written', async () => {
    const { tenant, flags } = fresh()
    await flags.put('a', { on: true }, author)
    const client = new pg.Client(database)
    await client.connect()
    opened.push({ close: () => client.end() })
    for (const statement of [
      `UPDATE holdfast.flag_changes SET made_by = 'nobody' WHERE tenant = '${tenant}'`,
      `DELETE FROM holdfast.flag_changes WHERE tenant = '${tenant}'`,
      'TRUNCATE holdfast.flag_changes',
    ]) {
      await expect(client.query(statement)).rejects.toThrow('never changed or deleted')
    }
  })
})
