import { HoldfastError } from '../errors/index.js'
import type { TransactionRecord } from './types.js'

/** What goes wrong in a store, the same in all of them. */

/** Who knows a client's id may spend its balance: logs and answers get the beginning, enough to find it by. */
export const shortId = (clientId: string): string => (clientId.length > 12 ? `${clientId.slice(0, 8)}…` : clientId)

export const clientNotFound = (clientId: string): HoldfastError =>
  new HoldfastError('client_not_found', undefined, { client: shortId(clientId) })

/** `expected` and `got` in words, never what is stored itself. */
export const clientDamaged = (clientId: string, where: string, expected: string, got: string): HoldfastError =>
  new HoldfastError('client_damaged', `client ${shortId(clientId)}, ${where}: expected ${expected}, got ${got}`, {
    client: shortId(clientId),
  })

/** Adding `amount` would leave what a balance can be. */
export const tooMuch = (amount: number): HoldfastError =>
  new HoldfastError(
    'invalid_amount',
    `amount: expected a balance of at most ${Number.MAX_SAFE_INTEGER} afterwards, got more by adding ${amount}`,
    { argument: 'amount' },
  )

/** The key, or the id of a transaction, was used for something else. */
export const conflict = (what: 'key' | 'id'): HoldfastError =>
  new HoldfastError(
    'idempotency_conflict',
    what === 'key'
      ? 'key: expected the amount and the method that it was used with before, got others'
      : 'id: expected the type and the amount of the transaction that has this id, got others',
  )

/** Whether a transaction may be answered with one that has its id. */
export const isSame = (
  one: Pick<TransactionRecord, 'type' | 'amount'>,
  other: Pick<TransactionRecord, 'type' | 'amount'>,
): boolean => one.type === other.type && one.amount === other.amount
