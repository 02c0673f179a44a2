import { Redis } from 'ioredis'
import { expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Holdfast } from '../../src/index.js'
import { until } from './support/paths.js'

/** More than fit into one call of Redis: each is two of the 8,000 values that Lua can hand over. */
const HOLDS = 4_100

it('serves a wallet with thousands of open holds, loads it anew, and lets them all expire', async () => {
  const redisUrl = await freshRedis()
  const complaints: string[] = []
  const hf = await Holdfast.connect({
    redis: redisUrl,
    postgres: await freshDatabase(),
    timeout: 30_000,
    redisOptions: { commandTimeoutMs: 20_000 },
    engine: { sweepEveryMs: 600_000 },
    telemetry: { log: (level, event) => void (level === 'debug' || complaints.push(event)) },
  })
  complaints.length = 0
  const wallet = hf.wallet('crowded')
  await wallet.open({ currency: 'usd' })
  await wallet.credit(HOLDS, { key: 'in' })
  const ttl = 3_000
  let expiresAt = 0
  for (let from = 0; from < HOLDS - 1; from += 820) {
    const count = Math.min(820, HOLDS - 1 - from)
    const some = Array.from({ length: count }, (_, i) => wallet.hold(1, { key: `h${from + i}`, ttl }))
    for (const hold of await Promise.all(some)) expiresAt = Math.max(expiresAt, hold.expiresAt)
  }
  // This one is used however long it takes to load the others.
  const last = await wallet.hold(1, { key: 'last', ttl: 3_600_000 })
  const redis = new Redis(redisUrl)
  await redis.flushdb()
  redis.disconnect()
  expect(await last.capture(1, { key: 'after' })).toMatchObject({ replayed: false, hold: { left: 0 } })

  await until(() => Date.now() > expiresAt + 100)
  // Each brings some of them with it; none may bring too many.
  await Promise.all(Array.from({ length: 64 }, (_, i) => wallet.credit(1, { key: `c${i}` })))
  expect(await wallet.get()).toMatchObject({ available: HOLDS - 1 + 64, reserved: 0 })
  expect(complaints).toEqual([])
  await hf.close()
}, 90_000)
