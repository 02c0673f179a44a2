import { Holdfast, type Telemetry } from 'holdfast'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'

const HOUR = 3_600_000
const NOW = Date.now()
const TERMS = { perUser: 10, startsAt: NOW - 1_000, endsAt: NOW + HOUR }

let reads = 0
const telemetry: Telemetry = {
  observe: (metric, _, labels) => {
    if (metric === 'postgres_query_duration_seconds' && labels?.query === 'saleStanding') reads += 1
  },
}
let hf: Holdfast
let postgres: string
let redis: string
beforeAll(async () => {
  ;[redis, postgres] = [await freshRedis(), await freshDatabase()]
  hf = await Holdfast.connect({ redis, postgres, audit: false, telemetry })
}, 120_000)
afterAll(() => hf.close())

it('tells who waits, once, when the last is bought: not while one lies in a checkout', async () => {
  const sale = hf.sale('all')
  await sale.open({ ...TERMS, items: [{ id: 'a', quantity: 2 }] })
  let told = 0
  const waiting = Array.from({ length: 100 }, () =>
    hf
      .sale('all')
      .soldOut()
      .then((soldOut) => (told += soldOut ? 1 : 0)),
  )
  const { code } = await sale.checkout({ user: 'ann', items: [{ id: 'a', quantity: 2 }], key: 'ann-1' })
  expect(await sale.status()).toMatchObject({ stock: 0, reserved: 2, soldOut: false })
  const began = performance.now()
  reads = 0
  await expect.poll(() => reads, { timeout: 20_000 }).toBeGreaterThan(2)
  // One question at a time, three quarters of a second apart at least, for a hundred who wait.
  expect(reads).toBeLessThanOrEqual(1 + (performance.now() - began) / 750)
  expect(told).toBe(0)
  await sale.purchase(code)
  await Promise.all(waiting)
  expect(told).toBe(100)
  expect(await sale.status()).toMatchObject({ stock: 0, reserved: 0, sold: 2, soldOut: true })
  expect(await sale.soldOut()).toBe(true)
}, 60_000)

it('tells that it is over where something was left, once nothing lies in a checkout', async () => {
  const sale = hf.sale('left')
  await sale.open({ ...TERMS, buckets: 2, items: [{ id: 'a', quantity: 4 }] })
  const { code } = await sale.checkout({ user: 'ann', items: [{ id: 'a' }], key: 'ann-1' })
  let over = false
  const waiting = sale.soldOut().then((soldOut) => {
    over = true
    return soldOut
  })
  await sale.close()
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  expect(over).toBe(false)
  await sale.purchase(code)
  expect(await waiting).toBe(false)
}, 60_000)

it('stops waiting when it is told to, and when all ends', async () => {
  const sale = hf.sale('never')
  await expect(sale.soldOut()).rejects.toMatchObject({ code: 'sale_not_found' })
  await sale.open({ ...TERMS, items: [{ id: 'a' }] })
  const stop = new AbortController()
  const waiting = sale.soldOut({ signal: stop.signal })
  stop.abort()
  await expect(waiting).rejects.toMatchObject({ code: 'aborted' })
  await expect(sale.soldOut({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'aborted' })
  await expect(sale.soldOut({ signal: 'no' as never })).rejects.toMatchObject({ code: 'invalid_argument' })
  const other = await Holdfast.connect({ redis, postgres, audit: false })
  const left = other.sale('never').soldOut()
  const end = expect(left).rejects.toMatchObject({ code: 'unavailable' })
  await other.sale('never').status()
  await other.close()
  await end
}, 60_000)
