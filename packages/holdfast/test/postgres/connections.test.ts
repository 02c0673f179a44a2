import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { type PostgresHandle, startPostgres } from '@holdfast/services'
import { migrate, Postgres, type PostgresOptions } from 'holdfast'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'

let server: PostgresHandle
/** The application's own use of the same database. */
let other: pg.Client
let closers: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  server = await startPostgres({ durable: false })
  await migrate(ours())
  other = new pg.Client(server.url)
  await other.connect()
  await other.query('CREATE TABLE holdfast.notes (text text)')
})
afterEach(async () => {
  for (const close of closers) await close()
  closers = []
})
afterAll(async () => {
  await other?.end()
  await server?.stop()
})

/** One connection, so that whatever becomes of it is what the next call gets. */
function ours(options: PostgresOptions = {}): Postgres {
  const postgres = new Postgres(server.url, { maxConnections: 1, ...options })
  closers.push(() => postgres.close())
  return postgres
}

function brought(options: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool({ connectionString: server.url, max: 1, ...options })
  closers.push(() => pool.end())
  return pool
}

const read = (postgres: Postgres) => postgres.query('readSettings', [])

const pidOf = async (postgres: Postgres) =>
  (await postgres.transaction((tx) => tx.execute<{ pid: number }>('pid', 'SELECT pg_backend_pid() AS pid')))[0]?.pid

describe('a connection that is of no use any more fails one call, and is not given out again', () => {
  it.each(['DISCARD ALL', 'DEALLOCATE ALL'])('after %s of the application', async (statement) => {
    const pool = brought()
    const postgres = new Postgres(pool)
    await read(postgres)
    await pool.query(statement)
    await expect(read(postgres)).rejects.toMatchObject({
      outcome: 'not_executed',
      code: 'unavailable',
      sqlstate: '26000',
    })
    expect(await read(postgres)).toHaveLength(1)
  })

  it('where a statement of that name is there already', async () => {
    const pool = brought()
    const postgres = new Postgres(pool)
    await pool.query('PREPARE "holdfast_readSettings" AS SELECT 1')
    await expect(read(postgres)).rejects.toMatchObject({
      outcome: 'not_executed',
      code: 'unavailable',
      sqlstate: '42P05',
    })
    expect(await read(postgres)).toHaveLength(1)
  })

  it('after a table was given another column', async () => {
    const postgres = ours()
    const find = () => postgres.query('findKeys', [[], []])
    await find()
    await other.query('ALTER TABLE holdfast.entries ADD COLUMN note text')
    await expect(find()).rejects.toMatchObject({ outcome: 'not_executed', code: 'unavailable', sqlstate: '0A000' })
    expect(await find()).toEqual([])
  })

  it('in the middle of a transaction, of which nothing stays', async () => {
    const postgres = ours()
    await read(postgres)
    const failing = postgres.transaction(async (tx) => {
      await tx.execute('write', "INSERT INTO notes VALUES ('lost')")
      await tx.execute('forget', 'DEALLOCATE ALL')
      await tx.query('readSettings', [])
    })
    await expect(failing).rejects.toMatchObject({ outcome: 'not_executed', sqlstate: '26000' })
    expect(await read(postgres)).toHaveLength(1)
    expect((await other.query('SELECT FROM holdfast.notes')).rowCount).toBe(0)
  })

  it('that the application left in a transaction that failed', async () => {
    const pool = brought()
    const client = await pool.connect()
    await client.query('BEGIN')
    await client.query('SELECT 1 / 0').catch(() => {})
    client.release()
    const postgres = new Postgres(pool)
    await expect(read(postgres)).rejects.toMatchObject({
      outcome: 'not_executed',
      code: 'unavailable',
      sqlstate: '25P02',
    })
    expect(await read(postgres)).toHaveLength(1)
  })

  it('whose transaction failed while it was opened: the application does not get it either', async () => {
    // The opening looks at the catalogue, under a timeout that is still the application's.
    const pool = brought({ statement_timeout: 300 })
    const postgres = new Postgres(pool)
    await read(postgres)
    await other.query('BEGIN; LOCK TABLE pg_catalog.pg_database')
    try {
      await expect(read(postgres)).rejects.toMatchObject({ outcome: 'not_executed', sqlstate: '57014' })
    } finally {
      await other.query('ROLLBACK')
    }
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
    expect(await read(postgres)).toHaveLength(1)
  })

  it('but is kept when it is the statement that Postgres can not do', async () => {
    const postgres = ours()
    const before = await pidOf(postgres)
    const failing = postgres.transaction((tx) => tx.execute('impossible', 'SELECT count(*) FROM notes FOR UPDATE'))
    await expect(failing).rejects.toMatchObject({ sqlstate: '0A000' })
    expect(await pidOf(postgres)).toBe(before)
  })
})

describe('a server that has gone silent', () => {
  it('is not sent a ROLLBACK after what it did not answer', async () => {
    const seen: string[] = []
    const observe = (_metric: string, _value: number, labels?: Readonly<Record<string, string>>) =>
      void seen.push(`${labels?.query} ${labels?.outcome}`)
    const postgres = ours({ answerTimeoutMs: 3_000, telemetry: { observe } })
    await pidOf(postgres)
    seen.length = 0
    const failing = postgres.transaction(async (tx) => {
      server.pause()
      await tx.execute('unanswered', 'SELECT 1')
    })
    try {
      await expect(failing).rejects.toMatchObject({ outcome: 'not_executed' })
    } finally {
      server.resume()
    }
    expect(seen.filter((one) => !one.startsWith('renewPlans'))).toEqual(['begin ok', 'unanswered not_executed'])
    expect(await pidOf(postgres)).toBeGreaterThan(0)
  })

  it('right after the login: its connections are given up, and closing does not wait for it', async () => {
    const sockets = new Set<Socket>()
    let logins = 0
    const silent = createServer((socket) => {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', () => sockets.delete(socket))
      // AuthenticationOk and ReadyForQuery, and never a word after.
      socket.once('data', () => socket.write(Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5a, 0, 0, 0, 5, 0x49])))
      logins += 1
    }).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as AddressInfo
    const postgres = new Postgres(`postgres://u:p@127.0.0.1:${port}/d`, { connectTimeoutMs: 300, maxConnections: 2 })
    try {
      for (let calls = 1; calls <= 3; calls += 1) {
        await expect(postgres.ping()).rejects.toMatchObject({ outcome: 'not_executed', code: 'unavailable' })
        await expect.poll(() => sockets.size).toBe(0)
        expect(logins).toBe(calls)
      }
      await postgres.close()
    } finally {
      for (const socket of sockets) socket.destroy()
      silent.close()
    }
  })
})
