import type { HoldfastError } from '../../errors/index.js'
import { invalid, show } from '../../input/index.js'
import { clientDamaged } from '../failures.js'
import type { ClientRecord, TransactionRecord, TransactionType } from '../types.js'

/** What stands in the tables, as texts: others write them too, so that nothing is taken for granted. */

export interface ClientRow {
  client_id: string
  stripe_customer_id: string | null
  balance: string | null
  currency: string | null
  created_at: string | null
  updated_at: string | null
}

export interface TransactionRow {
  id: string
  client_id: string
  type: string | null
  amount: string | null
  stripe_payment_intent_id: string | null
  resource: string | null
  /** To the microsecond, in UTC, with its era; or `infinity`. */
  created_at: string | null
}

export function clientOf(row: ClientRow): ClientRecord {
  const { client_id: clientId } = row
  return {
    clientId,
    stripeCustomerId: readText(clientId, 'stripe_customer_id', row.stripe_customer_id),
    balance: readBalance(clientId, row.balance),
    currency: readText(clientId, 'currency', row.currency),
    createdAt: readInstant(clientId, 'created_at', row.created_at),
    updatedAt: readInstant(clientId, 'updated_at', row.updated_at),
  }
}

export function transactionOf(row: TransactionRow): TransactionRecord {
  const { client_id: clientId, type } = row
  if (type !== 'topup' && type !== 'deduction') {
    throw clientDamaged(
      clientId,
      'type of a transaction',
      "'topup' or 'deduction'",
      type === null ? 'nothing' : 'another',
    )
  }
  return {
    id: row.id,
    clientId,
    type: type satisfies TransactionType,
    amount: readMoney(clientId, 'amount of a transaction', row.amount),
    createdAt: readInstant(clientId, 'created_at of a transaction', row.created_at),
    ...(row.stripe_payment_intent_id !== null && { stripePaymentIntentId: row.stripe_payment_intent_id }),
    ...(row.resource !== null && { resource: row.resource }),
  }
}

/** Below zero is where older software may have left it. */
export function readBalance(clientId: string, text: string | null): number {
  const value = wholeOf(text)
  if (value !== null) return value
  throw clientDamaged(clientId, 'balance', `an integer within ±${Number.MAX_SAFE_INTEGER}`, kindOf(text))
}

function readMoney(clientId: string, where: string, text: string | null): number {
  const value = wholeOf(text)
  if (value !== null && value >= 0) return value
  throw clientDamaged(clientId, where, `an integer from 0 to ${Number.MAX_SAFE_INTEGER}`, kindOf(text))
}

/** Null: it is no whole number that JavaScript can hold. */
function wholeOf(text: string | null): number | null {
  const value = text !== null && /^-?\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(value) ? value : null
}

function kindOf(text: string | null): string {
  if (text === null) return 'nothing'
  if (/^-\d+$/.test(text)) return 'a smaller one'
  return /^\d+$/.test(text) ? 'a larger one' : 'something else, such as a fraction'
}

function readText(clientId: string, where: string, text: string | null): string {
  if (text === null) throw clientDamaged(clientId, where, 'a text', 'nothing')
  return text
}

function readInstant(clientId: string, where: string, text: string | null): Date {
  const at = new Date(/^(\d{4}-.*Z) AD$/.exec(text ?? '')?.[1] ?? Number.NaN)
  if (Number.isNaN(at.getTime())) {
    throw clientDamaged(clientId, where, 'a time of the years 1 to 9999', text === null ? 'nothing' : 'another')
  }
  return at
}

/** A place in a client's transactions, as a row tells its time: what others wrote may have microseconds, or years of any length. */
export interface Place {
  readonly at: string
  readonly id: string
}

export const writePlace = ({ at, id }: Place): string => Buffer.from(`${at} ${id}`).toString('base64url')

/** Whether there is such a day is for Postgres to say. */
export function readPlace(value: unknown): Place {
  const written = typeof value === 'string' ? Buffer.from(value, 'base64url').toString() : ''
  const [, at, id] = /^(-?infinity|\d{4,6}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z (?:AD|BC)) (.+)$/su.exec(written) ?? []
  // What does not come out the same was not written by us.
  if (!at || !id || writePlace({ at, id }) !== value) throw noPlace(value)
  return { at, id }
}

export const noPlace = (value: unknown): HoldfastError => invalid('after', '`next` of the page before', show(value))
