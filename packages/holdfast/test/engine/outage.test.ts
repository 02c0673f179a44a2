import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Engine, type EngineOptions, systemClock } from '../../src/engine/index.js'
import { PostgresIntents, PostgresJournal, PostgresPayments } from '../../src/journal/index.js'
import { command, genesisHash } from '../../src/machine/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { Keys, RedisConnection, RedisScriptRunner } from '../../src/redis/index.js'
import { Sequencer } from '../../src/sequencer/index.js'
import { until } from '../api/support/paths.js'
import { type FaultyProxy, startProxy } from '../redis/support/proxy.js'

/** What a process keeps in its memory while Postgres is away does not grow with the time that it is. */
const WALLETS = 40
const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 5), shards: 64 })

let redisUrl: string
let proxy: FaultyProxy
let postgres: Postgres
let journal: PostgresJournal
let closing: (() => Promise<void>)[]

beforeEach(async () => {
  redisUrl = await freshRedis()
  const database = new URL(await freshDatabase())
  proxy = await startProxy(Number(database.port))
  postgres = new Postgres(Object.assign(database, { port: String(proxy.port) }).href, { connectTimeoutMs: 2_000 })
  journal = new PostgresJournal(postgres)
  closing = []
})
afterEach(async () => {
  proxy.behave()
  for (const close of closing) await close()
  await postgres.close()
  await proxy.close()
})

function startEngine(options: Partial<EngineOptions>): Engine {
  const redis = new RedisConnection(redisUrl)
  const runner = new RedisScriptRunner(redis)
  const now = () => Math.floor(systemClock.now())
  const engine = new Engine({
    sequencer: new Sequencer(runner, {
      aheadMaxMs: 60_000,
      helpAfterMs: 1,
      idleAfterMs: 60_000,
      pendingMax: 1_000,
      now,
    }),
    journal,
    intents: new PostgresIntents(postgres),
    payments: new PostgresPayments(postgres),
    clock: systemClock,
    telemetry: {},
    asker: `engine-${closing.length}`,
    shards: keys.shards,
    agendaOf: (shard) => keys.agenda(shard),
    placeOf: (_tenant, ref) => keys.place(ref),
    witnessesKey: keys.witnesses,
    cluster: false,
    options,
  })
  closing.push(async () => {
    await engine.close()
    runner.close()
    await redis.close()
  })
  return engine
}

const place = (id: string) => keys.place(keys.ref(id))
const credit = (key: string) => command({ kind: 'credit', key, amount: 1 })

async function open(id: string): Promise<void> {
  const ref = keys.ref(id)
  const head = genesisHash(ref, 'usd')
  await journal.open({ ref, tenant: 'test', id, currency: 'usd', creditLimit: 0, metadata: '', head })
}

describe('while Postgres is away', () => {
  it('keeps no refusals for callers who have gone', async () => {
    await open('w')
    const engine = startEngine({ sweepEveryMs: 600_000 })
    await engine.submit(place('w'), credit('in'), { memory: true })
    await until(() => engine.load.backlog === 0)
    proxy.refuse()
    for (let round = 0; round < 8; round += 1) {
      const refused = Array.from({ length: 100 }, (_, n) => {
        const tooMuch = command({ kind: 'debit', key: `${round}-${n}`, amount: 2 })
        return engine.submit(place('w'), tooMuch, { memory: true, timeoutMs: 20 })
      })
      for (const { status } of await Promise.allSettled(refused)) expect(status).toBe('rejected')
    }
    await until(() => engine.load.refusals === 0, 3_000)
  })

  it('leaves what waits in Redis there', async () => {
    const decider = startEngine({ sweepEveryMs: 600_000 })
    const ids = Array.from({ length: WALLETS }, (_, n) => `w${n}`)
    for (const id of ids) await open(id)
    await Promise.all(ids.map((id) => decider.submit(place(id), credit('in'), { memory: true })))
    await until(() => decider.load.backlog === 0)
    proxy.refuse()
    await Promise.all(ids.map((id) => decider.submit(place(id), credit('waits'), { memory: true })))
    // It is time that somebody sees to them.
    const redis = new Redis(redisUrl)
    for (const agenda of await redis.keys('*:agenda:*')) {
      for (const name of await redis.zrange(agenda, '0', '-1')) await redis.zadd(agenda, '1', name)
    }
    redis.disconnect()
    const sweeper = startEngine({ sweepEveryMs: 20, claimMs: 20 })
    sweeper.start()
    await until(() => !sweeper.health.postgres)
    const taken = sweeper.load.backlog
    expect(taken).toBeLessThan(WALLETS / 2)
    // Longer than a sweeper waits for what it took from one shard to be in the journal.
    await new Promise((resolve) => setTimeout(resolve, 2_500))
    expect(sweeper.load.backlog).toBe(taken)
    proxy.behave()
    for (const id of ids) await until(async () => (await journal.read([keys.ref(id)]))[0]?.seq === 2)
  })
})
