import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Holdfast, type Purchase, type Sale, type Wallet } from '../../src/index.js'
import { passes, refusal } from '../api/support/paths.js'
import { judge } from '../processes/support/judge.js'
import { type FaultyProxy, startProxy } from '../redis/support/proxy.js'

/**
 * A purchase is stopped when its money is held in Redis and not in the journal yet; then something happens, and then it goes on. The other
 * engine goes past the proxies.
 */
let direct: { redis: string; postgres: string }
let redisProxy: FaultyProxy
let postgresProxy: FaultyProxy
let slow: Holdfast
let hf: Holdfast
let wallet: Wallet
let sale: Sale
let code: string
let expiresAt: number
let count = 0
const PRICE = 300
/** Longer than it takes to begin to buy, on a machine that stands still for a moment too. */
const LASTS_MS = 4_000

beforeAll(async () => {
  direct = { redis: await freshRedis(), postgres: await freshDatabase() }
  redisProxy = await startProxy(Number(new URL(direct.redis).port))
  postgresProxy = await startProxy(Number(new URL(direct.postgres).port))
  const through = (url: string, { port }: FaultyProxy) => Object.assign(new URL(url), { port: String(port) }).href
  // So that the hold is decided in Redis, and once, however long it is stopped.
  const engine = {
    sweepEveryMs: 600_000,
    transferHoldWithinMs: 30_000,
    transferGraceMs: 60_000,
    postgresPatienceMs: 30_000,
  }
  hf = await Holdfast.connect({ ...direct, engine, audit: false })
  slow = await Holdfast.connect({
    redis: through(direct.redis, redisProxy),
    postgres: through(direct.postgres, postgresProxy),
    redisOptions: { commandTimeoutMs: 20_000 },
    engine,
    audit: false,
  })
})
afterAll(async () => {
  await Promise.all([hf.close(), slow.close()])
  await Promise.all([redisProxy.close(), postgresProxy.close()])
  await judge(direct.postgres, [])
})

beforeEach(async () => {
  count += 1
  wallet = hf.wallet(`wallet-${count}`)
  await wallet.open({ currency: 'usd' })
  await wallet.credit(1_000, { key: 'in' })
  await checkOut(`sale-${count}`, 600_000)
})

async function checkOut(id: string, checkoutTtl: number): Promise<void> {
  sale = hf.sale(id)
  const [startsAt, endsAt] = [Date.now() - 1_000, Date.now() + 3_600_000]
  await sale.open({ items: [{ id: 'guitar' }], perUser: 1, startsAt, endsAt, checkoutTtl })
  const checkout = await sale.checkout({ user: 'ann', items: [{ id: 'guitar' }], key: 'c' })
  code = checkout.code
  expiresAt = checkout.expiresAt
}

/** Begins to buy; what happens in between; what it ends in. */
async function stopped(meanwhile: () => Promise<unknown>): Promise<() => Promise<Purchase>> {
  const reached = postgresProxy.holdAt(`hold ${PRICE} `)
  const bought = slow.sale(sale.id).purchase(code, { pay: { wallet: wallet.id, price: PRICE }, timeout: 60_000 })
  bought.catch(() => {})
  await reached
  await meanwhile()
  postgresProxy.behave()
  return () => bought
}

const money = async () => {
  const { available, reserved } = (await wallet.get()) as { available: number; reserved: number }
  return { available, reserved }
}

describe('a purchase whose money is held', () => {
  it('is refused where its checkout is cancelled before it is bought, and the money is back', async () => {
    const bought = await stopped(() => sale.cancel(code))
    expect(await refusal(bought())).toMatchObject({ code: 'checkout_closed' })
    expect(await money()).toEqual({ available: 1_000, reserved: 0 })
    expect(await sale.status()).toMatchObject({ stock: 1, sold: 0 })
  })

  it('is refused where its checkout runs out before it is bought, and the money is back', async () => {
    await sale.cancel(code)
    await checkOut(`short-${count}`, LASTS_MS)
    const bought = await stopped(() => passes(expiresAt))
    expect(await refusal(bought())).toMatchObject({ code: 'checkout_expired' })
    expect(await money()).toEqual({ available: 1_000, reserved: 0 })
    expect(await sale.status()).toMatchObject({ stock: 1, sold: 0 })
  })

  it('is made where Redis forgets everything in between', async () => {
    const bought = await stopped(async () => {
      const redis = new Redis(direct.redis)
      await redis.flushdb()
      redis.disconnect()
    })
    expect(await bought()).toMatchObject({ replayed: false, paid: { amount: PRICE } })
    expect(await money()).toEqual({ available: 700, reserved: 0 })
    expect(await sale.status()).toMatchObject({ stock: 0, reserved: 0, sold: 1 })
  })

  it('is made where Redis goes away in between', async () => {
    const bought = await stopped(async () => redisProxy.refuse())
    try {
      expect(await bought()).toMatchObject({ replayed: false, paid: { amount: PRICE } })
    } finally {
      redisProxy.behave()
    }
    expect(await money()).toEqual({ available: 700, reserved: 0 })
    expect(await sale.status()).toMatchObject({ stock: 0, reserved: 0, sold: 1 })
    expect(await sale.purchase(code, { pay: { wallet: wallet.id, price: PRICE } })).toMatchObject({ replayed: true })
  })

  it('pays nothing where somebody else buys the same without a wallet, and hears the same', async () => {
    const bought = await stopped(() => sale.purchase(code))
    expect(await bought()).toMatchObject({ replayed: true, paid: null })
    expect(await money()).toEqual({ available: 1_000, reserved: 0 })
  })

  it('is made where the wallet is frozen in between: the money was set aside', async () => {
    const bought = await stopped(() => Promise.resolve())
    await wallet.freeze({ key: 'freeze' })
    expect(await bought()).toMatchObject({ paid: { amount: PRICE } })
    expect(await money()).toEqual({ available: 700, reserved: 0 })
  })
})
