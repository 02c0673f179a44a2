import { commitKey, holdKey, holdOf, paidBy } from '../packages/holdfast/src/engine/purchase-commands.js'
import { paymentName } from '../packages/holdfast/src/journal/index.js'
import { type Entry, isSale, readPurchase } from '../packages/holdfast/src/machine/index.js'
import type { Operation } from './caller.js'
import { type Commit, isThereBy } from './commits.js'
import type { SimWallet } from './database.js'
import type { AskedPayment } from './payers.js'

/** All that the journals hold about a payment. */
interface Traces {
  sold?: Entry
  voided?: Entry
  hold?: Entry
  settle?: Entry
  release?: Entry
  /** The wallet that it was held on. */
  wallet?: string
}

const STEPS: readonly [prefix: string, step: 'hold' | 'settle' | 'release'][] = [
  [holdKey(''), 'hold'],
  ['~purchase-settle:', 'settle'],
  ['~purchase-release:', 'release'],
]

/**
 * Judges purchases that were paid for, over wallets and sales at once, when everything has come to rest: what was sold is paid for, once
 * and in full; what was not sold is not; and nothing is left to be finished.
 */
export function checkPayments(
  wallets: Iterable<SimWallet>,
  history: readonly AskedPayment[],
  leftOpen: number,
  commits: ReadonlyMap<string, Commit>,
): string[] {
  const problems: string[] = []
  const payments = new Map<string, Traces>()
  const hashes = new Set<string>()
  for (const { row, entries } of wallets) {
    for (const entry of entries) {
      hashes.add(entry.hash)
      if (isSale(row.ref)) noteSale(payments, entry)
      else noteWallet(payments, row.ref, entry)
    }
  }
  for (const [id, traces] of payments) for (const problem of judge(traces)) problems.push(`payment ${id}: ${problem}`)
  for (const { intent, heard, endedAt, alone } of withNeighbours(history)) {
    if (heard.type === 'yes') {
      const { sale, wallet } = heard.outcome
      if (!hashes.has(sale.entry?.hash ?? '') || !hashes.has(wallet.entry?.hash ?? ''))
        problems.push(`payment ${intent.id} was acknowledged, and is not so in the journals`)
      else if (!isThereBy(endedAt, [sale.entry, wallet.entry], commits))
        problems.push(`payment ${intent.id} was acknowledged before it was in the journals`)
    }
    if (heard.type === 'no' && heard.error.status >= 500) problems.push(`payment ${intent.id}: ${heard.error.message}`)
    if (heard.type === 'no' && alone && payments.get(intent.id)?.sold)
      problems.push(`payment ${intent.id} was refused (${heard.error.code}) and done`)
  }
  if (leftOpen > 0) problems.push(`${leftOpen} payments were never finished`)
  return problems
}

/** Where several asked for the same, one may be refused, and another have its way under the first one's id. */
function withNeighbours(history: readonly AskedPayment[]): (AskedPayment & { alone: boolean })[] {
  const names = history.map(({ intent }) => paymentName(intent))
  return history.map((asked, at) => ({
    ...asked,
    alone: names.indexOf(names[at] as string) === names.lastIndexOf(names[at] as string),
  }))
}

function tracesOf(payments: Map<string, Traces>, id: string): Traces {
  const traces = payments.get(id) ?? {}
  payments.set(id, traces)
  return traces
}

function noteSale(payments: Map<string, Traces>, entry: Entry): void {
  const prefix = commitKey('')
  if (!entry.key.startsWith(prefix)) return
  const traces = tracesOf(payments, entry.key.slice(prefix.length))
  if (entry.kind === 'void') traces.voided = entry
  else traces.sold = entry
}

function noteWallet(payments: Map<string, Traces>, ref: string, entry: Entry): void {
  for (const [prefix, step] of STEPS) {
    if (!entry.key.startsWith(prefix)) continue
    const traces = tracesOf(payments, entry.key.slice(prefix.length))
    traces[step] = entry
    traces.wallet = ref
  }
}

function judge({ sold, voided, hold, settle, release, wallet }: Traces): string[] {
  const there = Object.entries({ sold, voided, hold, settle, release }).flatMap(([name, entry]) =>
    entry ? [name] : [],
  )
  const done = sold && hold && settle && !release && !voided
  const undone = hold && release && !sold && !settle
  if (!done && !undone) return [`there is ${there.join(', ')}, and no more`]
  if (!done) return []
  const paid = paidBy(sold)
  const payment = readPurchase(sold.params).payment
  if (paid?.wallet !== wallet) return ['the sale names another wallet']
  if (paid?.hold !== hold.key || payment?.amount !== hold.amount) return ['the sale names another hold']
  const captured = -(settle.availableDelta + settle.reservedDelta)
  return captured === paid.amount ? [] : [`${captured} was paid for what costs ${paid.amount}`]
}

/** What the wallet refused is a refusal of its hold, and judged like any other. Unless others wanted the same: they go on with the same hold. */
export function refusedPayments(history: readonly AskedPayment[]): Operation[] {
  return withNeighbours(history).flatMap(({ intent, heard, startedAt, endedAt, tries, alone }) => {
    if (heard.type !== 'no' || heard.error.side !== 'wallet' || !alone) return []
    return [{ ref: intent.wallet, command: holdOf(intent), memory: false, startedAt, endedAt, heard, tries }]
  })
}
