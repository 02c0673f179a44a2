import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cutReplies, failOverToLaggingReplica, flushAll, until } from '../faults.js'
import { Place } from '../places.js'
import { tried, unknowns } from './support/trials.js'

let place: Place
beforeAll(async () => {
  place = await Place.start('sentinel')
})
afterAll(() => place?.stop())

describe('a Sentinel group under load', () => {
  it('fails over to a replica that lags: what was acknowledged stands, and nobody is told an error', async () => {
    let lag = 0
    const { summary, counts } = await tried(place, async (trial) => {
      await trial.underLoad()
      lag = await failOverToLaggingReplica(trial)
      await until('wallets are loaded anew', async () => (trial.counts.recoveries_reload ?? 0) > 0)
      await trial.underLoad()
    })
    expect(lag).toBeGreaterThan(0)
    expect(unknowns(summary)).toEqual({})
    // While there was no master.
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
