import { describe, expect, it } from 'vitest'
import { command } from '../../packages/holdfast/src/machine/index.js'
import { openRequest } from '../openings.js'
import { keys, Process, type Traits, type Weather } from '../process.js'
import { Machines, Servers } from '../servers.js'
import { World } from '../world.js'

/** Several processes on one wallet, each with callers who never rest, over a network without faults: who has to wait how long? */
const CALLERS = 8
const SECONDS = 6
const CALM: Weather = { lossy: 0, slow: 0, contended: 0, evicting: 0 }
/** Of a hold that somebody waits for. It is a tenth of the usual timeout. */
const PATIENCE_MS = 1_000
const OPTIONS = { timeoutMs: 3_000, sweepEveryMs: 600_000 }

interface Race {
  readonly processes: number
  /** Of the first of them; the others are at 1. */
  readonly distance: number
  /** Who loses Redis after a second. */
  readonly cutOff?: 'first' | 'last' | 'all'
  /** The last of them takes another server for the master of Redis. */
  readonly split?: boolean
}

class Runner {
  readonly process: Process
  done = 0
  failed = 0
  slowestMs = 0

  constructor(process: Process) {
    this.process = process
  }

  /** One operation after the other, for as long as the world goes on. */
  async run(caller: number, now: () => number): Promise<void> {
    for (let n = 0; ; n += 1) {
      const startedAt = now()
      const credit = command({ kind: 'credit', key: `${this.process.name}-${caller}-${n}`, amount: 1 })
      try {
        await this.process.engine.submit(keys.of('hot'), credit, { memory: false })
        this.done += 1
      } catch {
        this.failed += 1
      }
      this.slowestMs = Math.max(this.slowestMs, now() - startedAt)
    }
  }
}

async function race({ processes, distance, cutOff, split }: Race): Promise<Runner[]> {
  const world = new World(1, false)
  const servers = await Servers.start(world, new Machines())
  servers.postgres.database.open(openRequest('hot'))
  const runners = Array.from({ length: processes }, (_, n) => {
    if (split && n === processes - 1) servers.failOver([], 0)
    const traits: Traits = { options: OPTIONS, distance: n === 0 ? distance : 1 }
    return new Runner(new Process(`process-${n}`, world, servers, CALM, {}, traits))
  })
  if (cutOff) {
    world.plan(1_000, () => {
      const cut = cutOff === 'all' ? runners : [runners.at(cutOff === 'first' ? 0 : -1) as Runner]
      for (const { process } of cut) process.redisCut = true
    })
  }
  for (const runner of runners) {
    for (let caller = 0; caller < CALLERS; caller += 1) void runner.run(caller, () => world.now)
  }
  await world.run(world.now + SECONDS * 1_000, () => false)
  return runners
}

describe('nobody is starved', () => {
  it.each<[string, Race]>([
    ['where all see Redis', { processes: 4, distance: 4 }],
    ['beside one without Redis', { processes: 4, distance: 1, cutOff: 'first' }],
    ['who has no Redis and is further away from Postgres', { processes: 2, distance: 4, cutOff: 'first' }],
    ['who is further away, of several that have no Redis', { processes: 4, distance: 4, cutOff: 'first' }],
    ['who has Redis and is further away than who has none', { processes: 2, distance: 4, cutOff: 'last' }],
    ['who is further away, where nobody has Redis', { processes: 2, distance: 4, cutOff: 'all' }],
    ['by who has another Redis', { processes: 2, distance: 1, split: true }],
    ['by who has another Redis and is nearer', { processes: 2, distance: 4, split: true }],
  ])(
    '%s',
    async (_, given) => {
      for (const { process, done, failed, slowestMs } of await race(given)) {
        expect({ process: process.name, failed }).toEqual({ process: process.name, failed: 0 })
        expect(slowestMs, process.name).toBeLessThan(PATIENCE_MS)
        expect(done, process.name).toBeGreaterThan(SECONDS * 50)
      }
    },
    60_000,
  )
})
