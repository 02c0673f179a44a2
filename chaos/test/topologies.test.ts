import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  crashPostgres,
  cutOff,
  cutReplies,
  deleteKeys,
  evictKeys,
  failOverToLaggingReplica,
  flushAll,
  handOver,
  moveSomeSlots,
  restoreOldSnapshot,
  stopBetweenDecideAndAppend,
  stopRedis,
  until,
} from '../faults.js'
import type { Worker } from '../fleet.js'
import { Place, type Topology } from '../places.js'
import type { Trial } from '../trial.js'
import { tried, unknowns } from './support/trials.js'

const KILLS = 5

/** What a single Redis is put through one by one, a group of them is put through in a row: each fault finds what the last one left. */
describe.each<[Topology]>([['sentinel'], ['cluster']])('%s under load', (topology) => {
  let place: Place
  beforeAll(async () => {
    place = await Place.start(topology)
  })
  afterAll(() => place?.stop())

  it('forgets in every way that there is: callers notice nothing but latency', async () => {
    const done: Record<string, number> = {}
    const { summary, counts } = await tried(place, async (trial) => {
      await trial.underLoad()
      await noticed(trial, 'untrusted_missing', () => flushAll(trial))
      await noticed(trial, 'untrusted_missing', () => deleteKeys(trial))
      done.evicted = await evictKeys(trial)
      await trial.underLoad()
      await noticed(trial, 'untrusted_incarnation', () => restoreOldSnapshot(trial))
      await cutReplies(trial, 5)
      if (topology === 'cluster') {
        await noticed(trial, 'untrusted_incarnation', async () => {
          done.moved = await moveSomeSlots(trial)
        })
      }
      await noticed(trial, 'reload', async () => {
        done.lag = await failOverToLaggingReplica(trial)
      })
      await noticed(trial, 'reload', () => handOver(trial))
      await trial.underLoad()
    })
    for (const count of Object.values(done)) expect(count).toBeGreaterThan(0)
    expect(counts.log_decide_failed).toBeGreaterThan(0)
    // While there was no master.
    expect(counts.recoveries_fallback).toBeGreaterThan(0)
    expect(unknowns(summary)).toEqual({})
  })

  it('loses processes and servers while one process is stopped for 20 s between decide and append', async () => {
    const slept: { worker?: Worker } = {}
    const { summary, counts, history } = await tried(
      place,
      async (trial) => {
        const [sleeper, early] = trial.workers as [Worker, Worker]
        slept.worker = sleeper
        const stopped = stopBetweenDecideAndAppend(trial, sleeper, 20_000)
        for (let killed = 0; killed < KILLS; killed += 1) {
          await sleep(trial.chance.integer(20, 400))
          const others = trial.workers.filter((worker) => worker !== sleeper && worker !== early)
          await trial.replace(others[0] as Worker)
        }
        await crashPostgres(trial, 5_000)
        await trial.underLoad(60)
        const alone = cutOff(trial, early, 12_000)
        await sleep(1_000)
        const silent = stopRedis(trial, 10_000)
        await sleep(3_000)
        // Nobody has Redis now, and everything goes on.
        await trial.underLoad(60)
        await Promise.all([stopped, alone, silent])
        await trial.underLoad()
      },
      { workers: 3, callersPerWorker: 6, retryElsewhereAfterMs: 0 },
    )
    expect(summary.answers.none).toBeGreaterThan(KILLS)
    // Postgres was away: then nobody can know, and the same key settles it.
    const told = Object.keys(unknowns(summary)).filter((name) => name !== 'none')
    expect(told.length).toBeGreaterThan(0)
    for (const code of told) expect(['unknown unavailable', 'unknown timeout']).toContain(code)
    expect(counts.recoveries_help).toBeGreaterThan(0)
    expect(counts.recoveries_take_over).toBeGreaterThan(0)
    expect(counts.recoveries_fallback).toBeGreaterThan(50)
    const asked = history.filter(({ worker }) => worker === slept.worker?.name)
    expect(asked.some(({ startedAt, endedAt }) => endedAt - startedAt > 15_000)).toBe(true)
    expect(asked.every(({ answer }) => answer !== null)).toBe(true)
  })
})

/** The engines had to set something right because of it, more often than before. */
async function noticed(trial: Trial, what: string, inflict: () => Promise<unknown>): Promise<void> {
  const count = () => trial.counts[`recoveries_${what}`] ?? 0
  const before = count()
  await inflict()
  await until(`${what} more often than ${before} times`, async () => count() > before)
  await trial.underLoad(60)
}
