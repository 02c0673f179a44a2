/** What a stop waits for, and what is different once it is lifted, in a real Postgres. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { PostgresJournal } from '../../src/journal/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { append, newWallet } from './journals.js'

const PATIENT = { lockTimeoutMs: 30_000, statementTimeoutMs: 30_000, idleInTransactionTimeoutMs: 30_000 }
let postgres: Postgres
let journal: PostgresJournal

beforeEach(async () => {
  postgres = new Postgres(await freshDatabase(), PATIENT)
  journal = new PostgresJournal(postgres)
})
afterEach(() => postgres.close())

async function ask<Row extends Record<string, unknown>>(sql: string): Promise<Row[]> {
  return postgres.transaction((tx) => tx.execute<Row>('test', sql))
}

/** How many wait for a lock. */
async function waiting(): Promise<number> {
  const sql = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
  return (await ask(sql)).length
}

const until = (isSo: () => Promise<boolean>) => vi.waitUntil(isSo, { timeout: 20_000 })

test.each([1, 2])(
  'who has read that nothing is stopped is waited for, though it has not written yet (%i entries)',
  async (count) => {
    const wallet = await newWallet(journal)
    // Asked between the look at the settings and the first write.
    await ask(`CREATE OR REPLACE FUNCTION clock_ms() RETURNS bigint LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM pg_advisory_xact_lock_shared(7);
      RETURN floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;
    END $$`)
    const entries = Array.from({ length: count }, (_, n) => wallet.credit(`k${n}`))
    let appending: Promise<unknown> | undefined
    let quiescing: Promise<unknown> | undefined
    let isQuiet = false
    await postgres.transaction(async (tx) => {
      await tx.execute('gate', 'SELECT pg_advisory_xact_lock(7)')
      appending = append(journal, wallet.file(...entries))
      await until(async () => (await waiting()) === 1)
      await ask("UPDATE settings SET stopped_at = 1, stopped_because = 'why'")
      quiescing = journal.quiesce().then(() => {
        isQuiet = true
      })
      await until(async () => isQuiet || (await waiting()) === 2)
      expect(isQuiet).toBe(false)
    })
    await quiescing
    expect(await journal.read([wallet.ref])).toMatchObject([{ seq: count }])
    await appending
  },
)

test('numbers that must never come twice skip what may have been given out since the backup', async () => {
  const numbers = async () => {
    const taken = await ask<{ name: string; number: string }>(`
      SELECT name, nextval(name) AS number
      FROM unnest(ARRAY['lock_tokens', 'transfers_attempt_seq', 'payments_attempt_seq', 'webhook_deliveries_id_seq']) AS name`)
    return new Map(taken.map(({ name, number }) => [name, Number(number)]))
  }
  const before = await numbers()
  await journal.stop(1, 'why')
  const { stopped } = await journal.prove([])
  expect(await journal.lift(0, stopped?.at as number)).not.toBeNull()
  for (const [name, number] of await numbers())
    expect(number - (before.get(name) as number), name).toBeGreaterThan(1_000_000_000)
})
