import { randomBytes, randomUUID } from 'node:crypto'
import { startRedis } from '@holdfast/services'
import { Holdfast, type SaleState } from 'holdfast'
import { Redis } from 'ioredis'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { CodeSet } from '../../src/api/sale/codes.js'
import { SharedBloomFilter } from '../../src/api/sale/filter.js'
import { type SaleName, SoldItems } from '../../src/api/sale/sold.js'
import { PostgresJournal, PostgresSold } from '../../src/journal/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { Primitives } from '../../src/primitives/index.js'

const HOUR = 3_600_000
const NOW = Date.now()
const OPEN = { perUser: 100, startsAt: NOW - 1_000, endsAt: NOW + HOUR }
const unique = (count: number) => Array.from({ length: count }, (_, n) => ({ id: `item-${n}` }))
const key = () => randomUUID()

/** Counts what was told without asking anybody. */
function counting() {
  const counts = { told: 0, false_hit: 0 }
  const telemetry = {
    count: (name: string, labels?: Record<string, string>, by = 1) => {
      if (name === 'holdfast_sale_early_rejects_total') counts[labels?.outcome as 'told'] += by
    },
  }
  return { counts, telemetry }
}

async function buy(
  hf: Holdfast,
  sale: string,
  user: string,
  id: string,
  more: { quantity?: number; key?: string } = {},
) {
  const { quantity = 1, key: k = key() } = more
  const { code } = await hf.sale(sale).checkout({ user, items: [{ id, quantity }], key: k })
  await hf.sale(sale).purchase(code)
  return code
}

describe.each(['bitmap', 'bloom'] as const)('by %s', (by) => {
  const { counts, telemetry } = counting()
  let urls: { redis: string; postgres: string }
  let hf: Holdfast
  let plain: Holdfast
  beforeAll(async () => {
    urls = { redis: await freshRedis(), postgres: await freshDatabase() }
    hf = await Holdfast.connect({ ...urls, audit: false, earlyReject: { by, every: 20 }, telemetry })
    plain = await Holdfast.connect({ ...urls, audit: false, earlyReject: false })
  })
  afterAll(() => Promise.all([hf.close(), plain.close()]))

  const ask = (sale: string, id: string, from = hf) =>
    from
      .sale(sale)
      .checkout({ user: `user-${key()}`, items: [{ id }], key: key() })
      .catch((error) => error)

  /** Until a checkout of this is refused without asking anybody. */
  async function untilTold(sale: string, id: string) {
    const before = counts.told
    await vi.waitFor(
      async () => {
        expect(await ask(sale, id)).toMatchObject({ code: 'sold_out' })
        expect(counts.told).toBeGreaterThan(before)
      },
      { timeout: 20_000, interval: 20 },
    )
  }

  it('refuses what is sold, as the engine does, and nothing else', async () => {
    await plain.sale('some').open({ ...OPEN, items: unique(50) })
    for (let n = 0; n < 10; n += 1) await buy(n % 2 ? hf : plain, 'some', 'ann', `item-${n}`)
    const refused = { code: 'sold_out', item: 'item-3', left: 0 }
    expect(await ask('some', 'item-3', plain)).toMatchObject(refused)
    await untilTold('some', 'item-3')
    expect(await ask('some', 'item-3')).toMatchObject(refused)
    for (let n = 0; n < 10; n += 1) await untilTold('some', `item-${n}`)
    const told = counts.told
    for (let n = 10; n < 50; n += 1) await buy(hf, 'some', 'bob', `item-${n}`)
    expect(counts.told).toBe(told)
    // What is wrong with a call is said first.
    const wrong = { user: 'eve', items: [{ id: 'item-3' }], key: key(), timeout: -1 }
    await expect(hf.sale('some').checkout(wrong)).rejects.toMatchObject({ code: 'invalid_argument' })
    await vi.waitFor(async () => expect(await ask('some', 'item-20')).toMatchObject({ facts: { left: 0 } }), 20_000)
    expect(await hf.sale('some').status()).toMatchObject({ sold: 50, stock: 0 })
  })

  it('leaves what lies in a checkout to the engine: it comes back, and is sold', async () => {
    await hf.sale('back').open({ ...OPEN, items: unique(3) })
    await buy(hf, 'back', 'ann', 'item-0')
    const { code } = await hf.sale('back').checkout({ user: 'bob', items: [{ id: 'item-1' }], key: key() })
    await ask('back', 'item-0')
    await untilTold('back', 'item-0')
    const told = counts.told
    for (let n = 0; n < 5; n += 1) expect(await ask('back', 'item-1')).toMatchObject({ code: 'sold_out' })
    expect(counts.told).toBe(told)
    await hf.sale('back').cancel(code)
    await buy(hf, 'back', 'eve', 'item-1')
    await untilTold('back', 'item-1')
  })

  it('gives every retry its first answer, also of a checkout that was cancelled before another bought it', async () => {
    await hf.sale('again').open({ ...OPEN, items: unique(3), buckets: 1 })
    const sale = hf.sale('again')
    const [lost, won] = [key(), key()]
    const asked = { user: 'ann', items: [{ id: 'item-0' }], key: lost }
    const { code } = await sale.checkout(asked)
    await sale.cancel(code)
    await buy(plain, 'again', 'bob', 'item-0', { key: won })
    await ask('again', 'item-0')
    await untilTold('again', 'item-0')
    expect(await sale.checkout(asked)).toMatchObject({ code, replayed: true })
    expect(await sale.checkout({ user: 'bob', items: [{ id: 'item-0' }], key: won })).toMatchObject({ replayed: true })
    await expect(sale.checkout({ ...asked, items: [{ id: 'item-1' }] })).rejects.toMatchObject({
      code: 'idempotency_conflict',
    })
  })

  it('waits until all of an item is bought, in all buckets', async () => {
    const items = [{ id: 'many', quantity: 40 }, { id: 'one' }]
    await hf.sale('many').open({ ...OPEN, items, buckets: 4 })
    const buyEach = async (times: number) => {
      for (let n = 0; n < times; n += 1) {
        for (let user = 0; ; user += 1) {
          const bought = await buy(hf, 'many', `u${user}-${n}`, 'many').catch((error) => error)
          if (typeof bought === 'string') break
          expect(bought.code).toBe('sold_out')
        }
      }
    }
    await buyEach(39)
    const told = counts.told
    await buyEach(1)
    expect(counts.told).toBe(told)
    await untilTold('many', 'many')
    const { stock, sold } = (await hf.sale('many').status()) as SaleState
    expect([stock, sold]).toEqual([1, 40])
  })

  it('leaves no key without an end', async () => {
    const redis = new Redis(urls.redis)
    const keys = await redis.keys('*:bloom:*')
    expect(keys.length > 0).toBe(by === 'bloom')
    for (const one of keys) {
      const leftMs = await redis.pttl(one)
      expect(leftMs).toBeGreaterThan(0)
      expect(leftMs).toBeLessThanOrEqual(NOW + 2 * HOUR + 60_000 - Date.now())
    }
    redis.disconnect()
  })

  it('blocks nothing when Redis forgets everything, or is away', async () => {
    const server = await startRedis({ source: 'installed' })
    const own = await Holdfast.connect({
      redis: server.url,
      postgres: urls.postgres,
      audit: false,
      tenant: `away-${by}`,
      earlyReject: { by, every: 20 },
      telemetry,
    })
    const open = { ...OPEN, items: unique(40) }
    await own.sale('away').open(open)
    await buy(own, 'away', 'ann', 'item-0')
    await ask('away', 'item-0', own)
    const redis = new Redis(server.url)
    for (let n = 1; n < 20; n += 1) {
      if (n % 5 === 0) await redis.flushall()
      await buy(own, 'away', 'bob', `item-${n}`)
      expect(await ask('away', `item-${n - 1}`, own)).toMatchObject({ code: 'sold_out' })
    }
    redis.disconnect()
    await server.stop()
    for (let n = 20; n < 40; n += 1) {
      await buy(own, 'away', 'eve', `item-${n}`)
      expect(await ask('away', `item-${n - 1}`, own)).toMatchObject({ code: 'sold_out' })
    }
    expect(await own.sale('away').status()).toMatchObject({ sold: 40 })
    await own.close()
  }, 60_000)
})

describe('what is sold', () => {
  let url: string
  let pool: pg.Pool
  let postgres: Postgres
  let journal: PostgresJournal
  beforeAll(async () => {
    url = await freshDatabase()
    pool = new pg.Pool({ connectionString: url, max: 2 })
    postgres = new Postgres(url)
    journal = new PostgresJournal(postgres)
  })
  afterAll(() => Promise.all([pool.end(), postgres.close()]))

  /** A journal as a sale would have left it: a checkout and a purchase of 100 unique items each, of the even ones up to `sold`. */
  async function makeJournal(items: number, sold: number): Promise<SaleName> {
    const ref = randomBytes(16).toString('hex')
    const terms = { limit: items, items, buckets: 1, endsAt: NOW + HOUR } as SaleName['terms']
    await pool.query(
      `WITH lines AS (
         SELECT n, (SELECT jsonb_agg(jsonb_build_array(2 * (100 * (n - 1) + i), 1))::text FROM generate_series(1, 100) i) AS text
         FROM generate_series(1, $2::int / 100) n
       ), made AS (
         INSERT INTO holdfast.entries (wallet, seq, epoch, at, amount, available_delta, reserved_delta, available, reserved, kind, hash, key, counter, params, metadata)
         SELECT $1::uuid, 2 * n - 1 + step, 1, 0, 100, 0, 0, 0, 0, CASE step WHEN 0 THEN 'hold' ELSE 'settle' END::holdfast.entry_kind,
                decode(md5(random()::text), 'hex'), CASE step WHEN 0 THEN lpad(n::text, 44, 'c') ELSE '~purchase:' || n END, 'stock', '', text
         FROM lines, generate_series(0, 1) step
       )
       INSERT INTO holdfast.wallets (ref, tenant, id, currency, opened_at, initial_limit, genesis, epoch, owner, seq, head, at, available, reserved, credit_limit, status, due, since)
       VALUES ($1::uuid, 'default', $3, 'stock', 0, 0, '', 1, 'redis', 2 * ($2::int / 100), '', 0, 0, 0, 0, 'active', 0, 0)`,
      [ref, sold, `sale-${ref}`],
    )
    return { tenant: 'default', id: `sale-${ref}`, terms, refs: [ref] }
  }

  it('is exactly that, of two sales, and costs a bit an item', async () => {
    const sales = [await makeJournal(80_000, 40_000), await makeJournal(80_000, 20_000)]
    for (const [at, sale] of sales.entries()) {
      const count = at === 0 ? 40_000 : 20_000
      const sold = new SoldItems({ journal, sold: new PostgresSold(postgres) }, sale)
      expect((await sold.refresh())?.length).toBe(count)
      expect([sold.count, sold.isAll]).toEqual([count, false])
      let wrong = 0
      for (let item = 1; item <= 80_000; item += 1) {
        if (sold.has(item) !== (item % 2 === 0 && item <= 2 * count)) wrong += 1
      }
      expect(wrong).toBe(0)
      expect(await sold.refresh()).toEqual([])
      expect(sold.bytes.bits).toBe(10_001)
    }
  })

  it('takes what a Bloom filter says of fresh items for what it is: a question', async () => {
    const sale = await makeJournal(20_000, 10_000)
    const primitives = await Primitives.connect({
      redis: await freshRedis(),
      secret: 'a secret of tests, long enough',
      redisOptions: { commandTimeoutMs: 20_000 },
    })
    const sold = new SoldItems({ journal, sold: new PostgresSold(postgres) }, sale)
    const size = { capacity: 10_000, falsePositives: 0.01, everyMs: 10_000 }
    const filter = new SharedBloomFilter(primitives, sold, sale, size)
    await filter.learn((await sold.refresh()) ?? [])
    let falseHits = 0
    for (let item = 1; item <= 20_000; item += 1) {
      if (item % 2 === 0) expect(filter.mightHave(item)).toBe(true)
      else if (filter.mightHave(item)) falseHits += 1
    }
    // One in a hundred of 10,000, and never told: it is not among what is sold.
    expect(falseHits).toBeGreaterThan(20)
    expect(falseHits).toBeLessThan(300)
    filter.close()
    await primitives.close()
  }, 60_000)

  it('is not believed after Postgres was put back', async () => {
    const sale = await makeJournal(2_000, 1_000)
    const sold = new SoldItems({ journal, sold: new PostgresSold(postgres) }, sale)
    await sold.refresh()
    expect([sold.has(1_000), sold.has(2_000)]).toEqual([true, true])
    const [ref] = sale.refs
    // Half of it is gone: and then something else comes in its place.
    const client = await pool.connect()
    await client.query('SET session_replication_role = replica')
    await client.query('DELETE FROM holdfast.entries WHERE wallet = $1 AND seq > 10', [ref])
    await client.query('UPDATE holdfast.wallets SET seq = 10 WHERE ref = $1', [ref])
    expect(await sold.refresh()).toBeNull()
    expect(sold.has(1_000)).toBe(false)
    expect((await sold.refresh())?.length).toBe(500)
    expect([sold.has(1_000), sold.has(2_000)]).toEqual([true, false])
    await client.query(`UPDATE holdfast.entries SET hash = '\\x00', metadata = '[]' WHERE wallet = $1 AND seq = 10`, [
      ref,
    ])
    await client.query('RESET session_replication_role')
    client.release()
    expect(await sold.refresh()).toBeNull()
    expect((await sold.refresh())?.length).toBe(400)
  })

  it('shows nothing of one bucket before all are read: the code of a retry may be in another', async () => {
    const [one, two] = [await makeJournal(1_000, 200), await makeJournal(1_000, 400)]
    const sale = { ...one, refs: [...one.refs, ...two.refs] }
    let seen: boolean | undefined
    class Watched extends PostgresSold {
      override async entries(...given: Parameters<PostgresSold['entries']>) {
        if (given[0] === sale.refs[1]) seen = sold.has(2)
        return super.entries(...given)
      }
    }
    const sold = new SoldItems({ journal, sold: new Watched(postgres) }, sale)
    await sold.refresh()
    expect([seen, sold.has(2), sold.knows('3'.padStart(44, 'c'))]).toEqual([false, true, true])
  })

  it('knows every code that it was told, and next to no other', () => {
    const codes = new CodeSet()
    const some = (count: number) => {
      const bytes = randomBytes(32 * count)
      return Array.from({ length: count }, (_, n) => `c${bytes.subarray(32 * n, 32 * n + 32).toString('base64url')}`)
    }
    const known = some(100_000)
    for (const code of known) codes.add(code)
    expect(known.every((code) => codes.has(code))).toBe(true)
    expect(some(100_000).filter((code) => codes.has(code)).length).toBeLessThan(50)
    codes.add('~of-the-engine')
    expect(codes.bytes).toBeLessThanOrEqual(16 * known.length)
  })
})
