import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Holdfast } from '../../src/index.js'
import { type Grounds, grounds, refOf, tamper } from './support/drift.js'

const DAY = 86_400_000

let on: Grounds
let hf: Holdfast
beforeEach(async () => {
  on = await grounds()
  hf = await on.connect()
  for (const id of ['user_42', 'user_43']) {
    await hf.wallet(id).open({ currency: 'usd' })
    await hf.wallet(id).credit(100, { key: 'topup' })
  }
})
afterEach(() => on.close())

it('keeps what was found, once for each thing, as it was the last time', async () => {
  expect(await hf.findings()).toEqual([])
  await tamper(on, 'user_42', 'available', 5)
  await hf.audit({ repair: false })
  const [first] = await hf.findings()
  expect(first).toEqual({
    id: expect.any(Number),
    wallet: 'user_42',
    ref: await refOf(on.postgres, 'user_42'),
    tenant: 'default',
    shard: expect.any(Number),
    cause: 'hot_state_differs',
    field: 'available',
    expected: 100,
    found: 105,
    action: 'reported',
    firstAt: expect.any(Number),
    lastAt: first?.firstAt,
    times: 1,
  })
  await tamper(on, 'user_42', 'available', 1)
  await hf.audit()
  const kept = await hf.findings()
  expect(kept).toEqual([{ ...first, found: 106, action: 'repaired', lastAt: kept[0]?.lastAt, times: 2 }])
})

it('tells them by tenant, by the beginning of the wallet, since when, and in pages', async () => {
  for (const id of ['user_42', 'user_43']) await tamper(on, id, 'available', 5)
  await hf.audit()
  const all = await hf.findings()
  expect(all.map(({ wallet }) => wallet).sort()).toEqual(['user_42', 'user_43'])
  expect(await hf.forTenant('others').findings()).toEqual([])
  expect(await hf.findings({ prefix: 'user_43' })).toEqual(all.filter(({ wallet }) => wallet === 'user_43'))
  expect(await hf.findings({ limit: 1 })).toEqual(all.slice(0, 1))
  expect(await hf.findings({ after: all[0]?.id as number })).toEqual(all.slice(1))
  expect(await hf.findings({ since: Math.max(...all.map(({ lastAt }) => lastAt)) + 1 })).toEqual([])
})

it('forgets what was not found again for 90 days', async () => {
  await tamper(on, 'user_42', 'available', 5)
  await hf.audit()
  await on.postgres.query(`UPDATE findings SET last_at = last_at - ${91 * DAY}`)
  await tamper(on, 'user_43', 'available', 5)
  await hf.audit()
  expect((await hf.findings()).map(({ wallet }) => wallet)).toEqual(['user_43'])
})

it('keeps what is about no wallet in particular', async () => {
  await on.postgres.query(
    "UPDATE entries SET available_delta = available_delta + 1 WHERE wallet = (SELECT ref FROM wallets WHERE id = 'user_42')",
  )
  await hf.audit({ full: true })
  const kept = await hf.findings()
  expect(kept.filter(({ wallet }) => wallet === null)).toMatchObject([
    { cause: 'books_unbalanced', ref: '', field: 'usd' },
  ])
  const ofOne = await hf.findings({ prefix: 'user_42' })
  expect(new Set(ofOne.map(({ wallet }) => wallet))).toEqual(new Set(['user_42']))
})

it('takes no bad question', async () => {
  for (const options of [{ after: -1 }, { limit: 0 }, { limit: 1_001 }, { since: 0.5 }, { prefix: '' }]) {
    await expect(hf.findings(options)).rejects.toMatchObject({ code: 'invalid_argument' })
  }
})

it('audits all the same where what was found can not be kept', async () => {
  await tamper(on, 'user_42', 'available', 5)
  await on.postgres.query('ALTER TABLE findings RENAME TO elsewhere')
  const { counts } = await hf.audit()
  expect(counts).toEqual({ found: 1, repaired: 1, unrepaired: 0 })
})
