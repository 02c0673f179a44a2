import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freshRedis } from '../../../../test/servers.js'
import { checkoutWords, command, emptyStock, type WalletState } from '../../src/machine/index.js'
import { Keys, type Place } from '../../src/redis/index.js'
import { emptyState } from '../machine/oracle.js'
import { AcquaintedSequencer } from './support/acquainted.js'
import { runnerOn } from './support/runner.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 7), shards: 1 })
const ITEMS = 10_000
const HOUR = 3_600_000

let redis: Redis
let sequencer: AcquaintedSequencer

beforeAll(async () => {
  redis = new Redis(await freshRedis())
  sequencer = new AcquaintedSequencer(runnerOn(redis), {
    aheadMaxMs: 60_000,
    helpAfterMs: 1_000,
    idleAfterMs: 60_000,
    pendingMax: 100,
    now: () => Date.now(),
  })
})
afterAll(() => redis.disconnect())

function soldTo(buyers: number, epoch: number): WalletState {
  const stock = emptyStock()
  for (let item = 1; item <= ITEMS; item += 1) stock.taken.set(item, 1)
  for (let n = 0; n < buyers; n += 1) stock.buyers.set(`buyer-${n}`, { taken: 1, running: '' })
  return { ...emptyState('0'.repeat(40)), epoch, seq: 1, at: Date.now(), available: 5, stock }
}

const install = (place: Place, state: WalletState, memory = false) =>
  sequencer.install('test', {
    place,
    state,
    memory,
    deadline: Date.now() + 60_000,
    clock: state.at,
    finalKeys: [],
  })

/** Keys of this sale that are neither the sale nor its stock. */
const aside = async ({ stockKey }: Place) => (await redis.keys(`${stockKey}:*`)).length

it('brings a stock in that no single call could, and leaves nothing beside it', async () => {
  const place = keys.ofSale('large', 0)
  const state = soldTo(ITEMS, 1)
  expect(await sequencer.stage('test', place, state)).toBeGreaterThan(0)
  const [key = ''] = await redis.keys(`${place.stockKey}:*`)
  expect(await redis.pttl(key)).toBeGreaterThan(0)
  expect(await install(place, state)).toEqual({ type: 'installed', lost: [] })
  expect(await redis.hlen(place.stockKey)).toBe(2 * ITEMS + 1)
  expect(await redis.hmget(place.stockKey, 'epoch', 'i:1', `i:${ITEMS}`, 'u:buyer-7')).toEqual(['1', '1', '1', '1 '])
  expect(await aside(place)).toBe(0)
})

it('is dropped by who did not come to install it', async () => {
  const place = keys.ofSale('overtaken', 0)
  const [one, next] = [soldTo(1, 1), soldTo(1, 2)]
  for (const state of [one, next]) await sequencer.stage('test', place, state)
  expect(await aside(place)).toBe(2)
  await sequencer.unstage('test', place, one.epoch)
  expect(await aside(place)).toBe(1)
  expect(await install(place, next)).toEqual({ type: 'installed', lost: [] })
})

it('has nothing to set aside of a sale that nobody came to, nor of a wallet', async () => {
  const place = keys.ofSale('quiet', 0)
  const state = { ...emptyState('0'.repeat(40)), stock: emptyStock() }
  expect(await sequencer.stage('test', place, state)).toBeNull()
  expect(await install(place, state)).toEqual({ type: 'installed', lost: [] })
  expect(await sequencer.stage('test', keys.of('ann'), emptyState('0'.repeat(40)))).toBeNull()
})

it('leaves all as it was where a part has gone meanwhile', async () => {
  const place = keys.ofSale('evicted', 0)
  const first = soldTo(1, 1)
  await sequencer.stage('test', place, first)
  await install(place, first)
  const before = [await redis.hgetall(place.walletKey), await redis.hlen(place.stockKey)]
  const next = soldTo(2, 2)
  expect(await install(place, next)).toEqual({ type: 'incomplete' })
  await sequencer.stage('test', place, next)
  const [key = ''] = await redis.keys(`${place.stockKey}:*`)
  await redis.hdel(key, 'i:77')
  expect(await install(place, next)).toEqual({ type: 'incomplete' })
  expect([await redis.hgetall(place.walletKey), await redis.hlen(place.stockKey)]).toEqual(before)
  await sequencer.stage('test', place, next)
  expect(await install(place, next)).toEqual({ type: 'installed', lost: [] })
})

it('keeps a stock for good that entries rest on which are nowhere else', async () => {
  const place = keys.ofSale('remembered', 0)
  const state = soldTo(1, 1)
  await sequencer.stage('test', place, state)
  await install(place, state, true)
  const also = checkoutWords({
    reserves: true,
    ttlMs: HOUR,
    from: 0,
    until: Date.now() + HOUR,
    perBuyer: 2,
    buyer: 'ann',
    lines: [{ item: ITEMS + 1, quantity: 1, share: 2 }],
  })
  await sequencer.decide({
    wallets: [{ place, epochMin: 0, epoch: 0, acked: 0, known: 0 }],
    commands: [
      {
        wallet: 0,
        command: command({ kind: 'checkout', key: 'k', also }),
        deadline: Date.now() + 60_000,
        memory: true,
      },
    ],
  })
  const again = { ...state, epoch: 2 }
  await sequencer.stage('test', place, again)
  expect(await install(place, again, true)).toEqual({ type: 'installed', lost: [] })
  expect([await redis.pttl(place.walletKey), await redis.pttl(place.stockKey)]).toEqual([-1, -1])
  expect(await redis.hget(place.stockKey, `i:${ITEMS + 1}`)).toBe('1')
})
