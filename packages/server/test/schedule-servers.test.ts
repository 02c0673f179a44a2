import { Holdfast, type OpenedSlot } from 'holdfast'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../test/servers.js'
import { type HoldfastProcess, holdfast, run } from './support/holdfast.js'

const SERVE = ['serve', '--port', '0', '--log-level', 'error', '--sale-schedules-ms', '200']
const PATH = '/v1/sale-schedules/every-2s'

let env: { REDIS_URL: string; DATABASE_URL: string }
let apiKey: string
let hf: Holdfast
beforeAll(async () => {
  env = { REDIS_URL: await freshRedis(), DATABASE_URL: await freshDatabase() }
  apiKey = JSON.parse((await run(['keys', 'create', '--json'], { env })).stdout).key
  hf = await Holdfast.connect({ redis: env.REDIS_URL, postgres: env.DATABASE_URL, audit: false })
})
afterAll(() => hf?.close())

async function ask(url: string, method: string, path: string, body?: object) {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${apiKey}`, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

describe('servers that are killed', () => {
  it('leave schedules to the others: one sale a slot, none left out, none without its stock', async () => {
    const [first, second]: HoldfastProcess[] = [await holdfast(SERVE, { env }), await holdfast(SERVE, { env })]
    const [one, other] = [await (first as HoldfastProcess).ready(), await (second as HoldfastProcess).ready()]
    const terms = { every: 2_000, ahead: 20_000, perUser: 5, buckets: 4, items: { id: '{sale}-{n}', count: 50 } }
    const asked = ask(one, 'PUT', PATH, terms).catch(() => null)
    // On record, and most of what is due is not open yet.
    await expect.poll(async () => (await ask(other, 'GET', PATH)).status, { timeout: 30_000, interval: 5 }).toBe(200)
    first?.signal('SIGKILL')
    await first?.ended
    await asked
    // Nobody has asked the other server for anything but to look.
    const running = async () => (await ask(other, 'GET', `${PATH}/current`)).status
    await expect.poll(running, { timeout: 60_000 }).toBe(200)
    // What the first has begun and was over before anybody could see that he is dead stays without stock.
    const goesOnFrom = Date.now()
    const isServed = ({ ready, endsAt }: OpenedSlot) => ready || endsAt <= goesOnFrom
    const schedule = hf.saleSchedule('every-2s')
    const sales = new Set<string>()
    const seen = async () => sales.add((await schedule.current())?.id ?? 'none').size
    await expect.poll(seen, { timeout: 60_000 }).toBeGreaterThan(3)
    expect(sales.has('none')).toBe(false)
    expect(await second?.stop()).toMatchObject({ code: 0 })
    // It may have been about to fill the last of them: whoever comes next does, whatever falls due meanwhile.
    const left = new Set((await schedule.slots()).map(({ sale }) => sale))
    const allReady = async () => {
      await schedule.start()
      return (await schedule.slots()).every((slot) => isServed(slot) || !left.has(slot.sale))
    }
    await expect.poll(allReady, { timeout: 60_000 }).toBe(true)
    await schedule.stop()

    const slots = (await schedule.slots()).toReversed()
    expect(slots.length).toBeGreaterThan(10)
    for (const [n, slot] of slots.entries()) {
      const { startsAt, endsAt, sale, ready } = slot
      expect(isServed(slot)).toBe(true)
      expect([n, endsAt - startsAt]).toEqual([n, 2_000])
      if (n > 0) expect(startsAt).toBe(slots[n - 1]?.endsAt)
      if (ready) expect(await hf.sale(sale).status()).toMatchObject({ stock: 50, sold: 0, items: 50 })
    }
    const served = slots.flatMap(({ sale, ready }) => (ready ? [sale] : []))
    expect((await hf.sales({ limit: 1_000 })).map(({ id }) => id)).toEqual(served.toSorted())
  }, 180_000)
})
