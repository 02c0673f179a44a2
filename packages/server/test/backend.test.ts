import { Postgres, RedisConnection } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../test/servers.js'
import { openBackend } from '../src/lifecycle/index.js'
import { createLogger } from '../src/logging/index.js'
import { createMetrics } from '../src/metrics/index.js'
import { SALE_DEFAULTS } from './support/settings.js'

describe('the backend', () => {
  it('that could not be opened leaves nothing behind: no gauge goes on being read', async () => {
    const read = new Set<string>()
    let gauges = 0
    const telemetry = {
      ...createMetrics(createLogger('silent')).telemetry,
      gauge(metric: string) {
        const id = `${metric} ${gauges++}`
        read.add(id)
        return () => void read.delete(id)
      },
    }
    const redis = new RedisConnection(await freshRedis(), { telemetry })
    const postgres = new Postgres(await freshDatabase())
    const before = [...read]
    const opening = openBackend(
      { redis, postgres, close: async () => {} },
      {
        keyRate: 1_000,
        keyConcurrent: 1_000,
        // More than an interval can be: the engine refuses it, when primitives are connected already.
        auditIntervalMs: Number.MAX_SAFE_INTEGER,
        auditRepair: false,
        keySampleMs: 10_000,
        eventsKeepMs: 604_800_000,
        eventsExpiringMs: 0,
        ...SALE_DEFAULTS,
        telemetry,
      },
    )
    await expect(opening).rejects.toThrow('audit.every: expected')
    expect(gauges).toBeGreaterThan(before.length)
    expect([...read]).toEqual(before)
    await Promise.all([redis.close(), postgres.close()])
  })
})
