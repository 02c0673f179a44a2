import { startRedis } from '@holdfast/services'
import { Redis } from 'ioredis'
import { afterAll, afterEach, expect, it } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { PostgresJournal } from '../../src/journal/index.js'
import { command } from '../../src/machine/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { Keys } from '../../src/redis/index.js'
import { until } from '../api/support/paths.js'
import { Engines, openWallet } from './support/engines.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 6), shards: 2 })
const engines = new Engines(keys)
const server = await startRedis({ source: 'installed' })
const redis = new Redis(server.url)
const postgres = new Postgres(await freshDatabase())
const journal = new PostgresJournal(postgres)

afterEach(() => engines.close())
afterAll(async () => {
  redis.disconnect()
  await postgres.close()
  await server.stop()
})

/** Many and large, so that they are most of what can be freed. */
const WALLETS = 200
const metadata = JSON.stringify({ note: 'x'.repeat(3_000) })
const credit = (key: string) => command({ kind: 'credit', key, amount: 1, metadata })
const usedBytes = async (): Promise<number> => Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1])

it('a Redis that is full has room again when wallets have left, and all of them go on', async () => {
  const circuit: string[] = []
  const { engine } = engines.start({
    redisUrl: server.url,
    postgres,
    pace: { helpAfterMs: 1, idleAfterMs: 100 },
    options: { sweepEveryMs: 20, claimMs: 100 },
    telemetry: {
      count: (name, labels) => {
        if (name === 'holdfast_circuit_changes_total') circuit.push(`${labels?.to}`)
      },
    },
  })
  const [inMemory, ...others] = Array.from({ length: WALLETS }, (_, n) => ({ id: `w${n}`, place: keys.of(`w${n}`) }))
  const { id, place } = inMemory as { id: string; place: ReturnType<typeof keys.of> }
  await openWallet(journal, place, id)
  await engine.submit(place, credit('in'), { memory: true })
  await Promise.all(
    others.map(async (other) => {
      await openWallet(journal, other.place, other.id)
      await engine.submit(other.place, credit('in'), { memory: false })
    }),
  )
  await redis.config('SET', 'maxmemory', `${(await usedBytes()) - (WALLETS / 4) * metadata.length}`)

  const [first] = others as [(typeof others)[number]]
  expect(await engine.submit(first.place, credit('full'), { memory: false })).toMatchObject({ entry: { seq: 2 } })
  expect(circuit).toEqual(['open'])
  // From memory alone nothing is told while Redis can't be written.
  await expect(engine.submit(place, credit('full'), { memory: true })).rejects.toMatchObject({ code: 'unavailable' })

  engine.start()
  await until(() => circuit.length === 2)
  expect(circuit).toEqual(['open', 'closed'])
  expect(await engine.submit(place, credit('room'), { memory: true })).toMatchObject({ entry: { seq: 2 } })
  expect(await engine.submit(first.place, credit('room'), { memory: false })).toMatchObject({ entry: { seq: 3 } })
})
