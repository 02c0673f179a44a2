import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import type { Engine } from '../../src/engine/index.js'
import { PostgresJournal } from '../../src/journal/index.js'
import { checkoutWords, command, type Stock } from '../../src/machine/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { Keys, type Place } from '../../src/redis/index.js'
import { Sequencer } from '../../src/sequencer/index.js'
import { NO_REDIS } from '../api/support/paths.js'
import { Engines, openWallet } from './support/engines.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 5), shards: 1 })
const place = keys.ofSale('large', 0)
const overtaken = keys.ofSale('large', 1)
const another = keys.ofSale('large', 2)
const PROCESSES = 3
/** Renewed every third of it: time enough for a machine that stands still for a moment. */
const LEASE_MS = 3_000
/** Longer than a lease that nobody renews, and than others wait for a wallet. */
const READS_MS = 4_000
/** Longer than another takes to decide once more. */
const COPIES_MS = 1_000

const credit = (of: Place, engine: Engine, key: string, memory = false) =>
  engine.submit(of, command({ kind: 'credit', key, amount: 1, counter: 'stock' }), { memory })
const checkout = (of: Place, engine: Engine, code: string) => {
  const order = { reserves: true, ttlMs: 600_000, from: 0, until: Date.now() + 600_000, perBuyer: 1, buyer: 'ann' }
  const also = checkoutWords({ ...order, lines: [{ item: 1, quantity: 1, share: 1 }] })
  return engine.submit(of, command({ kind: 'checkout', key: code, hold: code, also }), { memory: false })
}
const read = async ({ ref }: Place) => (await new PostgresJournal(postgres).read([ref]))[0]
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** The stock of a million items takes a while. */
class LargeStock extends PostgresJournal {
  override async stock(ref: string, seq: number): Promise<Stock> {
    const stock = await super.stock(ref, seq)
    await pause(READS_MS)
    return stock
  }
}

/** And once it was read: only what came since is read again, but all of it has to be copied. */
class LargeCopy extends Sequencer {
  meanwhile = (): Promise<unknown> => pause(COPIES_MS)

  override async stage(...parts: Parameters<Sequencer['stage']>): ReturnType<Sequencer['stage']> {
    await this.meanwhile()
    return super.stage(...parts)
  }
}

const engines = new Engines(keys)
let postgres: Postgres
let redisUrl: string

beforeAll(async () => {
  redisUrl = await freshRedis()
  postgres = new Postgres(await freshDatabase())
  const journal = new PostgresJournal(postgres)
  for (const [n, bucket] of [place, overtaken, another].entries()) await openWallet(journal, bucket, `large-${n}`)
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
  const outcomes = await Promise.all(started.map(({ engine }, n) => credit(place, engine, `in-${n}`)))
  expect(new Set(outcomes.map(({ entry }) => entry?.epoch)).size).toBe(1)
  expect(await read(place)).toMatchObject({ epoch: outcomes[0]?.entry?.epoch, available: PROCESSES })
}, 60_000)

it('is not installed by who took long to load it, if others have gone on and Redis has forgotten that', async () => {
  const { engine, sequencer } = engines.start({ redisUrl, postgres, Sequencer: LargeCopy })
  const { engine: quick } = engines.start({ redisUrl, postgres })
  const redis = new Redis(redisUrl)
  const ofMemory = await credit(overtaken, quick, 'before', true)
  expect(ofMemory).toMatchObject({ durability: 'memory' })
  await checkout(overtaken, quick, 'code')
  await vi.waitFor(async () => expect(await read(overtaken)).toMatchObject({ seq: 2 }))
  await redis.flushdb()
  sequencer.meanwhile = async () => {
    sequencer.meanwhile = async () => {}
    await redis.flushdb()
    await credit(overtaken, quick, 'meanwhile')
    await redis.flushdb()
  }
  // Told before the journal could refuse it.
  const { entry } = await credit(overtaken, engine, 'in', true)
  expect(await read(overtaken)).toMatchObject({ epoch: entry?.epoch })
  // Nor does the stock of who was overtaken stay behind.
  expect(await redis.keys(`${overtaken.stockKey}:*`)).toEqual([])
  redis.disconnect()
})

it('is sold by everybody, though one does not see Redis and takes it over sooner than another can load it', async () => {
  const options = { timeoutMs: 20_000 }
  const { engine } = engines.start({ redisUrl, postgres, Sequencer: LargeCopy, options })
  const { engine: cutOff } = engines.start({ redisUrl: NO_REDIS, postgres, options })
  await credit(another, cutOff, 'first')
  let isThrough = false
  const busy = (async () => {
    for (let n = 0; !isThrough; n += 1) await credit(another, cutOff, `busy-${n}`)
  })()
  const through = credit(another, engine, 'in').finally(() => {
    isThrough = true
  })
  expect(await through).toMatchObject({ durability: 'ledger', entry: { key: 'in' } })
  await busy
}, 60_000)
