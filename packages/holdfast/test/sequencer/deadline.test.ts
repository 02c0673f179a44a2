import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freshRedis } from '../../../../test/servers.js'
import { command } from '../../src/machine/index.js'
import { Keys, type Place } from '../../src/redis/index.js'
import { type Answer, Sequencer } from '../../src/sequencer/index.js'
import { emptyState } from '../machine/oracle.js'
import { runnerOn } from './support/runner.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 7), shards: 1 })
const AHEAD_MS = 50_000

let redis: Redis
let sequencer: Sequencer
let place: Place

/** A wallet whose time is ahead of this server's clock: as after the failover of one whose clock was ahead. */
beforeAll(async () => {
  redis = new Redis(await freshRedis())
  const options = {
    aheadMaxMs: 60_000,
    helpAfterMs: 1_000,
    idleAfterMs: 60_000,
    pendingMax: 100,
    now: () => Date.now(),
  }
  sequencer = new Sequencer(runnerOn(redis), options)
  place = keys.place(keys.ref('ahead'))
  await sequencer.install('test', {
    place,
    state: emptyState('0'.repeat(40)),
    memory: false,
    deadline: Date.now() + 60_000,
    clock: Date.now() + AHEAD_MS,
    committedKeys: [],
  })
})
afterAll(() => redis.disconnect())

async function credit(key: string, deadline: number, aheadMs: number): Promise<Answer> {
  const { answers } = await sequencer.decide({
    wallets: [{ place, epochMin: 0, epoch: 0, acked: 0, known: 0 }],
    commands: [{ wallet: 0, command: command({ kind: 'credit', key, amount: 1 }), deadline, aheadMs, memory: false }],
  })
  return answers[0] as Answer
}

it('tells by how much a wallet is ahead, and decides for those who know it', async () => {
  const late = await credit('a', Date.now() + 3_000, 0)
  expect(late).toMatchObject({ type: 'late' })
  const aheadMs = (late as { clock: number }).clock - Date.now()
  expect(aheadMs).toBeGreaterThan(AHEAD_MS - 5_000)
  expect(await credit('a', Date.now() + 3_000, aheadMs)).toEqual({ type: 'accepted', seq: 1 })
})

it('does not decide what was held up past its deadline, however far the wallet is ahead', async () => {
  expect(await credit('b', Date.now() - 10, AHEAD_MS)).toMatchObject({ type: 'late' })
})
