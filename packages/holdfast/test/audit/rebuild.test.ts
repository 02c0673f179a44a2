import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Holdfast, RebuildProgress } from '../../src/index.js'
import { type Grounds, grounds, tamper, walletKeys } from './support/drift.js'

const HOUR = 3_600_000
const ids = Array.from({ length: 40 }, (_, n) => `user_${n}`)

let on: Grounds
let hf: Holdfast
/** Before the last ten wallets were used, and after the others were, of which ten have open holds. */
let between: number
const lately = () => Date.now() - between

beforeEach(async () => {
  on = await grounds()
  hf = await on.connect()
  const use = async (id: string, n: number) => {
    await hf.wallet(id).open({ currency: 'usd' })
    await hf.wallet(id).credit(100, { key: 'in' })
    if (n < 10) await hf.wallet(id).hold(30, { key: 'h', ttl: HOUR })
  }
  await Promise.all(ids.slice(0, 30).map(use))
  await sleep(100)
  between = Date.now()
  await sleep(100)
  await Promise.all(ids.slice(30).map((id) => use(id, 30)))
})
afterEach(() => on.close())

it('fills an empty Redis with the wallets that are in use', async () => {
  await on.redis.flushdb()
  const progress: RebuildProgress[] = []
  const report = await hf.rebuild({ usedWithin: lately(), onProgress: (one) => void progress.push(one) })
  expect(report).toMatchObject({ shards: [0, 1], wallets: 40, loaded: 20, there: 0, failed: 0 })
  expect(await walletKeys(on.redis)).toHaveLength(20)
  expect(progress.at(-1)).toMatchObject({ of: 2, wallets: 40, loaded: 20 })
  expect((await hf.audit()).findings).toEqual([])
  await hf.wallet('user_3').holdRef('h').settle(10, { key: 'end' })
  expect(await hf.rebuild({ usedWithin: lately() })).toMatchObject({ loaded: 0, there: 20 })
})

it('fills it with all of them, with those used within a time, or with those of a shard', async () => {
  await on.redis.flushdb()
  const first = await hf.rebuild({ shards: [0] })
  expect(first.loaded).toBe(first.wallets)
  expect(await walletKeys(on.redis)).toHaveLength(first.wallets)
  expect(await hf.rebuild({ all: true })).toMatchObject({
    wallets: 40,
    there: first.wallets,
    loaded: 40 - first.wallets,
  })
})

it('replaces states that nobody goes by any more, and with force those that everybody does', async () => {
  await on.postgres.query("UPDATE wallets SET epoch = epoch + 1, owner = 'postgres' WHERE id = 'user_35'")
  expect(await hf.rebuild({ usedWithin: lately() })).toMatchObject({ loaded: 1, there: 19 })
  await tamper(on, 'user_36', 'available', 5)
  expect(await hf.rebuild({ usedWithin: lately(), force: true })).toMatchObject({ loaded: 20, there: 0 })
  expect((await hf.audit()).findings).toEqual([])
})

it('stands beside live traffic on another instance: nothing is lost and nothing is done twice', async () => {
  const other = await on.connect()
  let working = true
  let done = 0
  const callers = ids.slice(30).map(async (id) => {
    const wallet = other.wallet(id)
    for (let n = 0; working; n += 1) {
      await wallet.debit(1, { key: `${n}` }).catch(() => {})
      await wallet.credit(1, { key: `+${n}` })
      done += 1
    }
  })
  for (let round = 0; round < 4 || done <= 40; round += 1) {
    if (round % 2 === 0) await on.redis.flushdb()
    expect(await hf.rebuild({ force: round % 2 === 1 })).toMatchObject({ failed: 0 })
  }
  working = false
  await Promise.all(callers)
  for (const id of ids.slice(30)) expect(await hf.wallet(id).get()).toMatchObject({ available: 100 })
  expect((await hf.audit({ full: true })).findings).toEqual([])
})

it('ends with an error when Redis is away, or nobody waits any more', async () => {
  const blind = await on.connect({ redis: 'redis://127.0.0.1:1', redisOptions: { commandTimeoutMs: 300 } })
  await expect(blind.rebuild()).rejects.toMatchObject({ code: 'unavailable' })
  const stop = new AbortController()
  stop.abort()
  await expect(hf.rebuild({ signal: stop.signal })).rejects.toMatchObject({ code: 'aborted' })
  for (const options of [{ usedWithin: -1 }, { all: 'yes' }, { force: 1 }, { shards: [9] }]) {
    await expect(hf.rebuild(options as never)).rejects.toMatchObject({ code: 'invalid_argument' })
  }
})
