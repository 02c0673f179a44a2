import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freshRedis } from '../../../../test/servers.js'
import { command } from '../../src/machine/index.js'
import { Keys, type Place } from '../../src/redis/index.js'
import { type Answer, Sequencer } from '../../src/sequencer/index.js'
import { emptyState } from '../machine/oracle.js'
import { runnerOn } from './support/runner.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 7), shards: 1 })
const MINUTE = 60_000
const ANOTHER_LIFE = 'f'.repeat(32)

let redis: Redis
let sequencer: Sequencer
let place: Place
let life: string

beforeAll(async () => {
  redis = new Redis(await freshRedis())
  const options = {
    aheadMaxMs: MINUTE,
    helpAfterMs: 1_000,
    idleAfterMs: MINUTE,
    pendingMax: 100,
    now: () => Date.now(),
  }
  sequencer = new Sequencer(runnerOn(redis), options)
  place = keys.place(keys.ref('wallet'))
  life = (await sequencer.look(place, 0, 'test', 0)).life
  // Its time is ahead of this server's clock: as after the failover of one whose clock was ahead.
  await install(life, Date.now() + MINUTE, 1)
})
afterAll(() => redis.disconnect())

function install(life: string, deadline: number, epoch: number) {
  const state = emptyState('0'.repeat(40), epoch)
  const clock = Date.now() + MINUTE
  return sequencer.install('test', { place, state, memory: false, deadline, life, clock, recent: [], finalKeys: [] })
}

async function credit(key: string, deadline: number, life: string | null): Promise<Answer> {
  const { answers } = await sequencer.decide({
    life,
    wallets: [{ place, epochMin: 0, epoch: 0, acked: 0, known: 0 }],
    commands: [{ wallet: 0, command: command({ kind: 'credit', key, amount: 1 }), deadline, memory: false }],
  })
  return answers[0] as Answer
}

it('decides until the deadline, by the clock of the server and not by the wallet’s time', async () => {
  expect(await credit('a', Date.now() + MINUTE / 2, life)).toEqual({ type: 'accepted', seq: 1 })
  expect(await credit('b', Date.now() - 10, life)).toEqual({ type: 'late' })
})

it('decides nothing whose deadline is by the clock of another server, and tells its own', async () => {
  for (const unknown of [null, ANOTHER_LIFE]) {
    expect(await credit('c', Date.now() + MINUTE, unknown)).toEqual({ type: 'late' })
  }
  const wallets = [{ place, epochMin: 0, epoch: 0, acked: 0, known: 0 }]
  const reply = await sequencer.decide({ life: null, wallets, commands: [] })
  expect(reply.life).toBe(life)
  expect(Math.abs(reply.clock - Date.now())).toBeLessThan(MINUTE)
})

it('answers for what was decided before, whoever asks and however late', async () => {
  expect(await credit('a', 0, ANOTHER_LIFE)).toMatchObject({ type: 'replay', entry: { key: 'a' } })
})

it('installs only in the life that was looked at, and in time', async () => {
  expect(await install(ANOTHER_LIFE, Date.now() + MINUTE, 2)).toEqual({ type: 'late' })
  expect(await install(life, Date.now() - 10, 2)).toEqual({ type: 'late' })
  expect(await install(life, Date.now() + MINUTE, 2)).toEqual({ type: 'installed', lost: [] })
})
