import { Holdfast, type Telemetry } from 'holdfast'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { SaleMemories } from '../../src/api/sale/memories.js'
import { PostgresSales } from '../../src/journal/index.js'
import { Postgres } from '../../src/postgres/index.js'

const HOUR = 3_600_000
const NOW = Date.now()
const ITEMS = Array.from({ length: 10 }, (_, n) => ({ id: `item-${n}` }))
const ids = (count = ITEMS.length) => ITEMS.slice(0, count).map(({ id }) => id)

/** What was asked of Postgres since the last look. */
class Asked implements Telemetry {
  #names: string[] = []
  observe = (_: string, __: number, labels?: Readonly<Record<string, string>>): void => {
    if (labels?.query?.match(/^(readSale|saleItems)$/)) this.#names.push(labels.query)
  }

  take(): string[] {
    return this.#names.splice(0)
  }
}

const asked = new Asked()
let hf: Holdfast
let postgres: Postgres
beforeAll(async () => {
  const urls = { redis: await freshRedis(), postgres: await freshDatabase() }
  hf = await Holdfast.connect({ ...urls, audit: false, telemetry: asked })
  postgres = new Postgres(urls.postgres, { telemetry: asked })
  for (const id of ['a', 'b', 'c']) {
    await hf.sale(id).open({ items: ITEMS, perUser: 5, startsAt: NOW - 1_000, endsAt: NOW + HOUR })
  }
})
afterAll(() => Promise.all([hf.close(), postgres.close()]))

describe('what a process remembers of sales', () => {
  it('is not forgotten because somebody asks for sales that there are not', async () => {
    const sale = hf.sale('a')
    await sale.checkout({ user: 'ann', items: [{ id: 'item-0' }], key: 'ann-1' })
    for (let n = 0; n < 1_500; n += 100) {
      const made = Array.from({ length: 100 }, (_, m) => hf.sale(`made-up-${n + m}`))
      expect(await Promise.all(made.map((one) => one.status()))).toEqual(made.map(() => null))
      expect(await Promise.all(made.map((one) => one.attempts()))).toEqual(made.map(() => []))
    }
    asked.take()
    await sale.checkout({ user: 'ann', items: [{ id: 'item-0' }], key: 'ann-1' })
    expect(asked.take()).toEqual([])
  }, 60_000)

  it('is so many items in all: those of the sale that was not used for longest go first', async () => {
    const memories = new SaleMemories(new PostgresSales(postgres), { itemsMax: 25, salesMax: 10 })
    const look = async (sale: string, count?: number) => (await memories.of('default', sale).byId(ids(count))).length
    for (const sale of ['a', 'b', 'a', 'c']) expect(await look(sale)).toBe(10)
    expect(memories.items).toBe(20)
    asked.take()
    for (const sale of ['a', 'c']) await look(sale)
    expect(asked.take()).toEqual([])
    // Whoever is still at it with what was forgotten gets an answer, and takes up no room.
    const late = memories.of('default', 'b')
    await late.byId(ids(5))
    expect(memories.items).toBe(25)
    await look('a')
    await look('c')
    await look('a')
    await late.byId(ids())
    expect(memories.items).toBeLessThanOrEqual(25)
  })

  it('is so many sales, and none that there is not', async () => {
    const memories = new SaleMemories(new PostgresSales(postgres), { itemsMax: 100, salesMax: 2 })
    for (const sale of ['a', 'b', 'a', 'none', 'c', 'none']) await memories.of('default', sale).terms()
    expect(memories.sales).toBe(2)
    asked.take()
    for (const sale of ['a', 'c']) expect(await memories.of('default', sale).terms()).toMatchObject({ perUser: 5 })
    expect(asked.take()).toEqual([])
    // A crowd that comes for one that there is not asks once.
    const crowd = Array.from({ length: 50 }, () => memories.of('default', 'nothing').terms())
    expect(new Set(await Promise.all(crowd))).toEqual(new Set([null]))
    expect(asked.take()).toHaveLength(1)
  })

  it('is let go an hour after the end of a sale', async () => {
    let now = NOW
    const memories = new SaleMemories(new PostgresSales(postgres), { now: () => now })
    const use = async () => {
      const memory = memories.of('default', 'a')
      await memory.terms()
      await memory.byId(ids())
    }
    await use()
    now = NOW + 2 * HOUR - 1
    memories.of('default', 'b')
    expect(memories.items).toBe(10)
    now = NOW + 2 * HOUR + 60_001
    memories.of('default', 'b')
    expect(memories.items).toBe(0)
    // Who asks later still is answered.
    await use()
  })
})
