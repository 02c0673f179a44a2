import { startRedis } from '@holdfast/services'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Valkey } from '../../../../sim/valkey.js'
import { command } from '../../src/machine/index.js'
import { Keys, type Place, type ScriptRunner } from '../../src/redis/index.js'
import { emptyState } from '../machine/oracle.js'
import { AcquaintedSequencer } from './support/acquainted.js'
import { runnerOn } from './support/runner.js'

/** Wallets leave when nobody needs them: on a server that is full nothing else makes room. */
const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 7), shards: 1 })
const START = 1_600_000_000_000
const IDLE_AFTER_MS = 1_000
const { epoch } = emptyState('')

interface Server {
  readonly runner: ScriptRunner
  readonly size: () => Promise<number>
  readonly fill: () => Promise<unknown>
  readonly stop: () => Promise<void>
}

const servers = {
  Redis: async (): Promise<Server> => {
    const server = await startRedis({ source: 'installed' })
    const redis = new Redis(server.url)
    return {
      runner: runnerOn(redis),
      size: () => redis.dbsize(),
      fill: () => redis.config('SET', 'maxmemory', '1'),
      stop: async () => {
        redis.disconnect()
        await server.stop()
      },
    }
  },
  'Valkey in WebAssembly': async (): Promise<Server> => {
    const valkey = await Valkey.start({ now: () => Date.now(), random: (bytes) => bytes.fill(1) })
    return {
      runner: { run: async (script, keys, args) => valkey.run(script, keys, args) },
      size: async () => valkey.keys().length,
      fill: async () => valkey.limitMemory(1),
      stop: async () => {},
    }
  },
}

/** By a clock of its own: in the past, so that the scripts go by it, and not by the server's. */
async function walletsOn(runner: ScriptRunner) {
  let now = START
  const options = { aheadMaxMs: 0, helpAfterMs: 1, idleAfterMs: IDLE_AFTER_MS, pendingMax: 100, now: () => now }
  const sequencer = new AcquaintedSequencer(runner, options)
  const places = ['idle', 'left pending'].map((id) => keys.of(id)) as [Place, Place]
  const deadline = Number.MAX_SAFE_INTEGER
  for (const place of places) {
    const state = emptyState('0'.repeat(40))
    await sequencer.install('test', { place, state, memory: false, deadline, clock: now, finalKeys: [] })
  }
  const [idle, pending] = places
  const credit = (place: Place, key: string) =>
    sequencer.decide({
      wallets: [{ place, epochMin: 0, epoch, acked: 0, known: 0 }],
      commands: [{ wallet: 0, command: command({ kind: 'credit', key, amount: 1 }), deadline, memory: false }],
    })
  await credit(pending, 'in')
  now += 10 * IDLE_AFTER_MS
  const claim = () => sequencer.claim(idle.agendaKey, 10, 60_000)
  const tend = (acked: number) => {
    const known = places.map((place) => ({ place, epoch, acked: place === pending ? acked : 0 }))
    return sequencer.tend(idle.agendaKey, known)
  }
  return { places, credit, claim, tend }
}

describe.each(Object.entries(servers))('a %s that is full', (_, start) => {
  let server: Server
  beforeAll(async () => {
    server = await start()
  })
  afterAll(() => server.stop())

  it('hands out what is pending, and lets wallets leave that nobody needs', async () => {
    const { places, credit, claim, tend } = await walletsOn(server.runner)
    await server.fill()
    await expect(credit(places[0], 'more')).rejects.toThrow('OOM')
    expect((await claim()).sort()).toEqual(places.map(({ agendaName }) => agendaName).sort())
    // Taken: for the others they are not there now.
    expect(await claim()).toEqual([])
    expect(await tend(0)).toMatchObject([null, { epoch, entries: [{ key: 'in' }] }])
    expect(await tend(1)).toEqual([null, null])
    expect(await server.size()).toBe(0)
  })
})

describe('a Redis that writes nothing at all', () => {
  let server: Awaited<ReturnType<typeof startRedis>>
  let redis: Redis
  beforeAll(async () => {
    server = await startRedis({ source: 'installed' })
    redis = new Redis(server.url)
  })
  beforeEach(() => redis.flushall())
  afterAll(async () => {
    redis.disconnect()
    await server.stop()
  })

  it.each([
    {
      what: 'it lacks replicas',
      code: 'NOREPLICAS',
      begin: () => redis.config('SET', 'min-replicas-to-write', '1'),
      end: () => redis.config('SET', 'min-replicas-to-write', '0'),
    },
    {
      what: 'it is a replica',
      code: 'READONLY',
      begin: () => redis.call('REPLICAOF', '127.0.0.1', '1'),
      end: () => redis.call('REPLICAOF', 'NO', 'ONE'),
    },
  ])('says so to who looks after wallets, and calls none of them broken: $what', async ({ code, begin, end }) => {
    const { claim, tend } = await walletsOn(runnerOn(redis))
    await begin()
    try {
      await expect(claim()).rejects.toThrow(code)
      await expect(tend(0)).rejects.toThrow(code)
    } finally {
      await end()
    }
    expect(await claim()).toHaveLength(2)
  })

  it('tends wallets whose agenda something else stands in the place of', async () => {
    const { places, tend } = await walletsOn(runnerOn(redis))
    await redis.set(places[0].agendaKey, 'something else')
    const [, pending] = await tend(0)
    expect(pending).toMatchObject({ entries: [{ key: 'in' }] })
  })
})
