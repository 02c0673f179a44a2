import { randomUUID } from 'node:crypto'
import { Holdfast, HoldfastError } from 'holdfast'
import { Redis } from 'ioredis'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { PostgresIntents } from '../../src/journal/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { startProxy } from '../redis/support/proxy.js'
import { Crowd } from './support/crowd.js'

const HOUR = 3_600_000
const NOW = Date.now()
const OPEN = { perUser: 10, startsAt: NOW - 1_000, endsAt: NOW + HOUR }

/** A machine that stands still for a moment is no reason to give up, or to take Redis for away. */
const PATIENT = {
  timeout: 30_000,
  redisOptions: { commandTimeoutMs: 20_000 },
  engine: { sweepEveryMs: 600_000 },
  audit: false,
} as const

let direct: { redis: string; postgres: string }
let hf: Holdfast
let other: Holdfast
let redis: Redis
let pool: pg.Pool
beforeAll(async () => {
  direct = { redis: await freshRedis(), postgres: await freshDatabase() }
  redis = new Redis(direct.redis)
  pool = new pg.Pool({ connectionString: direct.postgres, max: 1 })
  const connect = () => Holdfast.connect({ ...direct, ...PATIENT })
  ;[hf, other] = await Promise.all([connect(), connect()])
})
afterAll(async () => {
  await Promise.all([hf.close(), other.close()])
  await pool.end()
  redis.disconnect()
})

const key = () => randomUUID()
const openMoves = async () => (await pool.query('SELECT FROM holdfast.transfers')).rows.length

async function checkOut(sale: string, user: string, items: { id: string; quantity?: number }[], at = hf) {
  return at.sale(sale).checkout({ user, items, key: key() })
}

async function buy(sale: string, user: string, id: string, at = hf): Promise<boolean> {
  try {
    const { code } = await checkOut(sale, user, [{ id }], at)
    await at.sale(sale).purchase(code)
    return true
  } catch (error) {
    if (HoldfastError.is(error, 'sold_out')) return false
    throw error
  }
}

describe.each([1, 8])('the key of a checkout, in a sale with %i buckets', (buckets) => {
  it('is of the user who gives it: nobody else can use it up, and with other items it is a conflict', async () => {
    const sale = hf.sale(`keys-${buckets}`)
    const items = [{ id: 'a', quantity: 100 }, { id: 'b' }]
    await sale.open({ ...OPEN, buckets, items })
    const ask = (user: string, id = 'a', at = hf) =>
      at.sale(sale.id).checkout({ user, items: [{ id }], key: 'the same' })
    const users = Array.from({ length: 6 }, (_, n) => `user-${n}`)
    const first = await Promise.all(users.map((user) => ask(user)))
    expect(first.map(({ replayed }) => replayed)).toEqual(users.map(() => false))
    expect(new Set(first.map(({ code }) => code)).size).toBe(users.length)
    // Again, in another process, and with Redis having lost everything.
    const again = first.map((one) => ({ ...one, replayed: true }))
    expect(await Promise.all(users.map((user) => ask(user, 'a', other)))).toEqual(again)
    for (const user of users) await expect(ask(user, 'b')).rejects.toMatchObject({ code: 'idempotency_conflict' })
    await redis.flushdb()
    expect(await Promise.all(users.map((user) => ask(user, 'a', other)))).toEqual(again)
    for (const user of users) await expect(ask(user, 'b')).rejects.toMatchObject({ code: 'idempotency_conflict' })
    expect(await sale.status()).toMatchObject({ stock: 95, reserved: 6 })
  }, 120_000)
})

describe('a sale with buckets', () => {
  it('sells all of it to whoever comes, and no more', async () => {
    const quantities: Record<string, number> = { a: 7, b: 1, c: 3, d: 1 }
    const total = Object.values(quantities).reduce((sum, one) => sum + one, 0)
    const items = Object.entries(quantities).map(([id, quantity]) => ({ id, quantity }))
    await hf.sale('dry').open({ ...OPEN, buckets: 4, items })
    const sold: Record<string, number> = {}
    const asked = Array.from({ length: 20 }, (_, n) =>
      Object.keys(quantities).map(async (id) => {
        if (await buy('dry', `user-${n}-${id}`, id, n % 2 ? hf : other)) sold[id] = (sold[id] ?? 0) + 1
      }),
    )
    await Promise.all(asked.flat())
    expect(sold).toEqual(quantities)
    expect(await hf.sale('dry').status()).toMatchObject({ stock: 0, reserved: 0, sold: total })
    await expect.poll(openMoves, { timeout: 20_000 }).toBe(0)
  })

  it('sells a unique item to a user of any bucket, and all of an item to one', async () => {
    await hf.sale('one').open({ ...OPEN, buckets: 8, items: [{ id: 'many', quantity: 10 }, { id: 'only' }] })
    for (let n = 0; n < 12; n += 1) {
      const { code } = await checkOut('one', `user-${n}`, [{ id: 'only' }, { id: 'many', quantity: 9 }])
      await expect(checkOut('one', `next-${n}`, [{ id: 'only' }])).rejects.toMatchObject({ code: 'sold_out', left: 0 })
      await expect(checkOut('one', `next-${n}`, [{ id: 'many', quantity: 2 }])).rejects.toMatchObject({
        code: 'sold_out',
        item: 'many',
        left: 1,
      })
      // What comes back in one bucket can be had in every other.
      await hf.sale('one').cancel(code)
    }
    expect(await hf.sale('one').status()).toMatchObject({ stock: 11, reserved: 0, sold: 0 })
    // What has come since a look began is known, so that the look is not believed.
    const { rows } = await pool.query<{ ref: string; seq: string }>(
      `SELECT replace(ref::text, '-', '') AS ref, seq FROM holdfast.wallets WHERE id = 'one'`,
    )
    const postgres = new Postgres(direct.postgres, {})
    const intents = new PostgresIntents(postgres)
    await expect.poll(openMoves, { timeout: 20_000 }).toBe(0)
    const since = (seq: (now: number) => number) => rows.map((row) => ({ ref: row.ref, seq: seq(Number(row.seq)) }))
    expect(await intents.moving(since(() => 0))).toEqual({ arrived: true, open: [] })
    expect(await intents.moving(since((now) => now))).toEqual({ arrived: false, open: [] })
    await postgres.close()
  })

  it('holds everybody to the total, where that is less than all items', async () => {
    const items = [
      { id: 'a', quantity: 20 },
      { id: 'b', quantity: 20 },
    ]
    await hf.sale('limited').open({ ...OPEN, buckets: 4, limit: 6, items })
    const sold = await Promise.all(
      Array.from({ length: 20 }, (_, n) => buy('limited', `user-${n}`, n % 2 ? 'a' : 'b', n % 3 ? hf : other)),
    )
    expect(sold.filter(Boolean)).toHaveLength(6)
    expect(await hf.sale('limited').status()).toMatchObject({ stock: 0, sold: 6 })
    // All of the total, and all of an item, in one hand.
    await hf.sale('hand').open({ ...OPEN, buckets: 4, limit: 6, items: [{ id: 'a', quantity: 6 }, { id: 'b' }] })
    await checkOut('hand', 'ann', [{ id: 'a', quantity: 5 }, { id: 'b' }])
  })

  it('lets what is only noted be bought wherever it is', async () => {
    const items = [{ id: 'a' }, { id: 'b' }, { id: 'c' }]
    await hf.sale('noted').open({ ...OPEN, buckets: 4, reserve: 'purchase', items })
    const wanted = [{ id: 'a' }, { id: 'b' }, { id: 'c' }]
    const [ann, bob] = [await checkOut('noted', 'ann', wanted), await checkOut('noted', 'bob', wanted)]
    const eve = await checkOut('noted', 'eve', [{ id: 'b' }])
    await hf.sale('noted').purchase(eve.code)
    await expect(hf.sale('noted').purchase(ann.code)).rejects.toMatchObject({ code: 'sold_out', item: 'b', left: 0 })
    const left = await hf.sale('noted').purchase(ann.code, { take: 'left' })
    expect(left.items.map(({ id }) => id)).toEqual(['a', 'c'])
    await expect(hf.sale('noted').purchase(bob.code, { take: 'left' })).rejects.toMatchObject({ code: 'sold_out' })
    expect(await other.sale('noted').purchase(ann.code, { take: 'left' })).toEqual({ ...left, replayed: true })
  })

  it('knows after Redis has forgotten everything what went where', async () => {
    await hf.sale('forgotten').open({ ...OPEN, buckets: 3, items: [{ id: 'a', quantity: 30 }] })
    const { code } = await checkOut('forgotten', 'ann', [{ id: 'a', quantity: 10 }])
    await checkOut('forgotten', 'bob', [{ id: 'a', quantity: 10 }])
    await hf.sale('forgotten').purchase(code)
    await redis.flushdb()
    await checkOut('forgotten', 'eve', [{ id: 'a', quantity: 9 }])
    await redis.flushdb()
    await expect(checkOut('forgotten', 'dan', [{ id: 'a', quantity: 2 }])).rejects.toMatchObject({ left: 1 })
    expect(await buy('forgotten', 'dan', 'a')).toBe(true)
    expect((await hf.audit()).findings).toEqual([])
  })
})

describe('a process that is killed while stock is on its way', () => {
  /** What stands in the statement that files a step. */
  const STEPS: [when: string, words: string, cut: boolean][] = [
    ['it is written down', 'holdfast_beginTransfers', true],
    ['it is given, and not in the journal', 'give 1 1:1/', false],
    ['it is given', 'give 1 1:1/', true],
    ['it is taken, and not in the journal', 'take 1 1:1/', false],
    ['it is taken', 'take 1 1:1/', true],
  ]
  let crowd: Crowd
  beforeAll(async () => {
    crowd = await Crowd.prepare()
  })
  afterAll(() => crowd.stop())

  it.each(STEPS)('when %s, leaves it to who wants it', { timeout: 120_000 }, async (_, words, cut) => {
    const sale = `killed-${key()}`
    await hf.sale(sale).open({ ...OPEN, buckets: 4, items: [{ id: 'only' }] })
    // Somebody in another bucket than the one that has it: everybody but a quarter.
    const users = Array.from({ length: 40 }, (_, n) => `user-${n}`)
    const proxy = await startProxy(Number(new URL(direct.postgres).port))
    try {
      const buyers = await crowd.start({
        redis: direct.redis,
        postgres: Object.assign(new URL(direct.postgres), { port: String(proxy.port) }).href,
        ...PATIENT,
      })
      const reached = cut ? proxy.cutReplyTo(words).then(() => proxy.hold()) : proxy.holdAt(words)
      const user = await stranger(sale, users)
      const ordered = buyers.order({ type: 'checkout', sale, user, item: 'only', key: key() }).then(() => {
        throw new Error('It was done, and never came to where it was to be killed')
      })
      await Promise.race([reached, ordered])
      await buyers.kill()
      await ordered.catch(() => {})
      proxy.cut()
      proxy.behave()
    } finally {
      await proxy.close()
    }
    const owners = (
      await Promise.all(users.map(async (user) => ((await buy(sale, user, 'only')) ? [user] : [])))
    ).flat()
    expect(owners).toHaveLength(1)
    expect(await hf.sale(sale).status()).toMatchObject({ stock: 0, reserved: 0, sold: 1 })
    await expect.poll(openMoves, { timeout: 20_000 }).toBe(0)
  })

  /** A user whose bucket does not have it: a checkout there, cancelled, writes a move. */
  async function stranger(sale: string, users: readonly string[]): Promise<string> {
    const moves = async () => {
      const { rows } = await pool.query<{ count: string }>(
        `SELECT count(*) FROM holdfast.entries e JOIN holdfast.wallets w ON w.ref = e.wallet WHERE w.id = $1 AND params LIKE 'take %'`,
        [sale],
      )
      return Number(rows[0]?.count)
    }
    // The last one to whom it was brought has it now, so that it must be brought to the one before.
    let before: string | undefined
    for (const user of users) {
      const were = await moves()
      const { code } = await checkOut(sale, user, [{ id: 'only' }])
      await hf.sale(sale).cancel(code)
      if ((await moves()) === were) continue
      if (before !== undefined) return before
      before = user
    }
    throw new Error('All users are in one bucket')
  }
})
