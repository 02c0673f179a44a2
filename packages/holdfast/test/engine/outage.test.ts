import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import type { Engine, EngineOptions } from '../../src/engine/index.js'
import { PostgresJournal } from '../../src/journal/index.js'
import { type Command, command } from '../../src/machine/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { Keys } from '../../src/redis/index.js'
import { until } from '../api/support/paths.js'
import { type FaultyProxy, startProxy } from '../redis/support/proxy.js'
import { Engines, openWallet } from './support/engines.js'

/** What a process keeps in its memory while Postgres is away does not grow with the time that it is. */
const WALLETS = 40
const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 5), shards: 64 })

let redisUrl: string
let proxy: FaultyProxy
let postgres: Postgres
let journal: PostgresJournal
let engines: Engines

beforeEach(async () => {
  redisUrl = await freshRedis()
  const database = new URL(await freshDatabase())
  proxy = await startProxy(Number(database.port))
  postgres = new Postgres(Object.assign(database, { port: String(proxy.port) }).href, { connectTimeoutMs: 2_000 })
  journal = new PostgresJournal(postgres)
  engines = new Engines(keys)
})
afterEach(async () => {
  proxy.behave()
  await engines.close()
  await postgres.close()
  await proxy.close()
})

function startEngine(options: Partial<EngineOptions>): Engine {
  return engines.start({ redisUrl, postgres, journal, pace: { helpAfterMs: 1 }, options }).engine
}

const place = (id: string) => keys.place(keys.ref(id))
const credit = (key: string) => command({ kind: 'credit', key, amount: 1 })

const open = (id: string) => openWallet(journal, place(id), id)

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

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
    await until(() => engine.load.refusals === 0)
  })

  it('keeps nobody who waited for an entry, and has gone', async () => {
    await open('w')
    // It is not known to be away while all of them come.
    const engine = startEngine({ sweepEveryMs: 600_000, postgresPatienceMs: 60_000 })
    await engine.submit(place('w'), credit('in'), { memory: true })
    await until(() => engine.load.backlog === 0)
    proxy.hold()
    await engine.submit(place('w'), credit('waits'), { memory: true })
    const asked: WeakRef<Command>[] = []
    const refused = Array.from({ length: 500 }, (_, n) => {
      const tooMuch = command({ kind: 'debit', key: `${n}`, amount: 20 })
      asked.push(new WeakRef(tooMuch))
      return engine.submit(place('w'), tooMuch, { memory: true, timeoutMs: 500 })
    })
    // Emptied: what an error was made in is remembered with it.
    for (const { status } of await Promise.allSettled(refused.splice(0))) expect(status).toBe('rejected')
    proxy.refuse()
    await until(() => {
      collectGarbage()
      return asked.filter((one) => one.deref()).length < 50
    })
    expect(engine.load.backlog).toBe(1)
  })

  it('tells who comes and would have to wait for an entry that it is', async () => {
    await open('w')
    const engine = startEngine({ sweepEveryMs: 600_000 })
    await engine.submit(place('w'), credit('in'), { memory: true })
    await until(() => engine.load.backlog === 0)
    proxy.refuse()
    await engine.submit(place('w'), credit('waits'), { memory: true })
    await until(() => !engine.health.postgres)
    const tooMuch = command({ kind: 'debit', key: 'too much', amount: 20 })
    const refused = engine.submit(place('w'), tooMuch, { memory: true, timeoutMs: 20_000 })
    await expect(refused).rejects.toMatchObject({ code: 'unavailable' })
  })

  it('tells who needs a wallet loaded that it is, those too whose turn has not come', async () => {
    const ids = Array.from({ length: 5 }, (_, n) => `w${n}`)
    for (const id of ids) await open(id)
    const engine = startEngine({ sweepEveryMs: 600_000, loadsMax: 1 })
    proxy.refuse()
    const calls = ids.map((id) => engine.submit(place(id), credit('in'), { memory: true, timeoutMs: 20_000 }))
    for (const call of await Promise.allSettled(calls)) {
      expect(call).toMatchObject({ status: 'rejected', reason: { code: 'unavailable' } })
    }
    const later = engine.submit(place('w0'), credit('in'), { memory: true, timeoutMs: 20_000 })
    await expect(later).rejects.toMatchObject({ code: 'unavailable' })
    proxy.behave()
    for (const id of ids) {
      await until(() => engine.submit(place(id), credit('in'), { memory: true }).then(Boolean, () => false))
    }
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
    // Longer than a sweeper waits for what it took from one shard to be in the journal.
    const round = () => new Promise((resolve) => setTimeout(resolve, 2_500))
    // It may have been about to take from the next.
    await round()
    const taken = sweeper.load.backlog
    expect(taken).toBeLessThan(WALLETS / 2)
    await round()
    expect(sweeper.load.backlog).toBe(taken)
    proxy.behave()
    for (const id of ids) await until(async () => (await journal.read([keys.ref(id)]))[0]?.seq === 2)
  })
})
