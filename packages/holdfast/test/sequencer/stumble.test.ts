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
  const options = { aheadMaxMs: 0, helpAfterMs: 1_000, idleAfterMs: 60_000, pendingMax: 100, now: () => Date.now() }
  sequencer = new AcquaintedSequencer(runnerOn(redis), options)
})
afterAll(() => redis.disconnect())

it('takes back what was accepted before a command of the same wallet stumbled, and nothing of anybody else', async () => {
  const [damaged, beside] = [keys.place(keys.ref('damaged')), keys.place(keys.ref('beside'))]
  for (const place of [damaged, beside]) {
    const installation = { place, memory: false, deadline: Date.now() + 60_000, clock: 0, finalKeys: [] }
    await sequencer.install('test', { ...installation, state: emptyState('0'.repeat(40)) })
  }
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
