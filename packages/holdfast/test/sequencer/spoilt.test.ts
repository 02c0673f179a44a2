import { startRedis } from '@holdfast/services'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Command, checkoutWords, command, emptyStock, purchaseWords } from '../../src/machine/index.js'
import { Keys, type Place } from '../../src/redis/index.js'
import { emptyState } from '../machine/oracle.js'
import { AcquaintedSequencer } from './support/acquainted.js'
import { runnerOn } from './support/runner.js'

/** What one caller asks for, or what a server has no room for, must never be at the expense of others. */
const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 7), shards: 1 })
const HOUR = 3_600_000

let server: Awaited<ReturnType<typeof startRedis>>
let redis: Redis
let sequencer: AcquaintedSequencer

beforeAll(async () => {
  server = await startRedis({ source: 'installed' })
  redis = new Redis(server.url)
  sequencer = new AcquaintedSequencer(runnerOn(redis), {
    aheadMaxMs: 60_000,
    helpAfterMs: 1_000,
    idleAfterMs: 60_000,
    pendingMax: 100,
    now: () => Date.now(),
  })
})
beforeEach(async () => {
  await redis.flushall()
})
afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

const install = (place: Place) =>
  sequencer.install('test', {
    place,
    state: { ...emptyState('0'.repeat(40)), at: Date.now(), available: 100, stock: place.isSale ? emptyStock() : null },
    memory: false,
    deadline: Date.now() + 60_000,
    clock: Date.now(),
    finalKeys: [],
  })

const decide = (place: Place, ...commands: Command[]) =>
  sequencer.decide({
    wallets: [{ place, epochMin: 0, epoch: 0, acked: 0, known: 0 }],
    commands: commands.map((command) => ({ wallet: 0, command, deadline: Date.now() + 60_000, memory: false })),
  })

const checkout = (key: string, item: number) =>
  command({
    kind: 'checkout',
    key,
    counter: 'stock',
    also: checkoutWords({
      reserves: true,
      ttlMs: 60_000,
      from: 0,
      until: Date.now() + HOUR,
      perBuyer: 5,
      buyer: key,
      lines: [{ item, quantity: 1, share: 5 }],
    }),
  })

it('sends nothing of a call that could not be written along with the next one', async () => {
  const [one, two] = [keys.ofSale('one', 0), keys.ofSale('two', 0)]
  await install(one)
  await install(two)
  const prices = new Map(Array.from({ length: 6_000 }, (_, n) => [n + 1, 100_000]))
  const payment = { wallet: 'w', id: 'x', amount: 1, prices }
  const also = purchaseWords({ all: true, perBuyer: 10_000, payment })
  const long = command({ kind: 'purchase', key: '~paid:x', hold: 'c', counter: 'stock', also })
  await expect(decide(one, checkout('alice', 1), long)).rejects.toThrow(RangeError)
  const { answers, runs } = await decide(two, checkout('bob', 2))
  expect(answers).toEqual([{ type: 'accepted', seq: 1 }])
  expect(runs[0]).toMatchObject({ entries: [{ key: 'bob' }] })
  expect(await redis.hmget(two.stockKey, 'i:1', 'i:2')).toEqual([null, '1'])
})

describe('one of two sales in a batch', () => {
  const [damaged, beside] = [keys.ofSale('damaged', 0), keys.ofSale('beside', 0)]
  beforeEach(async () => {
    for (const place of [damaged, beside]) {
      await install(place)
      await decide(place, checkout('alice', 1))
    }
  })

  const expectAlone = async (...commands: [spoilt: Command, fine: Command]) => {
    const before = await redis.hgetallBuffer(damaged.stockKey)
    const { answers, runs } = await sequencer.decide({
      wallets: [damaged, beside].map((place) => ({ place, epochMin: 0, epoch: 0, acked: 0, known: 0 })),
      commands: commands.map((command, wallet) => ({ wallet, command, deadline: Date.now() + 60_000, memory: false })),
    })
    expect(answers).toMatchObject([{ type: 'error' }, { type: 'accepted' }])
    expect(runs[0]).toMatchObject({ type: 'untrusted', why: 'error' })
    expect(await redis.hgetallBuffer(damaged.stockKey)).toEqual(before)
  }

  it.each([
    '',
    'reserve',
    'reserve alice',
    'reserve alice 1',
    'reserve alice 1:01/5',
    'reserve alice 1:1/5x 2:1/5',
    'reserve alice x 1:1/5',
  ])('has a checkout that says %j: it is taken for damaged, and the other is decided', async (said) => {
    await redis.hset(damaged.stockKey, 'c:alice', said)
    const bought = command({ kind: 'purchase', key: '~purchase:alice', hold: 'alice', counter: 'stock', also: 'all 5' })
    await expectAlone(bought, bought)
    for (const of of [{ code: 'alice' }, { buyer: 'alice' }]) {
      await expect(sequencer.running(damaged, 0, of)).rejects.toThrow()
      expect(await sequencer.running(beside, 0, of)).toBeNull()
    }
  })

  it.each(['', '1:0/5', '1:1', '1:1/-5', 'x'])(
    'is asked for what nobody can read, %j: the other is decided',
    async (lines) => {
      const { params } = checkout('bob', 2)
      await expectAlone({ ...checkout('bob', 2), params: params.replace('2:1/5', lines) }, checkout('bob', 2))
    },
  )
})

it('takes what is no number for too much, and leaves the wallet as it is', async () => {
  const place = keys.of('ann')
  await install(place)
  await decide(place, command({ kind: 'hold', key: 'h', amount: 30, ttlMs: HOUR }))
  const settle = command({ kind: 'settle', key: 's', hold: 'h', amount: Number.NaN })
  expect((await decide(place, settle)).answers).toMatchObject([{ type: 'rejected', code: 'invalid_amount' }])
  expect((await decide(place, command({ kind: 'credit', key: 'c', amount: 1 }))).answers).toMatchObject([
    { type: 'accepted', seq: 2 },
  ])
})

it('takes nobody from the agenda where there is no room for one more', async () => {
  const places = ['a', 'b', 'c'].map((id) => keys.of(id))
  const [first, second] = places as [Place, Place]
  for (const place of places) await install(place)
  const due = () => redis.zrange(first.agendaKey, '0', '-1')
  const before = await due()
  expect(before).toHaveLength(3)
  await redis.config('SET', 'maxmemory', '100kb')
  try {
    const refused = decide(second, command({ kind: 'credit', key: 'x', amount: 1 }))
    const told = await refused.then(({ answers }) => answers[0]?.type, String)
    expect(told).not.toBe('accepted')
    expect(await due()).toEqual(before)
  } finally {
    await redis.config('SET', 'maxmemory', '0')
  }
  expect((await decide(second, command({ kind: 'credit', key: 'x', amount: 1 }))).answers).toMatchObject([
    { type: 'accepted', seq: 1 },
  ])
})
