import { types } from 'node:util'
import { amount, integer, invalid, namesOf, oneOf, options as optionsOf, show, signal, text } from '../input/index.js'
import type {
  ChangeOptions,
  ClientRecord,
  ListClientsOptions,
  ListTransactionsOptions,
  Movement,
  PruneOptions,
  TransactionRecord,
} from './types.js'

/** What every store checks before any I/O, in one place so that all of them take and refuse the same. */

const CHANGE_NAMES = namesOf<ChangeOptions>({ key: true })
const PAGE_NAMES = namesOf<ListTransactionsOptions>({ order: true, limit: true, after: true, onDamaged: true })
const WALK_NAMES = namesOf<ListClientsOptions>({ signal: true, onDamaged: true })
const PRUNE_NAMES = namesOf<PruneOptions>({ olderThan: true, signal: true })

/** A resource is a URL. */
const RESOURCE_MAX = 8_192
const PAGE_MAX = 1_000
const PAGE_DEFAULT = 100
/** Years with four digits: what `toISOString` writes for them sorts by time, and Postgres reads it. */
const INSTANT_MIN_MS = Date.parse('0001-01-01T00:00:00.000Z')
const INSTANT_MAX_MS = Date.parse('9999-12-31T23:59:59.999Z')

export const clientId = (value: unknown): string => text('clientId', value)
export const transactionId = (value: unknown): string => text('id', value)

/** An amount of money, or a balance to begin with: an integer from 0 to 2^53 − 1. */
export const money = (name: string, value: unknown): number => amount(name, value, 0)

/** A copy: who holds the original may go on changing it. */
export function instant(name: string, value: unknown): Date {
  // Not `instanceof`: a date of another realm (a test runner's) is a date too.
  if (!types.isDate(value)) throw invalid(name, 'a Date', show(value))
  const ms = value.getTime()
  if (!(ms >= INSTANT_MIN_MS && ms <= INSTANT_MAX_MS)) {
    throw invalid(name, 'a Date of the years 1 to 9999', Number.isNaN(ms) ? 'an invalid Date' : 'one outside of them')
  }
  return new Date(ms)
}

/** The idempotency key of a change, if it came with one. */
export function keyOf(options: unknown): string | undefined {
  if (options === undefined) return undefined
  const { key } = optionsOf('options', options, CHANGE_NAMES)
  if (key === undefined) return undefined
  const checked = text('key', key)
  if (checked.startsWith('~')) throw invalid('key', 'a key that does not begin with ~', 'one that does')
  return checked
}

/** A client to be created, with nothing in it but the published fields. */
export function client(value: unknown): ClientRecord {
  const record = recordOf('record', value)
  return {
    clientId: clientId(record.clientId),
    stripeCustomerId: text('stripeCustomerId', record.stripeCustomerId),
    balance: money('balance', record.balance),
    currency: text('currency', record.currency),
    createdAt: instant('createdAt', record.createdAt),
    updatedAt: instant('updatedAt', record.updatedAt),
  }
}

/** A transaction to be recorded, with nothing in it but the published fields. */
export function transaction(value: unknown): TransactionRecord {
  const record = recordOf('transaction', value)
  const checked: TransactionRecord = {
    id: transactionId(record.id),
    clientId: clientId(record.clientId),
    type: oneOf('type', record.type, ['topup', 'deduction']),
    amount: money('amount', record.amount),
    createdAt: instant('createdAt', record.createdAt),
  }
  if (isThere(record.stripePaymentIntentId)) {
    checked.stripePaymentIntentId = text('stripePaymentIntentId', record.stripePaymentIntentId)
  }
  if (isThere(record.resource)) checked.resource = text('resource', record.resource, RESOURCE_MAX)
  return checked
}

/** A movement as the transaction that it becomes. */
export function movement(value: unknown, now: Date): TransactionRecord {
  const record = recordOf('transaction', value) as Partial<Movement>
  return transaction({ ...record, createdAt: record.createdAt ?? now })
}

export interface Page<P = Position> {
  readonly order: 'newest' | 'oldest'
  readonly limit: number
  readonly after: P | undefined
  readonly onDamaged: ((error: Error) => void) | undefined
}

/** `read`: of a store whose cursors are its own. */
export function page(value: unknown): Page
export function page<P>(value: unknown, read: (after: unknown) => P): Page<P>
export function page(value: unknown, read: (after: unknown) => unknown = readCursor): Page<unknown> {
  const asked = optionsOf('options', value, PAGE_NAMES)
  const { order = 'newest', limit = PAGE_DEFAULT, after, onDamaged } = asked
  return {
    order: oneOf('order', order, ['newest', 'oldest']),
    limit: integer('limit', limit, 1, PAGE_MAX),
    after: after === undefined || after === null ? undefined : read(after),
    onDamaged: listener(onDamaged),
  }
}

export function walk(value: unknown): {
  signal: AbortSignal | undefined
  onDamaged: ((error: Error) => void) | undefined
} {
  const given = optionsOf('options', value, WALK_NAMES)
  return { signal: signal(given.signal), onDamaged: listener(given.onDamaged) }
}

export function prune(value: unknown): { olderThan: Date; signal: AbortSignal | undefined } {
  const given = optionsOf('options', value, PRUNE_NAMES)
  return { olderThan: instant('olderThan', given.olderThan), signal: signal(given.signal) }
}

/** Where a transaction stands in the order of its client's: by time, then by id. */
export interface Position {
  readonly atMs: number
  readonly id: string
}

/** A position as callers hold it: opaque, safe in a URL. */
export const writeCursor = ({ atMs, id }: Position): string => Buffer.from(`${atMs}:${id}`).toString('base64url')

export function readCursor(value: unknown): Position {
  const written = typeof value === 'string' ? Buffer.from(value, 'base64url').toString() : ''
  const [, at, id = ''] = /^(-?(?:Infinity|[\d.e+-]{1,24})):(.+)$/su.exec(written) ?? []
  const position = { atMs: Number(at), id }
  // What does not come out the same was not written by us.
  if (Number.isNaN(position.atMs) || writeCursor(position) !== value)
    throw invalid('after', '`next` of the page before', show(value))
  return position
}

function recordOf(name: string, value: unknown): Record<string, unknown> {
  if (value === undefined) throw invalid(name, 'an object', show(value))
  return optionsOf(name, value)
}

/** An optional text; stores that keep rows have null where there is none. */
const isThere = (value: unknown): boolean => value !== undefined && value !== null

function listener(value: unknown): ((error: Error) => void) | undefined {
  if (value === undefined || typeof value === 'function') return value as ((error: Error) => void) | undefined
  throw invalid('onDamaged', 'a function', show(value))
}
