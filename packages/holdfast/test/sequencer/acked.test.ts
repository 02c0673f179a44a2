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
  const times = { aheadMaxMs: 60_000, helpAfterMs: 1_000, idleAfterMs: 60_000 }
  sequencer = new AcquaintedSequencer(runnerOn(redis), { ...times, pendingMax: 100, now: () => Date.now() })
})
afterAll(() => redis.disconnect())

/** Who was held up for long may tell of entries that Postgres has lost since: in the new life those seqs are of others, which are pending. */
it('takes no entry for acknowledged because of one with the same seq in an earlier life', async () => {
  const place = keys.place(keys.ref('put-back'))
  const now = Date.now()
  const state = { ...emptyState('0'.repeat(40)), epoch: 2, seq: 1, available: 10 }
  const installation = { place, memory: false, deadline: now + 60_000, finalKeys: [] }
  await sequencer.install('test', { ...installation, state, clock: now })
  const decide = (key: string, epoch: number, acked: number) =>
    sequencer.decide({
      wallets: [{ place, epochMin: 0, epoch, acked, known: 0 }],
      commands: [
        { wallet: 0, command: command({ kind: 'debit', key, amount: 1 }), deadline: now + 60_000, memory: false },
      ],
    })
  await decide('a', 2, 1)
  await decide('b', 2, 1)
  await decide('c', 1, 3)
  expect((await sequencer.look(place, 0, 'test', 0)).core).toMatchObject({ seq: 4, acked: 1 })
  await sequencer.tend(place.agendaKey, [{ place, epoch: 1, acked: 3 }])
  expect((await sequencer.look(place, 0, 'test', 0)).core).toMatchObject({ seq: 4, acked: 1 })
  await decide('d', 2, 3)
  expect((await sequencer.look(place, 0, 'test', 0)).core).toMatchObject({ seq: 5, acked: 3 })
  // Who knows less than others have told already takes nothing back.
  await decide('e', 2, 2)
  await sequencer.tend(place.agendaKey, [{ place, epoch: 2, acked: 2 }])
  expect((await sequencer.look(place, 0, 'test', 0)).core).toMatchObject({ seq: 6, acked: 3 })
})
