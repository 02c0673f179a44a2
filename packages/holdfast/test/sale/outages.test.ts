import { randomUUID } from 'node:crypto'
import { Holdfast } from 'holdfast'
import type { Cluster } from 'ioredis'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { type FaultyProxy, startProxy } from '../redis/support/proxy.js'
import { TOPOLOGIES, type Topology } from '../redis/support/topologies.js'

const HOUR = 3_600_000
const key = () => randomUUID()
const terms = () => ({ startsAt: Date.now() - 1_000, endsAt: Date.now() + HOUR })

let topology: Topology
let proxy: FaultyProxy
let databaseUrl: string
let processes: Holdfast[] = []
const counts = { decided: 0, fallback: 0 }

async function begin(name: keyof typeof TOPOLOGIES): Promise<void> {
  topology = await TOPOLOGIES[name]()
  const url = new URL(await freshDatabase())
  proxy = await startProxy(Number(url.port))
  url.port = String(proxy.port)
  databaseUrl = url.href
  const telemetry = {
    count: (metric: string, labels?: Record<string, string>, by = 1) => {
      if (metric === 'holdfast_decisions_total' && labels?.answer === 'accepted') counts.decided += by
      if (metric === 'holdfast_recoveries_total' && labels?.what === 'fallback') counts.fallback += by
    },
  }
  const connect = () =>
    Holdfast.connect({ redis: topology.target, postgres: databaseUrl, audit: false, timeout: 60_000, telemetry })
  processes = [await connect(), await connect()]
}

afterEach(async () => {
  for (const one of [proxy, ...topology.proxies]) one.behave()
  await Promise.all(processes.map((hf) => hf.close()))
  await topology.stop()
  await proxy.close()
})

const at = (n: number) => processes[n % processes.length] as Holdfast

/**
 * Users who buy until there is nothing left, each as much as the limit allows and then once more; in the middle of it `harm` is done. What is
 * told to everybody must be what the sale says, and what was checked out before is bought after, by its code.
 */
async function survive(harm: () => Promise<unknown>, buckets = 1): Promise<void> {
  const [stock, users, perUser] = [120, 30, 4]
  const id = 'survives'
  await at(0)
    .sale(id)
    .open({ ...terms(), perUser, buckets, items: [{ id: 'a', quantity: stock }] })
  const early = await Promise.all(
    Array.from({ length: 5 }, (_, n) =>
      at(n)
        .sale(id)
        .checkout({ user: `early-${n}`, items: [{ id: 'a', quantity: 2 }], key: `early-${n}` }),
    ),
  )
  let harmed: Promise<unknown> | undefined
  let bought = 0
  const buyer = async (n: number) => {
    let own = 0
    for (let round = 0; round <= perUser; round += 1) {
      if (bought === 30) harmed ??= harm()
      const sale = at(n + round).sale(id)
      const user = `user-${n}`
      const ask = key()
      const checkout = await sale.checkout({ user, items: [{ id: 'a' }], key: ask }).catch((error) => error)
      if (!checkout.code || checkout instanceof Error) {
        expect(['user_limit', 'sold_out']).toContain((checkout as { code: string }).code)
        continue
      }
      await sale.purchase(checkout.code)
      own += 1
      bought += 1
    }
    expect(own).toBeLessThanOrEqual(perUser)
    return own
  }
  const owned = await Promise.all(Array.from({ length: users }, (_, n) => buyer(n)))
  await harmed
  expect(harmed).toBeDefined()

  // Ten lie in the early checkouts: theirs by right, under the codes that they were told.
  expect(owned.reduce((sum, own) => sum + own, 0)).toBe(stock - 10)
  expect(await at(0).sale(id).status()).toMatchObject({ stock: 0, reserved: 10, sold: stock - 10 })
  for (const [n, { code, items, expiresAt }] of early.entries()) {
    expect(await at(n).sale(id).checkoutOf(`early-${n}`)).toEqual({ code, items, expiresAt })
    const more = at(n)
      .sale(id)
      .checkout({ user: `early-${n}`, items: [{ id: 'a', quantity: 3 }], key: key() })
    await expect(more).rejects.toMatchObject({ code: 'duplicate_item' })
    expect(
      await at(n + 1)
        .sale(id)
        .purchase(code),
    ).toMatchObject({ items, replayed: false })
  }
  expect(await at(1).sale(id).status()).toMatchObject({ stock: 0, reserved: 0, sold: stock, soldOut: true })
  expect((await at(0).audit()).findings).toEqual([])
}

describe('a sale on one Redis', () => {
  beforeEach(() => begin('single'), 120_000)

  it('goes on through Postgres while Redis is away: checkout, purchase, cancel and expiry', async () => {
    const sale = at(0).sale('away')
    await sale.open({ ...terms(), perUser: 2, items: [{ id: 'a', quantity: 3 }] })
    const before = await sale.checkout({ user: 'ann', items: [{ id: 'a' }], key: 'ann-1' })
    const short = at(0).sale('short')
    await short.open({ ...terms(), perUser: 2, checkoutTtl: 3_000, items: [{ id: 'a' }] })
    const late = await short.checkout({ user: 'ann', items: [{ id: 'a' }], key: 'ann-1' })
    for (const one of topology.proxies) one.refuse()
    counts.decided = 0
    const bob = await at(1)
      .sale('away')
      .checkout({ user: 'bob', items: [{ id: 'a', quantity: 2 }], key: 'bob-1' })
    expect(await sale.checkout({ user: 'ann', items: [{ id: 'a' }], key: 'ann-1' })).toMatchObject({
      code: before.code,
      replayed: true,
    })
    await expect(sale.checkout({ user: 'eve', items: [{ id: 'a' }], key: 'eve-1' })).rejects.toMatchObject({
      code: 'sold_out',
      item: 'a',
    })
    expect(await sale.checkoutOf('bob')).toMatchObject({ code: bob.code })
    expect(await sale.cancel(bob.code)).toEqual({ replayed: false })
    const eve = await sale.checkout({ user: 'eve', items: [{ id: 'a' }], key: 'eve-1' })
    expect(await sale.purchase(eve.code)).toMatchObject({ replayed: false })
    expect(await sale.status()).toMatchObject({ stock: 1, reserved: 1, sold: 1 })
    // The short one runs out, though nobody asks for it.
    await expect.poll(() => short.status(), { timeout: 30_000 }).toMatchObject({ stock: 1, reserved: 0, sold: 0 })
    await expect(short.purchase(late.code)).rejects.toMatchObject({ code: 'checkout_expired' })
    expect(counts.decided).toBe(0)
    expect(counts.fallback).toBeGreaterThan(0)

    for (const one of topology.proxies) one.behave()
    await expect
      .poll(
        async () => {
          const { code } = await sale.checkout({ user: 'pat', items: [{ id: 'a' }], key: key() })
          await sale.cancel(code)
          return counts.decided
        },
        { timeout: 30_000 },
      )
      .toBeGreaterThan(0)
    expect(await sale.purchase(eve.code)).toMatchObject({ replayed: true })
    expect(await sale.status()).toMatchObject({ stock: 1, reserved: 1, sold: 1 })
  }, 120_000)

  it('survives FLUSHALL in its middle', () => survive(() => topology.owner.flushall()), 120_000)

  it('survives a restart in its middle', () => survive(() => topology.failOver('')), 120_000)

  it('tells plainly when Postgres is away, and goes on when it is back; a moment of it is not even noticed', async () => {
    const sale = at(0).sale('postgres')
    await sale.open({ ...terms(), perUser: 5, items: [{ id: 'a', quantity: 5 }] })
    const ask = { user: 'ann', items: [{ id: 'a' }], key: 'ann-1', timeout: 1_000 }
    proxy.refuse()
    const refused = await sale.checkout(ask).catch((error) => error)
    expect(['unavailable', 'timeout']).toContain(refused.code)
    expect(refused).toMatchObject({ retryable: true })
    proxy.behave()
    await expect
      .poll(() => sale.checkout({ ...ask, timeout: 60_000 }).catch(({ code }) => code), { timeout: 30_000 })
      .toMatchObject({ items: ask.items.map(({ id }) => ({ id, quantity: 1 })) })
    expect(await sale.status()).toMatchObject({ stock: 4, reserved: 1 })
    // The other process has not had to do with this sale yet, and must read what it is.
    proxy.refuse()
    const met = at(1).sale('postgres').status()
    await new Promise((resolve) => setTimeout(resolve, 60))
    proxy.behave()
    expect(await met).toMatchObject({ stock: 4, reserved: 1 })
  }, 120_000)
})

describe('a sale with Sentinel', () => {
  beforeEach(() => begin('sentinel'), 120_000)

  it('survives a failover in its middle', () => survive(() => topology.failOver('')), 120_000)
})

describe('a sale in buckets over a Cluster', () => {
  beforeEach(() => begin('cluster'), 120_000)
  const BUCKETS = 4
  const masters = () => (topology.owner as Cluster).nodes('master')

  it('survives FLUSHALL of all servers in its middle', () => {
    expect(masters()).toHaveLength(3)
    return survive(() => Promise.all(masters().map((node) => node.flushall())), BUCKETS)
  }, 120_000)

  it('survives a failover of a server that has some of it', () => {
    const failOver = async () => {
      // Not what is set aside while it is loaded.
      const keys = await Promise.all(masters().map((node) => node.keys(`hf:*:stock:v1:${'?'.repeat(32)}`)))
      expect(keys.flat()).toHaveLength(BUCKETS)
      await topology.failOver(keys.flat()[0] as string)
    }
    return survive(failOver, BUCKETS)
  }, 120_000)
})
