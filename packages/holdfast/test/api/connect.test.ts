import { Redis } from 'ioredis'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { emptyDatabase, freshDatabase, freshRedis, sharedCluster, sharedSentinel } from '../../../../test/servers.js'
import { open } from '../../src/api/connect.js'
import { type ConnectOptions, Holdfast } from '../../src/index.js'
import { NO_REDIS, refusal, until } from './support/paths.js'

describe('connecting', () => {
  it('prepares a database that has nothing in it', async () => {
    const hf = await Holdfast.connect({ redis: await freshRedis(), postgres: await emptyDatabase() })
    await expectToWork(hf)
    await hf.close()
  })

  it('lets several do so at the same time', async () => {
    const [redis, postgres] = [await freshRedis(), await emptyDatabase()]
    const all = await Promise.all([1, 2, 3].map(() => Holdfast.connect({ redis, postgres, shards: 8 })))
    for (const [index, hf] of all.entries()) await expectToWork(hf, `wallet-${index}`)
    await Promise.all(all.map((hf) => hf.close()))
  })

  it('is closed once, however often that is asked for, and for everybody at the same time', async () => {
    let [given, takenBack] = [0, 0]
    const gauge = () => {
      given += 1
      return () => {
        takenBack += 1
      }
    }
    const hf = await Holdfast.connect({ redis: NO_REDIS, postgres: await freshDatabase(), telemetry: { gauge } })
    const ended: string[] = []
    await Promise.all(['first', 'second'].map((name) => hf.close().then(() => ended.push(name))))
    await hf.close()
    expect(ended).toEqual(['first', 'second'])
    expect(takenBack).toBe(given)
  })

  it('refuses a database that is not up to date when it may not change it', async () => {
    const options = { redis: NO_REDIS, postgres: await emptyDatabase(), migrate: false }
    expect(await refusal(Holdfast.connect(options))).toMatchObject({ code: 'incompatible' })
  })

  it.each(['migrate', 'strict'])(
    'refuses %s if it is neither true nor false, before anything is changed',
    async (name) => {
      const postgres = await emptyDatabase()
      const error = await refusal(Holdfast.connect({ redis: NO_REDIS, postgres, [name]: 'false' }))
      expect(error).toMatchObject({ code: 'invalid_argument', argument: name })
      const pool = new pg.Pool({ connectionString: postgres })
      expect((await pool.query(`SELECT to_regnamespace('holdfast') AS schema`)).rows).toEqual([{ schema: null }])
      await pool.end()
    },
  )

  it('works without Redis, and does not take long to find out', async () => {
    const postgres = await freshDatabase()
    const started = Date.now()
    const hf = await Holdfast.connect({ redis: NO_REDIS, postgres })
    await expectToWork(hf)
    await hf.close()
    // Less than anybody waits for an answer.
    expect(Date.now() - started).toBeLessThan(8_000)
  })

  it('says so, soon, when Postgres is not there', async () => {
    const started = Date.now()
    const error = await refusal(Holdfast.connect({ redis: NO_REDIS, postgres: 'postgres://me:secret@127.0.0.1:1/db' }))
    expect(error).toMatchObject({ code: 'unavailable', retryable: true })
    expect(error.message).toContain('127.0.0.1:1')
    expect(error.message).not.toContain('secret')
    // Less than is waited for a connection.
    expect(Date.now() - started).toBeLessThan(5_000)
  })

  it.each([
    [{ tennant: 'acme' }, /^options: expected only redis, postgres, tenant, .*, got tennant: did you mean tenant\?$/],
    [{ limits: { backlogs: 5 } }, /^limits: expected only operations, .*, got backlogs: did you mean backlog\?$/],
    [{ redisOptions: { timeout: 5 } }, /^redisOptions: expected only connections, .*, got timeout$/],
    [{ postgresOptions: { maxConnection: 5 } }, /^postgresOptions: .*: did you mean maxConnections\?$/],
    [{ audit: { evry: 5 } }, /^audit: .*: did you mean every\?$/],
    [{ engine: { appendLane: 5 } }, /^engine: .*: did you mean appendLanes\?$/],
    [{ durability: 'legder' }, /^durability: expected 'ledger' or 'memory', got legder: did you mean ledger\?$/],
    [{ durability: 'somebody' }, /^durability: expected 'ledger' or 'memory', got a string of 8 characters$/],
    [
      { postgresOptions: { settingsScope: 'transactions' } },
      /^settingsScope: expected 'connection' or 'transaction', got transactions: did you mean transaction\?$/,
    ],
    [{ postgresOptions: { prepared: 'false' } }, /^prepared: expected true or false, got a string of 5 characters$/],
  ])('refuses options that there are not: %j', async (options, message) => {
    const error = await refusal(
      Holdfast.connect({ redis: NO_REDIS, postgres: 'postgres://127.0.0.1:1/db', ...(options as object) }),
    )
    expect(error).toMatchObject({ code: 'invalid_argument', argument: message.source.slice(1).split(':')[0] })
    expect(error.message).toMatch(message)
  })

  it('does not ask to try again where the server has no such database', async () => {
    const postgres = Object.assign(new URL(await emptyDatabase()), { pathname: '/none' }).href
    const error = await refusal(Holdfast.connect({ redis: NO_REDIS, postgres }))
    expect(error).toMatchObject({ code: 'incompatible', retryable: false, sqlstate: '3D000' })
    expect(error.message).toContain('the server has no such database')
  })

  it('uses clients that were brought, and leaves them open', async () => {
    const redis = new Redis(await freshRedis(), { keyPrefix: 'app:', enableAutoPipelining: true })
    const pool = new pg.Pool({ connectionString: await freshDatabase(), max: 3 })
    const hf = await Holdfast.connect({ redis, postgres: pool })
    await expectToWork(hf)
    await hf.close()
    expect(await redis.ping()).toBe('PONG')
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
    // Its settings did not leak into connections of the application.
    expect((await pool.query('SHOW statement_timeout')).rows).toEqual([{ statement_timeout: '0' }])
    redis.disconnect()
    await pool.end()
  })

  it('goes on after the application has taken the prepared statements off its connections', async () => {
    // One connection: the next call gets the very one.
    const pool = new pg.Pool({ connectionString: await freshDatabase(), max: 1 })
    const hf = await Holdfast.connect({ redis: await freshRedis(), postgres: pool })
    await expectToWork(hf)
    await pool.query('DISCARD ALL')
    expect(await hf.wallet('w').credit(1, { key: 'more' })).toMatchObject({ available: 8 })
    await hf.close()
    await pool.end()
  })

  it('works where a connection remembers nothing from one transaction to the next', async () => {
    const pool = new pg.Pool({ connectionString: await freshDatabase(), max: 3 })
    pool.on('acquire', (client) => void client.query('DISCARD ALL'))
    const failed: unknown[] = []
    const observe = (_metric: string, _value: number, labels?: Readonly<Record<string, string>>) =>
      void (labels?.outcome === 'not_executed' && failed.push(labels))
    const options = { postgres: pool, postgresOptions: { prepared: false }, telemetry: { observe } }
    const hf = await Holdfast.connect({ redis: await freshRedis(), ...options })
    await expectToWork(hf)
    await expectToWork(hf, 'another')
    await hf.close()
    expect(failed).toEqual([])
    await pool.end()
  })

  it('takes options, Sentinel and Cluster, these as URLs too', async () => {
    const { hostname, port, pathname } = new URL(await freshRedis())
    const [sentinel, cluster] = [await sharedSentinel(), await sharedCluster()]
    const hosts = (list: { host: string; port: number }[]) => list.map(({ host, port }) => `${host}:${port}`).join(',')
    const targets: ConnectOptions['redis'][] = [
      { host: hostname, port: Number(port), db: Number(pathname.slice(1)) },
      sentinel,
      `redis+sentinel://${hosts(sentinel.sentinels)}/${sentinel.name}`,
      { cluster },
      `redis+cluster://${hosts(cluster)}`,
    ]
    for (const [index, redis] of targets.entries()) {
      const hf = await Holdfast.connect({ redis, postgres: { connectionString: await freshDatabase() } })
      // Those two are shared, and not emptied.
      await expectToWork(hf, `target-${index}`)
      await until(() => hf.health().redis === 'up')
      expect(hf.health()).toMatchObject({ redis: 'up', postgres: 'up' })
      await hf.close()
    }
  }, 90_000)

  it.each([
    ['up', freshRedis],
    ['away', async () => NO_REDIS],
  ])('knows that Redis is %s before anything was asked of it', async (redis, url) => {
    const hf = await Holdfast.connect({ redis: await url(), postgres: await freshDatabase() })
    expect(hf.health()).toMatchObject({ redis, postgres: 'up' })
    await hf.close()
  })

  it('fixes the number of shards with the first who connects', async () => {
    const [redis, postgres] = [await freshRedis(), await freshDatabase()]
    const first = await Holdfast.connect({ redis, postgres, shards: 4 })
    expect(await refusal(Holdfast.connect({ redis, postgres, shards: 5 }))).toMatchObject({ code: 'invalid_argument' })
    const later = await Holdfast.connect({ redis, postgres })
    await expectToWork(later)
    await Promise.all([first.close(), later.close()])
  })

  it('keeps to the schema that it is given', async () => {
    const [redis, postgres] = [await freshRedis(), await emptyDatabase()]
    const one = await Holdfast.connect({ redis, postgres, schema: 'one' })
    const two = await Holdfast.connect({ redis, postgres, schema: 'two' })
    await expectToWork(one)
    expect(await two.wallet('w').get()).toBeNull()
    await Promise.all([one.close(), two.close()])
  })

  it.each([
    ['nothing', undefined],
    ['null', null],
    ['a string', 'redis://127.0.0.1'],
    ['no redis', { postgres: 'postgres://127.0.0.1:1/x' }],
    ['no postgres', { redis: NO_REDIS }],
    ['a URL that is none', { redis: 'localhost:6379', postgres: 'postgres://127.0.0.1:1/x' }],
    ['a tenant with capitals', { tenant: 'Acme Person' }],
    ['a tenant that is no string', { tenant: 42 }],
    ['no shards', { shards: 0 }],
    ['too many shards', { shards: 16_385 }],
    ['half a shard', { shards: 1.5 }],
    ['an unknown durability', { durability: 'forever' }],
    ['no time', { timeout: 0 }],
    ['endless time', { timeout: Number.POSITIVE_INFINITY }],
  ])('refuses %s', async (_, given) => {
    const options =
      given && typeof given === 'object' && !('redis' in given || 'postgres' in given)
        ? { redis: NO_REDIS, postgres: 'postgres://127.0.0.1:1/x', ...given }
        : given
    const error = await refusal(Holdfast.connect(options as unknown as ConnectOptions))
    expect(error).toMatchObject({ code: 'invalid_argument' })
    expect(error.message).toMatch(/expected .+, got /)
    expect(error.message).not.toContain('Person')
  })

  it('checks the tenant of a second one as well', async () => {
    const hf = await Holdfast.connect({ redis: NO_REDIS, postgres: await freshDatabase() })
    for (const tenant of ['', 'A', 'a b', 'x'.repeat(65), undefined, null, 7, {}]) {
      expect(() => hf.forTenant(tenant as string)).toThrow(/tenant: expected .+, got /)
    }
    expect(hf.forTenant('x'.repeat(64)).tenant).toHaveLength(64)
    await hf.close()
  })

  it('remembers no more of many tenants than of one', async () => {
    const { shared } = await open({ redis: NO_REDIS, postgres: await freshDatabase(), audit: false })
    const placeOf = (tenant: string, id: string) => shared.tenantOf(tenant).keys.of(id)
    const first = placeOf('first', 'w')
    expect(placeOf('first', 'w')).toBe(first)
    for (let n = 0; n < 12_000; n += 1) placeOf(`tenant-${n % 40}`, `wallet-${n}`)
    expect(placeOf('first', 'w')).not.toBe(first)
    expect(placeOf('first', 'w')).toEqual(first)
    await shared.close()
  })
})

async function expectToWork(hf: Holdfast, id = 'w'): Promise<void> {
  const wallet = hf.wallet(id)
  await wallet.open({ currency: 'usd' })
  await wallet.credit(10, { key: 'in' })
  const hold = await wallet.hold(5, { key: 'call', ttl: 60_000 })
  expect(await hold.settle(3, { key: 'end' })).toMatchObject({ available: 7, reserved: 0 })
}
