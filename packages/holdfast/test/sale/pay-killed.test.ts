import { Redis } from 'ioredis'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Holdfast, type Sale, type Wallet } from '../../src/index.js'
import { until } from '../api/support/paths.js'
import { judge } from '../processes/support/judge.js'
import type { AskedPurchase } from '../processes/support/operations.js'
import { type Worker, Workers } from '../processes/support/workers.js'
import { type FaultyProxy, startProxy } from '../redis/support/proxy.js'

/**
 *     worker ──────────▶ Redis        the test's own engine goes past the proxy
 *        └──▶ proxy ──▶ Postgres
 */
let workers: Workers
let direct: { redis: string; postgres: string }
let pool: pg.Pool
let hf: Holdfast
const PRICE = 300
const SLOW = { sweepEveryMs: 600_000 }
/**
 * A machine that stands still for a moment is no reason to take Redis for away: what is decided there and not in the journal would be lost,
 * and a purchase end in another way.
 */
const PATIENT = { timeout: 60_000, redisOptions: { commandTimeoutMs: 20_000 }, audit: false } as const
// Longer than anybody waits here.
vi.setConfig({ testTimeout: 180_000 })

beforeAll(async () => {
  workers = await Workers.prepare()
  direct = { redis: await freshRedis(), postgres: await freshDatabase() }
  hf = await Holdfast.connect({ ...direct, ...PATIENT, engine: SLOW })
  pool = new pg.Pool({ connectionString: direct.postgres, max: 1 })
})
afterAll(async () => {
  await workers.stop()
  await hf.close()
  await pool.end()
})

const openPayments = async () => (await pool.query('SELECT FROM holdfast.payments')).rows.length

/** Somebody who looks after what others left behind, at once. What came of that, and how often. */
async function recover(): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  const sweeper = await Holdfast.connect({
    ...direct,
    ...PATIENT,
    engine: { sweepEveryMs: 20, transferHoldWithinMs: 50, transferGraceMs: 100 },
    // One after the other: that one is over is written down before anybody looks again, however slow that is. So each is counted once.
    postgresOptions: { maxConnections: 1, connectTimeoutMs: 60_000, statementTimeoutMs: 60_000, lockTimeoutMs: 60_000 },
    telemetry: {
      count: (_, labels) => {
        if (labels?.what?.startsWith('purchase')) counts[labels.what] = (counts[labels.what] ?? 0) + 1
      },
    },
  })
  await until(async () => (await openPayments()) === 0, 60_000)
  await sweeper.close()
  return counts
}

/** A process on the other side of a proxy to Postgres. */
class Victim {
  readonly #proxy: FaultyProxy

  private constructor(proxy: FaultyProxy) {
    this.#proxy = proxy
  }

  static async behindProxy(): Promise<Victim> {
    return new Victim(await startProxy(Number(new URL(direct.postgres).port)))
  }

  start(name: string): Promise<Worker> {
    const postgres = Object.assign(new URL(direct.postgres), { port: String(this.#proxy.port) }).href
    // Five of them start at once, on a machine that may be busy with other things.
    const postgresOptions = { connectTimeoutMs: 60_000 }
    return workers.start(name, { redis: direct.redis, postgres, postgresOptions, engine: SLOW, ...PATIENT })
  }

  /** Killed when what the words stand in is decided and not in the journal, or when it is there and nobody has heard of it. */
  async killAt(worker: Worker, purchase: AskedPurchase, { when, words }: Moment): Promise<void> {
    const proxy = this.#proxy
    const reached = when === 'before' ? proxy.holdAt(words) : proxy.cutReplyTo(words).then(() => proxy.hold())
    worker.order({ type: 'purchase', purchase })
    await reached
    await worker.kill()
    proxy.cut()
    proxy.behave()
  }

  close(): Promise<void> {
    return this.#proxy.close()
  }
}

interface Moment {
  readonly when: 'before' | 'after'
  readonly words: string
}

async function newSale(id: string, items: number, reserve: 'checkout' | 'purchase'): Promise<Sale> {
  const sale = hf.sale(id)
  const now = Date.now()
  await sale.open({
    items: Array.from({ length: items }, (_, n) => ({ id: `item-${n}` })),
    perUser: 2,
    startsAt: now - 1_000,
    endsAt: now + 3_600_000,
    reserve,
  })
  return sale
}

async function newWallet(id: string, available: number): Promise<Wallet> {
  const wallet = hf.wallet(id)
  await wallet.open({ currency: 'usd' })
  await wallet.credit(available, { key: 'in' })
  return wallet
}

describe('a process that is killed in the middle of a purchase', () => {
  let victim: Victim
  let worker: Worker
  let sale: Sale
  let wallet: Wallet
  let asked: AskedPurchase
  let count = 0

  beforeAll(async () => {
    victim = await Victim.behindProxy()
  })
  afterAll(() => victim.close())
  beforeEach(async () => {
    // What the test before has bought last is written down as over a moment after it was told.
    await until(async () => (await openPayments()) === 0)
    count += 1
    sale = await newSale(`sale-${count}`, 1, 'checkout')
    wallet = await newWallet(`wallet-${count}`, 1_000)
    const { code } = await sale.checkout({ user: 'ann', items: [{ id: 'item-0' }], key: 'c' })
    asked = { sale: sale.id, code, take: 'all', wallet: wallet.id, price: PRICE }
    worker = await victim.start(`worker-${count}`)
  })

  const again = () => sale.purchase(asked.code, { pay: { wallet: asked.wallet, price: PRICE } })
  async function checkSold(): Promise<void> {
    expect(await wallet.get()).toMatchObject({ available: 700, reserved: 0 })
    expect(await sale.status()).toMatchObject({ stock: 0, reserved: 0, sold: 1 })
  }

  it.each<Moment & { what: string }>([
    { what: 'purchase is decided and not in the journal', when: 'before', words: 'purchase all' },
    { what: 'purchase is in the journal', when: 'after', words: 'purchase all' },
    { what: 'settle is decided and not in the journal', when: 'before', words: 'settle 300' },
    { what: 'settle is in the journal', when: 'after', words: 'settle 300' },
    { what: 'note of it is about to be removed', when: 'before', words: 'holdfast_endPayments' },
  ])('when its $what, has bought: others take the money', async (moment) => {
    await victim.killAt(worker, asked, moment)
    expect(await recover()).toEqual({ purchase_settled: 1 })
    await checkSold()
    expect(await again()).toMatchObject({ replayed: true, paid: { amount: PRICE } })
    await checkSold()
  })

  it.each<Moment & { what: string }>([
    { what: 'hold is decided and not in the journal', when: 'before', words: 'hold 300' },
    { what: 'hold is in the journal', when: 'after', words: 'hold 300' },
  ])('when its $what, has not: its money comes back, once it can not be bought with that any more', async (moment) => {
    await victim.killAt(worker, asked, moment)
    expect(await recover()).toEqual({ purchase_voided: 1, purchase_released: 1 })
    expect(await wallet.get()).toMatchObject({ available: 1_000, reserved: 0 })
    expect(await sale.status()).toMatchObject({ reserved: 1, sold: 0 })
    expect(await again()).toMatchObject({ replayed: false })
    await checkSold()
  })

  it('when it is written down and no more, leaves nothing; its caller can come again', async () => {
    await victim.killAt(worker, asked, { when: 'after', words: 'holdfast_beginPayments' })
    expect(await openPayments()).toBe(1)
    expect(await recover()).toEqual({ purchase_dropped: 1 })
    expect(await wallet.get()).toMatchObject({ available: 1_000, seq: 1 })
    expect(await again()).toMatchObject({ replayed: false })
    await checkSold()
  })

  it('has it finished by its caller elsewhere, who goes on with the same hold', async () => {
    await wallet.debit(700, { key: 'rest' })
    await victim.killAt(worker, asked, { when: 'after', words: 'hold 300' })
    expect(await again()).toMatchObject({ replayed: false, paid: { amount: PRICE } })
    expect(await wallet.get()).toMatchObject({ available: 0, reserved: 0 })
    await until(async () => (await openPayments()) === 0)
  })

  it('has its money released also where its checkout is over by then', async () => {
    await victim.killAt(worker, asked, { when: 'after', words: 'hold 300' })
    await sale.cancel(asked.code)
    expect(await recover()).toMatchObject({ purchase_released: 1 })
    expect(await wallet.get()).toMatchObject({ available: 1_000, reserved: 0 })
    expect(await sale.status()).toMatchObject({ stock: 1, sold: 0 })
  })

  it('and Redis has forgotten everything, is set right from the journals', async () => {
    await victim.killAt(worker, asked, { when: 'after', words: 'purchase all' })
    await flush()
    expect(await recover()).toEqual({ purchase_settled: 1 })
    await checkSold()
  })

  it('or sleeps too long, wakes up to find its purchase called off, and buys anew', async () => {
    const proxy = await startProxy(Number(new URL(direct.postgres).port))
    const postgres = Object.assign(new URL(direct.postgres), { port: String(proxy.port) }).href
    const sleeper = await workers.start('sleeper', { redis: direct.redis, postgres, engine: SLOW, ...PATIENT })
    // Not even decided: what is decided would be bought on its behalf.
    const reached = proxy.cutReplyTo('hold 300').then(() => sleeper.pause())
    sleeper.order({ type: 'purchase', purchase: asked })
    await reached
    expect(await recover()).toEqual({ purchase_voided: 1, purchase_released: 1 })
    sleeper.resume()
    await sleeper.told('done')
    expect(await sleeper.close()).toBe(0)
    await proxy.close()
    await checkSold()
    await until(async () => (await openPayments()) === 0)
  })
})

/** On the Redis that this file alone has. */
async function flush(): Promise<void> {
  const redis = new Redis(direct.redis)
  await redis.flushdb()
  redis.disconnect()
}

describe('processes that are killed between money and stock', () => {
  const LANES = 5
  const KILLS = 10
  /** Every third is left with half of what it wants. */
  const isHalf = (n: number) => n % 3 === 0
  const momentsOf = (n: number): readonly Moment[] => [
    { when: 'before', words: `hold ${2 * PRICE} ` },
    { when: 'after', words: `hold ${2 * PRICE} ` },
    { when: 'before', words: 'purchase left' },
    { when: 'after', words: 'purchase left' },
    { when: 'before', words: `settle ${isHalf(n) ? PRICE : 2 * PRICE} ` },
  ]

  it(`${LANES * KILLS} times: what is sold is paid for, what is not is not`, { timeout: 300_000 }, async () => {
    const all = Array.from({ length: LANES * KILLS }, (_, n) => n)
    const sale = await newSale('many', all.length * 2, 'purchase')
    await newWallet('shared', all.length * 2 * PRICE)
    const asked = await Promise.all(
      all.map(async (n): Promise<AskedPurchase> => {
        const items = [{ id: `item-${2 * n}` }, { id: `item-${2 * n + 1}` }]
        const { code } = await sale.checkout({ user: `user-${n}`, items, key: `c-${n}` })
        return { sale: sale.id, code, take: 'left', wallet: 'shared', price: PRICE }
      }),
    )
    for (const n of all.filter(isHalf)) {
      const { code } = await sale.checkout({ user: `early-${n}`, items: [{ id: `item-${2 * n}` }], key: `e-${n}` })
      await sale.purchase(code)
    }
    const unpaid = (await sale.status())?.sold ?? 0
    const lane = async (from: number): Promise<void> => {
      const victim = await Victim.behindProxy()
      for (let n = from; n < all.length; n += LANES) {
        const moment = momentsOf(n)[(n + Math.floor(n / LANES)) % 5] as Moment
        await victim.killAt(await victim.start(`victim-${n}`), asked[n] as AskedPurchase, moment)
      }
      await victim.close()
    }
    await Promise.all(Array.from({ length: LANES }, (_, from) => lane(from)))

    // What was decided and not in the journal may be lost when others load the wallet anew: then there was never a hold.
    const { purchase_settled: settled = 0, purchase_released: released = 0, ...rest } = await recover()
    expect(settled + released + (rest.purchase_dropped ?? 0)).toBe(all.length)
    expect(Math.min(settled, released)).toBeGreaterThan(0)
    const { sold = 0, reserved, stock } = (await sale.status()) ?? {}
    const wallet = hf.wallet('shared')
    expect(await wallet.get()).toMatchObject({ available: (all.length * 2 - (sold - unpaid)) * PRICE, reserved: 0 })
    expect({ reserved, total: (stock ?? 0) + sold }).toEqual({ reserved: 0, total: all.length * 2 })
    // Every one of them can still be bought, by its caller, who did not hear what became of it.
    for (const { code, price } of asked) {
      const { items, paid } = await sale.purchase(code, { take: 'left', pay: { wallet: 'shared', price } })
      expect(paid?.amount).toBe(items.length * PRICE)
    }
    expect(await sale.status()).toMatchObject({ stock: 0, reserved: 0, sold: all.length * 2 })
    expect(await wallet.get()).toMatchObject({ available: unpaid * PRICE, reserved: 0 })
    await until(async () => (await openPayments()) === 0)
    await judge(direct.postgres, [])
  })
})
