import { Holdfast } from 'holdfast'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'

const HOUR = 3_600_000
const NOW = Date.now()
const OPEN = { perUser: 10, startsAt: NOW - 1_000, endsAt: NOW + HOUR }

let hf: Holdfast
let other: Holdfast
let redis: Redis
const counted: string[] = []
const units: Record<string, number> = {}
let read: string[] = []
beforeAll(async () => {
  const [redisUrl, postgres] = [await freshRedis(), await freshDatabase()]
  redis = new Redis(redisUrl)
  hf = await Holdfast.connect({
    redis: redisUrl,
    postgres,
    audit: false,
    telemetry: {
      observe: (_, __, labels) => void (labels?.query && read.push(labels.query)),
      count: (metric, labels = {}, by = 1) => {
        if (metric === 'holdfast_sale_results_total') counted.push(`${labels.operation} ${labels.result}`)
        if (metric === 'holdfast_sale_units_total') {
          const { operation = '' } = labels
          units[operation] = (units[operation] ?? 0) + by
        }
      },
    },
  })
  // Whoever measures nothing gets the same answers.
  other = await Holdfast.connect({ redis: redisUrl, postgres, audit: false })
})
afterAll(async () => {
  await Promise.all([hf.close(), other.close()])
  redis.disconnect()
})

let keys = 0
const key = (): string => {
  keys += 1
  return `k${keys}`
}

describe('a checkout by its code', () => {
  it('is found in whichever sale and bucket it is, as it stands', async () => {
    for (const buckets of [1, 4]) {
      const sale = hf.sale(`found-${buckets}`)
      await sale.open({
        ...OPEN,
        buckets,
        items: [
          { id: 'a', quantity: 40 },
          { id: 'b', quantity: 40 },
        ],
      })
      for (const user of ['ann', 'bob', 'eve', 'joe']) {
        const { code, expiresAt } = await sale.checkout({ user, items: [{ id: 'a', quantity: 2 }], key: key() })
        const ref = other.checkoutRef(code)
        const open = { code, sale: sale.id, status: 'open', expiresAt }
        expect(await ref.get()).toEqual({ ...open, items: [{ id: 'a', quantity: 2 }] })
        const later = key()
        await sale.checkout({ user, items: [{ id: 'b' }], key: later })
        const items = [
          { id: 'a', quantity: 2 },
          { id: 'b', quantity: 1 },
        ]
        expect(await ref.get()).toEqual({ ...open, items })
        const { at } = await ref.purchase()
        expect(await ref.get()).toEqual({ ...open, status: 'purchased', items, closedAt: at })
        expect(await ref.purchase()).toMatchObject({ replayed: true })
        await expect(ref.cancel()).rejects.toMatchObject({ code: 'checkout_closed' })
      }
    }
  })

  it('is known from the journal where Redis has forgotten it', async () => {
    const sale = hf.sale('forgotten')
    await sale.open({ ...OPEN, items: [{ id: 'a', quantity: 5 }, { id: 'b' }] })
    const { code } = await sale.checkout({ user: 'ann', items: [{ id: 'a' }], key: key() })
    await sale.checkout({ user: 'ann', items: [{ id: 'b' }], key: key() })
    await redis.flushdb()
    expect((await hf.checkoutRef(code).get()).items).toHaveLength(2)
    expect(await hf.checkoutRef(code).cancel()).toEqual({ replayed: false })
    expect(await hf.checkoutRef(code).get()).toMatchObject({ status: 'cancelled', items: [] })
  })

  it('that has run out says so', async () => {
    const sale = hf.sale('short')
    await sale.open({ ...OPEN, checkoutTtl: 20, items: [{ id: 'a' }] })
    const { code } = await sale.checkout({ user: 'ann', items: [{ id: 'a' }], key: key() })
    await expect.poll(async () => (await hf.checkoutRef(code).get()).status, { timeout: 20_000 }).toBe('expired')
  })

  it('is none of another tenant, and none of a guess', async () => {
    const sale = hf.sale('mine')
    await sale.open({ ...OPEN, items: [{ id: 'a', quantity: 5 }] })
    const { code } = await sale.checkout({ user: 'ann', items: [{ id: 'a' }], key: key() })
    const guessed = `${code.slice(0, -2)}AA`
    for (const [by, tried] of [
      [hf.forTenant('evil'), code],
      [hf, guessed],
      [hf, `c${'A'.repeat(43)}`],
      [hf, 'x'],
    ] as const) {
      await expect(by.checkoutRef(tried).get()).rejects.toMatchObject({ code: 'checkout_not_found' })
      await expect(by.checkoutRef(tried).purchase()).rejects.toMatchObject({ code: 'checkout_not_found' })
    }
    expect(() => hf.checkoutRef('')).toThrow('code: expected')
  })
})

describe('sales', () => {
  it('are listed with how they stand, in the order of their ids', async () => {
    const tenant = hf.forTenant('lists')
    expect(await tenant.sales()).toEqual([])
    for (const id of ['b', 'a', 'c'])
      await tenant.sale(id).open({ ...OPEN, items: [{ id: 'x', quantity: 3 }], buckets: 2 })
    await tenant.sale('b').checkout({ user: 'ann', items: [{ id: 'x' }], key: key() })
    expect(await tenant.sales({ after: 'a', limit: 1 })).toEqual([await tenant.sale('b').status()])
    expect((await tenant.sales()).map(({ id, stock, reserved }) => [id, stock, reserved])).toEqual([
      ['a', 3, 0],
      ['b', 2, 1],
      ['c', 3, 0],
    ])
    await expect(tenant.sales({ limit: 0 })).rejects.toMatchObject({ code: 'invalid_argument' })
  })

  it('are read a portion at a time, however many buckets a page of them has', async () => {
    const tenant = hf.forTenant('wide')
    const ids = Array.from({ length: 18 }, (_, n) => `sale-${n}`).toSorted()
    const terms = { ...OPEN, items: [{ id: 'x' }], buckets: 64, timeout: 60_000 }
    await Promise.all(ids.map((id) => tenant.sale(id).open(terms)))
    const { code } = await tenant.sale('sale-3').checkout({ user: 'ann', items: [{ id: 'x' }], key: key() })
    await tenant.sale('sale-3').purchase(code)
    read = []
    const page = await tenant.sales({ limit: 1_000 })
    expect(page.map(({ id }) => id)).toEqual(ids)
    expect(page.filter(({ soldOut }) => soldOut).map(({ id, sold }) => [id, sold])).toEqual([['sale-3', 1]])
    // 1,152 buckets, and 1,024 at once.
    expect(read.filter((query) => query === 'readWallets').length).toBeGreaterThan(1)
  }, 120_000)

  it('have items with what is left of them, over all buckets', async () => {
    const sale = hf.sale('items')
    // One of each in every bucket, so that any user finds one.
    const items = Array.from({ length: 30 }, (_, n) => ({ id: `i${n}`, quantity: 3 }))
    await sale.open({ ...OPEN, buckets: 3, items })
    const { code } = await sale.checkout({ user: 'ann', items: [{ id: 'i28' }], key: key() })
    await sale.purchase(code)
    expect(await other.sale('items').items({ after: 28 })).toEqual([
      { number: 29, id: 'i28', quantity: 3, left: 2 },
      { number: 30, id: 'i29', quantity: 3, left: 3 },
    ])
    await sale.checkout({ user: 'ann', items: [{ id: 'i0' }], key: key() })
    // What was read is kept for a moment.
    const first = () => other.sale('items').items({ limit: 1 })
    await expect.poll(first, { timeout: 20_000 }).toMatchObject([{ id: 'i0', left: 2 }])
    await expect(hf.sale('none').items()).rejects.toMatchObject({ code: 'sale_not_found' })
  })
})

describe('what becomes of calls', () => {
  it('is counted by the code of the refusal, and units by what was done', async () => {
    counted.length = 0
    for (const name of Object.keys(units)) units[name] = 0
    const sale = hf.sale('counted')
    await sale.open({ ...OPEN, items: [{ id: 'a', quantity: 3 }] })
    const order = { user: 'ann', items: [{ id: 'a', quantity: 2 }], key: key() }
    const { code } = await sale.checkout(order)
    await sale.checkout(order)
    await sale.checkout({ ...order, user: 'bob', key: key() }).catch(() => {})
    await sale.checkout({ ...order, items: [] }).catch(() => {})
    await hf.checkoutRef(code).purchase()
    await sale.purchase(code)
    await sale.cancel(code).catch(() => {})
    await hf
      .sale('none')
      .close()
      .catch(() => {})
    expect(counted).toEqual([
      'open done',
      'checkout done',
      'checkout replayed',
      'checkout sold_out',
      'checkout invalid_argument',
      'purchase done',
      'purchase replayed',
      'cancel checkout_closed',
      'close sale_not_found',
    ])
    expect(units).toEqual({ checkout: 2, purchase: 2 })
  })

  it('is counted as well where a schedule has told of the sale', async () => {
    const schedule = hf.saleSchedule('counted')
    const items = [{ id: 'a', quantity: 2 }]
    // No slot ends in the middle of this: the one after it would not be open at once.
    const offset = (Date.now() + HOUR / 2) % HOUR
    await schedule.start({ every: HOUR, offset, ahead: HOUR, perUser: 1, items })
    counted.length = 0
    const sales = [await schedule.current(), await schedule.next()]
    for (const sale of sales) await sale?.checkout({ user: 'ann', items: [{ id: 'a' }], key: key() }).catch(() => {})
    await schedule.stop()
    expect(counted).toEqual(['checkout done', 'checkout sale_not_active'])
  })
})
