import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freshRedis } from '../../../../test/servers.js'
import { command } from '../../src/machine/index.js'
import { Keys, type Place } from '../../src/redis/index.js'
import { emptyState } from '../machine/oracle.js'
import { AcquaintedSequencer } from './support/acquainted.js'
import { runnerOn } from './support/runner.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 7), shards: 1 })

let redis: Redis
let sequencer: AcquaintedSequencer

beforeAll(async () => {
  redis = new Redis(await freshRedis())
  const options = { aheadMaxMs: 0, helpAfterMs: 1_000, idleAfterMs: 60_000, pendingMax: 100, now: () => Date.now() }
  sequencer = new AcquaintedSequencer(runnerOn(redis), options)
})
afterAll(() => redis.disconnect())

const installed = async (...ids: string[]) => {
  const places = ids.map((id) => keys.place(keys.ref(id)))
  for (const place of places) {
    const installation = { place, memory: false, deadline: Date.now() + 60_000, clock: 0, finalKeys: [] }
    await sequencer.install('test', { ...installation, state: emptyState('0'.repeat(40)) })
  }
  return places as [Place, Place]
}

it('takes back what was accepted before a command of the same wallet stumbled, and nothing of anybody else', async () => {
  const [damaged, beside] = await installed('damaged', 'beside')
  await redis.hset(damaged.walletKey, 'h:h', 'no hold')
  const before = await redis.hgetallBuffer(damaged.walletKey)
  const rest = { deadline: Date.now() + 60_000, memory: false }
  const { runs, answers } = await sequencer.decide({
    wallets: [damaged, beside].map((place) => ({ place, epochMin: 0, epoch: 0, acked: 0, known: 0 })),
    commands: [
      { ...rest, wallet: 0, command: command({ kind: 'credit', key: 'a', amount: 1 }) },
      { ...rest, wallet: 0, command: command({ kind: 'capture', key: 'b', hold: 'h', amount: 1 }) },
      { ...rest, wallet: 1, command: command({ kind: 'credit', key: 'a', amount: 1 }) },
    ],
  })
  expect(runs).toMatchObject([{ type: 'untrusted', why: 'error' }, { entries: [{ seq: 1 }] }])
  expect(answers.map(({ type }) => type)).toEqual(['untrusted', 'error', 'accepted'])
  expect(await redis.hgetallBuffer(damaged.walletKey)).toEqual(before)
})

it('costs nobody else his part of the call if one of the entries is gone that a wallet has to move', async () => {
  const [holed, beside] = await installed('holed', 'beside it')
  const rest = { deadline: Date.now() + 60_000, memory: false }
  const wallets = [beside, holed].map((place) => ({ place, epochMin: 0, epoch: 0, acked: 0, known: 0 }))
  const credit = (wallet: number, key: string) => ({
    ...rest,
    wallet,
    command: command({ kind: 'credit', key, amount: 1 }),
  })
  // As many as there is room for.
  await sequencer.decide({ wallets, commands: Array.from({ length: 15 }, (_, n) => credit(1, `${n}`)) })
  await redis.hdel(holed.walletKey, 'e:3')
  const before = await redis.hgetallBuffer(holed.walletKey)
  const { answers } = await sequencer.decide({ wallets, commands: [credit(0, 'a'), credit(1, 'one more')] })
  expect(answers.map(({ type }) => type)).toEqual(['accepted', 'error'])
  expect(await redis.hgetallBuffer(holed.walletKey)).toEqual(before)
})

it.each(['', 'x', 'x'.repeat(60)])('tends a wallet beside one with a pending entry that says %j', async (said) => {
  const places = await installed(`spoilt ${said}`, `fine ${said}`)
  await sequencer.decide({
    wallets: places.map((place) => ({ place, epochMin: 0, epoch: 0, acked: 0, known: 0 })),
    commands: [0, 1].map((wallet) => ({
      wallet,
      command: command({ kind: 'credit', key: 'a', amount: 1 }),
      deadline: Date.now() + 60_000,
      memory: false,
    })),
  })
  const [spoilt] = places
  await redis.hset(spoilt.walletKey, 'e:1', said)
  const wallets = places.map((place) => ({ place, epoch: 0, acked: 0 }))
  expect(await sequencer.tend(spoilt.agendaKey, wallets)).toMatchObject(['broken', { entries: [{ key: 'a' }] }])
})
