import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Holdfast } from '../../src/index.js'
import { endLife, forgetEntries, type Grounds, grounds, keyOf } from './support/drift.js'

/** What is not wrong, but late: nobody has brought it to its end. And what only a person can bring there. */
const HOUR = 3_600_000
const EARLY = { pendingMaxMs: 50, overdueAfterMs: 50, confirmAfterMs: 10, confirmLateAfterMs: 50 }

let on: Grounds
let hf: Holdfast
beforeEach(async () => {
  on = await grounds()
  hf = await on.connect({ audit: { every: HOUR, limits: EARLY } })
  await hf.wallet('w').open({ currency: 'usd' })
  await hf.wallet('w').credit(100, { key: 'in' })
})
afterEach(() => on.close())

const forget = (entries: number) => forgetEntries(on, 'w', entries)

it('brings an entry into the journal that its process did not', async () => {
  await hf.wallet('w').credit(5, { key: 'b' })
  // As if the process had died before it appended: Redis was not told yet that the journal has it.
  await forget(1)
  await new Promise((resolve) => setTimeout(resolve, 60))
  const { findings } = await hf.audit()
  expect(findings).toMatchObject([{ cause: 'pending_too_old', seq: 2, expected: 50, action: 'repaired' }])
  expect(findings[0]?.found).toBeGreaterThan(50)
  expect(await hf.wallet('w').get()).toMatchObject({ available: 105, seq: 2 })
  expect((await hf.audit()).findings).toEqual([])
})

it.each([
  { listed: true, durability: 'memory' as const },
  { listed: false, durability: 'memory' as const },
  { listed: true, durability: 'ledger' as const },
])('has a wallet loaded for what waits in another life of Redis, if anybody was told of it: %j', async (told) => {
  const { durability, listed } = told
  await hf.wallet('w').credit(5, { key: 'b', durability })
  await expect.poll(() => hf.wallet('w').get()).toMatchObject({ seq: 2 })
  await forget(1)
  await endLife(on, 'w')
  if (!listed) await on.redis.del(await on.redis.keys('hf:*:agenda:*'))
  await new Promise((resolve) => setTimeout(resolve, 60))
  const found = { cause: 'pending_too_old', seq: 2, expected: 50, action: 'repaired' }
  expect((await hf.audit()).findings).toMatchObject(durability === 'memory' ? [found] : [])
  expect(await hf.wallet('w').get()).toMatchObject(durability === 'memory' ? { available: 105 } : { available: 100 })
  expect((await hf.audit()).findings).toEqual([])
})

it('drops an entry that is not what its hash is of, before it gets into the journal', async () => {
  await hf.wallet('w').credit(5, { key: 'b' })
  await forget(1)
  const key = await keyOf(on, 'w')
  const entry = (await on.redis.hgetBuffer(key, 'e:2')) as Buffer
  const at = entry.indexOf('credit 5')
  entry.write('credit 9', at)
  await on.redis.hset(key, 'e:2', entry)
  const { findings } = await hf.audit()
  expect(findings).toMatchObject([{ cause: 'hot_entry_damaged', seq: 2, action: 'repaired' }])
  expect(findings[0]?.expected).not.toBe(findings[0]?.found)
  expect(await hf.wallet('w').get({ pending: true })).toMatchObject({ available: 100, seq: 1 })
  expect((await hf.audit({ full: true })).findings).toEqual([])
  await hf.wallet('w').credit(5, { key: 'b' })
})

it('notices an entry that is missing among those that wait', async () => {
  await hf.wallet('w').credit(5, { key: 'b' })
  await forget(1)
  await on.redis.hdel(await keyOf(on, 'w'), 'e:2')
  const { findings } = await hf.audit()
  expect(findings).toMatchObject([{ cause: 'hot_entry_damaged', seq: 2, expected: 2, found: 1, action: 'repaired' }])
  expect(await hf.wallet('w').get({ pending: true })).toMatchObject({ available: 100, seq: 1 })
})

it('leaves alone what is pending and not old', async () => {
  await hf.close()
  hf = await on.connect({ audit: { every: HOUR } })
  await hf.wallet('w').credit(5, { key: 'b' })
  await forget(1)
  expect(await hf.audit()).toMatchObject({ hot: 1, findings: [] })
  expect(await hf.wallet('w').get({ pending: true })).toMatchObject({ available: 105, seq: 2 })
})

it('lets a hold expire that nobody let expire', async () => {
  await hf.wallet('w').hold(30, { key: 'h', ttl: 20 })
  await new Promise((resolve) => setTimeout(resolve, 80))
  const reported = await hf.audit({ repair: false })
  expect(reported.findings).toMatchObject([{ cause: 'hold_overdue', field: 'expiresAt', seq: 2, action: 'reported' }])
  const [finding] = (await hf.audit()).findings
  expect(finding).toMatchObject({ cause: 'hold_overdue', seq: 2, action: 'repaired' })
  expect(Number(finding?.found) - Number(finding?.expected)).toBeGreaterThan(50)
  expect(await hf.wallet('w').get()).toMatchObject({ available: 100, reserved: 0, seq: 3 })
  expect((await hf.audit()).findings).toEqual([])
})

it('only tells of entries that Postgres has lost: Redis knows more than the journal, and that is for a person', async () => {
  await hf.wallet('w').credit(5, { key: 'b' })
  await hf.wallet('w').credit(6, { key: 'c' })
  await forget(2)
  const { findings } = await hf.audit()
  expect(findings).toMatchObject([{ cause: 'hot_ahead', field: 'seq', expected: 1, found: 2, action: 'reported' }])
  expect(await hf.wallet('w').get({ pending: true })).toMatchObject({ available: 111, seq: 3 })
})

it('only tells of an epoch that Postgres has lost', async () => {
  await on.postgres.query('UPDATE wallets SET epoch = epoch - 1')
  const { findings } = await hf.audit()
  expect(findings).toMatchObject([{ cause: 'hot_ahead', field: 'epoch', action: 'reported' }])
})

it('takes a state in Redis that nobody goes by any more for what it is', async () => {
  await on.postgres.query("UPDATE wallets SET epoch = epoch + 1, owner = 'postgres'")
  expect(await hf.audit()).toMatchObject({ hot: 1, findings: [] })
})

it('audits the journals while Redis is away, and says that it has not seen the rest', async () => {
  const blind = await on.connect({ redis: 'redis://127.0.0.1:1', redisOptions: { commandTimeoutMs: 300 } })
  await on.postgres.query('UPDATE wallets SET available = available + 1')
  expect(await blind.audit()).toMatchObject({ blind: [0, 1], wallets: 1, hot: 0, findings: [{ cause: 'row_differs' }] })
})
