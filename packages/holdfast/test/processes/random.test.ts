import { startRedis, startRedisCluster } from '@holdfast/services'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { type ConnectOptions, Holdfast } from '../../src/index.js'
import { until } from '../api/support/paths.js'
import { judge } from './support/judge.js'
import { randomFrom } from './support/operations.js'
import { type Worker, Workers } from './support/workers.js'

const WALLETS = ['one', 'two', 'three', 'four']
const NAMES = ['a', 'b', 'c']
const SEED = 20_261_115

interface Place {
  readonly redis: ConnectOptions['redis']
  /** Redis loses everything it knew. */
  forget(): Promise<void>
  stop(): Promise<void>
}

const PLACES: Record<string, () => Promise<Place>> = {
  'a single Redis': async () => {
    const server = await startRedis({ source: 'installed' })
    return {
      redis: server.url,
      async forget() {
        await server.kill()
        await server.restart()
      },
      stop: () => server.stop(),
    }
  },
  'a Cluster': async () => {
    // Nobody dies there: a machine that stands still for a moment must not be taken for that.
    const cluster = await startRedisCluster({ nodeTimeoutMs: 10_000 })
    return {
      redis: { cluster: [...cluster.addresses] },
      async forget() {
        for (const { port } of cluster.nodes.slice(0, 3)) {
          const node = new Redis(port)
          await node.flushall()
          node.disconnect()
        }
      },
      stop: () => cluster.stop(),
    }
  },
}

describe.each(Object.keys(PLACES))('three processes on the same wallets of %s', (name) => {
  let place: Place
  let workers: Workers
  let hf: Holdfast
  let options: ConnectOptions & { postgres: string }

  beforeAll(async () => {
    place = await (PLACES[name] as () => Promise<Place>)()
    workers = await Workers.prepare()
    options = { redis: place.redis, postgres: await freshDatabase() }
    hf = await Holdfast.connect({ ...options, engine: { sweepEveryMs: 50, dueGraceMs: 0 } })
    for (const id of WALLETS) {
      await hf.wallet(id).open({ currency: 'usd' })
      await hf.wallet(id).credit(100, { key: 'in' })
    }
  })
  afterAll(async () => {
    await workers.stop()
    await hf.close()
    await place.stop()
  })

  it('keep every promise while some are killed and Redis forgets', async () => {
    const chance = randomFrom(SEED)
    const start = async (name: string): Promise<Worker> => {
      const worker = await workers.start(name, options)
      const seed = Math.floor(chance() * 2 ** 32)
      worker.order({ type: 'random', name, seed, count: 400, callers: 8, wallets: WALLETS, others: NAMES })
      return worker
    }
    const running = await Promise.all(NAMES.map(start))
    const begun = (worker: Worker) => workers.history.filter((seen) => seen.worker === worker.name).length
    // At moments that differ: in the middle of whatever they are doing.
    for (const [index, worker] of running.slice(0, 2).entries()) {
      const after = 100 + Math.floor(chance() * 150)
      await until(() => begun(worker) > after)
      await worker.kill()
      running.push(await start(`${worker.name}${index}`))
    }
    await place.forget()
    const survivors = running.slice(2)
    await Promise.all(survivors.map((worker) => worker.told('done')))
    expect(await Promise.all(survivors.map((worker) => worker.close()))).toEqual(survivors.map(() => 0))

    // Be it with nothing left in it: an open hold is open.
    await until(async () =>
      (await Promise.all(WALLETS.map((id) => hf.wallet(id).holds()))).every((open) => open.length === 0),
    )
    // Whatever a dead process left behind comes to light with the next writer.
    for (const id of WALLETS) await hf.wallet(id).credit(1, { key: 'last' })
    const { counts, journal } = await judge(options.postgres, workers.history)
    for (const id of WALLETS) {
      const wallet = hf.wallet(id)
      expect(await wallet.get({ pending: true })).toEqual(await wallet.get())
    }
    expect([...journal.values()].flat().length).toBeGreaterThan(500)
    expect(counts.yes).toBeGreaterThan(500)
    for (const code of ['insufficient_funds', 'hold_not_found', 'hold_closed']) expect(counts).toHaveProperty(code)
  }, 120_000)
})
