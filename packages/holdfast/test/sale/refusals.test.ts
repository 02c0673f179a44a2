import { randomUUID } from 'node:crypto'
import { Holdfast, type Telemetry } from 'holdfast'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'

const PROCESSES = 3
const REFUSALS = 5_000
/** What is asked of Postgres whether anybody buys or not. */
const BACKGROUND = new Set([
  'proveStanding',
  'renewPlans',
  'dueWallets',
  'relaxDue',
  'transferNumbers',
  'paymentNumbers',
  'ping',
  'readStop',
])
const HOUR = 3_600_000

const statements = new Map<string, number>()
const recoveries = new Map<string, number>()
const note = (counts: Map<string, number>, name = '', by = 1) => counts.set(name, (counts.get(name) ?? 0) + by)
const telemetry: Telemetry = {
  observe(metric, _, labels) {
    if (metric === 'postgres_query_duration_seconds' && !BACKGROUND.has(labels?.query ?? '')) {
      note(statements, labels?.query)
    }
  },
  count(metric, labels, by) {
    if (metric === 'holdfast_recoveries_total') note(recoveries, labels?.what, by)
  },
}

let redis: Redis
let processes: Holdfast[]
beforeAll(async () => {
  const [url, postgres] = [await freshRedis(), await freshDatabase()]
  redis = new Redis(url)
  // On a busy machine too everybody is answered at the first try, and a sale is loaded once: whatever comes again asks Postgres.
  const engine = { decideWithinMs: 60_000, leaseMs: 30_000 }
  const patient = { timeout: 120_000, redisOptions: { commandTimeoutMs: 60_000 }, engine }
  // The record of attempts is written in batches of its own.
  const parts = { redis: url, postgres, audit: false, earlyReject: false, saleAttempts: false, telemetry } as const
  const connect = () => Holdfast.connect({ ...parts, ...patient })
  processes = [await connect()]
  while (processes.length < PROCESSES) processes.push(await connect())
}, 180_000)
afterAll(async () => {
  await Promise.all(processes.map((hf) => hf.close()))
  redis.disconnect()
})

const of = (id: string) => processes.map((hf) => hf.sale(id))
const open = async (id: string, quantity: number) => {
  const terms = { perUser: 1_000, startsAt: Date.now() - 1_000, endsAt: Date.now() + HOUR }
  const sales = of(id)
  await sales[0]?.open({ ...terms, items: [{ id: 'a', quantity }] })
  return sales as [(typeof sales)[0], ...typeof sales]
}
const a = [{ id: 'a' }]
/** So many who have never been here, all of them refused; what that cost Postgres, and how long it took. */
const stampede = async (sales: ReturnType<typeof of>, refusals: number) => {
  statements.clear()
  const began = performance.now()
  const codes = await Promise.all(
    Array.from({ length: refusals }, (_, n) =>
      sales[n % PROCESSES]?.checkout({ user: randomUUID(), items: a, key: randomUUID() }).then(
        () => 'sold',
        ({ code }) => code,
      ),
    ),
  )
  expect(new Set(codes)).toEqual(new Set(['sold_out']))
  return { asked: Object.fromEntries(statements), elapsedMs: performance.now() - began }
}

describe('a stampede of refusals', () => {
  it('costs Postgres nothing once everything is sold: each process has that confirmed once', async () => {
    const sales = await open('gone', 2)
    const { code } = await sales[0].checkout({ user: 'ann', items: [{ id: 'a', quantity: 2 }], key: 'ann-1' })
    await sales[0].purchase(code)
    const first = await stampede(sales, PROCESSES)
    expect(first.asked.confirm).toBeLessThanOrEqual(PROCESSES)
    expect((await stampede(sales, REFUSALS)).asked).toEqual({})
    const refused = await sales[1]?.checkout({ user: 'eve', items: a, key: 'eve-1' }).catch((error) => error)
    expect(refused).toMatchObject({ code: 'sold_out', item: 'a', left: 0, stock: 0, reserved: 0 })
    // A new life of the state is another matter, and is asked about once more.
    await redis.flushdb()
    await stampede(sales, PROCESSES)
    expect((await stampede(sales, REFUSALS)).asked).toEqual({})
  }, 240_000)

  it('costs a statement each 10 ms and process at most while something may come back, and every answer is true', async () => {
    const sales = await open('held', 1)
    const { code } = await sales[0].checkout({ user: 'ann', items: a, key: 'ann-1' })
    await stampede(sales, PROCESSES)
    const { asked, elapsedMs } = await stampede(sales, REFUSALS)
    expect(Object.keys(asked)).toEqual(['confirm'])
    expect(asked.confirm).toBeLessThanOrEqual(PROCESSES * (2 + elapsedMs / 10))
    await sales[0].cancel(code)
    expect(await sales[1]?.checkout({ user: 'bob', items: a, key: 'bob-1' })).toMatchObject({ replayed: false })
  }, 240_000)

  it('is no answer to who was served before: a repeated key gets its result, however long ago that was', async () => {
    const sales = await open('again', 300)
    const checkout = (user: string) => sales[0].checkout({ user, items: a, key: `${user}-1` })
    const first = await checkout('ann')
    await Promise.all(Array.from({ length: 200 }, (_, n) => checkout(`user-${n}`)))
    recoveries.clear()
    // There is some left, so it could be sold to her again.
    const repeat = { user: 'ann', items: a, key: 'ann-1' }
    for (const sale of sales) expect(await sale.checkout(repeat)).toEqual({ ...first, replayed: true })
    await expect(sales[0].checkout({ ...repeat, items: [{ id: 'a', quantity: 2 }] })).rejects.toMatchObject({
      code: 'idempotency_conflict',
    })
    // Nobody's sale is loaded anew for that.
    expect(recoveries.get('reload')).toBeUndefined()
    await Promise.all(Array.from({ length: 99 }, (_, n) => checkout(`more-${n}`)))
    await expect(checkout('late')).rejects.toMatchObject({ code: 'sold_out', stock: 0, reserved: 300 })
    for (const sale of sales) expect(await sale.checkout(repeat)).toEqual({ ...first, replayed: true })
    await redis.flushdb()
    for (const sale of sales) expect(await sale.checkout(repeat)).toEqual({ ...first, replayed: true })
  }, 240_000)
})
