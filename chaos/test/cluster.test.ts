import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cutReplies, failOverToLaggingReplica, flushAll, moveSomeSlots, until } from '../faults.js'
import { Place } from '../places.js'
import { tried, unknowns } from './support/trials.js'

let place: Place
beforeAll(async () => {
  place = await Place.start('cluster')
})
afterAll(() => place?.stop())

describe('a Cluster under load', () => {
  it('moves slots from one master to another, twice', async () => {
    let moved = 0
    const { summary, counts } = await tried(place, async (trial) => {
      for (let n = 0; n < 2; n += 1) {
        await trial.underLoad()
        moved += await moveSomeSlots(trial)
      }
      await trial.underLoad()
    })
    expect(moved).toBeGreaterThan(4)
    expect(unknowns(summary)).toEqual({})
    // What came along is of another server's life.
    expect(counts.recoveries_untrusted_incarnation).toBeGreaterThan(0)
  })

  it('loses a master whose replica lags, and the replica is promoted', async () => {
    let lag = 0
    const { summary, counts } = await tried(place, async (trial) => {
      await trial.underLoad()
      lag = await failOverToLaggingReplica(trial)
      await until('wallets are loaded anew', async () => (trial.counts.recoveries_reload ?? 0) > 0)
      await trial.underLoad()
    })
    expect(lag).toBeGreaterThan(0)
    expect(unknowns(summary)).toEqual({})
    expect(counts.recoveries_fallback).toBeGreaterThan(0)
  }, 60_000)

  it('is flushed, and has connections cut after the script ran', async () => {
    const { summary } = await tried(place, async (trial) => {
      await trial.underLoad()
      await flushAll(trial)
      await cutReplies(trial, 5)
      await trial.underLoad()
    })
    expect(unknowns(summary)).toEqual({})
  })
})
