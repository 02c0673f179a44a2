import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import type { ClientRecord, Stripe402Store, TransactionRecord, TransactionType } from '../types.js'

/** How a test runner takes a test: `test` of vitest, jest or node:test. */
export type TestFunction = (name: string, body: () => Promise<void>) => unknown

export interface Suite<S> {
  readonly test: TestFunction
  /** Called once a test. The store need not be empty, and may be the same each time: tests use clients of their own. */
  readonly makeStore: () => S | Promise<S>
}

export interface LedgerSuite<S> extends Suite<S> {
  /** False: the store keeps every transaction for good, and `pruneTransactions` says that none went. Default true. */
  readonly prunes?: boolean
}

/** What can be no amount. The types don't let them through, programs without types do. */
export const BAD_AMOUNTS: readonly unknown[] = [
  -1,
  0.5,
  100.000_1,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  '100',
  100n,
  null,
  undefined,
  2 ** 53,
  -(2 ** 53),
]

/** A store may go by the clock of another machine. */
export const CLOCKS_APART_MS = 60_000

export const MAX = Number.MAX_SAFE_INTEGER

/** As stripe402 makes them: 64 hex characters. */
export const newClientId = (): string => randomBytes(32).toString('hex')
export const newId = (): string => randomUUID()

export function clientOf(given: Partial<ClientRecord> = {}): ClientRecord {
  const createdAt = new Date('2024-01-15T10:30:00.123Z')
  return {
    clientId: newClientId(),
    stripeCustomerId: 'cus_abc123',
    balance: 0,
    currency: 'usd',
    createdAt,
    updatedAt: createdAt,
    ...given,
  }
}

/** A client that is there, with this balance. */
export async function clientWith(store: Stripe402Store, balance: number): Promise<ClientRecord> {
  const record = clientOf({ balance })
  await store.createClient(record)
  return record
}

export function transactionOf(
  clientId: string,
  type: TransactionType,
  amount: number,
  given: Partial<TransactionRecord> = {},
): TransactionRecord {
  return { id: newId(), clientId, type, amount, createdAt: new Date('2024-01-15T10:31:05.678Z'), ...given }
}

/** Recorded one after the other, each so long after the start. */
export async function recordSome(
  store: Stripe402Store,
  clientId: string,
  offsetsMs: readonly number[],
  startMs = Date.parse('2024-03-01T00:00:00.000Z'),
): Promise<TransactionRecord[]> {
  const all = offsetsMs.map((offsetMs, n) =>
    transactionOf(clientId, n % 2 === 0 ? 'topup' : 'deduction', n, {
      // Words of different alphabets and cases: an order by language is not the order by bytes.
      id: [newId(), newId().toUpperCase(), `é-${newId()}`, `Z-${newId()}`][n % 4] as string,
      createdAt: new Date(startMs + offsetMs),
    }),
  )
  for (const one of all) await store.recordTransaction(one)
  return all
}

export async function balanceOf(store: Stripe402Store, clientId: string): Promise<number | undefined> {
  return (await store.getClient(clientId))?.balance
}

/** Errors are known by their `code`, so that a store of another make can have its own class of them. */
export async function rejectsWith(code: string, doing: () => Promise<unknown>, what?: unknown): Promise<void> {
  const saying = what === undefined ? '' : ` (${typeof what} ${String(what)})`
  const outcome = await attempt(doing)
  assert.ok(outcome instanceof Error, `expected an error with the code ${code}, got an answer${saying}`)
  assert.equal((outcome as { code?: unknown }).code, code, `${outcome.message}${saying}`)
}

/** A check of arguments may throw at once or reject: either is heard. */
async function attempt(doing: () => Promise<unknown>): Promise<unknown> {
  try {
    await doing()
    return undefined
  } catch (error) {
    return error
  }
}
