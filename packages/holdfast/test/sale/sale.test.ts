import { randomUUID } from 'node:crypto'
import { Holdfast, type Sale } from 'holdfast'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'

const HOUR = 3_600_000
const NOW = Date.now()
const OPEN = { perUser: 10, startsAt: NOW - 1_000, endsAt: NOW + HOUR }
const unique = (count: number) => Array.from({ length: count }, (_, n) => ({ id: `item-${n}` }))

let hf: Holdfast
let other: Holdfast
let redis: Redis
beforeAll(async () => {
  const [redisUrl, postgres] = [await freshRedis(), await freshDatabase()]
  redis = new Redis(redisUrl)
  const connect = () => Holdfast.connect({ redis: redisUrl, postgres, audit: false })
  ;[hf, other] = await Promise.all([connect(), connect()])
})
afterAll(async () => {
  await Promise.all([hf.close(), other.close()])
  redis.disconnect()
})

const key = () => randomUUID()

describe('a sale', () => {
  it('is opened once; the same again changes nothing, other terms are refused', async () => {
    const sale = hf.sale('once')
    expect(await sale.status()).toBeNull()
    const opened = await sale.open({ ...OPEN, items: unique(3) })
    expect(opened).toMatchObject({ id: 'once', stock: 3, reserved: 0, sold: 0, limit: 3, items: 3, buckets: 1 })
    expect(await other.sale('once').open({ ...OPEN, items: unique(3) })).toEqual(opened)
    await expect(sale.open({ ...OPEN, items: unique(4) })).rejects.toMatchObject({ code: 'sale_exists' })
    await expect(sale.open({ ...OPEN, perUser: 9, items: unique(3) })).rejects.toMatchObject({ code: 'sale_exists' })
    await expect(hf.sale('none').checkout({ user: 'u', items: [{ id: 'x' }], key: key() })).rejects.toMatchObject({
      code: 'sale_not_found',
    })
  })

  it.each([
    { perUser: 0 },
    { perUser: undefined },
    { endsAt: 0 },
    { checkoutTtl: 0 },
    { reserve: 'never' },
    { buckets: 65 },
    { limit: 0 },
  ])('looks at no item where %j is wrong: there may be a million of them', async (wrong) => {
    let looked = 0
    const item = {
      get id() {
        looked += 1
        return 'a'
      },
    }
    const asked = { ...OPEN, ...wrong, items: [item] } as unknown as Parameters<Sale['open']>[0]
    await expect(hf.sale('wrong').open(asked)).rejects.toMatchObject({ code: 'invalid_argument' })
    expect(looked).toBe(0)
  })

  it('checks out, adds to what is running, buys, and says the same again', async () => {
    const sale = hf.sale('path')
    await sale.open({ ...OPEN, items: [{ id: 'a', quantity: 5 }, { id: 'b' }, { id: 'c' }] })
    const k = key()
    const first = await sale.checkout({ user: 'ann', items: [{ id: 'a', quantity: 2 }], key: k })
    expect(first).toMatchObject({ items: [{ id: 'a', quantity: 2 }], replayed: false })
    expect(await sale.checkout({ user: 'ann', items: [{ id: 'a', quantity: 2 }], key: k })).toEqual({
      ...first,
      replayed: true,
    })
    await expect(sale.checkout({ user: 'ann', items: [{ id: 'a' }], key: key() })).rejects.toMatchObject({
      code: 'duplicate_item',
      item: 'a',
    })
    const more = await sale.checkout({ user: 'ann', items: [{ id: 'b' }], key: key() })
    expect(more).toMatchObject({
      code: first.code,
      items: [
        { id: 'a', quantity: 2 },
        { id: 'b', quantity: 1 },
      ],
    })
    await expect(other.sale('path').checkout({ user: 'bob', items: [{ id: 'b' }], key: key() })).rejects.toMatchObject({
      code: 'sold_out',
      item: 'b',
      left: 0,
    })
    expect(await sale.status()).toMatchObject({ stock: 4, reserved: 3, sold: 0 })
    const bought = await sale.purchase(first.code)
    expect(bought).toMatchObject({ items: more.items, replayed: false })
    expect(await other.sale('path').purchase(first.code)).toEqual({ ...bought, replayed: true })
    expect(await sale.purchase(first.code, { take: 'left' })).toEqual({ ...bought, replayed: true })
    await expect(sale.cancel(first.code)).rejects.toMatchObject({ code: 'checkout_closed' })
    expect(await sale.status()).toMatchObject({ stock: 4, reserved: 0, sold: 3 })
  })

  it('gives back what is cancelled or runs out', async () => {
    const sale = hf.sale('back')
    await sale.open({ ...OPEN, items: unique(2) })
    const { code } = await sale.checkout({ user: 'ann', items: [{ id: 'item-0' }], key: key() })
    expect(await sale.cancel(code)).toEqual({ replayed: false })
    expect(await sale.cancel(code)).toEqual({ replayed: true })
    await expect(sale.purchase(code)).rejects.toMatchObject({ code: 'checkout_closed' })
    await sale.checkout({ user: 'bob', items: [{ id: 'item-0' }], key: key() })
    const short = hf.sale('out')
    await short.open({ ...OPEN, checkoutTtl: 300, items: unique(2) })
    const second = await short.checkout({ user: 'bob', items: [{ id: 'item-0' }], key: key() })
    await expect.poll(() => short.status(), { timeout: 20_000 }).toMatchObject({ stock: 2, reserved: 0 })
    await expect(short.purchase(second.code)).rejects.toMatchObject({ code: 'checkout_expired' })
    await short.checkout({ user: 'eve', items: [{ id: 'item-0' }], key: key() })
  })

  it('holds every user to the limit, however many ask at once', async () => {
    const sale = hf.sale('limit')
    await sale.open({ ...OPEN, items: [{ id: 'a', quantity: 1_000 }] })
    const asked = await Promise.allSettled(
      Array.from({ length: 50 }, async (_, n) => {
        const { code } = await (n % 2 ? hf : other)
          .sale('limit')
          .checkout({ user: 'ann', items: [{ id: 'a', quantity: 3 }], key: key() })
        await sale.purchase(code)
      }),
    )
    expect(asked.some(({ status }) => status === 'fulfilled')).toBe(true)
    const { sold } = (await sale.status()) as { sold: number }
    expect(sold).toBeLessThanOrEqual(10)
    expect(sold).toBeGreaterThanOrEqual(3)
  })

  it('decides when it is bought, where that is asked for: all, or what is left', async () => {
    const sale = hf.sale('later')
    await sale.open({ ...OPEN, reserve: 'purchase', items: [{ id: 'a' }, { id: 'b' }] })
    const items = [{ id: 'a' }, { id: 'b' }]
    const ann = await sale.checkout({ user: 'ann', items, key: key() })
    const bob = await sale.checkout({ user: 'bob', items: [{ id: 'a' }], key: key() })
    expect(await sale.status()).toMatchObject({ stock: 2, reserved: 0, sold: 0 })
    await sale.purchase(bob.code)
    await expect(sale.purchase(ann.code)).rejects.toMatchObject({ code: 'sold_out', item: 'a' })
    expect(await sale.purchase(ann.code, { take: 'left' })).toMatchObject({ items: [{ id: 'b', quantity: 1 }] })
    expect(await sale.status()).toMatchObject({ stock: 0, sold: 2 })
  })

  it('finds a running checkout by its user, whatever Redis remembers', async () => {
    const sale = hf.sale('found')
    await sale.open({ ...OPEN, items: unique(3) })
    expect(await sale.checkoutOf('ann')).toBeNull()
    await sale.checkout({ user: 'ann', items: [{ id: 'item-0' }], key: key() })
    const { replayed: _, ...running } = await sale.checkout({ user: 'ann', items: [{ id: 'item-1' }], key: key() })
    expect(await other.sale('found').checkoutOf('ann')).toEqual(running)
    await redis.flushdb()
    expect(await sale.checkoutOf('ann')).toEqual(running)
    expect(await sale.checkoutOf('bob')).toBeNull()
    await sale.purchase(running.code)
    expect(await sale.checkoutOf('ann')).toBeNull()
  })

  it('takes no checkouts before it begins, or when it was closed; what is in one can still be bought', async () => {
    const later = hf.sale('tomorrow')
    await later.open({ ...OPEN, startsAt: NOW + HOUR, endsAt: NOW + 2 * HOUR, items: unique(1) })
    await expect(later.checkout({ user: 'ann', items: [{ id: 'item-0' }], key: key() })).rejects.toMatchObject({
      code: 'sale_not_active',
      startsAt: NOW + HOUR,
    })
    const sale = hf.sale('closed')
    await sale.open({ ...OPEN, items: unique(2) })
    const { code } = await sale.checkout({ user: 'ann', items: [{ id: 'item-0' }], key: key() })
    expect(await sale.close()).toMatchObject({ open: false })
    await expect(sale.checkout({ user: 'bob', items: [{ id: 'item-1' }], key: key() })).rejects.toMatchObject({
      code: 'sale_not_active',
    })
    expect(await sale.purchase(code)).toMatchObject({ items: [{ id: 'item-0', quantity: 1 }] })
    expect(await hf.wallets()).toEqual([])
  })

  it('is audited, and filled into Redis, as wallets are', async () => {
    const sale = hf.sale('audited')
    await sale.open({ ...OPEN, items: unique(5) })
    const { code } = await sale.checkout({ user: 'ann', items: [{ id: 'item-0' }], key: key() })
    await sale.purchase(code)
    await sale.checkout({ user: 'bob', items: [{ id: 'item-1' }], key: key() })
    expect((await hf.audit()).findings).toEqual([])
    await redis.flushdb()
    await hf.rebuild({ all: true })
    for (const item of ['item-0', 'item-1']) {
      await expect(sale.checkout({ user: 'eve', items: [{ id: item }], key: key() })).rejects.toMatchObject({
        code: 'sold_out',
      })
    }
    expect((await hf.audit()).findings).toEqual([])
  })

  it('refuses codes of other sales and of other tenants', async () => {
    await hf.sale('mine').open({ ...OPEN, items: unique(1) })
    await hf.sale('yours').open({ ...OPEN, items: unique(1) })
    const { code } = await hf.sale('mine').checkout({ user: 'ann', items: [{ id: 'item-0' }], key: key() })
    const wrong = { code: 'checkout_not_found' }
    await expect(hf.sale('yours').purchase(code)).rejects.toMatchObject(wrong)
    const acme = hf.forTenant('acme')
    await acme.sale('mine').open({ ...OPEN, items: unique(1) })
    await expect(acme.sale('mine').purchase(code)).rejects.toMatchObject(wrong)
    await expect(hf.sale('mine').purchase(`${code.slice(0, -2)}AA`)).rejects.toMatchObject(wrong)
    await expect(hf.sale('mine').purchase('nonsense')).rejects.toMatchObject(wrong)
  })

  it('sells exactly what there is to a crowd, and goes on after Redis has forgotten everything', async () => {
    const sale = hf.sale('crowd')
    const count = 400
    await sale.open({ ...OPEN, items: unique(count) })
    let next = 0
    let flushed = false
    const owners = new Map<string, string>()
    const buyer = async (n: number) => {
      const at = (n % 2 ? hf : other).sale('crowd')
      const user = `user-${n}`
      for (let bought = 0; bought < 10; ) {
        const item = next++
        if (item >= count) return
        if (item > count / 2 && !flushed) {
          flushed = true
          await redis.flushdb()
        }
        const { code } = await at.checkout({ user, items: [{ id: `item-${item}` }], key: key() })
        const { items } = await at.purchase(code)
        for (const { id } of items) {
          expect(owners.has(id)).toBe(false)
          owners.set(id, user)
        }
        bought += 1
      }
    }
    await Promise.all(Array.from({ length: 60 }, (_, n) => buyer(n)))
    expect(owners.size).toBe(count)
    expect(await sale.status()).toMatchObject({ stock: 0, reserved: 0, sold: count })
    await expect(sale.checkout({ user: 'late', items: [{ id: 'item-7' }], key: key() })).rejects.toMatchObject({
      code: 'sold_out',
    })
  })
})
