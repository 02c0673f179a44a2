import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type PostgresHandle, startPostgres } from '@holdfast/services'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PostgresJournal } from '../../src/journal/index.js'
import { migrate, Postgres } from '../../src/postgres/index.js'
import { append, newWallet, raise } from './journals.js'

let server: PostgresHandle

beforeAll(async () => {
  server = await startPostgres({ durable: false })
})
afterAll(() => server.stop())

test('a promoted replica takes nothing that the server before it had decided, and goes on under epochs of its own', async () => {
  const before = new Postgres(server.url)
  await migrate(before)
  const wallet = await newWallet(new PostgresJournal(before, () => 1))
  await append(new PostgresJournal(before), wallet.file(wallet.credit('a')))
  expect(wallet.state.epoch).toBe(1_000_000_000_002)
  await before.close()

  // The same data as a replica: it follows nobody, and waits to be promoted.
  const signal = join(server.folder, 'data', 'standby.signal')
  writeFileSync(signal, '')
  chmodSync(signal, 0o666)
  await server.restart()
  const postgres = new Postgres(server.url)
  const journal = new PostgresJournal(postgres, () => 1)
  const { epoch, seq, head } = wallet.state
  const refusal = { ref: wallet.ref, epoch, seq, head, key: 'refused', hold: '' }
  const pending = wallet.file(wallet.credit('b'))
  const away = { code: 'unavailable', outcome: 'not_executed' }
  await expect(journal.append(pending)).rejects.toMatchObject(away)
  await expect(journal.confirm([refusal])).rejects.toMatchObject(away)
  await expect(raise(journal, wallet.ref)).rejects.toMatchObject(away)
  await expect(journal.takeOver(wallet.ref)).rejects.toMatchObject(away)

  const operator = new pg.Client(server.url)
  await operator.connect()
  await operator.query('SELECT pg_promote()')
  await operator.end()
  expect(await append(journal, pending)).toEqual([{ type: 'epoch', epoch, owner: 'redis' }])
  expect(await journal.confirm([refusal])).toMatchObject([{ stands: false, epoch }])
  const raised = await raise(journal, wallet.ref)
  expect(raised?.state.epoch).toBe(2_000_000_000_001)
  await postgres.close()
}, 120_000)
