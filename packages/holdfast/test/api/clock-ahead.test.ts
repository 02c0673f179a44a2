import { Redis } from 'ioredis'
import pg from 'pg'
import { expect, it } from 'vitest'
import { onBothPaths } from './support/paths.js'

const HOUR = 3_600_000
const TTL = 900_000

onBothPaths((path) => {
  it('lets no hold run out because the clock of Postgres is an hour ahead', async () => {
    const wallet = await path.wallet(100)
    await wallet.hold(40, { key: 'call', ttl: TTL })
    const postgres = new pg.Client(path.databaseUrl)
    await postgres.connect()
    await postgres.query(`CREATE OR REPLACE FUNCTION holdfast.clock_ms() RETURNS bigint LANGUAGE sql VOLATILE AS $$
      SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + ${HOUR} $$`)
    await postgres.end()
    if (path.name === 'Redis') {
      // Loaded anew, with what Postgres says of the time.
      const redis = new Redis(path.redisUrl)
      await redis.flushdb()
      redis.disconnect()
    }
    const another = await path.another()
    const hold = another.wallet(wallet.id).holdRef('call')
    expect(await hold.capture(10, { key: path.key() })).toMatchObject({ available: 60, reserved: 30 })
    const made = await another.wallet(wallet.id).hold(1, { key: path.key(), ttl: TTL })
    expect(made.expiresAt).toBeLessThan(Date.now() + TTL + HOUR / 2)
    await another.close()
  })
})
