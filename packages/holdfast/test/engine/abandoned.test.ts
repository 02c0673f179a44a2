import { afterEach, expect, it } from 'vitest'
import { type Command, command } from '../../src/machine/index.js'
import { Keys, type Place } from '../../src/redis/index.js'
import type { Sequencer } from '../../src/sequencer/index.js'
import { until } from '../api/support/paths.js'
import { run } from '../journal/journals.js'
import { Engines, openWallet, ownServers } from './support/engines.js'

/** Redis has decided something that the journal will never take, and nobody asks for the wallet any more. */

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 6), shards: 1 })
const engines = new Engines(keys)
const { redisUrl, redis, postgres, journal } = await ownServers()

// Those who look after wallets would be there before the next test has seen what there is.
afterEach(() => engines.close())

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

it('is put right though somebody has raised the epoch since, and died before anything came of it', async () => {
  const { place, engine, sequencer } = await forgetful('raised', { memory: true })
  await journal.raise([{ ref: place.ref, epochMin: 0, memory: true, known: null }])
  // Nobody has told Redis: it says yes, from memory.
  expect(await engine.submit(place, hold('h'), { memory: true })).toMatchObject({ durability: 'memory' })
  engine.start()
  const whole = { available: 2_170, reserved: 30, pending: 0 }
  await expect.poll(() => rest(sequencer, place), { timeout: 20_000 }).toEqual(whole)
  expect(await journal.read([place.ref])).toMatchObject([{ available: 2_170, reserved: 30 }])
})

it('is put right though the wallet was taken over since, and went on without Redis', async () => {
  const { place, engine, sequencer } = await forgetful('taken over', { memory: false })
  await decide(sequencer, place, [hold('h')], false)
  await journal.takeOver(place.ref)
  engine.start()
  const whole = { available: 2_200, reserved: 0, pending: 0 }
  await expect.poll(() => rest(sequencer, place), { timeout: 20_000 }).toEqual(whole)
})

it('is put right though an entry beside it is damaged, and so is what is left of that one', async () => {
  const damaged = await forgetful('damaged', { memory: true })
  const beside = await forgetful('beside', { memory: true })
  for (const { place, sequencer } of [damaged, beside]) await decide(sequencer, place, [hold('h'), hold('i')], true)
  const { core } = await damaged.sequencer.look(damaged.place, 0, 'test', 0)
  await redis.hset(damaged.place.walletKey, `e:${((core?.seq as number) - 1) % 16}`, 'x')
  beside.engine.start()
  const whole = { available: 2_140, reserved: 60, pending: 0 }
  await expect.poll(() => rest(beside.sequencer, beside.place), { timeout: 20_000 }).toEqual(whole)
  const saved = { available: 2_170, reserved: 30, pending: 0 }
  await expect.poll(() => rest(damaged.sequencer, damaged.place), { timeout: 20_000 }).toEqual(saved)
  expect(await journal.read([damaged.place.ref])).toMatchObject([{ reserved: 30 }])
})

it('is given up once, and what comes behind it is not: Postgres refuses what nobody could know that it would', async () => {
  const lost: number[] = []
  const telemetry = {
    count: (metric: string, _: unknown, by = 1) => void (metric === 'holdfast_memory_lost_total' && lost.push(by)),
  }
  const place = keys.of('forbidden')
  await openWallet(journal, place, 'forbidden')
  const { engine, sequencer } = engines.start({
    redisUrl,
    postgres,
    telemetry,
    pace: { helpAfterMs: 1 },
    options: OFTEN,
  })
  engine.start()
  await engine.submit(place, credit('first'), { memory: true })
  await until(() => engine.load.backlog === 0)
  await run(postgres, `ALTER TABLE entries ADD CONSTRAINT small CHECK (metadata IS DISTINCT FROM 'forbidden')`)
  const epochOf = async () => (await journal.read([place.ref]))[0]?.epoch as number
  const epochs = new Set<number>()
  try {
    await engine.submit(place, command({ kind: 'credit', key: 'bad', amount: 50, metadata: 'forbidden' }), {
      memory: true,
    })
    await engine.submit(place, credit('behind it'), { memory: true })
    const whole = { available: 200, reserved: 0, pending: 0 }
    const seen = async () => {
      epochs.add(await epochOf())
      return rest(sequencer, place)
    }
    await expect.poll(seen, { timeout: 20_000 }).toEqual(whole)
    expect(await journal.read([place.ref])).toMatchObject([{ available: 200 }])
    expect(lost).toEqual([1])
    expect(epochs.size).toBeLessThan(5)
  } finally {
    await run(postgres, 'ALTER TABLE entries DROP CONSTRAINT small')
  }
})
