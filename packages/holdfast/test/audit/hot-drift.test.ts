import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Finding, Holdfast } from '../../src/index.js'
import { type Grounds, grounds, keyOf, refOf, tamper, tamperHold } from './support/drift.js'

const HOUR = 3_600_000

let on: Grounds
let hf: Holdfast
beforeEach(async () => {
  on = await grounds()
  hf = await on.connect({ audit: { every: HOUR, limits: { confirmAfterMs: 20 } } })
  for (const id of ['user_42', 'user_43']) {
    const wallet = hf.wallet(id)
    await wallet.open({ currency: 'usd', creditLimit: 10 })
    await wallet.credit(1_000, { key: 'in' })
    await wallet.hold(300, { key: 'call-17', ttl: HOUR })
    await wallet.hold(50, { key: 'call-18', ttl: HOUR })
    await wallet.holdRef('call-17').capture(100, { key: 'minute-1' })
  }
})
afterEach(() => on.close())

const facts = ({ cause, field, expected, found, action }: Finding) => ({ cause, field, expected, found, action })

/** Somebody has done this to a wallet in Redis; these are the findings, as `field: expected → found`. */
const DRIFTS: [string, () => Promise<unknown>, string[]][] = [
  ['more money', () => tamper(on, 'user_42', 'available', 500), ['hot_state_differs available: 650 → 1150']],
  [
    'less reserved',
    () => tamper(on, 'user_42', 'reserved', -50),
    ['hot_state_differs reserved: 250 → 200', 'hot_holds_sum reserved: 250 → 200'],
  ],
  ['another limit', () => tamper(on, 'user_42', 'limit', 90), ['hot_state_differs creditLimit: 10 → 100']],
  [
    'a time that never comes',
    () => tamper(on, 'user_42', 'due', HOUR),
    [expect.stringMatching(/^hot_state_differs due:/)],
  ],
  [
    'a time that has not come',
    () => tamper(on, 'user_42', 'clock', 1_000 * HOUR),
    [expect.stringMatching(/^hot_state_differs clock:/)],
  ],
  ['another beginning of its holds', () => tamper(on, 'user_42', 'since', 1), ['hot_state_differs since: 2 → 3']],
  ['more holds than it has', () => tamper(on, 'user_42', 'open', 1), ['hot_state_differs open: 2 → 3']],
  [
    'a mark that it was used from memory',
    async () => {
      const key = await keyOf(on, 'user_42')
      const core = (await on.redis.hgetBuffer(key, 'core')) as Buffer
      core[2] = 1
      await on.redis.hset(key, 'core', core)
    },
    ['hot_state_differs memory: 0 → 1'],
  ],
  [
    'an epoch that nobody can raise',
    () => tamper(on, 'user_42', 'epoch', 2 ** 53),
    ['hot_unreadable undefined: a wallet → something else'],
  ],
  [
    'a hold that is gone',
    async () => on.redis.hdel(await keyOf(on, 'user_42'), 'h:call-18'),
    ['hot_hold_missing left: 50 → null', 'hot_holds_sum reserved: 200 → 250'],
  ],
  [
    'a hold that never was',
    async () => {
      const key = await keyOf(on, 'user_42')
      await on.redis.hset(key, 'h:mine', (await on.redis.hgetBuffer(key, 'h:call-18')) as Buffer)
    },
    ['hot_hold_unknown left: null → 50', 'hot_holds_sum reserved: 300 → 250'],
  ],
  [
    'a hold of another size',
    () => tamperHold(on, 'user_42', 'call-17', 2, 700),
    ['hot_hold_differs left: 200 → 900', 'hot_holds_sum reserved: 950 → 250'],
  ],
  ['an older seq', () => tamper(on, 'user_42', 'seq', -1), ['hot_behind seq: 4 → 3']],
  [
    'no core',
    async () => on.redis.hset(await keyOf(on, 'user_42'), 'core', 'damaged'),
    ['hot_unreadable undefined: a wallet → something else'],
  ],
  [
    'something of another type',
    async () =>
      on.redis
        .multi()
        .del(await keyOf(on, 'user_42'))
        .set(await keyOf(on, 'user_42'), 'x')
        .exec(),
    ['hot_unreadable undefined: a wallet → something else'],
  ],
]

describe('a wallet in Redis with', () => {
  it.each(DRIFTS)('%s is found, explained and loaded anew', async (_, damage, expected) => {
    expect((await hf.audit()).findings).toEqual([])
    await damage()
    const report = await hf.audit()
    const told = report.findings.map((one) => `${one.cause} ${one.field}: ${one.expected} → ${one.found}`)
    expect(told).toEqual(expected)
    for (const finding of report.findings) {
      expect(finding).toMatchObject({ action: 'repaired', tenant: 'default', ref: await refOf(on.postgres, 'user_42') })
    }
    expect(report.counts).toEqual({ found: expected.length, repaired: expected.length, unrepaired: 0 })
    expect(JSON.stringify(report)).not.toMatch(/user_42|call-1|mine/)

    expect((await hf.audit()).findings).toEqual([])
    const wallet = hf.wallet('user_42')
    expect(await wallet.get({ pending: true })).toMatchObject({ available: 650, reserved: 250 })
    await wallet.holdRef('call-18').settle(20, { key: 'end' })
    expect(await wallet.get()).toMatchObject({ available: 680, reserved: 200, seq: 5 })
  })

  it('a wrong balance is only reported where nobody is allowed to repair', async () => {
    await tamper(on, 'user_42', 'available', 500)
    const report = await hf.audit({ repair: false })
    expect(report.findings.map(facts)).toEqual([
      { cause: 'hot_state_differs', field: 'available', expected: 650, found: 1150, action: 'reported' },
    ])
    expect(report.counts).toEqual({ found: 1, repaired: 0, unrepaired: 1 })
    expect(await hf.wallet('user_42').get({ pending: true })).toMatchObject({ available: 1150 })
  })
})

it('names the entry that made a hold, in place of the hold', async () => {
  await tamperHold(on, 'user_42', 'call-18', 0, 1)
  expect((await hf.audit()).findings).toMatchObject([{ cause: 'hot_hold_differs', field: 'amount', seq: 3 }])
})

it('audits only the shards that it is asked for', async () => {
  await tamper(on, 'user_42', 'available', 1)
  const shard = Number.parseInt((await refOf(on.postgres, 'user_42')).slice(0, 8), 16) % 2
  expect((await hf.audit({ shards: [1 - shard] })).findings).toEqual([])
  expect(await hf.audit({ shards: [shard] })).toMatchObject({ shards: [shard], findings: [{ shard }] })
})
