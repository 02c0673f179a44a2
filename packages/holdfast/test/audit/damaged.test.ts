import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Finding, Holdfast } from '../../src/index.js'
import { until } from '../api/support/paths.js'
import { type Grounds, grounds, keyOf, refOf, tamper } from './support/drift.js'

/** What somebody has damaged beyond what can be read must not keep anybody else from being audited, and no repair may go by it. */
const HOUR = 3_600_000
const LIMITS = { confirmAfterMs: 5, confirmLateAfterMs: 5 }

let on: Grounds
let hf: Holdfast
let events: string[]
beforeEach(async () => {
  on = await grounds()
  events = []
  hf = await connect()
  for (const id of ['damaged', 'beside it']) {
    await hf.wallet(id).open({ currency: 'usd' })
    await hf.wallet(id).credit(100, { key: 'in' })
    await hf.wallet(id).hold(30, { key: 'h', ttl: HOUR })
  }
  expect((await hf.audit()).findings).toEqual([])
})
afterEach(() => on.close())

/** Nobody looks into Postgres for wallets that are not in Redis. */
const connect = (sweepEveryMs = 600_000) =>
  on.connect({
    shards: 1,
    timeout: 20_000,
    engine: { sweepEveryMs, dueGraceMs: HOUR },
    audit: { every: HOUR, limits: LIMITS },
    telemetry: { log: (_level, event) => void events.push(event) },
  })

const sql = async (text: string) => on.postgres.query(text, [await refOf(on.postgres, 'damaged')])
const told = ({ cause, field, action }: Finding) => [cause, field, action].filter(Boolean).join(' ')
const agenda = async () => (await on.redis.keys('hf:*:agenda:*'))[0] as string

describe('a checkpoint that is', () => {
  it.each([
    ['no list', '{}'],
    ['a list of something else', '[1]'],
    ['a list of holds without numbers', '[{"hold":"h","amount":"many"}]'],
  ])('%s is found and removed, beside wallets that are audited all the same', async (_, holds) => {
    await sql(`INSERT INTO checkpoints SELECT ref, seq, '${holds}', 1 FROM wallets WHERE ref = $1`)
    await tamper(on, 'beside it', 'available', 1)
    const seen = (await hf.audit({ repair: false })).findings.map(told).sort()
    expect(seen).toEqual(['holds_differ checkpoint reported', 'hot_state_differs available reported'])
    const { findings, counts } = await hf.audit()
    expect(findings).toHaveLength(2)
    expect(counts).toEqual({ found: 2, repaired: 2, unrepaired: 0 })
    expect((await hf.audit({ full: true })).findings).toEqual([])
  })

  it('no list does not keep its wallet from being loaded, nor others from being served', async () => {
    await sql(`INSERT INTO checkpoints SELECT ref, seq, '{}', 1 FROM wallets WHERE ref = $1`)
    await on.redis.flushdb()
    const [settled] = await Promise.all([
      hf.wallet('damaged').holdRef('h').settle(10, { key: 'end' }),
      hf.wallet('beside it').holdRef('h').settle(10, { key: 'end' }),
    ])
    expect(settled).toMatchObject({ available: 90, reserved: 0 })
    expect(events).not.toContain('postgres_away')
  })
})

describe('Redis is not put right by', () => {
  it.each([
    ['an entry that was altered', 'UPDATE entries SET hold_amount = 7 WHERE wallet = $1 AND seq = 2', 'journal_hash'],
    ['an entry that lost its hold', 'UPDATE entries SET hold = NULL WHERE wallet = $1 AND seq = 2', 'journal_hash'],
  ])('%s, though that was verified before', async (_, damage, cause) => {
    await sql(damage)
    const key = await keyOf(on, 'damaged')
    const before = await on.redis.hgetallBuffer(key)
    expect((await hf.audit()).findings.map(told)).toEqual([`${cause} reported`])
    expect(await on.redis.hgetallBuffer(key)).toEqual(before)
  })

  it('a checkpoint of other holds: that is what is wrong', async () => {
    await sql(`INSERT INTO checkpoints SELECT ref, seq, '[]', 1 FROM wallets WHERE ref = $1`)
    const key = await keyOf(on, 'damaged')
    const before = await on.redis.hgetallBuffer(key)
    expect((await hf.audit()).findings.map(told)).toEqual(['holds_differ left repaired'])
    expect(await on.redis.hgetallBuffer(key)).toEqual(before)
  })

  it('a row that would load too little: that is put right', async () => {
    await sql('UPDATE wallets SET since = 100 WHERE ref = $1')
    expect((await hf.audit()).findings.map(told)).toEqual(['row_differs since repaired'])
    expect(await hf.wallet('damaged').holdRef('h').capture(5, { key: 'c' })).toMatchObject({ reserved: 25 })
  })
})

describe('what audits remember', () => {
  it.each(['{"x":null}', '[1]', '"x"', '{"h":{"left":"many"}}'])('of holds, as %s, is not believed', async (holds) => {
    await sql(`UPDATE audits SET holds = '${holds}' WHERE wallet = $1`)
    await hf.wallet('damaged').credit(1, { key: 'more' })
    expect(await hf.audit()).toMatchObject({ findings: [], wallets: 2 })
  })
})

describe('an agenda', () => {
  it('with names of nobody on it is worked through all the same', async () => {
    const swept = await connect(50)
    await on.redis.zadd(await agenda(), 0, 'nobody', 0, ':', 0, 'default:zz', 9e12, `No:${'0'.repeat(32)}`, 9e12, 'a:b')
    await swept.wallet('damaged').hold(20, { key: 'short', ttl: 100 })
    await until(async () => (await swept.wallet('damaged').get())?.reserved === 30, 20_000)
    expect(await hf.audit({ full: true })).toMatchObject({ findings: [], hot: 2 })
  })

  it('that is lost alone hides no wallet from an audit that reads its journal', async () => {
    await tamper(on, 'damaged', 'available', 1)
    await on.redis.del(await agenda())
    expect(await hf.audit()).toMatchObject({ findings: [], hot: 0 })
    const { findings, hot } = await hf.audit({ full: true })
    expect(findings.map(told)).toEqual(['hot_state_differs available repaired'])
    expect(hot).toBe(2)
    expect((await hf.audit()).findings).toEqual([])
  })

  it('in whose place something else stands does not keep anybody from being served', async () => {
    await on.redis.set(await agenda(), 'x')
    const later = await connect()
    // A first look is entered on it.
    await on.redis.del(await keyOf(on, 'damaged'))
    expect(await later.wallet('damaged').debit(1, { key: 'a' })).toMatchObject({ available: 69 })
    expect(await later.wallet('beside it').debit(1, { key: 'a' })).toMatchObject({ available: 69 })
    expect(events).not.toContain('redis_away')
    expect(await hf.audit()).toMatchObject({ findings: [], blind: [] })
  })
})

it('a repair that is not possible has failed, and the audit goes on', async () => {
  await sql('UPDATE wallets SET available = available + 1 WHERE ref = $1')
  await on.postgres.query("UPDATE settings SET stopped_at = 1, stopped_because = 'a test'")
  const { findings, wallets } = await hf.audit()
  expect(findings.map(told)).toEqual(['row_differs available failed', expect.stringMatching(/^books_unbalanced/)])
  expect(wallets).toBe(2)
})
