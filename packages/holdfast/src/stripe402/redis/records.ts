import { clientDamaged } from '../failures.js'
import type { ClientRecord, TransactionRecord } from '../types.js'

/** Records as stripe402 writes them into Redis. Reading takes what it writes, and reports everything else. */

export const CLIENT_FIELDS = ['clientId', 'stripeCustomerId', 'balance', 'currency', 'createdAt', 'updatedAt'] as const

const INTEGER = /^(?:0|-?[1-9]\d{0,15})$/
const ISO_INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z$/

/** The values of `CLIENT_FIELDS`. */
export const writeClient = (record: ClientRecord): string[] => [
  record.clientId,
  record.stripeCustomerId,
  String(record.balance),
  record.currency,
  record.createdAt.toISOString(),
  record.updatedAt.toISOString(),
]

/** From the values of `CLIENT_FIELDS`; null where a field is not there. Without a clientId it is no client: null. */
export function readClient(clientId: string, values: readonly (string | null)[]): ClientRecord | null {
  const [id, stripeCustomerId, balance, currency, createdAt, updatedAt] = values
  if (!id) return null
  if (id !== clientId) throw clientDamaged(clientId, 'clientId', 'the id in its key', 'another')
  return {
    clientId,
    stripeCustomerId: textOf(clientId, 'stripeCustomerId', stripeCustomerId),
    balance: balanceOf(clientId, balance),
    currency: textOf(clientId, 'currency', currency),
    createdAt: instantOf(clientId, 'createdAt', createdAt),
    updatedAt: instantOf(clientId, 'updatedAt', updatedAt),
  }
}

export function writeTransaction(record: TransactionRecord): string {
  const { id, clientId, type, amount, stripePaymentIntentId, resource, createdAt } = record
  return JSON.stringify({ id, clientId, type, amount, stripePaymentIntentId, resource, createdAt })
}

/** Null: the key belongs to a transaction of somebody else, which ids with colons can lead to: a + b:c is a:b + c. */
export function readTransaction(clientId: string, id: string, json: string): TransactionRecord | null {
  const where = `transaction ${id}`
  const held = parse(json)
  if (held === undefined) throw clientDamaged(clientId, where, 'JSON of an object', 'something else')
  if (held.id !== id || held.clientId !== clientId) {
    if (`${held.clientId}:${held.id}` === `${clientId}:${id}`) return null
    throw clientDamaged(clientId, where, 'the ids in its key', 'others')
  }
  if (held.type !== 'topup' && held.type !== 'deduction') {
    throw clientDamaged(clientId, `${where}, type`, "'topup' or 'deduction'", kindOf(held.type))
  }
  const { amount } = held
  if (typeof amount !== 'number' || !Number.isSafeInteger(amount) || amount < 0) {
    throw clientDamaged(clientId, `${where}, amount`, `an integer from 0 to ${Number.MAX_SAFE_INTEGER}`, kindOf(amount))
  }
  const record: TransactionRecord = {
    id,
    clientId,
    type: held.type,
    amount,
    createdAt: instantOf(clientId, `${where}, createdAt`, held.createdAt),
  }
  for (const name of ['stripePaymentIntentId', 'resource'] as const) {
    const value = held[name]
    if (value !== undefined && value !== null) record[name] = textOf(clientId, `${where}, ${name}`, value)
  }
  return record
}

function parse(json: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

function textOf(clientId: string, where: string, value: unknown): string {
  if (typeof value === 'string') return value
  throw clientDamaged(clientId, where, 'text', kindOf(value))
}

function balanceOf(clientId: string, value: string | null | undefined): number {
  const balance = Number(value)
  if (typeof value === 'string' && INTEGER.test(value) && Number.isSafeInteger(balance)) return balance
  throw clientDamaged(clientId, 'balance', EXPECTED_BALANCE, numberKindOf(value))
}

/** What a balance must be in the hash. */
export const EXPECTED_BALANCE = `an integer within ±${Number.MAX_SAFE_INTEGER} in digits`

function instantOf(clientId: string, where: string, value: unknown): Date {
  const instant = new Date(typeof value === 'string' && ISO_INSTANT.test(value) ? value : Number.NaN)
  if (!Number.isNaN(instant.getTime())) return instant
  throw clientDamaged(clientId, where, 'a time as toISOString writes it', kindOf(value))
}

function numberKindOf(value: string | null | undefined): string {
  if (!value) return 'nothing'
  if (/^-?\d+\.\d+$/.test(value)) return 'a fraction'
  return /^-?[1-9]\d+$/.test(value) ? 'a larger number' : 'other text'
}

/** Never what is stored itself: it may be personal. */
function kindOf(value: unknown): string {
  if (value === undefined || value === null) return 'nothing'
  return typeof value === 'string' ? 'other text' : typeof value === 'number' ? `${value}` : `a ${typeof value}`
}
