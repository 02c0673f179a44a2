import { flag, integer, namesOf, options as optionsOf } from '../../input/index.js'
import { type BorrowedClient, BorrowedRedis, WRONG_TYPE } from '../../redis/index.js'
import { stripe402Create } from '../../redis/scripts.generated.js'
import * as check from '../checks.js'
import { clientDamaged } from '../failures.js'
import type {
  ChangeOptions,
  ClientRecord,
  LedgerStore,
  ListClientsOptions,
  ListTransactionsOptions,
  Movement,
  PruneOptions,
  TransactionPage,
  TransactionRecord,
} from '../types.js'
import { Changes, refusal } from './changes.js'
import { listClients } from './clients.js'
import { StoreKeys } from './keys.js'
import { Ledger } from './ledger.js'
import { CLIENT_FIELDS, readClient, writeClient } from './records.js'
import { TransactionsApart } from './transactions-apart.js'
import { TransactionsTogether } from './transactions-together.js'

export interface RedisStoreOptions {
  /** For how long a `key` is remembered: 1 s to 400 days. One day unless it is given. */
  keyTtlMs?: number
  /**
   * Puts all keys of a client into one slot of a Cluster: `stripe402:client:{<clientId>}`. `move` is one script call then. For those who
   * start fresh: published software, and a store without it, do not find these keys.
   */
  tagged?: boolean
}

const OPTION_NAMES = namesOf<RedisStoreOptions>({ keyTtlMs: true, tagged: true })
const DAY_MS = 24 * 60 * 60 * 1_000

/**
 * A stripe402 store on Redis: keys, fields and types as published, so that both can work on the same database. The client of ioredis is
 * its owner's: it is used as it is, and never closed.
 */
export class RedisStore implements LedgerStore {
  readonly #redis: BorrowedRedis
  readonly #keys: StoreKeys
  readonly #changes: Changes
  readonly #ledger: Ledger

  constructor(redis: BorrowedClient, options: RedisStoreOptions = {}) {
    const given = optionsOf('options', options, OPTION_NAMES)
    const tagged = flag('tagged', given.tagged)
    const keyTtlMs = integer('keyTtlMs', given.keyTtlMs ?? DAY_MS, 1_000, 400 * DAY_MS)
    this.#redis = new BorrowedRedis(redis)
    this.#keys = new StoreKeys(this.#redis.keyPrefix, tagged, this.#redis.isCluster)
    this.#changes = new Changes(this.#redis, keyTtlMs)
    const Transactions = this.#redis.isCluster && !tagged ? TransactionsApart : TransactionsTogether
    this.#ledger = new Ledger(this.#redis, this.#keys, new Transactions(this.#redis, this.#keys))
  }

  async getClient(clientId: string): Promise<ClientRecord | null> {
    check.clientId(clientId)
    const values = await this.#redis.ask('hmget', this.#keys.client(clientId), ...CLIENT_FIELDS)
    if (values === WRONG_TYPE) throw refusal('type', clientId, 0)
    return readClient(clientId, values as (string | null)[])
  }

  async createClient(record: ClientRecord): Promise<void> {
    const client = check.client(record)
    const key = this.#keys.client(client.clientId)
    const outcome = String(await this.#redis.run(stripe402Create, [key], writeClient(client)))
    if (outcome === 'created' || outcome === 'there') return
    if (outcome !== 'ghost') throw refusal(outcome, client.clientId, 0)
    throw clientDamaged(
      client.clientId,
      'clientId',
      'one, or nothing but a zero balance',
      'a balance, or fields, of nobody',
    )
  }

  deductBalance(clientId: string, amount: number, options?: ChangeOptions): Promise<number | null> {
    return this.#change('-', clientId, amount, options)
  }

  addBalance(clientId: string, amount: number, options?: ChangeOptions): Promise<number> {
    // Only a deduction is answered with null.
    return this.#change('+', clientId, amount, options) as Promise<number>
  }

  async recordTransaction(transaction: TransactionRecord): Promise<void> {
    await this.#ledger.record(check.transaction(transaction))
  }

  async move(transaction: Movement): Promise<number | null> {
    const now = new Date()
    return this.#ledger.move(check.movement(transaction, now), now)
  }

  async getTransaction(clientId: string, id: string): Promise<TransactionRecord | null> {
    return this.#ledger.get(check.clientId(clientId), check.transactionId(id))
  }

  async listTransactions(clientId: string, options?: ListTransactionsOptions): Promise<TransactionPage> {
    return this.#ledger.list(check.clientId(clientId), check.page(options))
  }

  async *listClients(options?: ListClientsOptions): AsyncGenerator<ClientRecord> {
    yield* listClients(this.#redis, this.#keys, check.walk(options))
  }

  async pruneTransactions(options: PruneOptions): Promise<number> {
    const { olderThan, signal } = check.prune(options)
    return this.#ledger.prune(olderThan, signal)
  }

  /** Not `async`, for the sake of who deducts alone; so what is wrong with the arguments has to be made a rejection here. */
  #change(
    sign: '+' | '-',
    clientId: string,
    amount: number,
    options: ChangeOptions | undefined,
  ): Promise<number | null> {
    try {
      check.clientId(clientId)
      const signed = `${sign}${check.money('amount', amount)}`
      const key = check.keyOf(options)
      const memoryKey = key === undefined ? '' : this.#keys.once(clientId, key)
      return this.#changes.add({ clientId, clientKey: this.#keys.client(clientId), amount, signed, memoryKey })
    } catch (error) {
      return Promise.reject(error)
    }
  }
}
