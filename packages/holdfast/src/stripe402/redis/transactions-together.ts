import type { BorrowedRedis } from '../../redis/index.js'
import { stripe402File, stripe402Move, stripe402Prune } from '../../redis/scripts.generated.js'
import type { TransactionRecord } from '../types.js'
import { refusal } from './changes.js'
import type { StoreKeys } from './keys.js'
import { readTransaction, writeTransaction } from './records.js'
import { type MoveAnswer, type Transactions, texts } from './transactions.js'

/** One script call for all that belongs together. */
export class TransactionsTogether implements Transactions {
  readonly #redis: BorrowedRedis
  readonly #keys: StoreKeys

  constructor(redis: BorrowedRedis, keys: StoreKeys) {
    this.#redis = redis
    this.#keys = keys
  }

  async move(record: TransactionRecord, signed: string, now: Date): Promise<MoveAnswer> {
    const { clientId, id, createdAt } = record
    const keys = [
      this.#keys.client(clientId),
      this.#keys.moves(clientId),
      this.#keys.transaction(clientId, id),
      this.#keys.index(clientId),
    ]
    const args = [id, signed, writeTransaction(record), createdAt.getTime(), now.toISOString()]
    const [status = '', balance = '', stored = ''] = texts(await this.#redis.run(stripe402Move, keys, args))
    return { status, balance, stored }
  }

  async record(record: TransactionRecord): Promise<string> {
    const json = writeTransaction(record)
    const [status, stored, score] = await this.#file(record, json)
    if (status === 'filed') return json
    if (status !== 'other') throw refusal(String(status), record.clientId, record.amount)
    // Another one of this id is there. Should older software have died before it was indexed, that is done now.
    const other = readTransaction(record.clientId, record.id, stored as string)
    if (other !== null && score === '') await this.#file(other, stored as string)
    return stored as string
  }

  async remove(clientId: string, ids: readonly string[], olderThanMs: number): Promise<number> {
    const transactions = ids.map((id) => this.#keys.transaction(clientId, id))
    const keys = [this.#keys.index(clientId), this.#keys.moves(clientId), ...transactions]
    return Number(await this.#redis.run(stripe402Prune, keys, [ids.length, olderThanMs, ...ids]))
  }

  async finish(): Promise<boolean> {
    return false
  }

  async finishAll(): Promise<void> {}

  async #file({ clientId, id, createdAt }: TransactionRecord, json: string): Promise<string[]> {
    const keys = [this.#keys.transaction(clientId, id), this.#keys.index(clientId)]
    return texts(await this.#redis.run(stripe402File, keys, [id, json, createdAt.getTime()]))
  }
}
