import { Holdfast } from 'holdfast'
import { Redis } from 'ioredis'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis, sharedCluster } from '../../../../test/servers.js'
import type { ConnectOptions } from '../../src/index.js'
import { type Buyers, Crowd } from './support/crowd.js'
import type { Bought } from './support/orders.js'

const HOUR = 3_600_000
const NOW = Date.now()
const PER_USER = 10
const OPEN = { perUser: PER_USER, startsAt: NOW - 1_000, endsAt: NOW + HOUR }
const PROCESSES = 3
/** A machine that stands still for a moment is no reason to take Redis for away, and leave there what is past. */
const PATIENT = {
  redisOptions: { commandTimeoutMs: 60_000 },
  engine: { decideWithinMs: 60_000 },
  audit: false,
} as const
/** Every so-many-th item is asked for by all processes. */
const SOME = 10
const items = (count: number) => Array.from({ length: count }, (_, n) => ({ id: `item-${n}` }))

let crowd: Crowd
beforeAll(async () => {
  crowd = await Crowd.prepare()
})
afterAll(() => crowd.stop())

interface Town {
  readonly hf: Holdfast
  readonly pool: pg.Pool
  readonly buyers: readonly Buyers[]
  readonly target: Pick<ConnectOptions, 'redis' | 'postgres'>
}

async function settle(redis: ConnectOptions['redis'], processes: number): Promise<Town> {
  const target = { redis, postgres: await freshDatabase() }
  const pool = new pg.Pool({ connectionString: target.postgres, max: 1 })
  const hf = await Holdfast.connect({ ...target, ...PATIENT })
  const buyers = await Promise.all(Array.from({ length: processes }, () => crowd.start({ ...target, ...PATIENT })))
  return { hf, pool, buyers, target }
}

async function leave({ hf, pool, buyers }: Town): Promise<void> {
  await Promise.all(buyers.map((one) => one.kill()))
  await hf.close()
  await pool.end()
}

/**
 * Everybody buys until nothing is left. Each process begins with a part of the items that is its own, and goes on with some of everybody's: those
 * are asked for by several at the same time, and after they were sold. What all of them were told.
 */
async function stampede({ buyers }: Town, sale: string, users: number, count: number): Promise<Bought[]> {
  const all = Array.from({ length: count }, (_, item) => item)
  const parts = buyers.map((one, first) => {
    const own = all.filter((item) => item % buyers.length === first)
    const contested = all.filter((item) => item % SOME === 0)
    const mixed = own.flatMap((item, at) => (contested[at] === undefined ? [item] : [item, contested[at]]))
    return one.order({ type: 'stampede', sale, users, first, step: buyers.length, items: mixed, callers: 60 })
  })
  return (await Promise.all(parts)).flat()
}

/** What buyers heard, the journal, and what callers are told of the sale say the same: each item has one owner, and nobody too many. */
async function check({ hf, pool }: Town, sale: string, bought: readonly Bought[], count: number): Promise<void> {
  expect(new Set(bought.map(({ item }) => item)).size).toBe(count)
  expect(bought).toHaveLength(count)
  const byUser = new Map<string, number>()
  for (const { user } of bought) byUser.set(user, (byUser.get(user) ?? 0) + 1)
  expect(Math.max(...byUser.values())).toBeLessThanOrEqual(PER_USER)
  const { rows } = await pool.query<{ codes: string; sold: string }>(
    `SELECT count(*) AS codes, sum(jsonb_array_length(e.metadata::jsonb)) AS sold
     FROM holdfast.entries e JOIN holdfast.wallets w ON w.ref = e.wallet WHERE w.id = $1 AND e.kind = 'settle'`,
    [sale],
  )
  expect(rows.map(({ codes, sold }) => [Number(codes), Number(sold)])).toEqual([[count, count]])
  expect(await hf.sale(sale).status()).toMatchObject({ stock: 0, reserved: 0, sold: count })
}

/** What stands in Redis of the sale: how many of each item are taken, and how many by each buyer, over all its buckets. */
async function counters(redis: Redis): Promise<{ items: number[]; buyers: number[] }> {
  const found = { items: new Map<string, number>(), buyers: new Map<string, number>() }
  for (const key of await redis.keys('*:stock:*')) {
    for (const [field, value] of Object.entries(await redis.hgetall(key))) {
      const kind = field.startsWith('i:') ? 'items' : field.startsWith('u:') ? 'buyers' : null
      if (kind) found[kind].set(field, (found[kind].get(field) ?? 0) + Number.parseInt(value, 10))
    }
  }
  // What a bucket gave away is taken there, and less than nothing where it went.
  return { items: [...found.items.values()].filter((taken) => taken !== 0), buyers: [...found.buyers.values()] }
}

describe('a stampede of several processes', () => {
  let town: Town
  let redis: Redis
  beforeAll(async () => {
    const url = await freshRedis()
    redis = new Redis(url)
    town = await settle(url, PROCESSES)
  })
  afterAll(async () => {
    await leave(town)
    redis.disconnect()
  })

  it('of 2,000 users sells exactly 10,000 items', async () => {
    const count = 10_000
    await town.hf.sale('large').open({ ...OPEN, items: items(count) })
    const bought = await stampede(town, 'large', 2_000, count)
    await check(town, 'large', bought, count)
    // Journal, counters and the sum over users are one number.
    const { items: taken, buyers } = await counters(redis)
    expect(taken).toEqual(Array.from({ length: count }, () => 1))
    expect(buyers.reduce((sum, one) => sum + one, 0)).toBe(count)
    expect(Math.max(...buyers)).toBeLessThanOrEqual(PER_USER)
    await expect(
      town.hf.sale('large').checkout({ user: 'late', items: [{ id: 'item-77' }], key: 'late' }),
    ).rejects.toMatchObject({ code: 'sold_out', item: 'item-77', left: 0 })
  }, 240_000)

  it('sells the same over four buckets, wherever an item lies', async () => {
    const count = 200
    await town.hf.sale('spread').open({ ...OPEN, buckets: 4, items: items(count) })
    await check(town, 'spread', await stampede(town, 'spread', 200, count), count)
  }, 120_000)

  it('of 500 users on one item leaves one owner', async () => {
    await town.hf.sale('only').open({ ...OPEN, items: items(2) })
    const users = Array.from({ length: 500 }, (_, n) => `user-${n}`)
    const parts = town.buyers.map((one, at) =>
      one.order({
        type: 'rush',
        sale: 'only',
        users: users.filter((_, n) => n % PROCESSES === at),
        item: 'item-0',
      }),
    )
    expect((await Promise.all(parts)).flat()).toHaveLength(1)
    expect(await town.hf.sale('only').status()).toMatchObject({ stock: 1, reserved: 0, sold: 1 })
  }, 120_000)

  it('lets purchases of different items at the same time all succeed', async () => {
    await town.hf.sale('apart').open({ ...OPEN, items: items(60) })
    const parts = town.buyers.map((one, first) => {
      const own = Array.from({ length: 20 }, (_, n) => first + n * PROCESSES)
      return one.order({
        type: 'stampede',
        sale: 'apart',
        users: 60,
        first,
        step: PROCESSES,
        items: own,
        callers: 20,
      })
    })
    await check(town, 'apart', (await Promise.all(parts)).flat(), 60)
  }, 120_000)

  it('of one user in 50 places at once stays within the limit', async () => {
    await town.hf.sale('limit').open({ ...OPEN, items: [{ id: 'item-0', quantity: 1_000 }] })
    const again = Array.from({ length: 50 }, () => 'ann')
    await Promise.all(
      town.buyers.map((one, at) =>
        one.order({ type: 'rush', sale: 'limit', users: again.filter((_, n) => n % PROCESSES === at), item: 'item-0' }),
      ),
    )
    const { sold, reserved } = (await town.hf.sale('limit').status()) as { sold: number; reserved: number }
    expect(sold + reserved).toBeLessThanOrEqual(PER_USER)
    expect(sold).toBeGreaterThan(0)
  }, 120_000)
})

describe('a stampede on a Cluster', () => {
  let town: Town
  beforeAll(async () => {
    town = await settle({ cluster: await sharedCluster() }, 2)
  })
  afterAll(() => leave(town))

  it('sells exactly what there is, over buckets on several nodes', async () => {
    const count = 150
    await town.hf.sale('cluster').open({ ...OPEN, buckets: 5, items: items(count) })
    await check(town, 'cluster', await stampede(town, 'cluster', 150, count), count)
  }, 120_000)
})
