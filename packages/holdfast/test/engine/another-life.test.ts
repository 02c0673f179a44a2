import { startRedis } from '@holdfast/services'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { PostgresJournal } from '../../src/journal/index.js'
import { type Command, checkoutWords, command } from '../../src/machine/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { Keys, type Place } from '../../src/redis/index.js'
import type { Sequencer } from '../../src/sequencer/index.js'
import { until } from '../api/support/paths.js'
import { Engines, openWallet } from './support/engines.js'

/** Nobody believes a state in Redis any more, and nobody asks for its wallet either. */

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 6), shards: 1 })
const engines = new Engines(keys)
const server = await startRedis({ source: 'installed' })
const redisUrl = server.url
const redis = new Redis(redisUrl)
const postgres = new Postgres(await freshDatabase())
const journal = new PostgresJournal(postgres)

beforeEach(() => redis.flushall())
afterEach(() => engines.close())
afterAll(async () => {
  redis.disconnect()
  await postgres.close()
  await server.stop()
})

const OFTEN = { sweepEveryMs: 20, claimMs: 100 }
const start = () => engines.start({ redisUrl, postgres, pace: { helpAfterMs: 1, idleAfterMs: 100 }, options: OFTEN })
const credit = command({ kind: 'credit', key: 'in', amount: 100 })
const hold = command({ kind: 'hold', key: 'h', amount: 30, ttlMs: 600_000 })
const checkout = command({
  kind: 'checkout',
  key: 'h',
  also: checkoutWords({
    reserves: true,
    ttlMs: 600_000,
    from: 0,
    until: Date.now() + 3_600_000,
    perBuyer: 30,
    buyer: 'ann',
    lines: [{ item: 1, quantity: 30, share: 50 }],
  }),
})

/** As a process would that dies before it appends any of it. */
async function decide(sequencer: Sequencer, place: Place, asked: Command, memory: boolean) {
  const { life, clock, core } = await sequencer.look(place, 0, 'test', 0)
  const { answers } = await sequencer.decide({
    life,
    wallets: [{ place, epochMin: 0, epoch: core?.epoch ?? 0, acked: core?.seq ?? 0, known: 0 }],
    commands: [{ wallet: 0, command: asked, deadline: clock + 20_000, memory }],
  })
  expect(answers).toMatchObject([{ type: 'accepted' }])
}

type Lost = (place: Place, sequencer: Sequencer) => Promise<unknown>

/** Demoted and promoted again with nothing forgotten, as a replica that has everything or a restart with an append-only file. */
const failedOver: Lost = async () => {
  await redis.call('REPLICAOF', '127.0.0.1', '1')
  await redis.call('REPLICAOF', 'NO', 'ONE')
}
const handedOut: Lost = async (place, sequencer) =>
  sequencer.distrust(place, (await sequencer.look(place, 0, 'test', 0)).epoch)
const wallet = { placeOf: (id: string) => keys.of(id), asked: hold }
const sale = { placeOf: (id: string) => keys.ofSale(id, 0), asked: checkout }

const WAYS = {
  'a wallet of another life of Redis': { ...wallet, lose: failedOver },
  'a wallet whose entries were handed out': { ...wallet, lose: handedOut },
  'a sale of another life of Redis': { ...sale, lose: failedOver },
  'a sale whose stock is gone': { ...sale, lose: ({ stockKey }: Place) => redis.del(stockKey) },
}
const cases = Object.entries(WAYS).map(([what, way]) => ({ what, ...way }))

it.each(cases.flatMap((one) => [false, true].map((pending) => ({ ...one, pending }))))(
  'leaves Redis, and is not loaded for it: $what (with an entry that nobody was told of: $pending)',
  async ({ what, placeOf, asked, lose, pending }) => {
    const id = `${what} ${pending}`
    const place = placeOf(id)
    await openWallet(journal, place, id)
    const { engine, sequencer } = start()
    await engine.submit(place, credit, { memory: false })
    if (pending) await decide(sequencer, place, asked, false)
    const [before] = await journal.read([place.ref])
    await lose(place, sequencer)
    engine.start()
    const left = () => redis.exists(place.walletKey, place.stockKey, place.agendaKey)
    await expect.poll(left, { timeout: 15_000 }).toBe(0)
    expect(await journal.read([place.ref])).toEqual([before])
  },
)

it.each(cases)('is loaded for what was acknowledged from memory: $what', async ({ what, placeOf, asked, lose }) => {
  const place = placeOf(what)
  await openWallet(journal, place, what)
  const { engine, sequencer } = start()
  await engine.submit(place, credit, { memory: true })
  await until(() => engine.load.backlog === 0)
  await decide(sequencer, place, asked, true)
  await lose(place, sequencer)
  engine.start()
  const numbers = async () =>
    (await journal.read([place.ref])).map(({ available, reserved }) => ({ available, reserved }))
  await expect.poll(numbers, { timeout: 15_000 }).toEqual([{ available: 70, reserved: 30 }])
})
