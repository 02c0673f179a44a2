import { afterAll, beforeAll, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Engine, systemClock } from '../../src/engine/index.js'
import { PostgresIntents, PostgresJournal, PostgresPayments } from '../../src/journal/index.js'
import { command, genesisHash, type Stock } from '../../src/machine/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { Keys, RedisConnection, RedisScriptRunner } from '../../src/redis/index.js'
import { Sequencer } from '../../src/sequencer/index.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 5), shards: 1 })
const place = keys.ofSale('large', 0)
const PROCESSES = 3
/** Longer than a lease that nobody renews, and than others wait for a wallet. */
const READS_MS = 4_000

/** The stock of a million items takes a while. */
class LargeStock extends PostgresJournal {
  override async stock(ref: string, seq: number): Promise<Stock> {
    const stock = await super.stock(ref, seq)
    await new Promise((resolve) => setTimeout(resolve, READS_MS))
    return stock
  }
}

let postgres: Postgres
let redisUrl: string
const closing: (() => Promise<void>)[] = []

beforeAll(async () => {
  redisUrl = await freshRedis()
  postgres = new Postgres(await freshDatabase())
  const { ref } = place
  const head = genesisHash(ref, 'stock')
  const sale = { ref, tenant: 'test', id: 'large', currency: 'stock', creditLimit: 0, metadata: '', head }
  await new PostgresJournal(postgres).open(sale)
})
afterAll(async () => {
  for (const close of closing) await close()
  await postgres.close()
})

function startEngine(): Engine {
  const redis = new RedisConnection(redisUrl)
  const now = () => Math.floor(systemClock.now())
  const options = { aheadMaxMs: 60_000, helpAfterMs: 10_000, idleAfterMs: 60_000, pendingMax: 1_000, now }
  const engine = new Engine({
    sequencer: new Sequencer(new RedisScriptRunner(redis), options),
    journal: new LargeStock(postgres),
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
    options: { timeoutMs: 60_000 },
  })
  closing.push(async () => {
    await engine.close()
    await redis.close()
  })
  return engine
}

it('is loaded once, however long that takes and however many processes want it', async () => {
  const engines = Array.from({ length: PROCESSES }, startEngine)
  const credits = engines.map((engine, n) =>
    engine.submit(place, command({ kind: 'credit', key: `in-${n}`, amount: 1, counter: 'stock' }), { memory: false }),
  )
  const outcomes = await Promise.all(credits)
  expect(new Set(outcomes.map(({ entry }) => entry?.epoch)).size).toBe(1)
  const [row] = await new PostgresJournal(postgres).read([place.ref])
  expect(row).toMatchObject({ epoch: outcomes[0]?.entry?.epoch, available: PROCESSES })
}, 60_000)
