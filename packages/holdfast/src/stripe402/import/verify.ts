import { HoldfastError } from '../../errors/index.js'
import { namesOf, options as optionsOf } from '../../input/index.js'
import type { ClientRecord, LedgerStore } from '../types.js'
import { eachOf, stopIfAborted } from '../walking.js'
import { type Finding, type FindingKind, Findings, isUnfit } from './findings.js'
import { differenceOf, surveyOf } from './survey.js'

const OPTION_NAMES = namesOf<VerifyOptions>({ signal: true, onProgress: true })
const CLIENTS_AT_ONCE = 64

export interface VerifyProgress {
  readonly clients: number
  readonly transactions: number
}

export interface VerifyOptions {
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: VerifyProgress) => void
}

export interface VerifyReport {
  /** That could be read. */
  readonly clients: number
  readonly transactions: number
  /** Of all of them, in units: they may be more than a number can hold. */
  readonly balances: bigint
  readonly topups: bigint
  readonly deductions: bigint
  readonly counts: Readonly<Record<FindingKind, number>>
  /** The first 100. */
  readonly findings: readonly Finding[]
}

/** Compares every balance with the transactions of its client, and changes nothing. A store that is in use may seem off by what is under way. */
export async function verifyStore(store: LedgerStore, options: VerifyOptions = {}): Promise<VerifyReport> {
  optionsOf('options', options, OPTION_NAMES)
  const { signal, onProgress } = options
  const findings = new Findings()
  const seen = new Set<string>()
  const sums = { clients: 0, transactions: 0, balances: 0n, topups: 0n, deductions: 0n }
  const look = async (client: ClientRecord): Promise<void> => {
    stopIfAborted(signal)
    // A walk may come by a client twice.
    if (seen.has(client.clientId)) return
    seen.add(client.clientId)
    try {
      const survey = await surveyOf(store, client)
      const difference = differenceOf(client, survey)
      if (difference !== 0) findings.add('unequal', client.clientId, inWords(difference))
      sums.clients += 1
      sums.transactions += survey.count
      sums.balances += BigInt(client.balance)
      sums.topups += BigInt(survey.topups)
      sums.deductions += BigInt(survey.deductions)
    } catch (error) {
      if (HoldfastError.is(error, 'client_damaged')) findings.damaged(error)
      else if (isUnfit(error)) findings.add('damaged', client.clientId, error.message)
      else throw error
    }
    onProgress?.(sums)
  }
  const clients = store.listClients({
    onDamaged: (error) => findings.damaged(error),
    ...(signal && { signal }),
  })
  await eachOf(clients, CLIENTS_AT_ONCE, look)
  return { ...sums, counts: findings.counts, findings: findings.kept }
}

export const inWords = (difference: number): string =>
  `the balance is ${Math.abs(difference)} ${difference > 0 ? 'above' : 'below'} what its transactions come to`
