import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { deleteKeys, demoteAndPromote, evictKeys, flushAll, restoreOldSnapshot } from '../faults.js'
import { Place } from '../places.js'
import { tried, unknowns } from './support/trials.js'

let place: Place
beforeAll(async () => {
  place = await Place.start('single')
})
afterAll(() => place?.stop())

describe('a single Redis that forgets under load', () => {
  it('is flushed: callers notice nothing but latency', async () => {
    const { summary, counts } = await tried(place, async (trial) => {
      for (let n = 0; n < 3; n += 1) {
        await trial.underLoad()
        await flushAll(trial)
      }
      await trial.underLoad()
    })
    expect(unknowns(summary)).toEqual({})
    expect(counts.recoveries_untrusted_missing).toBeGreaterThan(0)
  })

  it('is restarted from an old file', async () => {
    const { summary, counts } = await tried(place, async (trial) => {
      await trial.underLoad()
      await restoreOldSnapshot(trial)
      await trial.underLoad()
    })
    expect(unknowns(summary)).toEqual({})
    expect(counts.recoveries_untrusted_incarnation).toBeGreaterThan(0)
  })

  it('loses single keys', async () => {
    const { summary, counts } = await tried(place, async (trial) => {
      for (let n = 0; n < 3; n += 1) {
        await trial.underLoad()
        await deleteKeys(trial)
      }
      await trial.underLoad()
    })
    expect(unknowns(summary)).toEqual({})
    expect(counts.recoveries_untrusted_missing).toBeGreaterThan(0)
  })

  it('evicts what it has no room for', async () => {
    let evicted = 0
    const { summary } = await tried(place, async (trial) => {
      await trial.underLoad()
      evicted = await evictKeys(trial)
      await trial.underLoad()
    })
    expect(evicted).toBeGreaterThan(0)
    expect(unknowns(summary)).toEqual({})
  })

  it('is demoted and promoted again with an older state, on connections that never broke', async () => {
    const { summary, counts } = await tried(place, async (trial) => {
      await trial.underLoad()
      await demoteAndPromote(trial)
      await trial.underLoad()
    })
    expect(unknowns(summary)).toEqual({})
    expect(counts.recoveries_untrusted_incarnation).toBeGreaterThan(0)
  })
})
