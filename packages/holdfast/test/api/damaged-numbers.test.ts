import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Holdfast } from '../../src/index.js'
import {
  forgetEntries,
  type Grounds,
  grounds,
  keyOf,
  overwrite,
  type tamper,
  walletKeys,
} from '../audit/support/drift.js'

/** Numbers and entries of a wallet in Redis that no wallet has: the journal knows better, and nobody else is the worse for it. */
const HOUR = 3_600_000

let on: Grounds
let events: string[]
beforeEach(async () => {
  on = await grounds()
  events = []
  const hf = await connect()
  for (const id of ['damaged', 'beside it']) {
    await hf.wallet(id).open({ currency: 'usd' })
    await hf.wallet(id).credit(100, { key: 'in' })
    await hf.wallet(id).hold(10, { key: 'h', ttl: HOUR })
    await hf.wallet(id).credit(5, { key: 'last' })
  }
  await hf.close()
})
afterEach(() => on.close())

const connect = () =>
  on.connect({
    redisOptions: { commandTimeoutMs: 20_000 },
    telemetry: { log: (_level, event) => void events.push(event) },
  })

/** Both in one call to Redis, by a process that never had to do with them. */
async function useBoth(): Promise<Holdfast> {
  const hf = await connect()
  const answers = await Promise.all([
    hf.wallet('beside it').credit(1, { key: 'x' }),
    hf.wallet('damaged').credit(1, { key: 'x' }),
    hf.wallet('damaged').holdRef('h').capture(4, { key: 'c' }),
    hf.wallet('beside it').holdRef('h').capture(4, { key: 'c' }),
  ])
  for (const { durability } of answers) expect(durability).toBe('ledger')
  expect(await hf.wallet('beside it').get()).toMatchObject({ available: 96, reserved: 6, seq: 5 })
  return hf
}

const isSound = async (hf: Holdfast) => {
  expect((await hf.audit({ full: true })).findings).toEqual([])
  // It was one wallet, and no server that failed.
  for (const event of ['redis_away', 'postgres_away']) expect(events).not.toContain(event)
}

type Field = Parameters<typeof tamper>[2]
const NUMBERS: [Field, number][] = [
  ['epoch', Number.POSITIVE_INFINITY],
  ['epoch', 2 ** 53],
  ['seq', Number.NaN],
  ['seq', Number.POSITIVE_INFINITY],
  ['acked', Number.NEGATIVE_INFINITY],
  ['acked', -(2 ** 55)],
  ['ring', 0],
  ['available', 0.5],
  ['reserved', Number.NaN],
  ['clock', Date.now() + 1_000 * HOUR],
]

describe('a wallet in Redis with', () => {
  it.each(NUMBERS)('%s %d is loaded anew', async (field, number) => {
    await overwrite(on, 'damaged', field, number)
    const hf = await useBoth()
    expect(await hf.wallet('damaged').get()).toMatchObject({ available: 96, reserved: 6, seq: 5 })
    await isSound(hf)
  })

  it.each([
    ['is cut off', (bytes: Buffer) => bytes.subarray(0, 60)],
    ['has other lengths', (bytes: Buffer) => Buffer.from(bytes).fill(255, 40, 44)],
    ['is gone', () => null],
  ])('an entry that waits for the journal and %s is loaded without it', async (_, damage) => {
    await forgetEntries(on, 'damaged', 1)
    await damageEntry(3, damage)
    const hf = await useBoth()
    expect(await hf.wallet('damaged').get()).toMatchObject({ available: 91, reserved: 6, seq: 4 })
    // Nobody was told of it; who asks again has it decided anew.
    expect(await hf.wallet('damaged').credit(5, { key: 'last' })).toMatchObject({ replayed: false, available: 96 })
    await isSound(hf)
  })

  it.each([
    ['is cut off', (bytes: Buffer) => bytes.subarray(0, 60)],
    ['says something else', (bytes: Buffer) => replaced(bytes, Buffer.from('credit 5'), Buffer.from('credit 9'))],
    ['has another amount', (bytes: Buffer) => replaced(bytes, double(5), double(9))],
    ['is gone', () => null],
  ])('an answer to a repeated key that %s gives the answer of the journal', async (_, damage) => {
    await damageEntry(3, damage)
    const hf = await connect()
    const repeated = await hf.wallet('damaged').credit(5, { key: 'last' })
    expect(repeated).toMatchObject({ replayed: true, available: 95, entry: { seq: 3, amount: 5 } })
    const used = await useBoth()
    expect(await used.wallet('damaged').get()).toMatchObject({ available: 96, reserved: 6, seq: 5 })
    await isSound(used)
  })
})

it('something acknowledged from memory that was damaged since is told as lost, and the wallet is loaded', async () => {
  const lost: number[] = []
  const hf = await on.connect({
    telemetry: { count: (metric, _, by = 1) => void (metric === 'holdfast_memory_lost_total' && lost.push(by)) },
  })
  await hf.wallet('damaged').credit(1, { key: 'marks it', durability: 'memory' })
  await hf.wallet('damaged').credit(2, { key: 'waits' })
  await hf.close()
  // Nobody is left who knows that it was in the journal.
  await on.redis.del(await on.redis.keys('hf:*:witnesses:*'))
  await forgetEntries(on, 'damaged', 1)
  const key = await keyOf(on, 'damaged')
  const core = (await on.redis.hgetBuffer(key, 'core')) as Buffer
  // As if the last one had been acknowledged from memory.
  core.write('m', core.length - 1)
  await on.redis.hset(key, 'core', core)
  await damageEntry(5, (bytes) => bytes.subarray(0, 60))
  await on.postgres.query("UPDATE wallets SET epoch = epoch + 1, owner = 'postgres' WHERE id = 'damaged'")
  const later = await on.connect({
    telemetry: { count: (metric, _, by = 1) => void (metric === 'holdfast_memory_lost_total' && lost.push(by)) },
  })
  expect(await later.wallet('damaged').credit(3, { key: 'after' })).toMatchObject({ available: 99, entry: { seq: 5 } })
  expect(lost).toEqual([1])
  expect(await walletKeys(on.redis)).toHaveLength(2)
})

async function damageEntry(place: number, damage: (bytes: Buffer) => Buffer | null): Promise<void> {
  const key = await keyOf(on, 'damaged')
  const bytes = damage((await on.redis.hgetBuffer(key, `e:${place}`)) as Buffer)
  if (bytes) await on.redis.hset(key, `e:${place}`, bytes)
  else await on.redis.hdel(key, `e:${place}`)
}

function replaced(bytes: Buffer, from: Buffer, to: Buffer): Buffer {
  const copy = Buffer.from(bytes)
  to.copy(copy, copy.indexOf(from))
  return copy
}

function double(number: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeDoubleLE(number)
  return bytes
}
