import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { Holdfast, type Receipt } from '../../src/index.js'
import { NO_REDIS } from '../api/support/paths.js'
import { judge } from './support/judge.js'
import { type Outcome, operation } from './support/operations.js'
import type { Seen } from './support/workers.js'

let database: string
let receipt: Receipt

beforeAll(async () => {
  database = await freshDatabase()
  const hf = await Holdfast.connect({ redis: NO_REDIS, postgres: database, engine: { sweepEveryMs: 600_000 } })
  const wallet = hf.wallet('w')
  await wallet.open({ currency: 'usd' })
  receipt = await wallet.credit(100, { key: 'done' })
  await hf.close()
})

const yes = (changes: object = {}): Outcome => {
  const { entry, available, reserved, replayed } = receipt
  return { type: 'yes', seq: entry.seq, hash: entry.hash, available, reserved, replayed, ...changes } as Outcome
}
const NO: Outcome = { type: 'no', code: 'insufficient_funds' }

function seen(outcome: Outcome | null, changes: Partial<Seen['operation']> = {}): Seen {
  const asked = operation({ wallet: 'w', kind: 'credit', key: 'done', amount: 100, ...changes })
  return { worker: 'a', operation: asked, outcome }
}

describe('the judge', () => {
  it.each<[string, () => Seen[]]>([
    ['an answer as it is', () => [seen(yes())]],
    ['an answer and its repetition', () => [seen(yes()), seen(yes({ replayed: true }))]],
    ['no answer, and it was done', () => [seen(null)]],
    ['no answer, and it was not', () => [seen(null, { key: 'other' })]],
    ['a refusal', () => [seen(NO, { key: 'other' })]],
    [
      'an unknown outcome that was a yes',
      () => [seen({ type: 'unknown', code: 'timeout' }), seen(yes({ replayed: true }))],
    ],
  ])('accepts %s', async (_, history) => {
    await judge(database, history())
  })

  it.each<[string, () => Seen[]]>([
    ['an answer that is not in the journal', () => [seen(yes(), { key: 'other' })]],
    ['another balance', () => [seen(yes({ available: 101 }))]],
    ['another place in the chain', () => [seen(yes({ hash: 'ab'.repeat(20) }))]],
    ['two first times', () => [seen(yes()), seen(yes())]],
    ['a refusal of what was done', () => [seen(NO)]],
    ['another amount', () => [seen(null, { amount: 99 })]],
    ['another kind', () => [seen(null, { kind: 'debit' })]],
    ['a conflict with itself', () => [seen({ type: 'no', code: 'idempotency_conflict' }, { key: 'other' })]],
  ])('does not let pass %s', async (_, history) => {
    await expect(judge(database, history())).rejects.toThrow()
  })

  it.each([
    ['a row that is ahead of its journal', 'UPDATE holdfast.wallets SET available = available + 1'],
    ['a head that is not the last hash', "UPDATE holdfast.wallets SET head = '\\x00'"],
    ['a changed entry', 'UPDATE holdfast.entries SET amount = 99'],
    ['a missing entry', 'DELETE FROM holdfast.entries'],
  ])('does not let pass %s', async (_, sql) => {
    const other = await tampered(sql)
    await expect(judge(other, [])).rejects.toThrow()
  })
})

/** A journal of its own, changed past its own defences. */
async function tampered(sql: string): Promise<string> {
  const url = await freshDatabase()
  const hf = await Holdfast.connect({ redis: NO_REDIS, postgres: url, engine: { sweepEveryMs: 600_000 } })
  await hf.wallet('w').open({ currency: 'usd' })
  await hf.wallet('w').credit(100, { key: 'done' })
  await hf.close()
  await judge(url, [])
  const client = new pg.Client(url)
  await client.connect()
  await client.query('SET session_replication_role = replica')
  await client.query(sql)
  await client.end()
  return url
}
