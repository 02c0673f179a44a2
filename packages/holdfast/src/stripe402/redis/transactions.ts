import type { HoldfastError } from '../../errors/index.js'
import type { TransactionRecord } from '../types.js'

/**
 * Writes transactions. There are two ways: `TransactionsTogether`, where one script call may name all keys of a client, and
 * `TransactionsApart`, where they lie in different slots of a Cluster.
 */
export interface Transactions {
  /** Changes the balance and records the transaction, both or neither. */
  move(record: TransactionRecord, signed: string, now: Date): Promise<MoveAnswer>
  /** Records the transaction, if there is none with its id; the one that is there afterwards, as it is stored. */
  record(record: TransactionRecord): Promise<string>
  /** Removes those that are older. How many of them went. */
  remove(clientId: string, ids: readonly string[], olderThanMs: number): Promise<number>
  /** Does what somebody has left half-done of this client's transactions, or of the one that is named. False: there was nothing. */
  finish(clientId: string, id?: string): Promise<boolean>
  /** The same for every client. Damage is reported, and does not end it. */
  finishAll(signal: AbortSignal | undefined, report: (error: HoldfastError) => void): Promise<void>
}

export interface MoveAnswer {
  /** `moved`, `again`: done, then or before. `recorded`: the id is that of a transaction that was no move. Or why it is refused. */
  readonly status: string
  /** The balance after in digits; for `recorded` that of now, or why there is none. */
  readonly balance: string
  /** For `recorded`, the transaction that has the id. */
  readonly stored: string
}

/** Replies of scripts are bytes. */
export const texts = (reply: unknown): string[] => (reply as unknown[]).map(String)
