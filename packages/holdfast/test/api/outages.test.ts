import { startRedis } from '@holdfast/services'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Holdfast, type Wallet } from '../../src/index.js'
import { type FaultyProxy, startProxy } from '../redis/support/proxy.js'
import { refusal, until } from './support/paths.js'

/** Both servers behind proxies; counts say which way an operation went. */
let hf: Holdfast
let wallet: Wallet
let redis: FaultyProxy
let postgres: FaultyProxy
const counts = { decided: 0, fallback: 0 }

beforeEach(async () => {
  const [redisUrl, databaseUrl] = [new URL(await freshRedis()), new URL(await freshDatabase())]
  redis = await startProxy(Number(redisUrl.port))
  postgres = await startProxy(Number(databaseUrl.port))
  redisUrl.port = String(redis.port)
  databaseUrl.port = String(postgres.port)
  hf = await Holdfast.connect({
    redis: redisUrl.href,
    postgres: databaseUrl.href,
    engine: { sweepEveryMs: 600_000 },
    redisOptions: { commandTimeoutMs: 300 },
    telemetry: {
      count: (name, labels, by = 1) => {
        if (name === 'holdfast_decisions_total' && labels?.answer === 'accepted') counts.decided += by
        if (name === 'holdfast_recoveries_total' && labels?.what === 'fallback') counts.fallback += by
      },
    },
  })
  wallet = hf.wallet('w')
  await wallet.open({ currency: 'usd' })
  await wallet.credit(100, { key: 'in' })
  await wallet.hold(10, { key: 'hold', ttl: 3_600_000 })
  counts.decided = 0
  counts.fallback = 0
})
afterEach(async () => {
  redis.behave()
  postgres.behave()
  await hf.close()
  await Promise.all([redis.close(), postgres.close()])
})

describe('while Redis is away', () => {
  it.each(['refuses connections', 'is silent'])(
    'everything goes on, when it %s, and back when it is back',
    async (how) => {
      if (how === 'is silent') redis.hold()
      else redis.refuse()
      const started = Date.now()
      expect(await wallet.debit(1, { key: 'd0' })).toMatchObject({ available: 89, reserved: 10, durability: 'ledger' })
      expect(Date.now() - started).toBeLessThan(8_000)
      expect(await wallet.holdRef('hold').capture(1, { key: 'c' })).toMatchObject({ hold: { left: 9 } })
      expect(await refusal(wallet.debit(1_000, { key: 'much' }))).toMatchObject({
        code: 'insufficient_funds',
        available: 89,
      })
      expect(await wallet.get({ pending: true })).toMatchObject({ available: 89, seq: 4 })
      expect(counts.fallback).toBeGreaterThanOrEqual(3)
      expect(counts.decided).toBe(0)

      redis.behave()
      let round = 0
      await until(async () => {
        round += 1
        await wallet.credit(1, { key: `back ${round}` })
        return counts.decided > 0
      })
      expect(await wallet.get()).toMatchObject({ available: 89 + round, reserved: 9, seq: 4 + round })
      expect(await wallet.debit(1, { key: 'd0' })).toMatchObject({ replayed: true, available: 89 })
    },
  )

  it('loses and doubles nothing of what was under way', async () => {
    const calls = Array.from({ length: 60 }, (_, i) => wallet.debit(1, { key: `d${i}` }))
    setImmediate(() => redis.cut())
    for (const receipt of await Promise.all(calls)) expect(receipt.durability).toBe('ledger')
    expect(await wallet.get()).toMatchObject({ available: 30, seq: 62 })
  })
})

describe('when Redis lost everything', () => {
  it('goes on from what Postgres remembers', async () => {
    const server = await startRedis({ source: 'installed' })
    const { href } = new URL(await freshDatabase())
    const other = await Holdfast.connect({ redis: server.url, postgres: href, engine: { sweepEveryMs: 600_000 } })
    const crashed = other.wallet('w')
    await crashed.open({ currency: 'usd' })
    await crashed.credit(100, { key: 'in' })
    const hold = await crashed.hold(30, { key: 'hold', ttl: 3_600_000 })
    await hold.capture(10, { key: 'c' })
    await server.kill()
    await server.restart()
    expect(await hold.settle(25, { key: 's' })).toMatchObject({ available: 75, reserved: 0, hold: { captured: 25 } })
    expect(await crashed.credit(100, { key: 'in' })).toMatchObject({ replayed: true, available: 100 })
    await other.close()
    await server.stop()
  })
})

describe('while Postgres is away', () => {
  it('refuses, soon and retryably, and goes on when it is back', async () => {
    postgres.refuse()
    const started = Date.now()
    const error = await refusal(wallet.debit(1, { key: 'a', timeout: 500 }))
    expect(['timeout', 'unavailable']).toContain(error.code)
    expect(error.retryable).toBe(true)
    await until(async () => (await refusal(wallet.debit(1, { key: 'b', timeout: 500 }))).code === 'unavailable')
    expect(Date.now() - started).toBeLessThan(8_000)
    expect(await refusal(wallet.get())).toMatchObject({ code: 'unavailable' })
    expect(await refusal(wallet.open({ currency: 'usd' }))).toMatchObject({ code: 'unavailable' })
    expect(await refusal(wallet.entries())).toMatchObject({ code: 'unavailable' })
    expect(await refusal(wallet.holds())).toMatchObject({ code: 'unavailable' })
    expect(await refusal(wallet.at({ seq: 1 }))).toMatchObject({ code: 'unavailable' })
    expect(await refusal(wallet.holdRef('hold').get({ pending: true }))).toMatchObject({ code: 'unavailable' })
    expect(await refusal(wallet.holdRef('hold').explain())).toMatchObject({ code: 'unavailable' })
    expect(await refusal(wallet.refund(1, 1, { key: 'r' }))).toMatchObject({ code: 'unavailable' })

    postgres.behave()
    await until(() =>
      wallet.debit(1, { key: 'a' }).then(
        () => true,
        () => false,
      ),
    )
    await wallet.debit(1, { key: 'b' })
    expect(await wallet.get()).toMatchObject({ available: 88, seq: 4 })
  })
})
