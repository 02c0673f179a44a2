import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { crashPostgres, cutOff, cutReplies, stopBetweenDecideAndAppend, stopRedis } from '../faults.js'
import type { Worker } from '../fleet.js'
import { Place } from '../places.js'
import { tried, unknowns } from './support/trials.js'

const KILLS = 50

let place: Place
beforeAll(async () => {
  place = await Place.start('single')
})
afterAll(() => place?.stop())

it('fifty processes are killed at random moments, and one is stopped for 20 s between decide and append', async () => {
  let sleeper: Worker | undefined
  const { summary, counts, history } = await tried(
    place,
    async (trial) => {
      const asleep = trial.workers[0] as Worker
      sleeper = asleep
      const slept = stopBetweenDecideAndAppend(trial, asleep, 20_000)
      let killed = 0
      const killer = async () => {
        while (killed++ < KILLS) {
          await sleep(trial.chance.integer(20, 500))
          const others = trial.workers.filter((worker) => worker !== asleep)
          await trial.replace(others[0] as Worker)
        }
      }
      await Promise.all([slept, killer()])
      await trial.underLoad()
    },
    { workers: 2, callersPerWorker: 6, retryElsewhereAfterMs: 0 },
  )
  // Killed in the middle of something, again and again, and what they left behind was seen to by others.
  expect(summary.answers.none).toBeGreaterThan(KILLS)
  expect(counts.recoveries_help).toBeGreaterThan(0)
  // It slept longer than any call may take, so its callers were told that they can't know; and then asked again.
  const asked = history.filter(({ worker }) => worker === sleeper?.name)
  const slow = asked.filter(({ startedAt, endedAt }) => endedAt - startedAt > 15_000)
  expect(slow.length).toBeGreaterThan(0)
  expect(asked.every(({ answer }) => answer !== null)).toBe(true)
})

it('the connection is cut after the script ran', async () => {
  const { summary, counts } = await tried(place, async (trial) => {
    await trial.underLoad()
    await cutReplies(trial, 15)
    await trial.underLoad()
  })
  expect(unknowns(summary)).toEqual({})
  expect(counts.log_decide_failed).toBeGreaterThanOrEqual(10)
})

it('Postgres crashes and is away for five seconds', async () => {
  const { summary, history } = await tried(place, async (trial) => {
    await trial.underLoad()
    await crashPostgres(trial, 5_000)
    await trial.underLoad()
  })
  const told = Object.keys(unknowns(summary))
  expect(told.length).toBeGreaterThan(0)
  for (const code of told) expect(['unknown unavailable', 'unknown timeout']).toContain(code)
  expect(history.every(({ answer }) => answer !== null)).toBe(true)
})

it('Redis is stopped for ten seconds, and one of two processes was cut off from it before', async () => {
  const { summary, counts, history } = await tried(place, async (trial) => {
    await trial.underLoad()
    const [early] = trial.workers as [Worker]
    const alone = cutOff(trial, early, 13_000)
    await sleep(1_500)
    const stopped = stopRedis(trial, 10_000)
    await sleep(3_000)
    // Nobody has Redis now, and everything goes on.
    await trial.underLoad()
    await Promise.all([alone, stopped])
    await trial.underLoad()
  })
  expect(unknowns(summary)).toEqual({})
  expect(counts.recoveries_take_over).toBeGreaterThan(0)
  expect(counts.recoveries_fallback).toBeGreaterThan(100)
  const slowest = Math.max(...history.map(({ startedAt, endedAt }) => endedAt - startedAt))
  // Nobody has waited for Redis to come back.
  expect(slowest).toBeLessThan(9_000)
})
