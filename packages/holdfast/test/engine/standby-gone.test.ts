import { startPostgres } from '@holdfast/services'
import pg from 'pg'
import { afterAll, expect, it } from 'vitest'
import { freshRedis } from '../../../../test/servers.js'
import { PostgresJournal } from '../../src/journal/index.js'
import { command } from '../../src/machine/index.js'
import { migrate, Postgres } from '../../src/postgres/index.js'
import { Keys } from '../../src/redis/index.js'
import { NO_REDIS, until } from '../api/support/paths.js'
import { Engines, openWallet } from './support/engines.js'

/** The synchronous standby of Postgres is gone: commits hang, with their rows locked, also when who sent them has given up. */

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 7), shards: 1 })
const engines = new Engines(keys)
const server = await startPostgres({ durable: false })
const postgres = new Postgres(server.url, { answerTimeoutMs: 1_000, lockTimeoutMs: 100 })
await migrate(postgres)
const operator = new pg.Client(server.url)
await operator.connect()

afterAll(async () => {
  await engines.close()
  await operator.end()
  await postgres.close()
  await server.stop()
})

class Probed extends PostgresJournal {
  proofs = 0

  override async proveWrites(): Promise<boolean> {
    this.proofs += 1
    return super.proveWrites()
  }
}

async function waitFor(standby: string): Promise<void> {
  await operator.query(`ALTER SYSTEM SET synchronous_standby_names = '${standby}'`)
  await operator.query('SELECT pg_reload_conf()')
}

async function hanging(): Promise<number> {
  const { rows } = await operator.query(`SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)
  return rows.length
}

const credit = (key: string) => command({ kind: 'credit', key, amount: 1 })

it.each([
  ['Redis', freshRedis],
  ['Postgres', async () => NO_REDIS],
])(
  'is away until it can commit again, however often it answers meanwhile, where %s decides',
  async (name, redisUrl) => {
    const heard: string[] = []
    const journal = new Probed(postgres)
    const { engine } = engines.start({
      redisUrl: await redisUrl(),
      postgres,
      journal,
      telemetry: { log: (_level, event) => void heard.push(event) },
      options: { sweepEveryMs: 600_000, timeoutMs: 60_000, postgresPatienceMs: 500 },
    })
    const place = keys.of(name)
    await openWallet(journal, place, name)
    const pay = (key: string) => engine.submit(place, credit(key), { memory: false })
    await pay('in')

    await waitFor('nobody')
    const waiting: Promise<unknown>[] = []
    for (let n = 0; engine.health.postgres; n += 1) {
      waiting.push(pay(`waits ${n}`).catch(() => {}))
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    // Probes that nobody waits for any more are among what hangs: only ever one of them.
    const before = await hanging()
    await until(async () => {
      const late = engine.submit(place, credit('too late'), { memory: false, timeoutMs: 2_000 })
      await expect(late).rejects.toMatchObject({ code: 'unavailable' })
      return journal.proofs >= 5
    })
    expect(await hanging()).toBeLessThanOrEqual(before + 1)
    expect(heard).not.toContain('postgres_back')

    await waitFor('')
    await until(() => engine.health.postgres)
    await Promise.all(waiting)
    const { entry } = await pay('next')
    expect((await journal.find([{ ref: place.ref, key: 'too late' }]))[0]).toBeNull()
    expect(entry?.seq).toBe((await journal.read([place.ref]))[0]?.seq)
  },
  120_000,
)
