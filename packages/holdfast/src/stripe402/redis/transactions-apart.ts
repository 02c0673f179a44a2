import { HoldfastError } from '../../errors/index.js'
import { type BorrowedRedis, WRONG_TYPE } from '../../redis/index.js'
import {
  stripe402Drop,
  stripe402Keep,
  stripe402MoveApart,
  stripe402Note,
  stripe402Noted,
  stripe402Pending,
} from '../../redis/scripts.generated.js'
import { clientDamaged } from '../failures.js'
import type { TransactionRecord } from '../types.js'
import { refusal } from './changes.js'
import { stopIfAborted } from './clients.js'
import { damageOf } from './damage.js'
import type { StoreKeys } from './keys.js'
import { readTransaction, writeTransaction } from './records.js'
import { type MoveAnswer, type Transactions, texts } from './transactions.js'

const PORTION = 500
/** What is noted for longer than this was left behind: whoever noted it would have done it by now. */
const LEFT_BEHIND_MS = 10_000
const ROUNDS_MAX = 5

/**
 * On a Cluster with published keys: a client, a transaction and the index lie in three slots, and no step reaches two of them. So a note
 * of what is to be done is made in the client's slot first, with the balance in the same step where there is one; then it is done; then
 * the note is taken back. Each step may run twice, and whoever comes by may take it: the next who reads, records or prunes.
 *
 *   client's slot      balance −100, note "file t1"  ─┐                                      ┌─▶  note taken back
 *   slot of t1                                        └─▶ stripe402:txn:…:t1 ─┐              │
 *   slot of the index                                                         └─▶ t1 indexed ┘
 *
 * A note is `<ms>+<json>`, to be filed, or `<ms>-<json>`, to be removed, with the time that it was made.
 */
export class TransactionsApart implements Transactions {
  readonly #redis: BorrowedRedis
  readonly #keys: StoreKeys

  constructor(redis: BorrowedRedis, keys: StoreKeys) {
    this.#redis = redis
    this.#keys = keys
  }

  async move(record: TransactionRecord, signed: string, now: Date): Promise<MoveAnswer> {
    const { clientId, id } = record
    const keys = [this.#keys.client(clientId), this.#keys.moves(clientId), this.#keys.pending(clientId)]
    const note = `${now.getTime()}+${writeTransaction(record)}`
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      // What others have recorded is not remembered in the client's slot. What moves here is, so that it does not matter if it is filed
      // between this look and the decision.
      const stored = await this.#keep(record, '')
      const args = [id, signed, note, now.toISOString(), stored === '' ? '0' : '1']
      const [status = '', balance = '', left = ''] = texts(await this.#redis.run(stripe402MoveApart, keys, args))
      if (status === 'busy') {
        await this.#do(clientId, id, left)
        continue
      }
      if (left !== '') await this.#tryToDo(clientId, id, left)
      return { status, balance, stored }
    }
    throw tooBusy()
  }

  async record(record: TransactionRecord): Promise<string> {
    const { clientId, id } = record
    const json = writeTransaction(record)
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const stored = await this.#keep(record, '')
      if (stored !== '') {
        const other = readTransaction(clientId, id, stored)
        if (other !== null) await this.#index(other)
        return stored
      }
      const note = `${Date.now()}+${json}`
      const noted = await this.#note(record, note)
      const { stored: kept } = await this.#do(clientId, id, noted)
      // Another may have been recorded and filed between the look and the note: then it is that one that stays.
      if (noted === note) return kept
      // Somebody else was at it: the next look tells what has become of it.
    }
    throw tooBusy()
  }

  async remove(clientId: string, ids: readonly string[]): Promise<number> {
    const removed = await Promise.all(
      ids.map(async (id) => {
        const one = { clientId, id, amount: 0 }
        const noted = await this.#note(one, `${Date.now()}-${await this.#keep(one, '')}`)
        return (await this.#do(clientId, id, noted)).removed
      }),
    )
    return removed.filter((went) => went).length
  }

  async finish(clientId: string, id?: string): Promise<boolean> {
    const reply = await this.#redis.run(stripe402Pending, [this.#keys.pending(clientId)], [])
    if (reply === null) throw refusal('pending', clientId, 0)
    const notes = texts(reply)
    const doing: Promise<Done>[] = []
    for (let at = 0; at < notes.length; at += 2) {
      const [noted, note] = [notes[at] as string, notes[at + 1] as string]
      if (id === undefined || noted === id) doing.push(this.#do(clientId, noted, note))
    }
    // One that can't be done must not keep the others.
    const failed = (await Promise.allSettled(doing)).find(({ status }) => status === 'rejected')
    if (failed) throw (failed as PromiseRejectedResult).reason
    return doing.length > 0
  }

  async finishAll(signal: AbortSignal | undefined, report: (error: HoldfastError) => void): Promise<void> {
    for await (const found of this.#redis.scan(this.#keys.pendings, PORTION)) {
      stopIfAborted(signal)
      for (const key of found) {
        const clientId = this.#keys.readPending(key)
        if (clientId !== null) await damageOf(() => this.finish(clientId), report)
      }
    }
  }

  /** The balance has changed and the note stands: that is what was asked for. Who reads next does the rest, or hears why it can't be done. */
  async #tryToDo(clientId: string, id: string, note: string): Promise<void> {
    try {
      await this.#do(clientId, id, note)
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error
    }
  }

  /** Does what a note says and takes it back. */
  async #do(clientId: string, id: string, note: string): Promise<Done> {
    const read = readNote(note)
    if (read === null) throw noNote(clientId, id)
    const done = read.isFiled
      ? { removed: false, stored: await this.#file(clientId, id, read.json) }
      : { removed: await this.#remove(clientId, id, read.json), stored: '' }
    const keys = [this.#keys.pending(clientId), this.#keys.moves(clientId)]
    const [otherId, other] = texts(await this.#redis.run(stripe402Noted, keys, [id, note, read.isFiled ? '0' : '1']))
    // One that was left behind, if chance has found one: so a client that is only moved does not keep it for ever.
    const leftAtMs = other === undefined || otherId === id ? undefined : readNote(other)?.atMs
    const isLeft = leftAtMs !== undefined && Date.now() - leftAtMs > LEFT_BEHIND_MS
    if (isLeft) await this.#tryToDo(clientId, otherId as string, other as string)
    return done
  }

  /** The transaction that has the id afterwards. What can't be read is not filed: the note is all that is left of it. */
  async #file(clientId: string, id: string, json: string): Promise<string> {
    if (readTransaction(clientId, id, json) === null) throw noNote(clientId, id)
    const stored = await this.#keep({ clientId, id, amount: 0 }, json)
    const record = readTransaction(clientId, id, stored)
    if (record !== null) await this.#index(record)
    return stored
  }

  /** From the index first: what stands there can be read. */
  async #remove(clientId: string, id: string, json: string): Promise<boolean> {
    const gone = await this.#redis.ask('zrem', this.#keys.index(clientId), id)
    if (gone === WRONG_TYPE) throw refusal('index', clientId, 0)
    if (json !== '') await this.#redis.run(stripe402Drop, [this.#keys.transaction(clientId, id)], [json])
    return Number(gone) > 0
  }

  async #index({ clientId, id, createdAt }: TransactionRecord): Promise<void> {
    const indexed = await this.#redis.ask('zadd', this.#keys.index(clientId), 'NX', createdAt.getTime(), id)
    if (indexed === WRONG_TYPE) throw refusal('index', clientId, 0)
  }

  /** The transaction that is there afterwards; empty: none. */
  async #keep({ clientId, id, amount }: Named, json: string): Promise<string> {
    const stored = await this.#redis.run(stripe402Keep, [this.#keys.transaction(clientId, id)], [json])
    if (stored === null) throw refusal('transaction', clientId, amount)
    return String(stored)
  }

  async #note({ clientId, id, amount }: Named, note: string): Promise<string> {
    const noted = await this.#redis.run(stripe402Note, [this.#keys.pending(clientId)], [id, note])
    if (noted === null) throw refusal('pending', clientId, amount)
    return String(noted)
  }
}

const tooBusy = (): HoldfastError =>
  new HoldfastError('unavailable', 'others record and remove a transaction of this id all the time')

const noNote = (clientId: string, id: string): HoldfastError =>
  clientDamaged(clientId, `what is to be done with transaction ${id}`, 'a note', 'something else')

type Named = Pick<TransactionRecord, 'clientId' | 'id' | 'amount'>

interface Done {
  /** It was there, and is not any more. */
  readonly removed: boolean
  /** What was to be filed, or what was there before it; empty: it was to be removed. */
  readonly stored: string
}

/** Null: it is none. */
function readNote(note: string): { atMs: number; isFiled: boolean; json: string } | null {
  const [, at, sign, json = ''] = /^(\d{1,15})([+-])(.*)$/s.exec(note) ?? []
  return at === undefined ? null : { atMs: Number(at), isFiled: sign === '+', json }
}
