import { type RedisHandle, startRedis } from '@holdfast/services'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { Holdfast, type Wallet } from '../../src/index.js'
import { until } from './support/paths.js'

/** A Redis that answers, and writes nothing any more: what only reads goes on working. */
const REFUSALS = {
  'is full': ['maxmemory', '1'],
  'lacks the replicas that it should have': ['min-replicas-to-write', '1'],
} as const

let server: RedisHandle
let redis: Redis
let hf: Holdfast
let hot: Wallet
const seen = { away: 0, back: 0, probes: 0, decisions: 0 }

beforeAll(async () => {
  server = await startRedis({ source: 'installed' })
  redis = new Redis(server.url)
  hf = await Holdfast.connect({
    redis: server.url,
    postgres: await freshDatabase(),
    engine: { sweepEveryMs: 600_000 },
    telemetry: {
      count: (name, labels, by = 1) => {
        if (name === 'holdfast_circuit_changes_total') seen[labels?.to === 'open' ? 'away' : 'back'] += 1
        if (name === 'holdfast_decisions_total') seen.decisions += by
      },
      observe: (name, _, labels) => {
        if (name === 'redis_command_duration_seconds' && labels?.command === 'redis_probe') seen.probes += 1
      },
    },
  })
})
afterAll(async () => {
  await hf.close()
  redis.disconnect()
  await server.stop()
})

describe.each(Object.entries(REFUSALS))('while Redis %s', (how, [setting, value]) => {
  beforeEach(async () => {
    hot = hf.wallet(`hot: ${how}`)
    await hot.open({ currency: 'usd' })
    await hot.credit(100, { key: 'in' })
    Object.assign(seen, { away: 0, back: 0, probes: 0, decisions: 0 })
  })

  it('wallets go on through Postgres, those in Redis and others, until it writes again', async () => {
    const cold = hf.wallet(`cold: ${how}`)
    await cold.open({ currency: 'usd' })
    await redis.config('SET', setting, value)
    try {
      expect(await hot.debit(1, { key: 'hot' })).toMatchObject({ available: 99 })
      expect(await cold.credit(5, { key: 'cold' })).toMatchObject({ available: 5 })
      // Tried again and again, it is not taken for being there because it answers.
      await until(() => seen.probes >= 3)
      expect(await hot.debit(1, { key: 'hot again' })).toMatchObject({ available: 98 })
      expect(await cold.credit(5, { key: 'cold again' })).toMatchObject({ available: 10 })
      expect(seen).toMatchObject({ away: 1, back: 0 })
      // One that was refused, and nobody who spins.
      expect(seen.decisions).toBeLessThanOrEqual(1)
      expect(hf.health().redis).toBe('away')
    } finally {
      await redis.config('SET', setting, '0')
    }
    await until(() => seen.back === 1)
    const decided = seen.decisions
    expect(await hot.debit(1, { key: 'back' })).toMatchObject({ available: 97 })
    expect(seen.decisions).toBeGreaterThan(decided)
  })
})
