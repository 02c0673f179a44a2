import { type PostgresHandle, startPostgres } from '@holdfast/services'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { PostgresJournal } from '../../src/journal/index.js'
import { genesisHash } from '../../src/machine/index.js'
import { migrate, Postgres } from '../../src/postgres/index.js'
import { append, newWallet, verdictsOf, type Writer } from './journals.js'

let server: PostgresHandle
let operator: pg.Client
let postgres: Postgres
let journal: PostgresJournal
/** Its commits wait for nobody: so it leaves what a wait that was cut short leaves, which all can see and no replica has. */
let alone: Postgres
let unreplicated: PostgresJournal
let wallet: Writer

beforeAll(async () => {
  server = await startPostgres({
    durable: false,
    settings: { synchronous_standby_names: 'absent' },
  })
  operator = new pg.Client({ connectionString: server.url, options: '-c synchronous_commit=local' })
  await operator.connect()
  alone = new Postgres(server.url, { synchronousCommit: 'local' })
  await migrate(alone)
  postgres = new Postgres(server.url)
  journal = new PostgresJournal(postgres)
  unreplicated = new PostgresJournal(alone)
  wallet = await newWallet(unreplicated)
})
afterAll(async () => {
  await postgres?.close()
  await alone?.close()
  await operator?.end()
  await server?.stop()
})

/** What a call comes to: its answer, or that it waits for the replica. Then the wait is cut short. */
async function answerOf<T>(asked: Promise<T>): Promise<T | 'waits'> {
  let answered = false
  const answer = asked.then(
    (told) => told,
    (error: { outcome?: string }) => {
      if (error.outcome !== 'unknown') throw error
      return 'waits' as const
    },
  )
  const settled = () => {
    answered = true
  }
  answer.then(settled, settled)
  while (!answered)
    await operator.query("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
  return answer
}

const refusal = () => {
  const { ref, state } = wallet
  return { ref, epoch: state.epoch, seq: state.seq, head: state.head, key: 'refused', hold: '' }
}

test('an entry that is there is a yes only once a replica has it', async () => {
  const [first, second] = [wallet.credit('a'), wallet.hold('b')]
  expect(await verdictsOf(unreplicated, wallet.file(first, second))).toEqual(['appended', 'appended'])

  expect(await answerOf(append(journal, wallet.file(first, second)))).toBe('waits')
  expect(await answerOf(append(journal, wallet.file(second)))).toBe('waits')
  // One that is there, before one that never will be: found by the look at what was refused.
  const [lost, other] = [wallet.fork().credit('lost'), wallet.credit('c')]
  await append(unreplicated, wallet.file(other))
  expect(await answerOf(append(journal, wallet.file(other, { ...lost, prev: other.hash })))).toBe('waits')
})

test('what is found by its key, or as a hold, is told only once a replica has it', async () => {
  const { ref } = wallet
  expect(
    await answerOf(
      journal.find([
        { ref, key: 'nowhere' },
        { ref, key: 'a' },
      ]),
    ),
  ).toBe('waits')
  expect(await answerOf(journal.holdEntry(ref, 'b'))).toBe('waits')
})

test('a refusal stands only once a replica has what it rests on', async () => {
  expect(await answerOf(journal.confirm([refusal()]))).toBe('waits')
})

test('a wallet that was opened before is open only once a replica has it', async () => {
  const head = genesisHash(wallet.ref, 'EUR')
  const again = { ref: wallet.ref, tenant: 'test', id: 'again', currency: 'EUR', creditLimit: 0, metadata: '', head }
  expect(await answerOf(journal.open(again))).toBe('waits')
})

test('what finds nothing has nothing to wait for', async () => {
  const { ref } = wallet
  expect(await answerOf(journal.find([{ ref, key: 'nowhere' }]))).toEqual([null])
  expect(await answerOf(journal.holdEntry(ref, 'nowhere'))).toBeNull()
})

test('where no replica is waited for, nothing is written for an answer', async () => {
  const quiet = new Postgres(await freshDatabase())
  const asked = await newWallet(new PostgresJournal(quiet))
  await append(new PostgresJournal(quiet), asked.file(asked.hold('free', 0)))
  const { ref, state } = asked
  const found = await quiet.transaction(async (tx) => {
    const keys = await tx.query('findKeys', [[ref], ['free']])
    const holds = await tx.query('holdEntry', [ref, 'free'])
    const head = Buffer.from(state.head, 'hex')
    const refusals = await tx.query('confirm', [[ref], [state.epoch], [state.seq], [head], ['refused'], [''], false])
    const [written] = await tx.execute('look', 'SELECT pg_current_xact_id_if_assigned() IS NULL AS nothing')
    return { keys, holds, refusals, written }
  })
  expect(found).toMatchObject({ keys: [{}], holds: [{}], refusals: [{ held: true }], written: { nothing: true } })
  await quiet.close()
})
