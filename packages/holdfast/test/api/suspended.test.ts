import { Redis } from 'ioredis'
import pg from 'pg'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { onBothPaths, until } from './support/paths.js'

/** A machine that was suspended for an hour: its monotonic clock stood still meanwhile, and from then on it is an hour behind. */
const HOUR = 3_600_000
const MINUTE = 60_000
const TTL = 15 * MINUTE

const { timeOrigin } = performance
const setOrigin = (value: number) => Object.defineProperty(performance, 'timeOrigin', { value, configurable: true })
beforeAll(() => void setOrigin(timeOrigin - HOUR))
afterAll(() => void setOrigin(timeOrigin))

onBothPaths((path) => {
  it('holds for as long as it was asked to, counted from now', async () => {
    const wallet = await path.wallet()
    // Last used before the machine slept: no entry since then tells the time.
    const postgres = new pg.Client(path.databaseUrl)
    await postgres.connect()
    await postgres.query(`UPDATE holdfast.wallets SET opened_at = opened_at - ${2 * HOUR}, at = at - ${2 * HOUR}`)
    await postgres.end()

    const before = Date.now()
    const { entry: credit } = await wallet.credit(10, { key: 'in' })
    await until(() => Date.now() > credit.at)
    const hold = await wallet.hold(5, { key: 'call', ttl: TTL })
    expect(hold.expiresAt).toBeGreaterThan(before + TTL - MINUTE)
    if (path.name === 'Postgres') return

    // Nor does time stand still since it was loaded.
    expect(hold.expiresAt).toBeGreaterThan(credit.at + TTL)
    // Loaded just now: nobody need look at it yet, and it does not leave Redis again at once.
    const redis = new Redis(path.redisUrl)
    const [agenda] = await redis.keys('hf:*:agenda:v1:*')
    const [, lookAt] = await redis.zrange(agenda as string, '0', '-1', 'WITHSCORES')
    redis.disconnect()
    expect(Number(lookAt)).toBeGreaterThan(before)
  })

  it('finds nothing wrong with what was entered since', async () => {
    await path.wallet(10)
    expect(await path.hf.audit({ full: true })).toMatchObject({ findings: [], unsettled: 0 })
  })

  it('is not led by a clock of its own that is ahead', async () => {
    const now = Date.now
    const ahead = vi.spyOn(Date, 'now').mockImplementation(() => now() + 24 * HOUR)
    const hold = await path.wallet(10).then((wallet) => wallet.hold(5, { key: 'call', ttl: TTL }))
    ahead.mockRestore()
    expect(hold.expiresAt).toBeLessThan(Date.now() + TTL + MINUTE)
  })
})
