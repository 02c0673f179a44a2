/** The suite on every kind of Postgres that the store can be used with. */
import { PostgresStore } from 'holdfast/stripe402'
import { testLedgerStore, testStripe402Store } from 'holdfast/stripe402/conformance'
import pg from 'pg'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { emptyDatabase } from '../../../../test/servers.js'
import { makePublishedTables } from './support/published.js'

/** A thousand calls at once wait for a few connections. */
const PATIENT = { connectTimeoutMs: 60_000 }

let pool: pg.Pool
const open = async (config: pg.PoolConfig = {}) => {
  pool = new pg.Pool({ connectionString: await emptyDatabase(), ...config })
}

describe('on tables of its own', () => {
  beforeAll(async () => {
    await open()
    await new PostgresStore(pool).createTables()
  })
  afterAll(() => pool.end())
  testLedgerStore({ test, makeStore: () => new PostgresStore(pool, PATIENT) })
})

describe('over a pool with settings of its own', () => {
  beforeAll(async () => {
    await open({
      max: 3,
      options:
        '-c search_path=shop -c timezone=Asia/Kolkata -c datestyle=German -c default_transaction_isolation=serializable',
      // As applications do that want numbers: it must not reach what the store reads.
      types: { getTypeParser: () => (text: string) => Number(text) },
    })
    await pool.query('CREATE SCHEMA shop')
    await new PostgresStore(pool).createTables()
  })
  afterAll(() => pool.end())
  testLedgerStore({ test, makeStore: () => new PostgresStore(pool, { ...PATIENT, prepared: false }) })
})

describe('on tables that stripe402 made, widened', () => {
  beforeAll(async () => {
    await open()
    await makePublishedTables(pool)
    await new PostgresStore(pool).createTables({ widen: true })
  })
  afterAll(() => pool.end())
  testStripe402Store({ test, makeStore: () => new PostgresStore(pool, PATIENT) })
})
