import { type PostgresHandle, startPostgres } from '@holdfast/services'
import { migrate, Postgres, PostgresError } from 'holdfast'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'

let server: PostgresHandle
let postgres: Postgres
/** Somebody else on the same database, who takes locks. */
let other: pg.Client
/** And one who watches and ends connections: outside of any transaction, where what is seen of others would stand still. */
let watcher: pg.Client

beforeAll(async () => {
  server = await startPostgres({ durable: false })
})
afterAll(() => server?.stop())

beforeEach(async () => {
  postgres = new Postgres(server.url)
  await migrate(postgres)
  other = await client()
  watcher = await client()
  await other.query('CREATE TABLE IF NOT EXISTS holdfast.pairs (id int PRIMARY KEY, n int NOT NULL CHECK (n >= 0))')
  await other.query('TRUNCATE holdfast.pairs; INSERT INTO holdfast.pairs VALUES (1, 0), (2, 0)')
})
afterEach(async () => {
  await Promise.all([other.end(), watcher.end()])
  await postgres.close()
})

async function client(): Promise<pg.Client> {
  const client = new pg.Client(server.url)
  // One of the tests kills the server under it.
  client.on('error', () => {})
  await client.connect()
  return client
}

const failureOf = async (promise: Promise<unknown>): Promise<PostgresError> => {
  const error = await promise.then(
    () => expect.fail('expected a failure'),
    (error: unknown) => error,
  )
  expect(error).toBeInstanceOf(PostgresError)
  return error as PostgresError
}

const execute = (sql: string, on = postgres) => on.transaction((tx) => tx.execute('test', sql))

/** Where a test ends a statement itself, the server's own timeout must not come first. */
const NO_TIMEOUT = 'SET LOCAL statement_timeout = 0'

/** Resolves when a connection of ours runs something like `pattern`. */
async function whenRunning(pattern: string): Promise<number> {
  for (;;) {
    const { rows } = await watcher.query(
      `SELECT pid FROM pg_stat_activity WHERE application_name = 'holdfast' AND state = 'active' AND query ~ $1`,
      [pattern],
    )
    if (rows.length > 0) return rows[0].pid
  }
}

async function whenGone(pid: number): Promise<void> {
  for (;;) {
    const { rowCount } = await watcher.query('SELECT FROM pg_stat_activity WHERE pid = $1', [pid])
    if (rowCount === 0) return
  }
}

describe('nothing happened', () => {
  it('a constraint is violated: data, with its name and without its values', async () => {
    const failure = await failureOf(execute('INSERT INTO pairs VALUES (1, 4711)'))
    expect(failure).toMatchObject({
      outcome: 'data',
      code: 'internal_error',
      retryable: false,
      sqlstate: '23505',
      constraint: 'pairs_pkey',
      message: 'Postgres refused test with 23505 on pairs_pkey',
    })
  })

  it('a value does not fit: data, and the message does not repeat it', async () => {
    const failure = await failureOf(execute("SELECT 'alice@example.com'::int"))
    expect(failure).toMatchObject({ outcome: 'data', sqlstate: '22P02' })
    expect(failure.message).not.toContain('alice')
  })

  it('a deadlock: retry', async () => {
    let bothHold = 0
    let release = () => {}
    const both = new Promise<void>((resolve) => {
      release = resolve
    })
    const cross = (first: number, second: number) =>
      postgres.transaction(async (tx) => {
        // The lock timeout would come before the deadlock is found.
        await tx.execute(
          'first',
          `SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0; SET LOCAL deadlock_timeout = '50ms';
           UPDATE pairs SET n = n + 1 WHERE id = ${first}`,
        )
        if (++bothHold === 2) release()
        await both
        await tx.execute('second', `UPDATE pairs SET n = n + 1 WHERE id = ${second}`)
      })
    const results = await Promise.allSettled([cross(1, 2), cross(2, 1)])
    const failed = results.find((result) => result.status === 'rejected')
    expect(results.filter((result) => result.status === 'fulfilled')).toHaveLength(1)
    expect(failed?.reason).toMatchObject({ outcome: 'retry', sqlstate: '40P01', retryable: true })
    expect((await other.query('SELECT n FROM holdfast.pairs ORDER BY id')).rows).toEqual([{ n: 1 }, { n: 1 }])
  })

  it('a lock not had in time: retry', async () => {
    await other.query('BEGIN; LOCK TABLE holdfast.settings')
    const hasty = new Postgres(server.url, { lockTimeoutMs: 300 })
    expect(await failureOf(hasty.query('readSettings', []))).toMatchObject({ outcome: 'retry', sqlstate: '55P03' })
    await hasty.close()
  })

  it('a statement that takes too long: not executed', async () => {
    const hasty = new Postgres(server.url, { statementTimeoutMs: 1_000 })
    const failure = await failureOf(execute('SELECT pg_sleep(20)', hasty))
    expect(failure).toMatchObject({ outcome: 'not_executed', sqlstate: '57014', code: 'unavailable' })
    await hasty.close()
  })

  it('a connection lost inside a transaction: not executed, since COMMIT was not sent', async () => {
    const failing = failureOf(execute(`${NO_TIMEOUT}; UPDATE pairs SET n = 7; SELECT pg_sleep(20)`))
    await watcher.query('SELECT pg_terminate_backend($1)', [await whenRunning('pg_sleep')])
    expect(await failing).toMatchObject({ outcome: 'not_executed', sqlstate: '57P01' })
    expect((await other.query('SELECT max(n) AS n FROM holdfast.pairs')).rows).toEqual([{ n: 0 }])
  })

  it('a transaction left open for too long: not executed', async () => {
    const hasty = new Postgres(server.url, { idleInTransactionTimeoutMs: 50 })
    const failing = hasty.transaction(async (tx) => {
      const [row] = await tx.execute<{ pid: number }>(
        'change',
        'UPDATE pairs SET n = 7 RETURNING pg_backend_pid() AS pid',
      )
      await whenGone(row?.pid as number)
      await tx.execute('change', 'UPDATE pairs SET n = 8')
    })
    expect(await failureOf(failing)).toMatchObject({ outcome: 'not_executed' })
    await hasty.close()
  })

  it('an error that was caught inside does not turn into a commit of nothing', async () => {
    const failing = postgres.transaction(async (tx) => {
      await tx.execute('change', 'UPDATE pairs SET n = 7')
      await tx.execute('broken', 'SELECT 1 / 0').catch(() => {})
    })
    expect(await failureOf(failing)).toMatchObject({ outcome: 'refused' })
  })

  it('an exception of the caller rolls back and comes through as it is', async () => {
    const failing = postgres.transaction(async (tx) => {
      await tx.execute('change', 'UPDATE pairs SET n = 7')
      throw new RangeError('mine')
    })
    await expect(failing).rejects.toThrow(new RangeError('mine'))
    expect((await other.query('SELECT max(n) AS n FROM holdfast.pairs')).rows).toEqual([{ n: 0 }])
  })
})

describe('nobody knows', () => {
  it('a connection lost during a statement that commits by itself', async () => {
    await other.query('BEGIN; LOCK TABLE holdfast.settings')
    const patient = new Postgres(server.url, { lockTimeoutMs: 20_000, statementTimeoutMs: 20_000 })
    const failing = failureOf(patient.query('readSettings', []))
    await watcher.query('SELECT pg_terminate_backend($1)', [await whenRunning('FROM settings')])
    expect(await failing).toMatchObject({ outcome: 'unknown', code: 'unavailable', retryable: true })
    await patient.close()
  })

  it('a connection lost during COMMIT', async () => {
    // A deferred trigger runs inside COMMIT: a window wide enough to hit.
    await other.query(`CREATE OR REPLACE FUNCTION holdfast.slowly() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN PERFORM pg_sleep(20); RETURN NULL; END';
      CREATE CONSTRAINT TRIGGER at_commit AFTER UPDATE ON holdfast.pairs DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION holdfast.slowly()`)
    const failing = failureOf(execute(`${NO_TIMEOUT}; UPDATE pairs SET n = 7 WHERE id = 1`))
    await watcher.query('SELECT pg_terminate_backend($1)', [await whenRunning('^COMMIT')])
    expect(await failing).toMatchObject({ outcome: 'unknown' })
    await other.query('DROP TRIGGER at_commit ON holdfast.pairs')
  })

  it('a connection that something in between lost, which says so and goes on', async () => {
    await other.query(`CREATE OR REPLACE FUNCTION holdfast.cut() RETURNS trigger LANGUAGE plpgsql AS
      $$BEGIN RAISE EXCEPTION 'server closed' USING ERRCODE = '08006'; END$$;
      CREATE TRIGGER cut AFTER UPDATE ON holdfast.settings FOR EACH ROW EXECUTE FUNCTION holdfast.cut();
      CREATE CONSTRAINT TRIGGER at_commit AFTER UPDATE ON holdfast.pairs DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION holdfast.cut()`)
    const lost = { code: 'unavailable', sqlstate: '08006' }
    expect(await failureOf(postgres.query('fixShards', [64]))).toMatchObject({ ...lost, outcome: 'unknown' })
    expect(await failureOf(execute('UPDATE pairs SET n = 7'))).toMatchObject({ ...lost, outcome: 'unknown' })
    const inside = execute('UPDATE settings SET shards = shards')
    expect(await failureOf(inside)).toMatchObject({ ...lost, outcome: 'not_executed' })
    await other.query('DROP TRIGGER cut ON holdfast.settings; DROP TRIGGER at_commit ON holdfast.pairs')
  })

  it('a server that has gone silent', async () => {
    const impatient = new Postgres(server.url, { answerTimeoutMs: 3_000 })
    await impatient.query('readSettings', [])
    server.pause()
    const failure = await failureOf(impatient.query('readSettings', []))
    server.resume()
    expect(failure).toMatchObject({ outcome: 'unknown', code: 'unavailable' })
    expect(await impatient.query('readSettings', [])).toHaveLength(1)
    await impatient.close()
  })
})

describe('a server that is away', () => {
  it('is named by host and port, without user, password or database', async () => {
    const nowhere = new Postgres('postgres://alice:hunter2@127.0.0.1:1/ledger')
    const failure = await failureOf(nowhere.query('readSettings', []))
    expect(failure).toMatchObject({
      code: 'unavailable',
      outcome: 'not_executed',
      message: "Postgres at 127.0.0.1:1 can't be reached: connection refused (ECONNREFUSED)",
    })
    await nowhere.close()
  })

  it('says so when the database or the user is not there', async () => {
    const prefix = `Postgres at 127.0.0.1:${server.port} can't be reached`
    const tried = async (changed: Partial<URL>) => {
      const elsewhere = new Postgres(Object.assign(new URL(server.url), changed).href)
      return (await failureOf(elsewhere.query('readSettings', []))).message
    }
    expect(await tried({ pathname: '/none' })).toBe(`${prefix}: the server has no such database (3D000)`)
    expect(await tried({ username: 'alice', password: 'hunter2' })).toMatch(
      new RegExp(`^${prefix}: the server does not (let this user in|accept this user and password) \\(28`),
    )
  })

  it('does not end the process when idle connections break, and is found again when it is back', async () => {
    let lost = () => {}
    const idleLost = new Promise<void>((resolve) => {
      lost = resolve
    })
    const log = (_level: string, event: string) => event === 'postgres_idle_connection_lost' && lost()
    const watched = new Postgres(server.url, { telemetry: { log } })
    await watched.query('readSettings', [])
    await server.kill()
    await idleLost
    expect(await failureOf(watched.query('readSettings', []))).toMatchObject({ outcome: 'not_executed' })
    await server.restart()
    expect(await watched.query('readSettings', [])).toHaveLength(1)
    await watched.close()
  })
})
