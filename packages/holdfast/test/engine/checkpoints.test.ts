import { afterAll, expect, it } from 'vitest'
import { command } from '../../src/machine/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { Keys } from '../../src/redis/index.js'
import { NO_REDIS, until } from '../api/support/paths.js'
import { Engines, openWallet, ownServers } from './support/engines.js'

/** Open holds are noted now and then, so that nobody has to read back to the oldest of them. */
const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 9), shards: 1 })
const engines = new Engines(keys)
const { redisUrl, url, postgres, journal } = await ownServers()
const hasty = new Postgres(url, { statementTimeoutMs: 500, lockTimeoutMs: 30_000 })
const holder = new Postgres(url, { idleInTransactionTimeoutMs: 60_000 })

afterAll(async () => {
  await engines.close()
  await hasty.close()
  await holder.close()
})

const LEDGER = { memory: false, timeoutMs: 20_000 }
const OPTIONS = { checkpointAfter: 10, sweepEveryMs: 600_000 }

const ask = (sql: string) => postgres.transaction((tx) => tx.execute<{ seq?: string }>('test', sql))

async function noted(ref: string): Promise<number> {
  const [row] = await ask(`SELECT seq FROM checkpoints WHERE wallet = '${ref}'`)
  return Number(row?.seq ?? 0)
}

it.each([
  ['Redis', redisUrl],
  ['Postgres', NO_REDIS],
])('also of a wallet that is never without one, where %s decides', async (name, redisUrl) => {
  const place = keys.of(name)
  await openWallet(journal, place, name)
  const { engine } = engines.start({ redisUrl, postgres, options: OPTIONS })
  await engine.submit(place, command({ kind: 'credit', key: 'in', amount: 100 }), LEDGER)
  await engine.submit(place, command({ kind: 'hold', key: 'old', amount: 1, ttlMs: 3_600_000 }), LEDGER)
  const credit = (n: number) => command({ kind: 'credit', key: `c${n}`, amount: 1 })
  await Promise.all(Array.from({ length: 40 }, (_, n) => engine.submit(place, credit(n), LEDGER)))
  await until(async () => (await noted(place.ref)) >= 20)
})

/** The state can't be read in the time that a statement has, until the holds are noted. A lock stands for many entries. */
it.each([
  ['Redis', redisUrl],
  ['Postgres', NO_REDIS],
])('where there are none and loading takes longer than a statement may, into %s', async (name, redisUrl) => {
  const place = keys.of(`ancient ${name}`)
  await openWallet(journal, place, 'ancient')
  const { engine: first } = engines.start({ redisUrl: NO_REDIS, postgres, options: { sweepEveryMs: 600_000 } })
  await first.submit(place, command({ kind: 'credit', key: 'in', amount: 100 }), LEDGER)
  await first.submit(place, command({ kind: 'hold', key: 'old', amount: 1, ttlMs: 3_600_000 }), LEDGER)
  expect(await noted(place.ref)).toBe(0)
  const { engine } = engines.start({ redisUrl, postgres: hasty, options: OPTIONS })
  let loading: Promise<unknown> | undefined
  await holder.transaction(async (tx) => {
    await tx.execute('lock', 'LOCK TABLE checkpoints IN ACCESS EXCLUSIVE MODE')
    loading = engine.submit(place, command({ kind: 'credit', key: 'more', amount: 1 }), LEDGER)
    loading.catch(() => {})
    const waiting = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()
                     AND query LIKE '%INSERT INTO checkpoints%' AND clock_timestamp() - query_start > '1 s'`
    await until(async () => (await ask(waiting)).length === 1)
  })
  await until(async () => (await noted(place.ref)) === 2)
  expect(await loading).toMatchObject({ entry: { seq: 3 } })
})
