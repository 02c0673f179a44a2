import pg from 'pg'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { emptyDatabase } from '../../../../test/servers.js'
import { testLedgerStore } from '../../src/stripe402/conformance/index.js'
import { PostgresStore } from '../../src/stripe402/index.js'

let pool: pg.Pool
beforeAll(async () => {
  pool = new pg.Pool({ connectionString: await emptyDatabase() })
  await new PostgresStore(pool).createTables()
})
afterAll(() => pool.end())

describe('PostgresStore', () => {
  testLedgerStore({ test, makeStore: () => new PostgresStore(pool) })
})
