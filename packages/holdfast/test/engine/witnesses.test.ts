import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freshRedis } from '../../../../test/servers.js'
import type { Context } from '../../src/engine/context.js'
import { Witnesses } from '../../src/engine/witnesses.js'
import type { Standing, Witness } from '../../src/journal/index.js'
import type { Entry } from '../../src/machine/index.js'
import { Keys } from '../../src/redis/index.js'
import { Sequencer } from '../../src/sequencer/index.js'
import { runnerOn } from '../sequencer/support/runner.js'
import { TestClock } from './support/clock.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 1), shards: 1 })
const STANDING: Standing = { floor: 0, settled: 0, stopped: null, missing: [] }
const entryOf = (seq: number) => ({ epoch: 1, seq, hash: seq.toString(16).padStart(40, '0') })

let redis: Redis
let sequencer: Sequencer
beforeAll(async () => {
  redis = new Redis(await freshRedis())
  sequencer = new Sequencer(runnerOn(redis), {
    aheadMaxMs: 0,
    helpAfterMs: 1_000,
    idleAfterMs: 1_000,
    pendingMax: 10,
    now: Date.now,
  })
})
afterAll(() => redis.disconnect())

/** What is asked for of the journal. */
async function asked(witnesses: Witnesses): Promise<number[]> {
  const seqs: number[] = []
  const prove = async (known: readonly Witness[]) => {
    seqs.push(...known.map(({ seq }) => seq))
    return STANDING
  }
  await witnesses.prove({ prove, stop: async () => {} })
  return seqs
}

it('asks for what was appended, however much is found in the journal after it that is older', async () => {
  const clock = new TestClock()
  const parts = { clock, sequencer, asker: 'one', telemetry: {}, options: { witnessEveryMs: 100 } }
  const witnesses = new Witnesses(parts as unknown as Context, keys.witnesses)
  const ref = keys.ref('wallet')
  witnesses.noteAppend([{ ref, entry: entryOf(100) as Entry, deadline: 0 }], [{ type: 'appended' }])
  for (let seq = 1; seq <= 40; seq += 1) witnesses.noteFound(ref, entryOf(seq))
  expect(await asked(witnesses)).toContain(100)
  // And so do others, who know it from Redis.
  const other = new Witnesses({ ...parts, asker: 'two' } as unknown as Context, keys.witnesses)
  expect(await asked(other)).toEqual([100])
})

it('asks for what another had appended before', async () => {
  const parts = { clock: new TestClock(), sequencer, asker: 'four', telemetry: {}, options: { witnessEveryMs: 100 } }
  const witnesses = new Witnesses(parts as unknown as Context, keys.witnesses)
  const filed = [8, 9].map((seq) => ({ ref: keys.ref('wallet'), entry: entryOf(seq) as Entry, deadline: 0 }))
  witnesses.noteAppend(filed, [{ type: 'there' }, { type: 'gap', seq: 8 }])
  expect(await asked(witnesses)).toEqual(expect.arrayContaining([8]))
  expect(await asked(witnesses)).not.toContain(9)
})

it('asks for what was found, where nothing was appended', async () => {
  const clock = new TestClock()
  const parts = { clock, sequencer, asker: 'three', telemetry: {}, options: { witnessEveryMs: 100 } }
  const witnesses = new Witnesses(parts as unknown as Context, keys.witnesses)
  witnesses.noteFound(keys.ref('wallet'), entryOf(7))
  expect(await asked(witnesses)).toContain(7)
})
