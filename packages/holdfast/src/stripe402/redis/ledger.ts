import { HoldfastError } from '../../errors/index.js'
import { type BorrowedRedis, WRONG_TYPE } from '../../redis/index.js'
import { stripe402Page } from '../../redis/scripts.generated.js'
import { type Page, type Position, writeCursor } from '../checks.js'
import { clientDamaged, conflict, isSame } from '../failures.js'
import type { TransactionPage, TransactionRecord } from '../types.js'
import { isBalance, refusal } from './changes.js'
import { scanIds } from './clients.js'
import { damageOf } from './damage.js'
import type { StoreKeys } from './keys.js'
import { readTransaction } from './records.js'
import { type Transactions, texts } from './transactions.js'

/** Most transactions that one script call removes. */
const PRUNE_MAX = 100

/** Transactions: moved, recorded, read in pages, pruned. How they are written is not its business. */
export class Ledger {
  readonly #redis: BorrowedRedis
  readonly #keys: StoreKeys
  readonly #transactions: Transactions

  constructor(redis: BorrowedRedis, keys: StoreKeys, transactions: Transactions) {
    this.#redis = redis
    this.#keys = keys
    this.#transactions = transactions
  }

  async move(record: TransactionRecord, now: Date): Promise<number | null> {
    const { clientId, id, type, amount } = record
    const signed = `${type === 'topup' ? '+' : '-'}${amount}`
    const { status, balance, stored } = await this.#transactions.move(record, signed, now)
    if (status === 'short') return null
    if (status === 'conflict') throw conflict('id')
    if (status === 'recorded') {
      const other = readTransaction(clientId, id, stored)
      if (other === null || !isSame(other, record)) throw conflict('id')
      // Should who recorded it have died before it was indexed, that is done now.
      await this.#transactions.record(other)
    } else if (status !== 'moved' && status !== 'again') throw refusal(status, clientId, amount)
    if (!isBalance(balance)) throw refusal(balance, clientId, amount)
    return Number(balance)
  }

  async record(record: TransactionRecord): Promise<void> {
    const stored = await this.#transactions.record(record)
    const held = readTransaction(record.clientId, record.id, stored)
    if (held === null || !isSame(held, record)) throw conflict('id')
  }

  async get(clientId: string, id: string): Promise<TransactionRecord | null> {
    const json = (await this.#read(clientId, id)) ?? (await this.#readFinished(clientId, id))
    return json === null ? null : readTransaction(clientId, id, json)
  }

  async list(clientId: string, { order, limit, after, onDamaged }: Page): Promise<TransactionPage> {
    const report = (error: HoldfastError) => {
      if (!onDamaged) throw error
      onDamaged(error)
    }
    await damageOf(() => this.#transactions.finish(clientId), report)
    const place = after === undefined ? ['0', '0', ''] : ['1', String(after.atMs), after.id]
    // One more than wanted tells whether there is a next page.
    const reply = await this.#redis.run(stripe402Page, [this.#keys.index(clientId)], [order, limit + 1, ...place])
    if (reply === null) throw refusal('index', clientId, 0)
    const found = positionsOf(texts(reply))
    const shown = found.slice(0, limit)
    const read = await Promise.all(shown.map(({ id }) => this.#tryToRead(clientId, id)))
    const transactions: TransactionRecord[] = []
    for (const one of read) {
      if (one instanceof HoldfastError) report(one)
      else if (one !== null) transactions.push(one)
    }
    return { transactions, next: found.length > limit ? writeCursor(shown.at(-1) as Position) : null }
  }

  /** One damaged client must not keep the others from being pruned: it is told of at the end. */
  async prune(olderThan: Date, signal: AbortSignal | undefined): Promise<number> {
    const damaged: HoldfastError[] = []
    const report = (error: HoldfastError) => damaged.push(error)
    await this.#transactions.finishAll(signal, report)
    let removed = 0
    for await (const ids of scanIds(this.#redis, this.#keys, 'txns', signal)) {
      for (const clientId of ids) {
        await damageOf(async () => {
          removed += await this.#pruneOf(clientId, olderThan.getTime())
        }, report)
      }
    }
    const [first] = damaged
    if (first === undefined) return removed
    throw new HoldfastError('client_damaged', `${removed} transactions went, but: ${first.message}`, {
      ...first.facts,
      removed,
    })
  }

  async #pruneOf(clientId: string, olderThanMs: number): Promise<number> {
    const index = this.#keys.index(clientId)
    let removed = 0
    for (let before = ''; ; ) {
      const found = await this.#redis.ask('zrangebyscore', index, '-inf', `(${olderThanMs}`, 'LIMIT', 0, PRUNE_MAX)
      if (found === WRONG_TYPE) throw refusal('index', clientId, 0)
      const ids = found as string[]
      // The same again comes from a replica that is behind: the next run finds what is left.
      if (ids.length === 0 || ids[0] === before) return removed
      removed += await this.#transactions.remove(clientId, ids, olderThanMs)
      before = ids[0] as string
    }
  }

  async #readFinished(clientId: string, id: string): Promise<string | null> {
    return (await this.#transactions.finish(clientId, id)) ? this.#read(clientId, id) : null
  }

  /** Null: it is gone since it was found in the index. */
  async #tryToRead(clientId: string, id: string): Promise<TransactionRecord | HoldfastError | null> {
    try {
      const json = await this.#read(clientId, id)
      if (json !== null) return readTransaction(clientId, id, json) ?? missing(clientId, id)
      const score = await this.#redis.ask('zscore', this.#keys.index(clientId), id)
      return score === null ? null : missing(clientId, id)
    } catch (error) {
      if (HoldfastError.is(error, 'client_damaged')) return error
      throw error
    }
  }

  async #read(clientId: string, id: string): Promise<string | null> {
    const json = await this.#redis.ask('get', this.#keys.transaction(clientId, id))
    if (json === WRONG_TYPE) throw refusal('transaction', clientId, 0)
    return json as string | null
  }
}

const missing = (clientId: string, id: string): HoldfastError =>
  clientDamaged(clientId, `transaction ${id}`, 'a record, since it is in the index', 'none')

function positionsOf(flat: readonly string[]): Position[] {
  const positions: Position[] = []
  for (let at = 0; at < flat.length; at += 2)
    positions.push({ id: flat[at] as string, atMs: scoreOf(flat[at + 1] as string) })
  return positions
}

/** Infinite is what a hand may have made it. */
const scoreOf = (text: string): number => Number(text.replace('inf', 'Infinity'))
