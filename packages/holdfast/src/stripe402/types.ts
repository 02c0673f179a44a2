/**
 * What a stripe402 store is. The five methods of `Stripe402Store` are as stripe402 publishes them; what is ours is optional there, or
 * stands in `LedgerStore`. Money is in units of $0.0001: 10,000 are a dollar.
 */

export interface ClientRecord {
  clientId: string
  stripeCustomerId: string
  balance: number
  currency: string
  createdAt: Date
  updatedAt: Date
}

export type TransactionType = 'topup' | 'deduction'

export interface TransactionRecord {
  id: string
  clientId: string
  type: TransactionType
  amount: number
  stripePaymentIntentId?: string
  resource?: string
  createdAt: Date
}

export interface ChangeOptions {
  /** Makes the change idempotent: the same key is done once and answered with the same balance; with another amount it is a conflict. */
  key?: string
}

export interface Stripe402Store {
  /** Null: there is no such client. */
  getClient(clientId: string): Promise<ClientRecord | null>
  /** A client that is there already stays as it is: its balance is not touched, and that of `record` is not added to it. */
  createClient(record: ClientRecord): Promise<void>
  /** The balance after. Null: there is not enough, or no such client. */
  deductBalance(clientId: string, amount: number, options?: ChangeOptions): Promise<number | null>
  /** The balance after. `client_not_found` if there is no such client. */
  addBalance(clientId: string, amount: number, options?: ChangeOptions): Promise<number>
  /** Once for an id: again with the same type and amount changes nothing, with others is `idempotency_conflict`. */
  recordTransaction(transaction: TransactionRecord): Promise<void>
}

/** What to move: a transaction, and `createdAt` is now unless it is given. */
export type Movement = Omit<TransactionRecord, 'createdAt'> & { createdAt?: Date }

export interface ListTransactionsOptions {
  /** `newest` unless it is given. */
  order?: 'newest' | 'oldest'
  /** 1 to 1,000; 100 unless it is given. */
  limit?: number
  /** `next` of the page before. */
  after?: string
  /** Told of each record that can't be read. Without it the first one is thrown. */
  onDamaged?: (error: Error) => void
}

export interface TransactionPage {
  transactions: TransactionRecord[]
  /** Where the next page begins; null: this was the last. */
  next: string | null
}

export interface ListClientsOptions {
  signal?: AbortSignal
  /** Told of each client that can't be read. Without it the walk goes to its end and then throws, so that none is passed over in silence. */
  onDamaged?: (error: Error) => void
}

export interface PruneOptions {
  /** Transactions created before this instant go. */
  olderThan: Date
  signal?: AbortSignal
}

/** What the stores of Holdfast have beyond the published methods. */
export interface LedgerStore extends Stripe402Store {
  /**
   * Changes the balance and records the transaction in one atomic step. The balance after, or null: not enough for a deduction, and
   * nothing was recorded. The id makes it idempotent: a refused one may be tried again and then succeed, an accepted one is answered with
   * the same balance again for as long as the store keeps the transaction; another type or amount under the id is `idempotency_conflict`.
   */
  move(transaction: Movement): Promise<number | null>
  getTransaction(clientId: string, id: string): Promise<TransactionRecord | null>
  /** By `createdAt`, and by id where that is equal: pages neither repeat nor leave out what was there all the time. */
  listTransactions(clientId: string, options?: ListTransactionsOptions): Promise<TransactionPage>
  /** In no order. One that is created or goes meanwhile may be listed or not. */
  listClients(options?: ListClientsOptions): AsyncIterable<ClientRecord>
  /** How many transactions went. */
  pruneTransactions(options: PruneOptions): Promise<number>
}
