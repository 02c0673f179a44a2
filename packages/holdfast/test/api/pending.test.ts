import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Holdfast, type Wallet } from '../../src/index.js'
import { type FaultyProxy, startProxy } from '../redis/support/proxy.js'
import { NO_REDIS, refusal, until } from './support/paths.js'

/**
 *     writer ─▶ proxy ─▶ Postgres      falls silent when told to: what is decided then stays pending
 *     reader ──────────▶ Postgres
 */
const HOUR = 3_600_000
/** Nobody comes by himself, and nobody is impatient: what is pending waits for the proxy, however long the machine stands still. */
const QUIET = {
  timeout: 25_000,
  engine: { sweepEveryMs: 600_000, decideWithinMs: 20_000, postgresPatienceMs: 60_000 },
  redisOptions: { commandTimeoutMs: 20_000 },
}
let redisUrl: string
let databaseUrl: string
let proxy: FaultyProxy
let writer: Holdfast
let reader: Holdfast
let written: Wallet
let read: Wallet
let count = 0

beforeAll(async () => {
  redisUrl = await freshRedis()
  databaseUrl = await freshDatabase()
  proxy = await startProxy(Number(new URL(databaseUrl).port))
  const behind = Object.assign(new URL(databaseUrl), { port: String(proxy.port) }).href
  writer = await Holdfast.connect({ redis: redisUrl, postgres: behind, ...QUIET })
  reader = await Holdfast.connect({ redis: redisUrl, postgres: databaseUrl, ...QUIET })
})
afterAll(async () => {
  proxy.behave()
  await writer.close()
  await reader.close()
  await proxy.close()
})

/** Three holds are committed: `open`, `used` and `done`. */
beforeEach(async () => {
  count += 1
  written = writer.wallet(`wallet-${count}`)
  read = reader.wallet(`wallet-${count}`)
  await written.open({ currency: 'usd' })
  await written.credit(1_000, { key: 'in' })
  for (const key of ['open', 'used', 'done']) await written.hold(100, { key, ttl: HOUR })
})

/** Decided by Redis one after the other, and kept from Postgres; `release` lets them through. */
async function pending(...operations: (() => Promise<unknown>)[]): Promise<{ release(): Promise<void> }> {
  proxy.hold()
  const calls: Promise<unknown>[] = []
  const before = (await read.get())?.seq as number
  for (const [index, operation] of operations.entries()) {
    calls.push(operation())
    await until(async () => (await read.get({ pending: true }))?.seq === before + index + 1)
  }
  expect(await read.get()).toMatchObject({ seq: before })
  return {
    async release() {
      proxy.behave()
      await Promise.all(calls)
    },
  }
}

const everything = async (options: { pending: boolean }) => ({
  holds: await read.holds(options),
  states: await Promise.all(['open', 'used', 'done', 'new', 'brief'].map((id) => read.holdRef(id).get(options))),
  entries: await read.entries(options),
})

it('is read only when asked for, and is what is committed later', async () => {
  const { release } = await pending(
    () => written.holdRef('used').capture(30, { key: 'c' }),
    () => written.holdRef('done').settle(50, { key: 's' }),
    () => written.hold(70, { key: 'new', ttl: HOUR, metadata: { a: 1 } }),
    () => written.hold(5, { key: 'brief', ttl: HOUR }),
    () => written.holdRef('brief').release({ key: 'x' }),
  )
  const before = await everything({ pending: false })
  expect(before.holds.map(({ id, left }) => [id, left])).toEqual([
    ['open', 100],
    ['used', 100],
    ['done', 100],
  ])
  expect(before.states[3]).toBeNull()
  expect(before.entries).toHaveLength(4)

  const seen = await everything({ pending: true })
  expect(seen.holds.map(({ id, left }) => [id, left])).toEqual([
    ['open', 100],
    ['used', 70],
    ['new', 70],
  ])
  expect(seen.states.map((state) => state?.status)).toEqual(['open', 'open', 'settled', 'open', 'released'])
  const explained = await read.holdRef('done').explain({ pending: true })
  expect(explained.steps.map((step) => step.pending)).toEqual([false, true])
  expect(explained.text).toMatch(/, not committed yet: Settled at 50 minor units of usd in all/)
  const brief = await read.holdRef('brief').explain({ pending: true })
  expect(brief.money).toMatchObject({ reserved: 5, returned: 5, left: 0 })
  expect(await refusal(read.holdRef('brief').explain())).toMatchObject({ code: 'hold_not_found' })

  await release()
  expect(await everything({ pending: false })).toEqual(seen)
  expect(await everything({ pending: true })).toEqual(seen)
})

it('comes in pages like what is committed', async () => {
  const { release } = await pending(
    () => written.holdRef('open').release({ key: 'x' }),
    () => written.hold(1, { key: 'fourth', ttl: HOUR }),
    () => written.hold(1, { key: 'fifth', ttl: HOUR }),
  )
  const ids = async (options: object) => (await read.holds({ pending: true, ...options })).map(({ id }) => id)
  expect(await ids({ limit: 1 })).toEqual(['used'])
  expect(await ids({ limit: 2 })).toEqual(['used', 'done'])
  expect(await ids({ limit: 3 })).toEqual(['used', 'done', 'fourth'])
  expect(await ids({ limit: 2, after: 4 })).toEqual(['fourth', 'fifth'])
  expect(await ids({ limit: 2, after: 6 })).toEqual(['fifth'])
  expect(await ids({ after: 7 })).toEqual([])
  const seqs = async (options: object) => (await read.entries({ pending: true, ...options })).map(({ seq }) => seq)
  expect(await seqs({ limit: 3 })).toEqual([1, 2, 3])
  expect(await seqs({ limit: 3, after: 3 })).toEqual([4, 5, 6])
  expect(await seqs({ after: 5 })).toEqual([6, 7])
  expect(await seqs({ after: 6 })).toEqual([7])
  expect(await seqs({ after: 7 })).toEqual([])
  await release()
})

it('is not what Redis says of a life that is over', async () => {
  const { release } = await pending(() => written.holdRef('done').settle(50, { key: 's' }))
  const without = await Holdfast.connect({ redis: NO_REDIS, postgres: databaseUrl, ...QUIET })
  await without.wallet(read.id).debit(1, { key: 'elsewhere' })
  await without.close()
  expect(await everything({ pending: true })).toEqual(await everything({ pending: false }))
  expect(await read.holdRef('done').get({ pending: true })).toMatchObject({ status: 'open' })
  await release()
  expect(await read.holdRef('done').get()).toMatchObject({ status: 'settled', captured: 50 })
})

it('is what is committed when Redis knows nothing', async () => {
  const redis = new Redis(redisUrl)
  await redis.flushdb()
  redis.disconnect()
  expect(await everything({ pending: true })).toEqual(await everything({ pending: false }))
})

it('ends to be waited for when the time is up', async () => {
  proxy.hold()
  const reads = [
    written.open({ currency: 'usd', timeout: 50 }),
    written.get({ timeout: 50 }),
    written.entries({ timeout: 50 }),
    written.holds({ timeout: 50 }),
    written.at({ seq: 1, timeout: 50 }),
    written.holdRef('open').get({ timeout: 50 }),
    written.holdRef('open').explain({ timeout: 50 }),
  ]
  for (const call of reads) expect(await refusal(call)).toMatchObject({ code: 'timeout', timeoutMs: 50 })
  const controller = new AbortController()
  const call = refusal(written.holds({ signal: controller.signal }))
  setImmediate(() => controller.abort())
  expect(await call).toMatchObject({ code: 'aborted' })
  proxy.behave()
  expect(await written.holds()).toHaveLength(3)
})
