import { Redis } from 'ioredis'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { type ConnectOptions, Holdfast } from '../../src/index.js'
import { until } from './support/paths.js'

/** What somebody else did to a wallet in Redis costs a reload of that wallet, and nobody else anything. */
const HOUR = 3_600_000

let redis: string
let postgres: string
let raw: Redis
let events: string[]

beforeEach(async () => {
  redis = await freshRedis()
  postgres = await freshDatabase()
  raw = new Redis(redis)
  events = []
})
afterEach(() => raw.disconnect())

const connect = (engine: NonNullable<ConnectOptions['engine']> = { sweepEveryMs: 600_000 }) =>
  Holdfast.connect({
    redis,
    postgres,
    shards: 1,
    redisOptions: { commandTimeoutMs: 20_000 },
    engine,
    telemetry: { log: (_level, event) => void events.push(event) },
  })

/** The only wallet in Redis so far. */
async function walletKey(): Promise<string> {
  const keys = await raw.keys('hf:*:wallet:*')
  expect(keys).toHaveLength(1)
  return keys[0] as string
}

it('loads a wallet anew of which a hold is damaged, in a process that never had to do with it', async () => {
  const first = await connect()
  const wallet = first.wallet('damaged')
  await wallet.open({ currency: 'usd' })
  await wallet.credit(100, { key: 'in' })
  await wallet.hold(10, { key: 'h', ttl: HOUR })
  await first.close()
  await raw.hset(await walletKey(), 'h:h', 'damaged')
  const second = await connect()
  const same = second.wallet('damaged')
  const [capture, credit] = await Promise.all([
    same.holdRef('h').capture(4, { key: 'c' }),
    same.credit(1, { key: 'beside it' }),
  ])
  expect([capture.entry.seq, credit.entry.seq].sort()).toEqual([3, 4])
  expect(await same.get()).toMatchObject({ available: 91, reserved: 6 })
  await second.close()
})

it.each([
  ['something of another type', (key: string) => raw.set(key, 'damaged')],
  ['no core', (key: string) => raw.hdel(key, 'core')],
  ['a core that is none', (key: string) => raw.hset(key, 'core', 'damaged')],
  ['a core of another version', (key: string) => raw.hset(key, 'core', Buffer.alloc(500, 255))],
])('serves the wallets beside one that has %s, and puts that right', async (_, damage) => {
  const hf = await connect()
  const damaged = hf.wallet('damaged')
  const beside = hf.wallet('beside it')
  await damaged.open({ currency: 'usd' })
  await beside.open({ currency: 'usd' })
  await damaged.credit(1, { key: 'a' })
  const key = await walletKey()
  const version = (await raw.hgetBuffer(key, 'core'))?.[0]
  await damage(key)
  await beside.credit(1, { key: 'a' })
  events.length = 0
  const credits = await Promise.all([damaged.credit(1, { key: 'b' }), beside.credit(1, { key: 'b' })])
  expect(credits).toMatchObject([{ available: 2 }, { available: 2 }])
  expect(events).toEqual([])
  expect((await raw.hgetBuffer(key, 'core'))?.[0]).toBe(version)
  await hf.close()
})

it('lets holds expire beside a wallet that is damaged, and in it', async () => {
  // Nobody looks into Postgres for wallets that are not in Redis.
  const hf = await connect({ sweepEveryMs: 50, dueGraceMs: 600_000 })
  const damaged = hf.wallet('damaged')
  const beside = hf.wallet('beside it')
  for (const wallet of [damaged, beside]) {
    await wallet.open({ currency: 'usd' })
    await wallet.credit(10, { key: 'in' })
  }
  await damaged.hold(10, { key: 'h', ttl: 400 })
  for (const key of await raw.keys('hf:*:wallet:*')) if (await raw.hexists(key, 'h:h')) await raw.hset(key, 'h:h', 'x')
  await beside.hold(10, { key: 'h', ttl: 400 })
  for (const wallet of [damaged, beside]) await until(async () => (await wallet.get())?.reserved === 0)
  await hf.close()
})
