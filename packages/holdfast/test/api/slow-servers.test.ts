import { afterEach, beforeEach, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Holdfast, type Wallet } from '../../src/index.js'
import { type FaultyProxy, startProxy } from '../redis/support/proxy.js'

const PER_SECOND = 1_000
const SECONDS = 5
const ASKED = PER_SECOND * SECONDS
const TIMEOUT_MS = 1_500
/** Entries a statement: so few that a small machine can ask for more than Postgres takes. */
const APPEND_MAX = 100

let hf: Holdfast
let redis: FaultyProxy
let postgres: FaultyProxy
let wallets: Wallet[]

beforeEach(async () => {
  const redisUrl = new URL(await freshRedis())
  const postgresUrl = new URL(await freshDatabase())
  redis = await startProxy(Number(redisUrl.port))
  postgres = await startProxy(Number(postgresUrl.port))
  hf = await Holdfast.connect({
    redis: Object.assign(redisUrl, { port: String(redis.port) }).href,
    postgres: Object.assign(postgresUrl, { port: String(postgres.port) }).href,
    engine: { sweepEveryMs: 600_000, appendBatchMax: APPEND_MAX },
  })
  wallets = Array.from({ length: 20 }, (_, n) => hf.wallet(`w${n}`))
  for (const wallet of wallets) {
    await wallet.open({ currency: 'usd' })
    await wallet.credit(1_000_000, { key: 'in' })
  }
})
afterEach(async () => {
  redis.behave()
  postgres.behave()
  await hf.close()
  await Promise.all([redis.close(), postgres.close()])
})

/** Callers who come at a pace, whatever the others are told, and leave soon. Returns how many were told yes in time. */
async function answered(): Promise<number> {
  const calls: Promise<boolean>[] = []
  const begunAt = performance.now()
  while (calls.length < ASKED) {
    const due = Math.min(SECONDS * 1_000, performance.now() - begunAt) * (PER_SECOND / 1_000)
    while (calls.length < due) {
      const n = calls.length
      const debit = (wallets[n % wallets.length] as Wallet).debit(1, { key: `${n}`, timeout: TIMEOUT_MS })
      calls.push(
        debit.then(
          () => true,
          () => false,
        ),
      )
    }
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  return (await Promise.all(calls)).filter(Boolean).length
}

it('answers callers who come at a pace and leave soon, though Redis answers late', async () => {
  redis.delay(200)
  // Two calls of 32 at once would be a third of what is asked, and in the order in which they came nearly all would be too late.
  expect(await answered()).toBeGreaterThan(ASKED / 2)
})

it('answers as many of them as Postgres can append in time, though it answers late', async () => {
  const lateMs = 300
  postgres.delay(lateMs)
  // A third of what is asked. Decided for whoever asks, all but the first few hundred would wait behind so many that they had left.
  const canDo = (APPEND_MAX * SECONDS * 1_000) / lateMs
  expect(await answered()).toBeGreaterThan(canDo / 2)
})
