import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freshRedis } from '../../../../test/servers.js'
import { command } from '../../src/machine/index.js'
import { Keys } from '../../src/redis/index.js'
import { emptyState } from '../machine/oracle.js'
import { AcquaintedSequencer } from './support/acquainted.js'
import { runnerOn } from './support/runner.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 7), shards: 1 })
const HELP_AFTER_MS = 1_000
const MINUTE = 60_000

let redis: Redis
let sequencer: AcquaintedSequencer
/** In the past, so that the caller's clock, and not the server's, is what the scripts go by. */
let now = 1_600_000_000_000

beforeAll(async () => {
  redis = new Redis(await freshRedis())
  const options = { aheadMaxMs: 0, helpAfterMs: HELP_AFTER_MS, idleAfterMs: MINUTE, pendingMax: 100, now: () => now }
  sequencer = new AcquaintedSequencer(runnerOn(redis), options)
})
afterAll(() => redis.disconnect())

it('finds its way back onto an agenda that was lost, and moves nobody on one that was not', async () => {
  const place = keys.place(keys.ref('w'))
  const decide = (key: string) =>
    sequencer.decide({
      wallets: [{ place, epochMin: 0, epoch: 0, acked: 0, known: 0 }],
      commands: [
        {
          wallet: 0,
          command: command({ kind: 'credit', key, amount: 1 }),
          deadline: Date.now() + MINUTE,
          memory: false,
        },
      ],
    })
  const time = async () => Number(await redis.zscore(place.agendaKey, place.agendaName))
  const deadline = Date.now() + MINUTE
  const state = emptyState('0'.repeat(40))
  await sequencer.install('test', { place, state, memory: false, deadline, clock: now, finalKeys: [] })
  const first = now + MINUTE
  expect(await time()).toBe(first)

  now += 2 * MINUTE
  await decide('a')
  expect(await time()).toBe(first)

  await redis.del(place.agendaKey)
  now += 2 * MINUTE
  await decide('b')
  expect(await time()).toBe(now + HELP_AFTER_MS)
})

it('leaves a wallet where it was on the agenda when nothing came of a command', async () => {
  const place = keys.place(keys.ref('idle'))
  const time = async () => Number(await redis.zscore(place.agendaKey, place.agendaName))
  const deadline = Date.now() + MINUTE
  const decide = (change: Parameters<typeof command>[0]) =>
    sequencer.decide({
      wallets: [{ place, epochMin: 0, epoch: 0, acked: 0, known: 0 }],
      commands: [{ wallet: 0, command: command(change), deadline, memory: false }],
    })
  const state = emptyState('0'.repeat(40))
  await sequencer.install('test', { place, state, memory: false, deadline, clock: now, finalKeys: [] })
  const first = now + MINUTE
  await decide({ kind: 'touch' })
  await decide({ kind: 'debit', key: 'too-much', amount: 1 })
  expect(await time()).toBe(first)

  await decide({ kind: 'credit', key: 'in', amount: 1 })
  expect(await time()).toBe(now + HELP_AFTER_MS)
})

it('comes back later to what was acknowledged from memory in another life, and leaves all of it where it is', async () => {
  const place = keys.place(keys.ref('told'))
  const installation = { place, memory: true, deadline: Date.now() + MINUTE, clock: now, finalKeys: [] }
  await sequencer.install('test', { ...installation, state: emptyState('0'.repeat(40)) })
  const decide = (key: string, memory: boolean) =>
    sequencer.decide({
      wallets: [{ place, epochMin: 0, epoch: 0, acked: 0, known: 0 }],
      commands: [
        { wallet: 0, command: command({ kind: 'credit', key, amount: 1 }), deadline: Date.now() + MINUTE, memory },
      ],
    })
  await decide('told', true)
  // More than there is room for at first.
  for (let n = 0; n < 20; n += 1) await decide(`on its way ${n}`, false)
  const { epoch } = await sequencer.look(place, 0, 'test', 0)
  await sequencer.distrust(place, epoch)
  const before = await redis.hgetallBuffer(place.walletKey)
  const from = await serverNow()
  // Of what the caller knows to be in the journal, Postgres may have lost some.
  expect(await sequencer.tend(place.agendaKey, [{ place, epoch, acked: 21 }])).toEqual(['broken'])
  const time = Number(await redis.zscore(place.agendaKey, place.agendaName))
  expect(time).toBeGreaterThanOrEqual(from + HELP_AFTER_MS)
  expect(time).toBeLessThanOrEqual((await serverNow()) + HELP_AFTER_MS)
  expect(await redis.hgetallBuffer(place.walletKey)).toEqual(before)
})

it('lets no wallet leave that has something pending, however long it has been idle', async () => {
  const place = keys.place(keys.ref('forgotten'))
  const deadline = Date.now() + MINUTE
  const state = emptyState('0'.repeat(40))
  await sequencer.install('test', { place, state, memory: false, deadline, clock: now, finalKeys: [] })
  await sequencer.decide({
    wallets: [{ place, epochMin: 0, epoch: 0, acked: 0, known: 0 }],
    commands: [{ wallet: 0, command: command({ kind: 'credit', key: 'in', amount: 1 }), deadline, memory: false }],
  })
  now += 10 * MINUTE
  const { epoch, core } = await sequencer.look(place, 0, 'test', 0)
  await sequencer.tend(place.agendaKey, [{ place, epoch, acked: 0 }])
  expect(await sequencer.look(place, 0, 'test', 0)).toMatchObject({
    why: 'trusted',
    pending: [{ entry: { key: 'in' } }],
  })

  now += 10 * MINUTE
  await sequencer.tend(place.agendaKey, [{ place, epoch, acked: core?.seq as number }])
  expect(await redis.exists(place.walletKey)).toBe(0)
})

const serverNow = async () => {
  const [seconds, microseconds] = await redis.time()
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000)
}
