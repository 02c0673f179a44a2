import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { PostgresJournal } from '../../src/journal/index.js'
import { type Command, command } from '../../src/machine/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { Keys, type Place } from '../../src/redis/index.js'
import type { Sequencer } from '../../src/sequencer/index.js'
import { until } from '../api/support/paths.js'
import { Engines, openWallet } from './support/engines.js'

/** Redis has decided something that the journal will never take, and nobody asks for the wallet any more. */

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 6), shards: 1 })
const engines = new Engines(keys)
let redisUrl: string
let redis: Redis
let postgres: Postgres
let journal: PostgresJournal

beforeAll(async () => {
  redisUrl = await freshRedis()
  redis = new Redis(redisUrl)
  postgres = new Postgres(await freshDatabase())
  journal = new PostgresJournal(postgres)
})
// Those who look after wallets would be there before the next test has seen what there is.
afterEach(() => engines.close())
afterAll(async () => {
  redis.disconnect()
  await postgres.close()
})

const OFTEN = { sweepEveryMs: 20, claimMs: 100 }
const credit = (key: string) => command({ kind: 'credit', key, amount: 100 })
const hold = (key: string) => command({ kind: 'hold', key, amount: 30, ttlMs: 60_000 })

/** A wallet with one credit in the journal that Redis does not remember. */
async function forgetful(id: string, options: { memory: boolean }) {
  const place = keys.of(id)
  await openWallet(journal, place, id)
  const { engine, sequencer } = engines.start({ redisUrl, postgres, pace: { helpAfterMs: 1 }, options: OFTEN })
  await engine.submit(place, credit('old'), options)
  // Enough that the first is not among the last.
  for (let n = 0; n < 20; n += 1) await engine.submit(place, credit(`more-${n}`), options)
  await until(() => engine.load.backlog === 0)
  await redis.del(place.walletKey)
  await engine.submit(place, credit('again'), options)
  await until(() => engine.load.backlog === 0)
  return { place, engine, sequencer }
}

/** As a process would that dies before it appends any of it. */
async function decide(sequencer: Sequencer, place: Place, commands: readonly Command[], memory: boolean) {
  const { life, clock, core } = await sequencer.look(place, 0, 'test', 0)
  const { answers } = await sequencer.decide({
    life,
    wallets: [{ place, epochMin: 0, epoch: core?.epoch ?? 0, acked: core?.seq ?? 0, known: 0 }],
    commands: commands.map((one) => ({ wallet: 0, command: one, deadline: clock + 20_000, memory })),
  })
  expect(answers).toEqual(commands.map(() => expect.objectContaining({ type: 'accepted' })))
}

const rest = async (sequencer: Sequencer, place: Place) => {
  const { core, pending } = await sequencer.look(place, 0, 'test', 0)
  return { available: core?.available, reserved: core?.reserved, pending: pending.length }
}

it('is put right by whoever hears of it', async () => {
  const { place, engine, sequencer } = await forgetful('heard', { memory: false })
  expect(await engine.submit(place, credit('old'), { memory: false })).toMatchObject({
    replayed: true,
    entry: { seq: 1 },
  })
  await expect
    .poll(() => rest(sequencer, place), { timeout: 20_000 })
    .toEqual({ available: 2_200, reserved: 0, pending: 0 })
})

const REFUSED = {
  'that is in the journal already': credit('old'),
  "that can't be stored": command({ kind: 'credit', key: 'bad', amount: 100, metadata: '\0' }),
}

it.each(Object.entries(REFUSED).flatMap(([why, refused]) => [false, true].map((memory) => ({ why, refused, memory }))))(
  'is put right by whoever looks after wallets, with what rests on it: one $why (from memory: $memory)',
  async ({ why, refused, memory }) => {
    const { place, engine, sequencer } = await forgetful(`${why} ${memory}`, { memory })
    await decide(sequencer, place, [refused, hold('h')], memory)
    expect(await rest(sequencer, place)).toEqual({ available: 2_270, reserved: 30, pending: 2 })
    engine.start()
    await expect
      .poll(() => rest(sequencer, place), { timeout: 20_000 })
      .toEqual({ available: memory ? 2_170 : 2_200, reserved: memory ? 30 : 0, pending: 0 })
    expect(await journal.read([place.ref])).toMatchObject([{ reserved: memory ? 30 : 0 }])
  },
)
