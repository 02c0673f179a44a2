import { Redis } from 'ioredis'
import pg from 'pg'
import { afterAll, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { importStore, PostgresStore, RedisStore, verifyStore } from '../../src/stripe402/index.js'
import { refusal } from '../api/support/paths.js'

/** Left out in silence, a misspelt key charges twice, and a misspelt `dryRun` imports. */

const redis = new Redis(await freshRedis())
const pool = new pg.Pool({ connectionString: await freshDatabase() })
afterAll(async () => {
  redis.disconnect()
  await pool.end()
})

const store = new RedisStore(redis)
it.each<[string, (wrong: never) => unknown, object, string]>([
  ['addBalance', (wrong) => store.addBalance('c', 1, wrong), { keys: 'k' }, 'keys: did you mean key?'],
  ['listTransactions', (wrong) => store.listTransactions('c', wrong), { limt: 1 }, 'limt: did you mean limit?'],
  ['listClients', (wrong) => store.listClients(wrong).next(), { onDamage: 1 }, 'onDamage: did you mean onDamaged?'],
  ['pruneTransactions', (wrong) => store.pruneTransactions(wrong), { before: 1 }, 'before'],
  ['RedisStore', (wrong) => new RedisStore(redis, wrong), { taged: true }, 'taged: did you mean tagged?'],
  ['PostgresStore', (wrong) => new PostgresStore(pool, wrong), { prepare: false }, 'prepare: did you mean prepared?'],
  ['createTables', (wrong) => new PostgresStore(pool).createTables(wrong), { widden: true }, 'did you mean widen?'],
  ['importStore', (wrong) => importStore(store, {} as never, wrong), { dryrun: true }, 'did you mean dryRun?'],
  ['verifyStore', (wrong) => verifyStore(store, wrong), { onprogres: 1 }, 'did you mean onProgress?'],
])('%s refuses a name that it does not have', async (_what, call, wrong, told) => {
  const { code, message } = await refusal((async () => call(wrong as never))())
  expect(code).toBe('invalid_argument')
  expect(message.endsWith(told)).toBe(true)
})
