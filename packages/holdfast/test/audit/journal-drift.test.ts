import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Finding, Holdfast } from '../../src/index.js'
import { hashEntry } from '../../src/machine/index.js'
import { type Grounds, grounds, refOf } from './support/drift.js'

const HOUR = 3_600_000

let on: Grounds
let hf: Holdfast
let ref: string
beforeEach(async () => {
  on = await grounds()
  hf = await on.connect({ audit: { every: HOUR, limits: { confirmAfterMs: 5 } } })
  for (const id of ['user_42', 'user_43']) {
    const wallet = hf.wallet(id)
    await wallet.open({ currency: 'usd' })
    await wallet.credit(1_000, { key: 'in' })
    await wallet.hold(300, { key: 'call-17', ttl: HOUR })
    await wallet.holdRef('call-17').capture(100, { key: 'minute-1' })
    await wallet.debit(10, { key: 'out' })
    await wallet.holdRef('call-17').settle(150, { key: 'end' })
    await wallet.hold(40, { key: 'call-18', ttl: HOUR })
  }
  ref = await refOf(on.postgres, 'user_42')
})
afterEach(() => on.close())

const sql = (text: string) => on.postgres.query(text.replaceAll('$ref', `'${ref}'::uuid`))
const told = ({ cause, field, seq, expected, found }: Finding) =>
  `${cause}${field === undefined ? '' : ` ${field}`}${seq === undefined ? '' : ` at ${seq}`}: ${expected} → ${found}`

/** Changes an entry and everything that rests on it, hashes included: what somebody would do who knows how. */
async function forge(seq: number, change: string): Promise<void> {
  await sql(`UPDATE entries SET ${change} WHERE wallet = $ref AND seq = ${seq}`)
  const entries = await hf.wallet('user_42').entries()
  let prev = entries[0]?.prev as string
  for (const { hold = '', of = 0, metadata: _, ...entry } of entries as never as Record<string, never>[]) {
    const full = { ...entry, hold, of, metadata: '', prev } as never as Parameters<typeof hashEntry>[0]
    const { rows } = await sql(`SELECT * FROM entries WHERE wallet = $ref AND seq = ${full.seq}`)
    const n = (name: string) => Number(rows[0][name] ?? 0)
    prev = hashEntry({
      ...full,
      params: rows[0].params,
      holdAmount: n('hold_amount'),
      holdCaptured: n('hold_captured'),
      holdLeft: n('hold_left'),
      holdExpiresAt: n('hold_expires_at'),
      holdRefunded: n('hold_refunded'),
      of: n('of_seq'),
      ofRefunded: n('of_refunded'),
    })
    await sql(`UPDATE entries SET hash = '\\x${prev}' WHERE wallet = $ref AND seq = ${full.seq}`)
  }
  await sql(`UPDATE wallets SET head = '\\x${prev}' WHERE ref = $ref`)
}

describe('a journal of which', () => {
  const DAMAGES: [string, () => Promise<unknown>, unknown[]][] = [
    [
      'an entry was removed',
      () => sql('DELETE FROM entries WHERE wallet = $ref AND seq = 3'),
      ['journal_gap at 3: 3 → 4'],
    ],
    [
      'the first entry was removed',
      () => sql('DELETE FROM entries WHERE wallet = $ref AND seq = 1'),
      ['journal_gap at 1: 1 → 2'],
    ],
    [
      'the last entry was removed',
      () => sql('DELETE FROM entries WHERE wallet = $ref AND seq = 6'),
      ['journal_short seq: 6 → 5'],
    ],
    ['everything was removed', () => sql('DELETE FROM entries WHERE wallet = $ref'), ['journal_short seq: 6 → 0']],
    [
      'an amount was altered',
      () => sql('UPDATE entries SET amount = 1 WHERE wallet = $ref AND seq = 4'),
      [expect.stringMatching(/^journal_hash at 4: [0-9a-f]{40} → [0-9a-f]{40}$/)],
    ],
    [
      'a hash was altered',
      () =>
        sql("UPDATE entries SET hash = '\\x0000000000000000000000000000000000000000' WHERE wallet = $ref AND seq = 2"),
      [expect.stringMatching(/^journal_hash at 2: [0-9a-f]{40} → 0{40}$/)],
    ],
    [
      'an entry was copied to the end',
      () =>
        sql(`INSERT INTO entries SELECT (json_populate_record(e, '{"seq": 7, "key": "again"}')).*
             FROM entries e WHERE wallet = $ref AND seq = 1`),
      [expect.stringMatching(/^journal_hash at 7: /)],
    ],
    [
      'an entry is there twice',
      async () => {
        await sql(
          'ALTER TABLE entries DROP CONSTRAINT entries_pkey; ALTER TABLE entries DROP CONSTRAINT entries_wallet_key_key',
        )
        await sql('INSERT INTO entries SELECT * FROM entries WHERE wallet = $ref AND seq = 3')
      },
      ['journal_duplicate at 3: 4 → 3'],
    ],
    [
      'an entry came back from another wallet',
      async () => {
        const other = await refOf(on.postgres, 'user_43')
        await sql('DELETE FROM entries WHERE wallet = $ref AND seq = 1')
        await sql(`INSERT INTO entries SELECT (json_populate_record(e, json_build_object('wallet', $ref))).*
                   FROM entries e WHERE wallet = '${other}' AND seq = 1`)
      },
      [expect.stringMatching(/^journal_hash at 1: /)],
    ],
    [
      'the currency of its wallet was changed',
      () => sql("UPDATE wallets SET currency = 'btc' WHERE ref = $ref"),
      [expect.stringMatching(/^journal_hash at 0: /)],
    ],
    [
      'the arithmetic is wrong and every hash is right',
      () => forge(4, 'available = available + 1'),
      [expect.stringMatching(/^journal_arithmetic available at 4: 690 → 691$/)],
    ],
    [
      'an entry makes money and every hash is right',
      () => forge(4, 'amount = 5'),
      [expect.stringMatching(/^journal_conservation moved at 4: -5 → -10$/)],
    ],
    [
      'a charge is another one and every hash is right',
      () => forge(5, 'hold_captured = 100'),
      [expect.stringMatching(/^journal_conservation moved at 5: 0 → -50$/)],
    ],
    [
      'an entry goes back in time and every hash is right',
      () => forge(3, 'at = at - 10000'),
      [expect.stringMatching(/^journal_order at at 3: /)],
    ],
    [
      'an entry comes from the future and every hash is right',
      async () => {
        await forge(6, `at = at + ${24 * HOUR}`)
        await sql(`UPDATE wallets SET at = at + ${24 * HOUR} WHERE ref = $ref`)
      },
      [expect.stringMatching(/^journal_order at at 6: /)],
    ],
    [
      'a key was made longer than any may be',
      () => sql("UPDATE entries SET key = repeat('x', 70000) WHERE wallet = $ref AND seq = 4"),
      [expect.stringMatching(/^journal_hash at 4: null → [0-9a-f]{40}$/)],
    ],
  ]

  it.each(DAMAGES)('%s is reported, and never "repaired"', async (_, damage, expected) => {
    await damage()
    const report = await hf.audit()
    const own = report.findings.filter((finding) => finding.ref === ref)
    expect(own.map(told)).toEqual(expected)
    for (const { action, tenant } of own) expect([action, tenant]).toEqual(['reported', 'default'])
    expect(report.counts.repaired).toBe(0)
    expect(JSON.stringify(report)).not.toMatch(/user_4|call-1/)
    // It stays until a person has seen to it.
    expect((await hf.audit()).findings.filter((finding) => finding.ref === ref).map(told)).toEqual(expected)
  })

  it('old entries were altered is found by an audit of everything, though they were verified before', async () => {
    expect(await hf.audit()).toMatchObject({ findings: [], entries: 12 })
    await sql('UPDATE entries SET amount = 1 WHERE wallet = $ref AND seq = 4')
    expect(await hf.audit()).toMatchObject({ findings: [], entries: 0 })
    expect((await hf.audit({ full: true })).findings).toMatchObject([{ cause: 'journal_hash', seq: 4, ref }])
  })

  it('all of it was written anew, soundly, is found by what was verified before', async () => {
    await hf.audit()
    await forge(4, "counter = 'mine'")
    const [finding, ...others] = (await hf.audit()).findings
    expect(others).toEqual([])
    expect(finding).toMatchObject({ cause: 'journal_rewritten', seq: 6, action: 'reported', ref })
  })

  it('the end was cut off, and the row put back to it, is found by what was verified before', async () => {
    await hf.audit()
    await sql('DELETE FROM entries WHERE wallet = $ref AND seq = 6')
    await sql(`UPDATE wallets w SET seq = 5, head = e.hash, available = e.available, reserved = e.reserved, since = 0
               FROM entries e WHERE w.ref = $ref AND e.wallet = $ref AND e.seq = 5`)
    expect((await hf.audit()).findings.map(told)).toEqual(['journal_short seq: 6 → 5'])
  })

  it('money was made also shows in the books', async () => {
    await sql('UPDATE entries SET available_delta = available_delta + 7 WHERE wallet = $ref AND seq = 1')
    const report = await hf.audit()
    const books = report.findings.filter(({ cause }) => cause === 'books_unbalanced')
    expect(books.map(told)).toEqual([expect.stringMatching(/^books_unbalanced usd: /)])
    const { rows } = await sql('SELECT sum(balance) AS sum FROM books')
    expect(books.map(({ expected, found }) => Number(found) - Number(expected))).toEqual([Number(rows[0].sum)])
  })
})

describe('a row of a wallet that', () => {
  const DAMAGES: [string, string, unknown[]][] = [
    ['has more money', 'available = available + 500', ['row_differs available: 800 → 1300']],
    ['has less reserved', 'reserved = 0', ['row_differs reserved: 40 → 0']],
    ['has another limit', 'credit_limit = 1000', ['row_differs creditLimit: 0 → 1000']],
    ['is frozen by nobody', "status = 'frozen'", ['row_differs status: active → frozen']],
    ['has another head', "head = '\\x00'", [expect.stringMatching(/^row_differs head: [0-9a-f]{40} → 00$/)]],
    [
      'has an epoch that nobody can have raised',
      'epoch = 9000000000000000000',
      [expect.stringMatching(/^row_differs epoch: \d+ → 9000000000000000000$/)],
    ],
    ['forgets its holds', 'since = 0', ['row_differs since: 6 → 0']],
    ['begins with them before its beginning', 'since = -1', ['row_differs since: 6 → -1']],
    ['never lets them expire', 'due = 0', [expect.stringMatching(/^row_differs due: \d+ → 0$/)]],
    [
      'lags behind its journal',
      'seq = 5, head = (SELECT hash FROM entries WHERE wallet = $ref AND seq = 5)',
      ['row_differs seq: 6 → 5', expect.stringMatching(/^row_differs head: /)],
    ],
  ]

  it.each(DAMAGES)('%s is put back to what its journal leads to', async (_, change, expected) => {
    await hf.audit()
    await sql(`UPDATE wallets SET ${change} WHERE ref = $ref`)
    const reported = await hf.audit({ repair: false })
    expect(reported.findings.filter((one) => one.ref === ref).map(told)).toEqual(expected)
    const report = await hf.audit()
    expect(report.findings.map(told)).toEqual(expected)
    for (const { action } of report.findings) expect(action).toBe('repaired')
    expect((await hf.audit({ full: true })).findings).toEqual([])
    const wallet = hf.wallet('user_42')
    await wallet.credit(5, { key: 'more' })
    await wallet.holdRef('call-18').release({ key: 'over' })
    expect(await wallet.get()).toMatchObject({ available: 845, reserved: 0, seq: 8, status: 'active', creditLimit: 0 })
  })

  it('is gone is reported', async () => {
    await sql('DELETE FROM wallets WHERE ref = $ref')
    const { findings } = await hf.audit()
    expect(findings.filter((one) => one.ref === ref).map(told)).toEqual(['row_missing seq: 6 → null'])
    await sql('DELETE FROM audits WHERE wallet = $ref')
    expect((await hf.audit()).findings.map(told)).toEqual(['hot_wallet_unknown: null → 6'])
  })
})

it('finds a checkpoint that would load other holds, and removes it', async () => {
  await sql(`INSERT INTO checkpoints SELECT ref, seq, '[]', 0 FROM wallets WHERE ref = $ref`)
  const { findings } = await hf.audit()
  expect(findings).toMatchObject([
    { cause: 'holds_differ', field: 'left', seq: 6, expected: 40, found: null, action: 'repaired' },
  ])
  await on.redis.flushdb()
  await hf.wallet('user_42').holdRef('call-18').settle(1, { key: 'end-18' })
})

it('goes on from where it was, and reads everything again when the time has come', async () => {
  expect(await hf.audit()).toMatchObject({ wallets: 2, entries: 12 })
  await hf.wallet('user_42').credit(1, { key: 'more' })
  expect(await hf.audit()).toMatchObject({ wallets: 2, entries: 1 })
  expect(await hf.audit()).toMatchObject({ wallets: 2, entries: 0 })
  await sql('UPDATE audits SET full_at = full_at - 8 * 86400000::bigint WHERE wallet = $ref')
  expect(await hf.audit()).toMatchObject({ wallets: 2, entries: 7 })
  expect(await hf.audit()).toMatchObject({ wallets: 2, entries: 0 })
})

it('does not believe what it remembers more than the journal', async () => {
  await hf.audit()
  await sql('UPDATE audits SET available = available + 1 WHERE wallet = $ref')
  expect(await hf.audit()).toMatchObject({ findings: [], entries: 6 })
  await hf.wallet('user_42').credit(1, { key: 'more' })
  expect((await hf.audit()).findings).toEqual([])
})

it('learns of wallets that nobody told it of', async () => {
  await sql('DELETE FROM audits')
  expect(await hf.audit()).toMatchObject({ wallets: 0 })
  expect(await hf.audit({ full: true })).toMatchObject({ wallets: 2, entries: 12, findings: [] })
})

it('takes a head that is another one at each look for a database that is being put back, not for a damaged row', async () => {
  // There it would be measured by what Postgres says.
  await on.redis.flushdb()
  let isThrough = false
  const flickering = (async () => {
    while (!isThrough)
      await sql(`UPDATE wallets SET head = decode(md5(random()::text) || '00000000', 'hex') WHERE ref = $ref`)
  })()
  const slowly = await on.connect({ audit: { every: HOUR, limits: { confirmAfterMs: 500 } } })
  const { findings } = await slowly.audit({ repair: false }).finally(() => {
    isThrough = true
  })
  await flickering
  expect(findings).toEqual([])
  // At rest it is damage.
  expect((await hf.audit({ repair: false })).findings.map(({ cause, field }) => [cause, field])).toEqual([
    ['row_differs', 'head'],
  ])
})
