import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Holdfast, type Telemetry, type Wallet } from '../../src/index.js'
import { type FaultyProxy, startProxy } from '../redis/support/proxy.js'
import { refusal, until } from './support/paths.js'

const MAX = 20
/** For so long a Redis that says nothing is waited for. */
const SILENT_MS = 4_000

let hf: Holdfast
let redisUrl: URL
let wallet: Wallet
let redis: FaultyProxy
let postgres: FaultyProxy
let gauges: Map<string, () => number>
let changes: string[]

beforeEach(async () => {
  redisUrl = new URL(await freshRedis())
  const databaseUrl = new URL(await freshDatabase())
  redis = await startProxy(Number(redisUrl.port))
  postgres = await startProxy(Number(databaseUrl.port))
  gauges = new Map()
  changes = []
  const telemetry: Telemetry = {
    gauge: (name, read, labels) => {
      gauges.set(`${name} ${Object.values(labels ?? {}).join(' ')}`, read)
      return () => gauges.delete(`${name} ${Object.values(labels ?? {}).join(' ')}`)
    },
    count: (name, labels) => {
      if (name === 'holdfast_circuit_changes_total') changes.push(`${labels?.dependency} ${labels?.to}`)
    },
  }
  hf = await Holdfast.connect({
    redis: Object.assign(redisUrl, { port: String(redis.port) }).href,
    postgres: Object.assign(databaseUrl, { port: String(postgres.port) }).href,
    engine: { sweepEveryMs: 600_000, postgresPathMax: MAX, postgresPathBatchesMax: 1 },
    redisOptions: { commandTimeoutMs: SILENT_MS },
    telemetry,
  })
  wallet = hf.wallet('w')
  await wallet.open({ currency: 'usd' })
  await wallet.credit(1_000, { key: 'in' })
  for (let n = 0; n < MAX; n += 1) await wallet.hold(10, { key: `open-${n}`, ttl: 3_600_000 })
})
afterEach(async () => {
  redis.behave()
  postgres.behave()
  await hf.close()
  await Promise.all([redis.close(), postgres.close()])
  expect(gauges.size).toBe(0)
})

/** Redis is away, and Postgres does not answer: what is asked now waits. */
async function overload(): Promise<{ first: Promise<unknown> }> {
  redis.refuse()
  await wallet.debit(1, { key: 'finds out' })
  postgres.hold()
  const first = wallet.credit(1, { key: 'is decided first' })
  await until(() => hf.health().operations === 1 && hf.health().postgresPath === 0)
  return { first }
}

describe('while Redis is away and more is asked than Postgres can do', () => {
  it('refuses what begins something, and still takes what ends it; then that as well', async () => {
    const { first } = await overload()
    const waiting: Promise<unknown>[] = [first]
    for (let n = 0; n < MAX / 2; n += 1) waiting.push(wallet.hold(1, { key: `new-${n}`, ttl: 60_000 }))
    for (const begins of [
      wallet.hold(1, { key: 'more', ttl: 60_000 }),
      wallet.debit(1, { key: 'more' }),
      wallet.meter({ by: 'units', rate: 1, reserve: 1, key: 'more' }),
    ]) {
      expect(await refusal(begins)).toMatchObject({ code: 'unavailable', retryable: true, limit: MAX / 2 })
    }
    waiting.push(wallet.credit(1, { key: 'paid' }))
    for (let n = 0; n < MAX / 2 - 1; n += 1) {
      const hold = wallet.holdRef(`open-${n}`)
      waiting.push(n % 2 === 0 ? hold.settle(5, { key: `end-${n}` }) : hold.release({ key: `end-${n}` }))
    }
    expect(hf.health()).toMatchObject({ postgresPath: MAX, postgresPathMax: MAX, operations: MAX + 1 })
    const late = wallet.holdRef('open-19').release({ key: 'late' })
    expect(await refusal(late)).toMatchObject({ code: 'unavailable', retryable: true, limit: MAX })

    postgres.behave()
    await Promise.all(waiting)
    // What was refused can be asked again, and is done once.
    expect(await wallet.holdRef('open-19').release({ key: 'late' })).toMatchObject({ replayed: false })
    await wallet.hold(1, { key: 'more', ttl: 60_000 })
    expect(await wallet.entries({ limit: 1_000 })).toHaveLength(1 + MAX + 1 + waiting.length + 2)
  })

  it('tells so in health and metrics, and when it is over', async () => {
    expect(hf.health()).toMatchObject({ redis: 'up', postgres: 'up', operations: 0, postgresPath: 0 })
    const { first } = await overload()
    const waiting = wallet.credit(1, { key: 'waits' })
    expect(hf.health()).toMatchObject({ redis: 'away', postgres: 'up', operations: 2, postgresPath: 1 })
    const read = (name: string) => gauges.get(name)?.()
    expect([read('holdfast_circuit_open redis'), read('holdfast_circuit_open postgres')]).toEqual([1, 0])
    expect(read('holdfast_operations_under_way all')).toBe(2)
    expect(read('holdfast_operations_under_way waiting')).toBe(1)
    postgres.behave()
    await Promise.all([first, waiting])
    redis.behave()
    await until(() => hf.health().redis === 'up')
    expect(read('holdfast_circuit_open redis')).toBe(0)
    expect(changes).toEqual(['redis open', 'redis closed'])
  })
})

describe('patience with Redis', () => {
  it.each([0, 3_000])('of %i ms is waited for before Postgres is asked instead', async (redisPatience) => {
    const other = await Holdfast.connect({
      redis: redisUrl.href,
      postgres: await freshDatabase(),
      engine: { sweepEveryMs: 600_000 },
      redisOptions: { commandTimeoutMs: 20_000 },
      redisPatience,
    })
    await other.wallet('w').open({ currency: 'usd' })
    await other.wallet('w').credit(1, { key: 'in' })
    redis.refuse()
    const started = performance.now()
    await other.wallet('w').credit(1, { key: 'again' })
    const tookMs = performance.now() - started
    expect(tookMs).toBeGreaterThanOrEqual(redisPatience)
    expect(tookMs).toBeLessThan(redisPatience + 6_000)
    redis.behave()
    await other.close()
  })

  it.each([-1, 1.5, 600_001, '5'])('is not %j', async (redisPatience) => {
    const options = { redis: 'redis://127.0.0.1:1', postgres: 'postgres://127.0.0.1:1/x', redisPatience } as never
    expect(await refusal(Holdfast.connect(options))).toMatchObject({ code: 'invalid_argument' })
  })
})

it('reads what is committed, at once, while a silent Redis is known to be away', async () => {
  redis.hold()
  await wallet.debit(1, { key: 'finds out' })
  const started = Date.now()
  expect(await wallet.get({ pending: true })).toMatchObject({ available: 799 })
  expect(await wallet.holds({ pending: true, limit: 100 })).toHaveLength(MAX)
  expect(Date.now() - started).toBeLessThan(SILENT_MS)
})
