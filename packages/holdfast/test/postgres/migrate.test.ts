import { checkMigrated, migrate, Postgres, readSettings } from 'holdfast'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { emptyDatabase } from '../../../../test/servers.js'
import { MIGRATIONS } from '../../src/postgres/migrations.generated.js'

async function rowsOf(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

const LAST = MIGRATIONS.length
const counting = [
  { version: 1, name: 'count', sql: 'CREATE TABLE runs (n int); INSERT INTO runs VALUES (1); SELECT pg_sleep(0.1)' },
  { version: 2, name: 'count_again', sql: 'INSERT INTO runs VALUES (2); SELECT pg_sleep(0.1)' },
]

describe('migrate', () => {
  it('brings an empty database to the version of the code, says what it did, and does nothing the second time', async () => {
    const postgres = new Postgres(await emptyDatabase())
    await expect(checkMigrated(postgres)).rejects.toMatchObject({ code: 'incompatible', version: 0, needed: LAST })

    const report = await migrate(postgres)
    expect(report).toMatchObject({ schema: 'holdfast', from: 0, to: LAST })
    expect(report.applied.map(({ version, name }) => ({ version, name }))).toEqual(
      MIGRATIONS.map(({ version, name }) => ({ version, name })),
    )
    expect(await migrate(postgres)).toEqual({ schema: 'holdfast', from: LAST, to: LAST, applied: [] })
    await expect(checkMigrated(postgres)).resolves.toBeUndefined()
    await postgres.close()
  })

  it('applies each migration once when several processes start at the same moment', async () => {
    const url = await emptyDatabase()
    const processes = Array.from({ length: 4 }, () => new Postgres(url))
    const reports = await Promise.all(processes.map((postgres) => migrate(postgres, { migrations: counting })))
    const applied = reports.flatMap((report) => report.applied.map(({ version }) => version)).sort()
    expect(applied).toEqual([1, 2])
    expect(reports.every(({ to }) => to === 2)).toBe(true)
    expect(await rowsOf(url, 'SELECT n FROM holdfast.runs ORDER BY n')).toEqual([{ n: 1 }, { n: 2 }])
    await Promise.all(processes.map((postgres) => postgres.close()))
  })

  it('takes back a migration that fails, its version row too, and keeps those before it', async () => {
    const url = await emptyDatabase()
    const postgres = new Postgres(url)
    const broken = [
      counting[0] as (typeof counting)[0],
      { version: 2, name: 'broken', sql: 'CREATE TABLE half (); SELEC' },
    ]
    await expect(migrate(postgres, { migrations: broken })).rejects.toMatchObject({ outcome: 'refused' })
    expect(await rowsOf(url, "SELECT version, to_regclass('holdfast.half') AS half FROM holdfast.migrations")).toEqual([
      { version: 1, half: null },
    ])
    expect(await migrate(postgres, { migrations: counting })).toMatchObject({ from: 1, to: 2 })
    await postgres.close()
  })

  it('refuses a database that is newer than the code, and changes nothing', async () => {
    const url = await emptyDatabase()
    const postgres = new Postgres(url)
    await migrate(postgres, { migrations: counting })
    const older = counting.slice(0, 1)
    await expect(migrate(postgres, { migrations: older })).rejects.toMatchObject({
      code: 'incompatible',
      retryable: false,
      message: 'The schema holdfast is at version 2, newer than the 1 that this Holdfast knows: run a newer Holdfast',
    })
    expect(await rowsOf(url, 'SELECT max(version) AS version FROM holdfast.migrations')).toEqual([{ version: 2 }])
    await postgres.close()
  })

  it('refuses a schema that something else made', async () => {
    const postgres = new Postgres(await emptyDatabase())
    await migrate(postgres, { migrations: counting })
    const renamed = counting.map((migration) => ({ ...migration, name: `other_${migration.name}` }))
    await expect(migrate(postgres, { migrations: renamed })).rejects.toMatchObject({ code: 'incompatible' })
    await postgres.close()
  })

  it('keeps to its schema, and two schemas of one database apart', async () => {
    const url = await emptyDatabase()
    const one = new Postgres(url, { schema: 'one' })
    const two = new Postgres(url, { schema: 'two' })
    await migrate(one)
    await migrate(two)
    expect((await readSettings(one)).secret).not.toEqual((await readSettings(two)).secret)
    const elsewhere = `SELECT DISTINCT schemaname FROM pg_tables WHERE schemaname !~ '^(pg_|information_schema)' ORDER BY 1`
    expect(await rowsOf(url, elsewhere)).toEqual([{ schemaname: 'one' }, { schemaname: 'two' }])
    await one.close()
    await two.close()
  })

  it('gives functions the search path of the migration, for callers with another one', async () => {
    const url = await emptyDatabase()
    const postgres = new Postgres(url, { schema: 'mine' })
    const sql = `CREATE TABLE things (n int); INSERT INTO things VALUES (42);
      CREATE FUNCTION thing() RETURNS int LANGUAGE plpgsql SET search_path FROM CURRENT AS
      'BEGIN RETURN (SELECT n FROM things); END'`
    await migrate(postgres, { migrations: [{ version: 1, name: 'things', sql }] })
    expect(await rowsOf(url, 'SELECT mine.thing() AS n')).toEqual([{ n: 42 }])
    await postgres.close()
  })

  it('works for a user who owns the schema and may not create one', async () => {
    const url = await emptyDatabase()
    await rowsOf(url, "CREATE ROLE schema_owner LOGIN PASSWORD 'secret'")
    await rowsOf(url, 'CREATE SCHEMA holdfast AUTHORIZATION schema_owner')
    const postgres = new Postgres(Object.assign(new URL(url), { username: 'schema_owner', password: 'secret' }).href)
    expect(await migrate(postgres)).toMatchObject({ from: 0, to: LAST })
    await postgres.close()
  })

  it('works through a pool that was brought', async () => {
    const pool = new pg.Pool({ connectionString: await emptyDatabase() })
    expect(await migrate(new Postgres(pool))).toMatchObject({ from: 0, to: LAST })
    await pool.end()
  })
})

describe('the settings of a database', () => {
  it('hold a secret of 32 bytes, made once and seen alike by everybody', async () => {
    const url = await emptyDatabase()
    const first = new Postgres(url)
    await migrate(first)
    const settings = await readSettings(first)
    expect(settings.secret).toHaveLength(32)
    expect(Math.abs(Date.now() - settings.createdAt.getTime())).toBeLessThan(60_000)
    await migrate(first)
    const second = new Postgres(url)
    expect(await readSettings(second)).toEqual(settings)
    await first.close()
    await second.close()

    const elsewhere = new Postgres(await emptyDatabase())
    await migrate(elsewhere)
    expect((await readSettings(elsewhere)).secret).not.toEqual(settings.secret)
    await elsewhere.close()
  })

  it('have one row by construction', async () => {
    const url = await emptyDatabase()
    const postgres = new Postgres(url)
    await migrate(postgres)
    await postgres.close()
    const another = `INSERT INTO holdfast.settings (only_row, secret) VALUES ($only, sha256(''))`
    await expect(rowsOf(url, another.replace('$only', 'true'))).rejects.toThrow('settings_pkey')
    await expect(rowsOf(url, another.replace('$only', 'false'))).rejects.toThrow('settings_only_row_check')
  })
})
