import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freshRedis } from '../../../../test/servers.js'
import { command } from '../../src/machine/index.js'
import { Keys } from '../../src/redis/index.js'
import { emptyState } from '../machine/oracle.js'
import { AcquaintedSequencer } from './support/acquainted.js'
import { runnerOn } from './support/runner.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 7), shards: 1 })
let redis: Redis
let sequencer: AcquaintedSequencer

beforeAll(async () => {
  redis = new Redis(await freshRedis())
  const now = () => Date.now()
  const options = { aheadMaxMs: 60_000, helpAfterMs: 1_000, idleAfterMs: 60_000, pendingMax: 100, now }
  sequencer = new AcquaintedSequencer(runnerOn(redis), options)
})
afterAll(() => redis.disconnect())

/** As a process of the version before would have left it. */
async function leaveAsBefore(walletKey: string): Promise<void> {
  const core = (await redis.hgetBuffer(walletKey, 'core')) as Buffer
  core[0] = 2
  await redis.hset(walletKey, 'core', core, 'refunds', '7\nr 2 1\nx 3 1 hold')
}

it.each([false, true])('is loaded anew, with what was acknowledged from memory in it: %s', async (memory) => {
  const place = keys.of(`before ${memory}`)
  const deadline = Date.now() + 60_000
  const state = emptyState('0'.repeat(40))
  const installation = { place, memory: true, deadline, clock: Date.now(), finalKeys: [] }
  await sequencer.install('test', { ...installation, state })
  const credit = (key: string) =>
    sequencer.decide({
      wallets: [{ place, epochMin: 0, epoch: 0, acked: 0, known: 0 }],
      commands: [{ wallet: 0, command: command({ kind: 'credit', key, amount: 5 }), deadline, memory }],
    })
  await credit('told')
  await leaveAsBefore(place.walletKey)

  const { answers, runs } = await credit('next')
  expect(answers).toMatchObject([{ type: 'untrusted' }])
  expect(runs).toMatchObject([{ type: 'untrusted', why: 'incarnation', epoch: state.epoch }])
  const look = await sequencer.look(place, 0, 'test', 0)
  expect(look).toMatchObject({ why: 'incarnation', pending: [{ memory, entry: { key: 'told' } }] })

  const later = { ...state, epoch: state.epoch + 1 }
  expect(await sequencer.install('test', { ...installation, state: later })).toEqual({ type: 'installed', lost: [] })
  const { why, core } = await sequencer.look(place, 0, 'test', 0)
  expect({ why, available: core?.available }).toEqual({ why: 'trusted', available: memory ? 5 : 0 })
  expect(await redis.hexists(place.walletKey, 'refunds')).toBe(0)
})
