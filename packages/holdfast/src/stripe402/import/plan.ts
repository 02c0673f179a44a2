import { clientDamaged } from '../failures.js'
import type { ClientRecord, TransactionRecord } from '../types.js'
import { type ClientFacts, factsOf, OPENING_KEY, transactionFacts, transactionKey } from '../wallets/format.js'
import { LeftOut } from './findings.js'
import { differenceOf, type Survey } from './survey.js'

export const CLOSING_KEY = 'import-closing'
const METADATA_BYTES_MAX = 4_096

/**
 * How a client becomes entries:
 *
 *     opening        credit           where it needs one
 *     txn:<id> …     credit, debit    its transactions, oldest first
 *     import-closing debit            where it needs one
 *
 * A wallet never goes below zero and ends with the client's balance. So it begins with what its transactions lack: where they come to
 * less than the balance, or lead below zero on the way because top-ups are missing; and ends by losing what was too much.
 */
export interface ImportPlan {
  readonly client: ClientRecord
  readonly survey: Survey
  readonly opening: number
  readonly closing: number
  /** By how much the balance is above what the transactions come to; negative: below. */
  readonly difference: number
  readonly facts: ClientFacts
  /** Of the entry that is filed when all others are there; null: there are none. */
  readonly lastKey: string | null
}

export function planOf(client: ClientRecord, survey: Survey): ImportPlan {
  const difference = differenceOf(client, survey)
  const opening = Math.max(0, difference, -survey.lowest)
  const closing = opening - difference
  if (!Number.isSafeInteger(opening + survey.topups)) {
    throw clientDamaged(client.clientId, 'transactions', `sums of at most ${Number.MAX_SAFE_INTEGER}`, 'a larger one')
  }
  const entries = survey.count + (opening > 0 ? 1 : 0) + (closing > 0 ? 1 : 0)
  const facts: ClientFacts = { ...factsOf(client), opening, entries, imported: true }
  return { client, survey, opening, closing, difference, facts, lastKey: lastKeyOf(survey, opening, closing) }
}

/** Before anything is filed: a client comes as a whole or not at all. */
export function checkFits(transaction: TransactionRecord): void {
  const { resource = '', stripePaymentIntentId = '' } = transaction
  // Most are short, and need not be written down to be measured: a character is at most six bytes there.
  if ((resource.length + stripePaymentIntentId.length) * 6 < METADATA_BYTES_MAX / 2) return
  if (Buffer.byteLength(JSON.stringify(transactionFacts(transaction, 'note'))) <= METADATA_BYTES_MAX) return
  throw new LeftOut(
    'damaged',
    `a transaction has more text than an entry can keep, which is ${METADATA_BYTES_MAX} bytes`,
  )
}

function lastKeyOf({ last }: Survey, opening: number, closing: number): string | null {
  if (closing > 0) return CLOSING_KEY
  if (last) return transactionKey(last.id)
  return opening > 0 ? OPENING_KEY : null
}
