import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freshRedis } from '../../../../test/servers.js'
import { command, REMEMBERED } from '../../src/machine/index.js'
import { Keys, type Place } from '../../src/redis/index.js'
import type { BatchReply } from '../../src/sequencer/index.js'
import { MessageWriter } from '../../src/sequencer/message.js'
import { emptyState } from '../machine/oracle.js'
import { AcquaintedSequencer } from './support/acquainted.js'
import { runnerOn } from './support/runner.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 7), shards: 1 })
const HEAD = '0'.repeat(40)
let redis: Redis
let sequencer: AcquaintedSequencer

beforeAll(async () => {
  redis = new Redis(await freshRedis())
  sequencer = new AcquaintedSequencer(runnerOn(redis), {
    aheadMaxMs: 60_000,
    helpAfterMs: 1_000,
    idleAfterMs: 60_000,
    pendingMax: 1_000,
    now: () => Date.now(),
  })
})
afterAll(() => redis.disconnect())

async function openWallet(name: string): Promise<Place> {
  const place = keys.place(keys.ref(name))
  const installation = { place, memory: true, deadline: Date.now() + 60_000, clock: Date.now(), finalKeys: [] }
  await sequencer.install('test', { ...installation, state: emptyState(HEAD) })
  return place
}

/** `acked`: what the journal is said to have. */
function credit(place: Place, names: readonly string[], acked = 0, memory = false): Promise<BatchReply> {
  const { epoch } = emptyState(HEAD)
  return sequencer.decide({
    wallets: [{ place, epochMin: 0, epoch, acked, known: acked }],
    commands: names.map((key) => ({
      wallet: 0,
      command: command({ kind: 'credit', key, amount: 1 }),
      deadline: Date.now() + 60_000,
      memory,
    })),
  })
}

const names = (from: number, count: number) => Array.from({ length: count }, (_, n) => `key ${from + n}`)

it.each([1, 7, 32])('keeps every pending entry, however many there are (%i at a time)', async (at) => {
  const place = await openWallet(`pending ${at}`)
  const count = 224
  for (let n = 0; n < count; n += at) await credit(place, names(n, at), 0, n % 2 === 0)
  const { pending } = await sequencer.look(place, 0, 'test', 0)
  expect(pending.map(({ entry }) => entry.key)).toEqual(names(0, count))
  expect(pending.map(({ entry }) => entry.seq)).toEqual(Array.from({ length: count }, (_, n) => n + 1))
  expect(pending.map(({ memory }) => memory)).toEqual(
    names(0, count).map((_, n) => (Math.floor(n / at) * at) % 2 === 0),
  )

  const { runs, answers } = await credit(place, [...names(0, 20), ...names(count - 10, 10)], 0)
  expect(answers.map((answer) => answer.type === 'replay' && answer.entry.key)).toEqual([
    ...names(0, 20),
    ...names(count - 10, 10),
  ])
  expect(runs).toMatchObject([{ acked: 0, entries: { length: count } }])
})

it('keeps more pending entries than Lua hands to one call', async () => {
  const patient = new AcquaintedSequencer(runnerOn(redis), {
    aheadMaxMs: 60_000,
    helpAfterMs: 1_000,
    idleAfterMs: 60_000,
    pendingMax: 20_000,
    now: () => Date.now(),
  })
  const place = await openWallet('a great many')
  const { epoch } = emptyState(HEAD)
  const at = 64
  const count = 130 * at
  for (let n = 0; n < count; n += at) {
    const { answers } = await patient.decide({
      wallets: [{ place, epochMin: 0, epoch, acked: 0, known: n }],
      commands: names(n, at).map((key) => ({
        wallet: 0,
        command: command({ kind: 'credit', key, amount: 1 }),
        deadline: Date.now() + 60_000,
        memory: false,
      })),
    })
    expect(answers.at(-1)).toEqual({ type: 'accepted', seq: n + at })
  }
  const { runs } = await patient.decide({
    wallets: [{ place, epochMin: 0, epoch, acked: 0, known: 0 }],
    commands: [],
  })
  expect(runs).toMatchObject([{ entries: names(0, count).map((key) => ({ key })) }])
})

it('lets no more holds expire than can wait for the journal', async () => {
  let now = 1_600_000_000_000
  const options = { aheadMaxMs: 0, helpAfterMs: 1, idleAfterMs: 60_000, pendingMax: 1_000, now: () => now }
  const past = new AcquaintedSequencer(runnerOn(redis), options)
  const place = keys.of('many holds')
  const held = { amount: 0, captured: 0, left: 0, expiresAt: now + 10, refunded: 0 }
  const holds = new Map(Array.from({ length: 900 }, (_, n) => [`h${n}`, held]))
  const state = { ...emptyState(HEAD), holds, due: now + 10, since: 1 }
  await past.install('test', { place, state, memory: false, deadline: Date.now() + 60_000, clock: 0, finalKeys: [] })
  now += 100
  const tend = async (acked: number) => {
    await past.tend(place.agendaKey, [{ place, epoch: state.epoch, acked }])
    return (await past.look(place, 0, 'test', 0)).core
  }
  for (let n = 0; n < 20; n += 1) await tend(0)
  expect(await tend(0)).toMatchObject({ seq: 512, open: 388 })
  // The time has come for the others once the journal has some.
  expect(Number(await redis.zscore(place.agendaKey, place.agendaName))).toBeLessThanOrEqual(now)
  for (let n = 0; n < 20; n += 1) await tend(500)
  expect(await tend(500)).toMatchObject({ seq: 900, open: 0 })
})

it('remembers the last results when everything is in the journal, and only those', async () => {
  const place = await openWallet('acknowledged')
  for (let n = 0; n < 100; n += 1) await credit(place, names(n, 1), n)
  const { answers } = await credit(
    place,
    [...names(100 - REMEMBERED, REMEMBERED), ...names(100 - REMEMBERED - 1, 1)],
    100,
  )
  const types = answers.map(({ type }) => type)
  expect(types).toEqual([...new Array(REMEMBERED).fill('replay'), 'accepted'])
})

it('finds what the same call has decided, and nothing that it has pushed out', async () => {
  const place = await openWallet('one call')
  for (let n = 0; n < REMEMBERED; n += 1) await credit(place, names(n, 1), n)
  const asked = ['new', 'newer', 'key 0', 'key 2', 'key 15', 'new', 'key 0']
  const { answers } = await credit(place, asked, REMEMBERED)
  expect(answers.map(({ type }) => type)).toEqual([
    'accepted',
    'accepted',
    'accepted',
    'accepted',
    'replay',
    'replay',
    'replay',
  ])
  expect(answers.slice(4)).toMatchObject([{ entry: { seq: 16 } }, { entry: { seq: 17 } }, { entry: { seq: 19 } }])
})

it('decides what it has forgotten, though it got more room since', async () => {
  const place = await openWallet('more room')
  for (let n = 0; n < REMEMBERED; n += 1) await credit(place, names(n, 1), n)
  await credit(place, names(REMEMBERED, 20), REMEMBERED)
  const { answers } = await credit(place, names(0, REMEMBERED + 20), REMEMBERED)
  const types = answers.map(({ type }) => type)
  // The last one that is in the journal stays: by it a journal that lost it is found out.
  expect(types).toEqual([...new Array(REMEMBERED - 1).fill('accepted'), ...new Array(21).fill('replay')])
})

it.each([1, 7, 60])('keeps the last entry that is in the journal, whatever comes (%i at a time)', async (at) => {
  const place = await openWallet(`acked ${at}`)
  for (let n = 0; n < 20; n += 1) await credit(place, names(n, 1), n)
  for (let n = 0; n < 60; n += at) {
    await credit(place, names(20 + n, Math.min(at, 60 - n)), 20)
    expect((await sequencer.look(place, 0, 'test', 0)).last).toMatchObject({ seq: 20, key: 'key 19' })
  }
})

it('makes no fields but those it fills again', async () => {
  const place = await openWallet('fields')
  for (let n = 0; n < 100; n += 1) await credit(place, names(n, 1), n)
  expect((await redis.hkeys(place.walletKey)).sort()).toEqual(
    ['core', ...Array.from({ length: REMEMBERED }, (_, n) => `e:${n}`)].sort(),
  )
})

it('tells keys apart that have the same mark', async () => {
  const message = new MessageWriter()
  const byMark = new Map<number, string>()
  let pair: [string, string] | undefined
  while (!pair) {
    const key = randomBytes(8).toString('hex')
    message.markedString(key, 2)
    const mark = message.take().readInt32LE(2 + key.length)
    const other = byMark.get(mark)
    if (other) pair = [other, key]
    byMark.set(mark, key)
  }
  const place = await openWallet('marks')
  const [first, second] = pair
  expect((await credit(place, [first, second])).answers).toMatchObject([{ seq: 1 }, { seq: 2 }])
  expect((await credit(place, [second, first])).answers).toMatchObject([
    { type: 'replay', entry: { seq: 2, key: second } },
    { type: 'replay', entry: { seq: 1, key: first } },
  ])
})
