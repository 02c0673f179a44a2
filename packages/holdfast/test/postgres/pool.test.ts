import { migrate, Postgres, type Telemetry } from 'holdfast'
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { emptyDatabase, freshDatabase } from '../../../../test/servers.js'
import type { Transaction } from '../../src/postgres/index.js'

let url: string
beforeAll(async () => {
  url = await freshDatabase()
})

/** Its oid. */
const INT4_ARRAY = 1_007 as typeof pg.types.builtins.INT4

const SHOW = `SELECT name, setting FROM pg_settings WHERE name IN ('search_path', 'synchronous_commit',
  'default_transaction_isolation', 'transaction_isolation', 'lock_timeout', 'statement_timeout',
  'idle_in_transaction_session_timeout', 'plan_cache_mode', 'client_min_messages', 'application_name')`

const asMap = (rows: { name: string; setting: string }[]) =>
  Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))

const settingsInside = async (postgres: Postgres) =>
  asMap(await postgres.transaction((tx) => tx.execute<{ name: string; setting: string }>('show', SHOW)))

const STATEMENT_SETTINGS = {
  search_path: 'holdfast, pg_temp',
  synchronous_commit: 'on',
  transaction_isolation: 'read committed',
  lock_timeout: '2000',
  statement_timeout: '10000',
  idle_in_transaction_session_timeout: '10000',
  plan_cache_mode: 'force_generic_plan',
  client_min_messages: 'warning',
}

describe('a pool of our own', () => {
  it('sets every connection explicitly, whatever the database says', async () => {
    const admin = new pg.Client(url)
    await admin.connect()
    const database = new URL(url).pathname.slice(1)
    const set = (setting: string) => admin.query(`ALTER DATABASE ${database} SET ${setting}`)
    await set('synchronous_commit = off')
    await set("default_transaction_isolation = 'serializable'")
    await set('default_transaction_read_only = on')
    const postgres = new Postgres(url)
    try {
      expect(await settingsInside(postgres)).toEqual({
        ...STATEMENT_SETTINGS,
        default_transaction_isolation: 'read committed',
        application_name: 'holdfast',
      })
      await postgres.transaction((tx) => tx.execute('write', 'CREATE TEMPORARY TABLE proof_of_write ()'))
    } finally {
      await postgres.close()
      await admin.query(`ALTER DATABASE ${database} RESET ALL`)
      await admin.end()
    }
  })

  it('takes the settings it is given', async () => {
    const postgres = new Postgres(url, {
      schema: 'elsewhere',
      synchronousCommit: 'remote_apply',
      statementTimeoutMs: 111_000,
      lockTimeoutMs: 22_000,
      idleInTransactionTimeoutMs: 333_000,
    })
    expect(await settingsInside(postgres)).toMatchObject({
      search_path: 'elsewhere, pg_temp',
      synchronous_commit: 'remote_apply',
      statement_timeout: '111000',
      lock_timeout: '22000',
      idle_in_transaction_session_timeout: '333000',
    })
    await postgres.close()
  })

  it('prepares a named statement once a connection', async () => {
    const postgres = new Postgres(url, { maxConnections: 1 })
    await postgres.query('readSettings', [])
    await postgres.query('readSettings', [])
    const prepared = await postgres.transaction((tx) =>
      tx.execute('prepared', 'SELECT name, generic_plans::int FROM pg_prepared_statements'),
    )
    expect(prepared).toEqual([{ name: 'holdfast_readSettings', generic_plans: 2 }])
    await postgres.close()
  })

  it('sends statements unnamed where it is told to, and needs nothing that it left on a connection', async () => {
    const postgres = new Postgres(url, { maxConnections: 1, prepared: false })
    const forget = () => postgres.transaction((tx) => tx.execute('forget', 'DEALLOCATE ALL'))
    for (let calls = 0; calls < 3; calls += 1) {
      expect(await postgres.query('readSettings', [])).toHaveLength(1)
      await forget()
      expect(await postgres.transaction((tx) => tx.query('findKeys', [[], []]))).toEqual([])
      await forget()
    }
    await postgres.query('findKeys', [[], []])
    const prepared = await postgres.transaction((tx) =>
      tx.execute('prepared', 'SELECT name FROM pg_prepared_statements'),
    )
    expect(prepared).toEqual([])
    await postgres.close()
  })

  it('keeps types of its own: a bigint is a string, a timestamp a Date, bytes a Buffer', async () => {
    const [parser, arrayParser] = [pg.types.getTypeParser(pg.types.builtins.INT8), pg.types.getTypeParser(INT4_ARRAY)]
    pg.types.setTypeParser(pg.types.builtins.INT8, Number)
    pg.types.setTypeParser(INT4_ARRAY, String)
    const postgres = new Postgres(url)
    const [row] = await postgres.transaction((tx) =>
      tx.execute(
        'types',
        `SELECT 9007199254740993::bigint AS bigint, 1 AS integer, true AS yes, false AS no, 1.5::float8 AS float,
         '2024-02-03T04:05:06.789Z'::timestamptz AS at, '\\x00ff'::bytea AS bytes, '{"a": [1]}'::jsonb AS json,
         12345678901234567890.5 AS numeric, NULL::bigint AS nothing, '{1,-2,NULL}'::integer[] AS integers,
         '{{1,9007199254740993}}'::bigint[] AS bigints, '{"a,b",c}'::text[] AS texts`,
      ),
    )
    expect(row).toEqual({
      bigint: '9007199254740993',
      integer: 1,
      yes: true,
      no: false,
      float: 1.5,
      at: new Date('2024-02-03T04:05:06.789Z'),
      bytes: Buffer.from([0, 255]),
      json: { a: [1] },
      numeric: '12345678901234567890.5',
      nothing: null,
      integers: [1, -2, null],
      bigints: [['1', '9007199254740993']],
      texts: ['a,b', 'c'],
    })
    pg.types.setTypeParser(pg.types.builtins.INT8, parser)
    pg.types.setTypeParser(INT4_ARRAY, arrayParser)
    await postgres.close()
  })

  it('refuses calls once it is closed, and can be closed twice', async () => {
    const postgres = new Postgres(url)
    await Promise.all([postgres.close(), postgres.close()])
    await expect(postgres.query('readSettings', [])).rejects.toMatchObject({ code: 'unavailable' })
  })
})

/** As two who connect over one `Postgres` do. */
describe.each(['connection', 'transaction'] as const)('several guards, settings by %s', (settingsScope) => {
  const guarded = async (run: (postgres: Postgres, asked: string[]) => Promise<void>) => {
    const postgres = new Postgres(url, { settingsScope, maxConnections: 1 })
    await run(postgres, []).finally(() => postgres.close())
  }
  const guard = (asked: string[], name: string) => async (ask: Transaction['query']) => {
    expect(await ask('readSettings', [])).toHaveLength(1)
    asked.push(name)
  }

  it('are all asked, each once', () =>
    guarded(async (postgres, asked) => {
      postgres.guardWith(guard(asked, 'first'))
      postgres.guardWith(guard(asked, 'second'))
      for (let n = 0; n < 3; n += 1) await postgres.query('readSettings', [])
      expect(asked).toEqual(['first', 'second'])
    }))

  it('stay when another leaves', () =>
    guarded(async (postgres, asked) => {
      postgres.guardWith(guard(asked, 'first'))
      const leave = postgres.guardWith(guard(asked, 'second'))
      leave()
      await postgres.query('readSettings', [])
      expect(asked).toEqual(['first'])
    }))

  it('are asked when they come later, and again until they are content', () =>
    guarded(async (postgres, asked) => {
      postgres.guardWith(guard(asked, 'first'))
      await postgres.query('readSettings', [])
      let refusals = 1
      postgres.guardWith(async () => {
        asked.push('second')
        if (refusals-- > 0) throw new Error('not yet')
      })
      await expect(postgres.query('readSettings', [])).rejects.toThrow('not yet')
      for (let n = 0; n < 2; n += 1) await postgres.query('readSettings', [])
      expect(asked).toEqual(['first', 'second', 'second'])
    }))
})

it('lists wallets also where a backslash in a string is an escape', async () => {
  const database = await freshDatabase()
  const client = new pg.Client(database)
  await client.connect()
  await client.query(
    `ALTER DATABASE ${client.escapeIdentifier(client.database ?? '')} SET standard_conforming_strings = off`,
  )
  await client.end()
  const postgres = new Postgres(database)
  expect(await postgres.query('listWallets', ['tenant', '', '', 10])).toEqual([])
  await postgres.close()
})

it('does not ask a guard again and again about a connection that was there before the schema', async () => {
  const postgres = new Postgres(await emptyDatabase(), { maxConnections: 2 })
  await migrate(postgres)
  let asked = 0
  postgres.guardWith(async () => {
    asked += 1
  })
  const readTwice = () => Promise.all([postgres.query('readSettings', []), postgres.query('readSettings', [])])
  await readTwice()
  const atFirst = asked
  for (let n = 0; n < 10; n += 1) await readTwice()
  expect(asked).toBe(atFirst)
  await postgres.close()
})

describe('a pool that was brought', () => {
  it('serves several schemas over one connection', async () => {
    const pool = new pg.Pool({ connectionString: await emptyDatabase(), max: 1 })
    // Some that differ in what Postgres would not keep of the name of a statement.
    const schemas = ['one', 'two', `${'s'.repeat(62)}1`, `${'s'.repeat(62)}2`]
    const opened = schemas.map((schema) => new Postgres(pool, { schema }))
    for (const postgres of opened) await migrate(postgres)
    for (let n = 0; n < 2; n += 1) {
      for (const postgres of opened) {
        expect(await postgres.query('readWallets', [[]])).toEqual([])
        expect(await postgres.query('findKeys', [[], []])).toEqual([])
      }
    }
    const secrets = await Promise.all(opened.map((postgres) => postgres.query('readSettings', [])))
    expect(new Set(secrets.map((rows) => JSON.stringify(rows))).size).toBe(schemas.length)
    await pool.end()
  })

  it('runs under the same settings and leaves nothing behind on its connections', async () => {
    const pool = new pg.Pool({ connectionString: url, max: 1, application_name: 'shop' })
    await pool.query("SET statement_timeout = '7min'; SET search_path = public; SET synchronous_commit = local")
    const before = asMap((await pool.query(SHOW)).rows)
    const postgres = new Postgres(pool)

    expect(await settingsInside(postgres)).toMatchObject({ ...STATEMENT_SETTINGS, application_name: 'shop' })
    expect(await postgres.query('readSettings', [])).toHaveLength(1)
    const failing = postgres.transaction((tx) => tx.execute('fail', 'SELECT 1 / 0'))
    await expect(failing).rejects.toMatchObject({ outcome: 'data' })

    expect(asMap((await pool.query(SHOW)).rows)).toEqual(before)
    expect(before).toMatchObject({ statement_timeout: '420000', synchronous_commit: 'local' })
    await pool.end()
  })

  it('is never closed, and gets no listener that stays', async () => {
    const pool = new pg.Pool({ connectionString: url, max: 1 })
    const postgres = new Postgres(pool)
    await postgres.query('readSettings', [])
    const client = await pool.connect()
    expect([client.listenerCount('notice'), client.listenerCount('error')]).toEqual([0, 0])
    client.release()
    await postgres.close()
    expect((await pool.query('SELECT 1 AS alive')).rows).toEqual([{ alive: 1 }])
    await pool.end()
  })

  it('is not waited for without end when all its connections are out, and gets back what comes late', async () => {
    const pool = new pg.Pool({ connectionString: url, max: 1 })
    const client = await pool.connect()
    const postgres = new Postgres(pool, { connectTimeoutMs: 50 })
    await expect(postgres.query('readSettings', [])).rejects.toMatchObject({ outcome: 'not_executed' })
    client.release()
    expect(await postgres.query('readSettings', [])).toHaveLength(1)
    expect([pool.totalCount, pool.idleCount, pool.waitingCount]).toEqual([1, 1, 0])
    await pool.end()
  })
})

describe('what it tells', () => {
  it('times each statement by name and outcome, and shows the pool', async () => {
    const seen: string[] = []
    const gauges = new Map<string, () => number>()
    const telemetry: Telemetry = {
      observe: (metric, value, labels) => {
        expect(value).toBeGreaterThan(0)
        seen.push(`${metric} ${labels?.query} ${labels?.outcome}`)
      },
      gauge: (metric, read, labels) => {
        const id = `${metric} ${labels?.state ?? ''}`.trim()
        gauges.set(id, read)
        return () => gauges.delete(id)
      },
    }
    const postgres = new Postgres(url, { telemetry })
    await postgres.query('readSettings', [])
    await expect(postgres.transaction((tx) => tx.execute('broken', 'SELEC'))).rejects.toMatchObject({
      outcome: 'refused',
      code: 'internal_error',
      message: 'Postgres refused broken with 42601: syntax error at or near "SELEC"',
    })
    // Plans that have grown old are made anew in between: after half a second, the first time.
    expect(seen.filter((one) => !one.includes('renewPlans'))).toEqual([
      'postgres_query_duration_seconds readSettings ok',
      'postgres_query_duration_seconds begin ok',
      'postgres_query_duration_seconds broken refused',
      'postgres_query_duration_seconds rollback ok',
    ])
    expect([...gauges].map(([id, read]) => `${id} = ${read()}`)).toEqual([
      'postgres_pool_connections total = 1',
      'postgres_pool_connections idle = 1',
      'postgres_pool_waiting = 0',
    ])
    await postgres.close()
    expect(gauges.size).toBe(0)
  })
})

describe('what it refuses before any I/O', () => {
  it.each(['', 'Holdfast', 'pg_mine', 'public', 'a-b', 'x"; DROP TABLE wallets; --', 'x'.repeat(64)])(
    'the schema %j',
    (schema) => {
      expect(() => new Postgres(url, { schema })).toThrow(/^schema: expected .*, got /)
    },
  )

  it.each([0, -1, 1.5, Number.NaN, 1e9])('a timeout of %d', (lockTimeoutMs) => {
    expect(() => new Postgres(url, { lockTimeoutMs })).toThrow(/^lockTimeoutMs: expected .*, got /)
  })

  it.each([0, 1.5, 1_001, Number.NaN])('a pool of %d connections', (maxConnections) => {
    expect(() => new Postgres(url, { maxConnections })).toThrow(/^maxConnections: expected .*, got /)
  })

  it('synchronous_commit off', () => {
    expect(() => new Postgres(url, { synchronousCommit: 'off' as 'on' })).toThrow(/^synchronousCommit: expected/)
  })

  it('a URL that is none, without repeating its password', () => {
    const make = () => new Postgres('postgres://user:hunter2@ho st:port/db')
    expect(make).toThrow(/^postgres: expected a URL/)
    expect(make).not.toThrow(/hunter2/)
  })
})

describe('where it is', () => {
  it.each([
    ['postgres://a:s3cret@host:1/db', 'host:1'],
    ['postgresql://host/db?sslmode=disable', 'host:5432'],
    ['POSTGRES://host', 'host:5432'],
    ['postgres://a:s3cret@[::1]:2/db', '[::1]:2'],
    ['postgres://a:s3cret@/db?host=/var/run', '/var/run'],
    ['postgres://%2Fvar%2Frun/db', '/var/run'],
    ['socket:/var/run?db=app', '/var/run'],
    ['/var/run app', '/var/run'],
    [{ connectionString: 'postgres://host:3/db' }, 'host:3'],
    [{ host: 'host', port: 4 }, 'host:4'],
  ])('%j is understood', (source, address) => {
    expect(new Postgres(source).address).toBe(address)
  })

  it.each([
    'nonsense s3cret',
    '',
    'localhost/s3cret',
    'mysql://a:s3cret@host/db',
    'redis://:s3cret@host',
    'a:s3cret@host:5432/db',
    'host=localhost password=s3cret',
    'postgres:s3cret',
    { connectionString: 'localhost/s3cret' },
    5,
    null,
  ])('%j is not, and the message repeats nothing of it', (source) => {
    const attempt = () => new Postgres(source as string)
    expect(attempt).toThrow(/^postgres: expected a URL such as postgres:\/\/.*, options of pg, or a pool of pg, got/)
    expect(attempt).toThrow(expect.objectContaining({ code: 'invalid_argument', argument: 'postgres' }) as Error)
    expect(attempt).not.toThrow(/s3cret/)
  })
})
