import { afterAll, beforeAll, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { PostgresJournal } from '../../src/journal/index.js'
import { command, type Stock } from '../../src/machine/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { Keys } from '../../src/redis/index.js'
import { Engines, openWallet } from './support/engines.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 5), shards: 1 })
const place = keys.ofSale('large', 0)
const PROCESSES = 3
/** Renewed every third of it: time enough for a machine that stands still for a moment. */
const LEASE_MS = 3_000
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

const engines = new Engines(keys)
let postgres: Postgres
let redisUrl: string

beforeAll(async () => {
  redisUrl = await freshRedis()
  postgres = new Postgres(await freshDatabase())
  await openWallet(new PostgresJournal(postgres), place, 'large')
})
afterAll(async () => {
  await engines.close()
  await postgres.close()
})

it('is loaded once, however long that takes and however many processes want it', async () => {
  const journal = new LargeStock(postgres)
  const started = Array.from({ length: PROCESSES }, () =>
    engines.start({ redisUrl, postgres, journal, options: { timeoutMs: 60_000, leaseMs: LEASE_MS } }),
  )
  const credits = started.map(({ engine }, n) =>
    engine.submit(place, command({ kind: 'credit', key: `in-${n}`, amount: 1, counter: 'stock' }), { memory: false }),
  )
  const outcomes = await Promise.all(credits)
  expect(new Set(outcomes.map(({ entry }) => entry?.epoch)).size).toBe(1)
  const [row] = await new PostgresJournal(postgres).read([place.ref])
  expect(row).toMatchObject({ epoch: outcomes[0]?.entry?.epoch, available: PROCESSES })
}, 60_000)
