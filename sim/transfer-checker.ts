import { holdKey, holdOf, targetKey } from '../packages/holdfast/src/engine/transfer-commands.js'
import type { Intent } from '../packages/holdfast/src/journal/index.js'
import type { Entry } from '../packages/holdfast/src/machine/index.js'
import type { Operation } from './caller.js'
import { type Commit, isThereBy } from './commits.js'
import type { SimWallet } from './database.js'
import type { AskedTransfer } from './transfers.js'

/** All that the journals hold about a transfer. */
interface Traces {
  readonly hold: Entry | undefined
  readonly credit: Entry | undefined
  readonly voided: Entry | undefined
  readonly fee: Entry | undefined
  readonly settle: Entry | undefined
  readonly release: Entry | undefined
}

/**
 * Judges transfers over all wallets at once, when everything has come to rest: each is done altogether or not at all, once, as its caller
 * heard; nothing is in transit, and nothing is left to be finished. Where `commits` is known, nobody was told too early.
 */
export function checkTransfers(
  wallets: Iterable<SimWallet>,
  history: readonly AskedTransfer[],
  leftOpen: number,
  commits?: ReadonlyMap<string, Commit>,
): string[] {
  const problems: string[] = []
  const entries = new Map<string, Map<string, Entry>>()
  let inTransit = 0
  for (const { row, entries: all } of wallets) {
    entries.set(row.ref, new Map(all.map((entry) => [entry.key, entry])))
    for (const entry of all) {
      if (entry.counter === 'transfers') inTransit -= entry.availableDelta + entry.reservedDelta
    }
  }
  const credits = [...entries.values()].flatMap((byKey) =>
    [...byKey.values()].filter(({ kind, counter }) => kind === 'credit' && counter === 'transfers'),
  )
  let expected = 0
  for (const asked of history) {
    const traces = tracesOf(asked.intent, entries)
    if (traces.credit) expected += 1
    for (const problem of judge(asked, traces, commits)) problems.push(`${asked.intent.key}: ${problem}`)
  }
  if (credits.length !== expected) problems.push(`${credits.length} credits for ${expected} transfers`)
  if (inTransit !== 0) problems.push(`${inTransit} is in transit for ever`)
  if (leftOpen > 0) problems.push(`${leftOpen} transfers were never finished`)
  return problems
}

function tracesOf(intent: Intent, entries: ReadonlyMap<string, ReadonlyMap<string, Entry>>): Traces {
  const { source, target, key } = intent
  const from = entries.get(source)
  const arrival = entries.get(target)?.get(targetKey(source, key))
  return {
    hold: from?.get(holdKey(key)),
    credit: arrival?.kind === 'credit' ? arrival : undefined,
    voided: arrival?.kind === 'void' ? arrival : undefined,
    fee: from?.get(`~transfer-fee:${key}`),
    settle: from?.get(`~transfer-settle:${key}`),
    release: from?.get(`~transfer-release:${key}`),
  }
}

function judge(
  { intent, heard, endedAt }: AskedTransfer,
  traces: Traces,
  commits?: ReadonlyMap<string, Commit>,
): string[] {
  const { hold, credit, voided, fee, settle, release } = traces
  const there = Object.entries(traces).flatMap(([name, entry]) => (entry ? [name] : []))
  const done = hold && credit && settle && !release && !voided && intent.fee > 0 === (fee !== undefined)
  const undone = hold && release && !credit && !settle && !fee
  const never = there.length === 0
  if (!done && !undone && !never) return [`there is ${there.join(', ')}, and no more`]
  if (hold && hold.params !== holdOf(intent).params) return ['the key holds something else']
  if (credit && credit.amount !== intent.amount) return [`${credit.amount} arrived instead of ${intent.amount}`]
  if (fee && fee.amount !== intent.fee) return [`the fee is ${fee.amount} instead of ${intent.fee}`]
  if (heard.type === 'unknown') return []
  if (heard.type === 'yes') {
    const { from, to } = heard.outcome
    const asTold = from.entry?.hash === settle?.hash && to.entry?.hash === credit?.hash
    if (!done || !asTold) return ['was acknowledged, and is not so in the journals']
    return !commits || isThereBy(endedAt, [from.entry, to.entry], commits)
      ? []
      : ['was acknowledged before it was in the journals']
  }
  const { code, side } = heard.error
  if (code === 'idempotency_conflict') return ['conflicts with itself']
  if (done) return [`was refused (${code}) and done`]
  if (code === 'wallet_not_found') return never ? [] : [`was refused (${code}), but there is ${there.join(', ')}`]
  if ((side === 'to') !== Boolean(undone)) return [`was refused by ${side} (${code}), but there is ${there.join(', ')}`]
  return []
}

/** What the source refused is a refusal of its hold, and judged like any other. */
export function refusedHolds(history: readonly AskedTransfer[]): Operation[] {
  return history.flatMap(({ intent, heard, startedAt, endedAt, tries }) => {
    if (heard.type !== 'no' || heard.error.side !== 'from') return []
    return [{ ref: intent.source, command: holdOf(intent), memory: false, startedAt, endedAt, heard, tries }]
  })
}
