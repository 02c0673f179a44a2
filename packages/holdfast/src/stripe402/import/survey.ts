import { clientDamaged } from '../failures.js'
import type { ClientRecord, LedgerStore, TransactionRecord } from '../types.js'

const PAGE_SIZE = 500

/** What the transactions of a client come to. */
export interface Survey {
  readonly count: number
  readonly topups: number
  readonly deductions: number
  /** How far below zero they lead on the way, oldest first, from zero; 0: nowhere. */
  readonly lowest: number
  readonly last: TransactionRecord | null
  /** All of them, where they are few: who needs them next need not read them again. */
  readonly all: readonly TransactionRecord[] | null
}

/**
 * Oldest first, a page at a time. What can't be read is thrown. A request that pays and is served writes a top-up and a deduction, often
 * within a millisecond: the money came first, whatever their ids say.
 */
export async function* transactionPages(store: LedgerStore, clientId: string): AsyncGenerator<TransactionRecord[]> {
  for (let after: string | undefined; ; ) {
    const page = await store.listTransactions(clientId, {
      order: 'oldest',
      limit: PAGE_SIZE,
      ...(after !== undefined && { after }),
    })
    yield page.transactions.sort(
      (one, other) => one.createdAt.getTime() - other.createdAt.getTime() || rankOf(one) - rankOf(other),
    )
    if (page.next === null) return
    after = page.next
  }
}

const rankOf = ({ type }: TransactionRecord): number => (type === 'topup' ? 0 : 1)

/** What can't be told in whole numbers from zero on is thrown: `client_damaged`. `inspect` is shown every transaction, and may throw too. */
export async function surveyOf(
  store: LedgerStore,
  { clientId, balance }: ClientRecord,
  inspect?: (transaction: TransactionRecord) => void,
): Promise<Survey> {
  if (balance < 0) throw clientDamaged(clientId, 'balance', 'zero or more', 'less')
  let [count, topups, deductions, lowest] = [0, 0, 0, 0]
  let last: TransactionRecord | null = null
  let all: readonly TransactionRecord[] | null = []
  for await (const page of transactionPages(store, clientId)) {
    all = count === 0 ? page : null
    for (const transaction of page) {
      inspect?.(transaction)
      const { type, amount } = transaction
      if (type === 'topup') topups += amount
      else deductions += amount
      lowest = Math.min(lowest, topups - deductions)
    }
    count += page.length
    last = page.at(-1) ?? last
  }
  if (!Number.isSafeInteger(topups) || !Number.isSafeInteger(deductions)) {
    throw clientDamaged(clientId, 'transactions', `a sum of at most ${Number.MAX_SAFE_INTEGER}`, 'a larger one')
  }
  return { count, topups, deductions, lowest, last, all }
}

/** By how much the balance is above what the transactions come to; negative: below. */
export const differenceOf = ({ balance }: ClientRecord, { topups, deductions }: Survey): number =>
  balance - (topups - deductions)
