import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Checkout, Holdfast, Sale } from '../../src/index.js'
import { type Grounds, grounds, tamper } from './support/drift.js'

const HOUR = 3_600_000
const LIMITS = { confirmAfterMs: 5 }
const ITEMS = [{ id: 'shirt', quantity: 5 }, { id: 'mug' }, { id: 'pen' }]

let on: Grounds
let hf: Holdfast
let sale: Sale
let running: Checkout
beforeEach(async () => {
  on = await grounds()
  hf = await on.connect({ audit: { every: HOUR, limits: LIMITS } })
  sale = hf.sale('friday')
  await sale.open({ items: ITEMS, perUser: 3, startsAt: Date.now() - 1_000, endsAt: Date.now() + HOUR })
  running = await sale.checkout({ user: 'ann', items: [{ id: 'shirt', quantity: 2 }], key: 'ann-1' })
  const { code } = await sale.checkout({ user: 'bob', items: [{ id: 'mug' }], key: 'bob-1' })
  await sale.purchase(code)
})
afterEach(() => on.close())

const stockKey = async () => (await on.redis.keys('hf:*:stock:*'))[0] as string

/** The field of the stock that begins so, and has this in it. */
async function field(prefix: string, value: string | RegExp = /^/): Promise<string> {
  const all = Object.entries(await on.redis.hgetall(await stockKey()))
  const [found] = all.find(([name, held]) => name.startsWith(prefix) && held.match(value) !== null) ?? []
  if (found === undefined) throw new Error(`No ${prefix} with ${value} in ${JSON.stringify(all)}`)
  return found
}
const put = async (name: string, value: string | number) => on.redis.hset(await stockKey(), name, value)
const remove = async (name: string) => on.redis.hdel(await stockKey(), name)

/** Somebody has done this to the stock in Redis; this is the finding. */
const DRIFTS: [string, () => Promise<unknown>, string][] = [
  ['fewer of an item taken', () => put('i:1', 1), 'item 1: 2 → 1'],
  ['an item that was sold on sale again', () => remove('i:2'), 'item 2: 1 → null'],
  ['an item sold that nobody has bought', () => put('i:3', 1), 'fields: 9 → 10'],
  ['something that is no number', () => put('i:1', 'many'), 'item 1: 2 → something else'],
  ['a buyer who may buy more', async () => put(await field('u:', /^1 $/), '0 '), 'buyer: 1 → 0'],
  ['a buyer who is forgotten', async () => remove(await field('u:', /^1 $/)), 'buyer: 1 → null'],
  [
    'a buyer without the running checkout',
    async () => put(await field('u:', /^2 /), '2 '),
    'running: the checkout → another, or none',
  ],
  [
    'a checkout with something else in it',
    async () => put(await field('c:'), 'reserve ann 1:1/1'),
    'checkout: its lines → something else',
  ],
  ['a checkout that is gone', async () => remove(await field('c:')), 'checkout: its lines → null'],
  ['a key that is forgotten', async () => remove(await field('k:')), 'key: noted → null'],
  ['another end', () => put('until', 5), expect.stringMatching(/^until: \d{13} → 5$/)],
]

describe('a sale in Redis with', () => {
  it.each(DRIFTS)('%s is found and loaded anew', async (_, damage, expected) => {
    expect(await hf.audit()).toMatchObject({ findings: [], hot: 1 })
    await damage()
    const report = await hf.audit()
    expect(report.findings.map((one) => `${one.field}: ${one.expected} → ${one.found}`)).toEqual([expected])
    expect(report.findings).toMatchObject([{ cause: 'hot_stock_differs', action: 'repaired', tenant: 'default' }])
    const own = (await on.redis.hkeys(await stockKey())).filter((name) => /^[uck]:/.test(name))
    expect(own.length).toBeGreaterThan(4)
    for (const name of own) expect(JSON.stringify(report)).not.toContain(name.slice(2))

    expect((await hf.audit()).findings).toEqual([])
    await expect(sale.checkout({ user: 'eve', items: [{ id: 'mug' }], key: 'eve-1' })).rejects.toMatchObject({
      code: 'sold_out',
    })
    await expect(
      sale.checkout({ user: 'bob', items: [{ id: 'shirt', quantity: 3 }], key: 'bob-2' }),
    ).rejects.toMatchObject({
      code: 'user_limit',
    })
    expect(await sale.purchase(running.code)).toMatchObject({ items: [{ id: 'shirt', quantity: 2 }] })
    expect(await sale.checkout({ user: 'eve', items: [{ id: 'pen' }], key: 'eve-2' })).toMatchObject({
      replayed: false,
    })
    expect(await sale.status()).toMatchObject({ stock: 3, reserved: 1, sold: 3 })
  })

  it('a wrong count is only reported where nobody is allowed to repair', async () => {
    await put('i:1', 1)
    expect((await hf.audit({ repair: false })).findings).toMatchObject([{ field: 'item 1', action: 'reported' }])
    expect(await on.redis.hget(await stockKey(), 'i:1')).toBe('1')
  })

  it('no stock of its life beside it is not gone by: nothing is wrong', async () => {
    await on.redis.del(await stockKey())
    expect((await hf.audit()).findings).toEqual([])
    await expect(sale.checkout({ user: 'eve', items: [{ id: 'mug' }], key: 'eve-1' })).rejects.toMatchObject({
      code: 'sold_out',
    })
  })
})

it('looks at a large stock only where all is looked at', async () => {
  const large = await on.connect({ audit: { every: HOUR, limits: { ...LIMITS, stockMax: 2, stockInAllMax: 8 } } })
  await put('i:1', 1)
  expect(await large.audit()).toMatchObject({ findings: [], hot: 1, unsettled: 0 })
  expect((await large.audit({ full: true })).findings).toMatchObject([{ field: 'item 1', action: 'repaired' }])
})

it('tells of an entry that does not say what it did, and audits the others all the same', async () => {
  await hf.wallet('beside it').open({ currency: 'usd' })
  await hf.wallet('beside it').credit(100, { key: 'in' })
  expect((await hf.audit()).findings).toEqual([])
  await on.postgres.query("UPDATE entries SET metadata = 'nobody reads this' WHERE kind = 'settle'")
  await on.postgres.query('DELETE FROM stock_checkpoints')
  await tamper(on, 'beside it', 'available', 1)
  // Another process, which has not read it before.
  const other = await on.connect({ audit: { every: HOUR, limits: LIMITS } })
  const report = await other.audit()
  expect(report.findings.map(({ cause, action }) => `${cause} ${action}`).sort()).toEqual([
    'hot_state_differs repaired',
    'journal_hash reported',
  ])
  expect(JSON.stringify(report)).not.toContain('nobody reads')
})

it('finds nothing wrong beside buyers who come and go', async () => {
  const others = await on.connect({ audit: { every: HOUR, limits: { ...LIMITS, stockMax: 4 } } })
  const busy = hf.sale('busy')
  const items = Array.from({ length: 300 }, (_, n) => ({ id: `item-${n}`, quantity: 1_000 }))
  await busy.open({ items, perUser: 10_000, startsAt: Date.now() - 1_000, endsAt: Date.now() + HOUR })
  let working = true
  let done = 0
  const buyers = Array.from({ length: 6 }, async (_, buyer) => {
    const own = (buyer % 2 === 0 ? hf : others).sale('busy')
    for (let n = 0; working; n += 1) {
      const item = { id: `item-${(n * 7 + buyer * 50) % 300}` }
      const checkout = await own.checkout({ user: `user-${buyer}-${n % 40}`, items: [item], key: `k-${buyer}-${n}` })
      if (n % 3 === 0) await own.cancel(checkout.code)
      else await own.purchase(checkout.code)
      done += 1
    }
  })
  let audits = 0
  for (; audits < 5 || done < 150; audits += 1) {
    expect(await others.audit()).toMatchObject({ findings: [], unsettled: 0, hot: 2 })
  }
  working = false
  await Promise.all(buyers)
  expect(await others.audit({ full: true })).toMatchObject({ findings: [], unsettled: 0, hot: 2 })
})
