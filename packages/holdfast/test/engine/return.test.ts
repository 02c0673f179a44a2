import { startRedis } from '@holdfast/services'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { PostgresJournal } from '../../src/journal/index.js'
import { command } from '../../src/machine/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { Keys } from '../../src/redis/index.js'
import { until } from '../api/support/paths.js'
import { type FaultyProxy, startProxy } from '../redis/support/proxy.js'
import { Engines, openWallet } from './support/engines.js'

/** Several processes, all busy with the same wallet: they leave Redis for Postgres together, and come back together. */
const PROCESSES = 6
const CALLERS = 8
const FAR_MS = 4
const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 5), shards: 1 })
const place = keys.of('hot')
const engines = new Engines(keys)
let server: Awaited<ReturnType<typeof startRedis>>
let proxy: FaultyProxy
let postgres: Postgres
let journal: PostgresJournal
let all: Busy[] = []

beforeAll(async () => {
  server = await startRedis({ source: 'installed' })
  proxy = await startProxy(Number(new URL(server.url).port))
  postgres = new Postgres(await freshDatabase(), { maxConnections: 16 })
  journal = new PostgresJournal(postgres)
  await openWallet(journal, place, 'hot')
})
afterAll(async () => {
  await Promise.all(all.map((one) => one.stop()))
  await engines.close()
  await proxy.close()
  await server.stop()
  await postgres.close()
})

/** Postgres for who is further away from it: by the time that his append arrives, others have made theirs. */
class Far extends PostgresJournal {
  override async takeOver(...asked: Parameters<PostgresJournal['takeOver']>): ReturnType<PostgresJournal['takeOver']> {
    await far()
    return super.takeOver(...asked)
  }

  override async find(...asked: Parameters<PostgresJournal['find']>): ReturnType<PostgresJournal['find']> {
    await far()
    return super.find(...asked)
  }

  override async append(...asked: Parameters<PostgresJournal['append']>): ReturnType<PostgresJournal['append']> {
    await far()
    return super.append(...asked)
  }
}

const far = () => new Promise((resolve) => setTimeout(resolve, FAR_MS))

/** One process, with callers who never rest. */
class Busy {
  readonly #name: string
  done = 0
  /** How many were decided by Postgres alone. */
  fallbacks = 0
  #stopped = false
  readonly #callers: Promise<void>[]

  constructor(name: string, redisUrl: string, journal: PostgresJournal) {
    this.#name = name
    const count = (metric: string, labels?: { what?: string }, by = 1): void => {
      if (metric === 'holdfast_recoveries_total' && labels?.what === 'fallback') this.fallbacks += by
    }
    const { engine } = engines.start({
      redisUrl,
      postgres,
      journal,
      telemetry: { count },
      options: { timeoutMs: 60_000 },
    })
    this.#callers = Array.from({ length: CALLERS }, async (_, caller) => {
      for (let n = 0; !this.#stopped; n += 1) {
        const credit = command({ kind: 'credit', key: `${this.#name}-${caller}-${n}`, amount: 1 })
        await engine.submit(place, credit, { memory: false })
        this.done += 1
      }
    })
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all(this.#callers)
  }
}

it('shares a busy wallet with who can not see Redis, and is back in Redis when all can', async () => {
  const direct = Array.from({ length: PROCESSES - 1 }, (_, n) => new Busy(`p${n}`, server.url, journal))
  const url = Object.assign(new URL(server.url), { port: String(proxy.port) }).href
  const cutOff = new Busy('cut-off', url, new Far(postgres))
  all = [...direct, cutOff]
  await until(() => all.every(({ done }) => done > 50), 20_000)

  proxy.refuse()
  await until(() => cutOff.fallbacks > 50, 20_000)
  // Nobody is starved: neither who has Redis nor who has not.
  const before = all.map(({ done }) => done)
  await until(() => all.every(({ done }, n) => done > (before[n] ?? 0) + 60), 60_000)

  proxy.behave()
  const fallbacks = () => all.reduce((sum, one) => sum + one.fallbacks, 0)
  await until(async () => {
    const seen = fallbacks()
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    // Nobody may have done anything meanwhile: then Postgres still has it.
    const [row] = await journal.read([place.ref])
    return fallbacks() === seen && row?.owner === 'redis'
  }, 30_000)

  await Promise.all(all.map((one) => one.stop()))
  const done = all.reduce((sum, one) => sum + one.done, 0)
  expect(await journal.read([place.ref])).toMatchObject([{ available: done, seq: done }])
}, 180_000)
