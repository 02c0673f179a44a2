import { type PostgresHandle, startPostgres } from '@holdfast/services'
import { checkServer, Postgres } from 'holdfast'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'

let server: PostgresHandle
let other: pg.Client

beforeAll(async () => {
  // A replica that never comes: every commit that waits for it waits until somebody ends the wait.
  server = await startPostgres({ durable: false, settings: { synchronous_standby_names: 'absent' } })
  other = new pg.Client({ connectionString: server.url, options: '-c synchronous_commit=local' })
  await other.connect()
  await other.query('CREATE SCHEMA holdfast; CREATE TABLE holdfast.notes (text text)')
})
afterAll(async () => {
  await other?.end()
  await server?.stop()
})

it('treats a wait for a replica that was cancelled as unknown, though Postgres reports success', async () => {
  const postgres = new Postgres(server.url)
  const writing = postgres.transaction((tx) => tx.execute('write', "INSERT INTO notes VALUES ('kept')")).catch((e) => e)
  let waiting: { pid: number }[] = []
  while (waiting.length === 0) {
    waiting = (await other.query("SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'")).rows
  }
  await other.query('SELECT pg_cancel_backend($1)', [waiting[0]?.pid])

  expect(await writing).toMatchObject({ code: 'unavailable', outcome: 'unknown', retryable: true })
  expect((await other.query('SELECT text FROM holdfast.notes')).rows).toEqual([{ text: 'kept' }])

  // The warning belonged to that commit alone: what the connection does next is judged by itself.
  expect(await postgres.transaction((tx) => tx.execute('read', 'SELECT 1 AS one'))).toEqual([{ one: 1 }])
  await postgres.close()
})

it('finds commits that do not wait for the replica', async () => {
  const postgres = new Postgres(server.url, { synchronousCommit: 'local' })
  expect(await checkServer(postgres)).toContainEqual(
    expect.objectContaining({ severity: 'warning', setting: 'synchronous_commit' }),
  )
  await postgres.close()
})
