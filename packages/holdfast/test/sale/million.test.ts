import { randomUUID } from 'node:crypto'
import { Holdfast } from 'holdfast'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'

const HOUR = 3_600_000
const NOW = Date.now()
const SALES = 10
/** Of each sale: so many that the Bloom filter is as full as it is made for. */
const SOLD = 1_000_000 / SALES
/** One in so many is left fresh, and not the same ones in the next sale: what is fresh here was sold there, under the same id. */
const FRESH = 6
const ITEMS = (SOLD / (FRESH - 1)) * FRESH
/** As many as a checkout takes. */
const LINES = 100
const CALLERS = 32
/** One in so many of the sold is asked for again. */
const SAMPLE = 97

const METHODS = ['bitmap', 'bloom'] as const
type Method = (typeof METHODS)[number]

const items = Array.from({ length: ITEMS }, (_, n) => ({ id: `item-${n}` }))
const idsOf = (sale: number, fresh: boolean) =>
  items.filter((_, n) => (n % FRESH === sale % FRESH) === fresh).map(({ id }) => id)

/** What was told without asking anybody, and how often a filter was wrong about an item. */
const counts: Record<Method, { told: number; false_hit: number }> = {
  bitmap: { told: 0, false_hit: 0 },
  bloom: { told: 0, false_hit: 0 },
}
const by = {} as Record<Method, Holdfast>

beforeAll(async () => {
  const urls = { redis: await freshRedis(), postgres: await freshDatabase() }
  for (const method of METHODS) {
    const count = (name: string, labels?: Record<string, string>, more = 1) => {
      if (name === 'holdfast_sale_early_rejects_total') counts[method][labels?.outcome as 'told'] += more
    }
    const earlyReject = { by: method }
    by[method] = await Holdfast.connect({ ...urls, audit: false, earlyReject, telemetry: { count } })
  }
})
afterAll(() => Promise.all(METHODS.map((method) => by[method].close())))

const checkout = (method: Method, sale: string, ids: readonly string[]) =>
  by[method].sale(sale).checkout({ user: randomUUID(), items: ids.map((id) => ({ id })), key: randomUUID() })

/** All of them, a hundred at a time, half by each. The first refusal ends it. */
async function buy(sale: string, ids: readonly string[]): Promise<void> {
  let next = 0
  const caller = async () => {
    while (next < ids.length) {
      const method = METHODS[(next / LINES) % METHODS.length] as Method
      const some = ids.slice(next, next + LINES)
      next += LINES
      const { code } = await checkout(method, sale, some)
      const { items: bought } = await by[method].sale(sale).purchase(code)
      expect(bought.map(({ id }) => id)).toEqual(some)
    }
  }
  await Promise.all(Array.from({ length: CALLERS }, caller))
}

/** What is sold is read once somebody was refused; until then Redis is asked. */
async function expectTold(method: Method, sale: string, sold: readonly string[]): Promise<void> {
  const refusal = async (id: string) => {
    const before = counts[method].told
    await expect(checkout(method, sale, [id])).rejects.toMatchObject({ code: 'sold_out', item: id, left: 0 })
    return counts[method].told - before
  }
  const last = sold.at(-1) as string
  await vi.waitFor(async () => expect(await refusal(last)).toBe(1), { timeout: 60_000, interval: 50 })
  for (let n = 0; n < sold.length; n += SAMPLE) expect(await refusal(sold[n] as string)).toBe(1)
}

describe('a million items that were bought, over many sales', () => {
  it.each(Array.from({ length: SALES }, (_, n) => n))(
    'are refused without asking anybody, and nobody is kept from one that is fresh: sale %i',
    async (n) => {
      const sale = `sale-${n}`
      await by.bitmap.sale(sale).open({ items, perUser: LINES, startsAt: NOW - 1_000, endsAt: NOW + HOUR })
      const sold = idsOf(n, false)
      await buy(sale, sold)
      expect(await by.bloom.sale(sale).status()).toMatchObject({ sold: SOLD })
      await Promise.all(METHODS.map((method) => expectTold(method, sale, sold)))
      const { bitmap, bloom } = structuredClone(counts)
      await buy(sale, idsOf(n, true))
      expect(counts.bitmap).toEqual(bitmap)
      expect(counts.bloom.told).toBe(bloom.told)
      // The Bloom filter took some of 10,000 for sold, and was not believed.
      expect(counts.bloom.false_hit).toBeGreaterThan(bloom.false_hit)
      expect(await by.bitmap.sale(sale).status()).toMatchObject({ sold: ITEMS, stock: 0 })
    },
    180_000,
  )
})
