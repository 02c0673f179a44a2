/** Holds what clients were told against what the journal says. */
import pg from 'pg'
import { expect } from 'vitest'
import { PostgresJournal } from '../../../src/journal/index.js'
import { apply, type Entry } from '../../../src/machine/index.js'
import { Postgres } from '../../../src/postgres/index.js'
import { Oracle } from '../../machine/oracle.js'
import type { Operation } from './operations.js'
import type { Seen } from './workers.js'

interface WalletRow {
  ref: string
  id: string
  genesis: string
  seq: string
  head: string
  available: string
  reserved: string
  status: string
}

export interface Judged {
  /** Answers by what they were, so that a test can see that it was not all of one kind. */
  readonly counts: Record<string, number>
  /** Entries by wallet id. */
  readonly journal: ReadonlyMap<string, readonly Entry[]>
}

export async function judge(databaseUrl: string, history: readonly Seen[]): Promise<Judged> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 })
  const postgres = new Postgres(databaseUrl, { maxConnections: 1 })
  try {
    const journal = new Map<string, Entry[]>()
    const { rows } = await pool.query<WalletRow>(
      `SELECT ref, id, encode(genesis, 'hex') AS genesis, seq, encode(head, 'hex') AS head, available, reserved, status
       FROM holdfast.wallets`,
    )
    for (const row of rows) {
      const entries = await new PostgresJournal(postgres).entries(row.ref, 1, 1_000_000)
      checkWallet(row, entries)
      journal.set(row.id, entries)
    }
    const books = await pool.query(
      'SELECT tenant, currency FROM holdfast.books GROUP BY tenant, currency HAVING sum(balance) <> 0',
    )
    expect(books.rows, 'books that do not sum to zero').toEqual([])
    return { counts: checkHistory(history, journal), journal }
  } finally {
    await pool.end()
    await postgres.close()
  }
}

/** Gapless, one chain, nothing below zero, no hold left over, and the row is what the journal adds up to. */
function checkWallet(row: WalletRow, entries: readonly Entry[]): void {
  const oracle = new Oracle(row.genesis)
  for (const entry of entries) {
    apply(oracle.state, entry)
    oracle.journal.push(entry)
    if (entry.available < 0 || entry.reserved < 0) throw new Error(`${row.id} was below zero at ${entry.seq}`)
  }
  oracle.check()
  const { seq, head, available, reserved, status, holds } = oracle.state
  expect({ seq, head, available, reserved, status }).toEqual({
    seq: Number(row.seq),
    head: row.head,
    available: Number(row.available),
    reserved: Number(row.reserved),
    status: row.status,
  })
  expect([...holds.keys()], `holds of ${row.id} that outlived their time`).toEqual([])
}

function checkHistory(
  history: readonly Seen[],
  journal: ReadonlyMap<string, readonly Entry[]>,
): Record<string, number> {
  const counts: Record<string, number> = {}
  const byKey = new Map<string, Seen[]>()
  for (const seen of history) {
    const { wallet, key } = seen.operation
    const name = `${wallet} ${key}`
    byKey.set(name, [...(byKey.get(name) ?? []), seen])
    const answer = seen.outcome === null ? 'none' : seen.outcome.type === 'yes' ? 'yes' : seen.outcome.code
    counts[answer] = (counts[answer] ?? 0) + 1
  }
  const entryOf = new Map<string, Entry>()
  for (const [wallet, entries] of journal) {
    for (const entry of entries) {
      const name = `${wallet} ${entry.key}`
      if (entryOf.has(name)) throw new Error(`${name} is in the journal twice`)
      entryOf.set(name, entry)
    }
  }
  for (const [name, attempts] of byKey) checkKey(name, attempts, entryOf.get(name))
  return counts
}

/** Acknowledged: there, as it was told. Refused and nothing else: not there. Unknown: there as it was asked, or not. */
function checkKey(name: string, attempts: readonly Seen[], entry: Entry | undefined): void {
  const told = attempts.map(({ outcome }) => JSON.stringify(outcome)).join(', ')
  if (entry) checkAsAsked(name, (attempts[0] as Seen).operation, entry)
  let firsts = 0
  for (const { outcome } of attempts) {
    if (outcome?.type === 'no' && outcome.code === 'idempotency_conflict')
      throw new Error(`${name} conflicts with itself`)
    if (outcome?.type !== 'yes') continue
    if (!outcome.replayed) firsts += 1
    const { seq, hash, available, reserved } = outcome
    expect(entry, `${name} was acknowledged: ${told}`).toMatchObject({ seq, hash, available, reserved })
  }
  if (firsts > 1) throw new Error(`${name} was done for the first time more than once: ${told}`)
  const refused = attempts.every(({ outcome }) => outcome?.type === 'no')
  if (refused && entry) throw new Error(`${name} was refused and is in the journal: ${told}`)
}

function checkAsAsked(name: string, asked: Operation, entry: Entry): void {
  expect({ kind: entry.kind, of: entry.of }, name).toEqual({ kind: asked.kind, of: asked.of })
  if (asked.kind !== 'release') expect(entry.amount, name).toBe(asked.amount)
  if (asked.kind !== 'refund') expect(entry.hold, name).toBe(asked.hold)
}
