/**
 * Holds what callers saw against what the journal has, operation by operation. The rules are the simulator's (sim/checker.ts): what was
 * acknowledged is there once and as it was told, what was refused is not and could be refused at that moment, what is unknown is there
 * at most once, and every entry is what the machine makes of its command at that point. Beside that:
 *
 * - a key was done for the first time at most once, and each repetition was told the same
 * - nobody read a balance older than what had been acknowledged before, nor one that never was
 * - the books sum to zero, and no transfer is left to be finished
 */

import type { Operation } from '../sim/caller.js'
import { check as checkWallets } from '../sim/checker.js'
import type { SimWallet } from '../sim/database.js'
import { judgeSessions } from '../sim/sessions.js'
import { checkTransfers, refusedHolds } from '../sim/transfer-checker.js'
import type { Seen, ToldEntry } from './history.js'
import type { Remembered } from './journal.js'
import { byKey, operationOf, transferOf } from './operations.js'

/** By how much the clock of a server, which is in its entries, may be ahead of a worker's: they are on one machine. */
const CLOCKS_APART_MS = 20

export function check({ wallets, openTransfers, unbalanced }: Remembered, history: readonly Seen[]): string[] {
  const refOf = new Map(wallets.map(({ row }) => [row.id, row.ref]))
  const groups = byKey(history)
  const transfers = groups.flatMap((group) => transferOf(group, refOf) ?? [])
  const operations: Operation[] = [
    ...groups.flatMap((group) => operationOf(group, refOf) ?? []),
    ...refusedHolds(transfers),
  ]
  return [
    ...checkWallets(wallets, operations, {
      // When an entry was committed nobody has written down; not before it was made.
      commits: new Map(
        wallets.flatMap(({ entries }) =>
          entries.map(({ hash, at }) => [hash, { first: at - CLOCKS_APART_MS, last: at - CLOCKS_APART_MS }] as const),
        ),
      ),
      commitsAreExact: false,
      redisForgotAt: () => Number.POSITIVE_INFINITY,
      lostHashes: new Map(),
      lostAt: new Map(),
      openings: { openedAt: new Map(), made: new Map() },
    }),
    ...checkTransfers(wallets, transfers, openTransfers),
    ...wallets.flatMap(({ entries }) => judgeSessions(entries, []).problems),
    ...wallets.flatMap((wallet) => checkReads(wallet, history)),
    ...checkTold(wallets, groups),
    ...unbalanced.map((books) => `the books do not sum to zero: ${books}`),
  ]
}

/** Every yes, one by one: that very entry is in the journal. */
function checkTold(wallets: readonly SimWallet[], groups: readonly (readonly Seen[])[]): string[] {
  const entriesOf = new Map(wallets.map(({ row, entries }) => [row.id, entries]))
  const problems: string[] = []
  const isThere = (wallet: string, told: ToldEntry | undefined): boolean => {
    const entry = told && entriesOf.get(wallet)?.[told.seq - 1]
    if (!entry) return false
    const { key, prev, hash, available, reserved } = entry
    return (
      key === told.key &&
      prev === told.prev &&
      hash === told.hash &&
      available === told.available &&
      reserved === told.reserved
    )
  }
  for (const group of groups) {
    let firsts = 0
    for (const { asked, answer } of group) {
      if (answer?.type !== 'yes') continue
      const fault = (text: string) => problems.push(`${asked.wallet}: ${asked.key} (${asked.kind}) ${text}`)
      if (!isThere(asked.wallet, answer.entries[0])) fault('was acknowledged, and that entry is not in the journal')
      if (asked.kind === 'transfer' && !isThere(asked.to, answer.entries[1]))
        fault('was acknowledged, and what arrived is not in the journal')
      if (asked.kind !== 'tick' && asked.kind !== 'end' && !answer.replayed) firsts += 1
      if (firsts > 1) fault('was done for the first time more than once')
    }
    const [{ asked }] = group as [Seen]
    const refused = group.find(({ answer }) => answer?.type === 'no')
    if (firsts > 0 && refused) problems.push(`${asked.wallet}: ${asked.key} (${asked.kind}) was done and refused`)
  }
  return problems
}

/** A read sees all that was acknowledged before it began; of what is committed, a balance that once was. */
function checkReads({ row, entries }: SimWallet, history: readonly Seen[]): string[] {
  const problems: string[] = []
  const acknowledged: { at: number; seq: number }[] = []
  for (const { asked, answer, endedAt } of history) {
    if (answer?.type !== 'yes') continue
    if (asked.wallet === row.id) acknowledged.push({ at: endedAt, seq: answer.entries[0]?.seq ?? 0 })
    if (asked.kind === 'transfer' && asked.to === row.id)
      acknowledged.push({ at: endedAt, seq: answer.entries[1]?.seq ?? 0 })
  }
  acknowledged.sort((a, b) => a.at - b.at)
  const reads = history.filter(({ asked, answer }) => asked.wallet === row.id && answer?.type === 'read')
  reads.sort((a, b) => a.startedAt - b.startedAt)
  let next = 0
  let least = 0
  for (const { asked, answer, startedAt } of reads) {
    if (asked.kind !== 'read' || answer?.type !== 'read') continue
    for (; (acknowledged[next]?.at ?? Number.POSITIVE_INFINITY) < startedAt; next += 1)
      least = Math.max(least, acknowledged[next]?.seq ?? 0)
    const { seq, available, reserved } = answer
    const fault = (text: string) => problems.push(`${row.id}: ${asked.key} read seq ${seq}, ${text}`)
    if (seq < least) fault(`but ${least} had been acknowledged before`)
    if (asked.pending || seq === 0) continue
    const entry = entries[seq - 1]
    if (entry?.available !== available || entry.reserved !== reserved)
      fault(`${available} and ${reserved}, which never was committed`)
  }
  return problems
}

export interface Summary {
  readonly operations: number
  /** Answers by what they were: `yes`, `no insufficient_funds`, `unknown timeout`, `none`. */
  readonly answers: Readonly<Record<string, number>>
  readonly p50Ms: number
  readonly p99Ms: number
  readonly slowestMs: number
}

export function summarize(history: readonly Seen[]): Summary {
  const answers: Record<string, number> = {}
  const latencies: number[] = []
  for (const { answer, startedAt, endedAt } of history) {
    const name = answer === null ? 'none' : 'code' in answer ? `${answer.type} ${answer.code}` : answer.type
    answers[name] = (answers[name] ?? 0) + 1
    if (answer) latencies.push(endedAt - startedAt)
  }
  latencies.sort((a, b) => a - b)
  const at = (part: number) => Math.round(latencies[Math.floor((latencies.length - 1) * part)] ?? 0)
  return { operations: history.length, answers, p50Ms: at(0.5), p99Ms: at(0.99), slowestMs: at(1) }
}
