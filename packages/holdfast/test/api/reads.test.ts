import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Holdfast, type Wallet } from '../../src/index.js'
import { type FaultyProxy, startProxy } from '../redis/support/proxy.js'
import { refusal, until } from './support/paths.js'

const CONNECTIONS = 4
const AT_ONCE = CONNECTIONS / 2
const WAITING = 6

let hf: Holdfast
let wallet: Wallet
let postgres: FaultyProxy
let gauges: Map<string, () => number>

beforeEach(async () => {
  const databaseUrl = new URL(await freshDatabase())
  postgres = await startProxy(Number(databaseUrl.port))
  gauges = new Map()
  hf = await Holdfast.connect({
    redis: await freshRedis(),
    postgres: Object.assign(databaseUrl, { port: String(postgres.port) }).href,
    postgresOptions: { maxConnections: CONNECTIONS },
    limits: { reads: WAITING },
    engine: { sweepEveryMs: 600_000 },
    audit: false,
    timeout: 60_000,
    telemetry: {
      gauge: (name, read, labels) => {
        gauges.set([name, ...Object.values(labels ?? {})].join(' '), read)
        return () => {}
      },
    },
  })
  wallet = hf.wallet('w')
  await wallet.open({ currency: 'usd' })
  await wallet.credit(5, { key: 'in' })
})
afterEach(async () => {
  postgres.behave()
  await hf.close()
  await postgres.close()
})

/** Postgres says nothing, and as much is read as may be. */
function readAll(): Promise<unknown>[] {
  postgres.hold()
  return Array.from({ length: AT_ONCE + WAITING }, (_, n) => (n % 2 ? wallet.get() : wallet.entries({ limit: 1_000 })))
}

describe('while Postgres takes long to answer what is read', () => {
  it('half of the connections are left to what is written', async () => {
    const reads = readAll()
    const busy = () =>
      (gauges.get('postgres_pool_connections total')?.() as number) -
      (gauges.get('postgres_pool_connections idle')?.() as number)
    await until(() => busy() >= AT_ONCE)
    expect(busy() + (gauges.get('postgres_pool_waiting')?.() as number)).toBe(AT_ONCE)
    postgres.behave()
    await Promise.all(reads)
  })

  it('so many wait for their turn, and more are refused with the limit', async () => {
    const reads = readAll()
    const more = [
      () => wallet.get(),
      () => wallet.holds(),
      () => wallet.holdRef('h').get(),
      () => wallet.entry('in'),
      () => hf.wallets(),
      () => hf.wallet('another').open({ currency: 'usd' }),
    ]
    for (const read of more) {
      expect(await refusal(read())).toMatchObject({ code: 'unavailable', retryable: true, limit: WAITING })
    }
    postgres.behave()
    await Promise.all(reads)
    expect(await wallet.get()).toMatchObject({ available: 5 })
    expect(await hf.wallet('another').get()).toBeNull()
  })

  it('who waits does so no longer than he wants to, and makes room for another', async () => {
    postgres.hold()
    const stop = new AbortController()
    const under = Array.from({ length: AT_ONCE }, () => wallet.get())
    const hurried = wallet.get({ timeout: 1 })
    const aborted = Array.from({ length: WAITING - 1 }, () => wallet.get({ signal: stop.signal }))
    expect(await refusal(hurried)).toMatchObject({ code: 'timeout' })
    stop.abort()
    for (const one of aborted) expect(await refusal(one)).toMatchObject({ code: 'aborted' })
    const others = Array.from({ length: WAITING }, () => wallet.get())
    expect(await refusal(wallet.get())).toMatchObject({ code: 'unavailable', limit: WAITING })
    postgres.behave()
    expect(await Promise.all([...under, ...others])).toHaveLength(AT_ONCE + WAITING)
  })
})

it('reads and writes take turns on a pool of one connection', async () => {
  const pool = new pg.Pool({ connectionString: await freshDatabase(), max: 1 })
  const one = await Holdfast.connect({ redis: await freshRedis(), postgres: pool, audit: false, timeout: 60_000 })
  const shared = one.wallet('w')
  await shared.open({ currency: 'usd' })
  await shared.credit(100, { key: 'in' })
  const calls = Array.from({ length: 100 }, (_, n) => [
    shared.get(),
    shared.entries(),
    shared.debit(1, { key: `d-${n}` }),
  ])
  await Promise.all(calls.flat())
  expect(await shared.get()).toMatchObject({ available: 0 })
  await one.close()
  await pool.end()
})
