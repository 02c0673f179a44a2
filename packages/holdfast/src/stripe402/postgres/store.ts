import type pg from 'pg'
import { HoldfastError } from '../../errors/index.js'
import { flag, namesOf, options as optionsOf } from '../../input/index.js'
import { PostgresError, Statements, type StatementsOptions } from '../../postgres/index.js'
import * as check from '../checks.js'
import { clientNotFound, conflict, isSame, tooMuch } from '../failures.js'
import { QUERIES } from '../queries.generated.js'
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
  TransactionType,
} from '../types.js'
import { stopIfAborted, unlessDamaged } from '../walking.js'
import {
  type ClientRow,
  clientOf,
  noPlace,
  readBalance,
  readPlace,
  type TransactionRow,
  transactionOf,
  writePlace,
} from './rows.js'

export interface CreateTablesOptions {
  /** Turn the integer columns of an older installation into bigint. Rewrites the tables while nobody can use them. Default false. */
  widen?: boolean
}

/** What a change of a balance came to. `before` is as the statement began: it only explains why nothing was changed. */
interface ChangedRow {
  known: boolean
  before: string | null
  after: string | null
  seen_type?: TransactionType | null
  seen_amount?: string | null
  seen_balance?: string | null
}

const OPTION_NAMES = namesOf<StatementsOptions>({ connectTimeoutMs: true, answerTimeoutMs: true, prepared: true })
const TABLES_NAMES = namesOf<CreateTablesOptions>({ widen: true })
const PAGE_SIZE = 500
/** Another did the same at the same moment: the second look shows it. A third, for who looks just as it is pruned. */
const LOOKS_MAX = 3

const FOREIGN_KEY_VIOLATION = '23503'
const UNIQUE_VIOLATION = '23505'
const OUT_OF_RANGE = '22003'
const NO_SUCH_TIME = '22008'
const UNDEFINED_TABLE = '42P01'

/**
 * Clients and transactions in the tables of stripe402, one statement a call: all of it is done, or nothing.
 *
 *     stripe402_clients       client_id · stripe_customer_id · balance · currency · created_at · updated_at
 *     stripe402_transactions  id · client_id · type · amount · stripe_payment_intent_id · resource · created_at
 *     stripe402_keys          client_id · scope · key · type · amount · balance · created_at        what was answered, for who asks again
 *
 * The third is ours, and made by `createTables` alone: the published methods without a key do not need it.
 */
export class PostgresStore implements LedgerStore {
  readonly #statements: Statements

  /** The pool stays yours: its settings are used as they are, and it is not closed. */
  constructor(pool: pg.Pool, options: StatementsOptions = {}) {
    this.#statements = new Statements(pool, optionsOf('options', options, OPTION_NAMES) as StatementsOptions)
  }

  /** Makes what is missing and leaves what is there. Safe to call at every start, by many at once, and beside a stripe402 that runs. */
  async createTables(options: CreateTablesOptions = {}): Promise<void> {
    const widen = flag('widen', optionsOf('options', options, TABLES_NAMES).widen)
    await this.#create('createTables')
    if (widen) await this.#create('widenColumns')
  }

  /** Several statements in one text are one transaction. They may wait for others who are at it. */
  async #create(name: 'createTables' | 'widenColumns'): Promise<void> {
    await this.#statements.run({ name: `stripe402_${name}`, text: QUERIES[name], answerTimeoutMs: 0 })
  }

  async getClient(clientId: string): Promise<ClientRecord | null> {
    const [row] = await this.#ask<ClientRow>('getClient', [check.clientId(clientId)])
    return row ? clientOf(row) : null
  }

  async createClient(record: ClientRecord): Promise<void> {
    const { clientId, stripeCustomerId, balance, currency, createdAt, updatedAt } = check.client(record)
    const times = [createdAt.toISOString(), updatedAt.toISOString()]
    await this.#ask('createClient', [clientId, stripeCustomerId, balance, currency, ...times])
  }

  async deductBalance(clientId: string, amount: number, options?: ChangeOptions): Promise<number | null> {
    return this.#change(check.clientId(clientId), 'deduction', check.money('amount', amount), check.keyOf(options))
  }

  async addBalance(clientId: string, amount: number, options?: ChangeOptions): Promise<number> {
    const id = check.clientId(clientId)
    const balance = await this.#change(id, 'topup', check.money('amount', amount), check.keyOf(options))
    if (balance === null) throw clientNotFound(id)
    return balance
  }

  async #change(
    clientId: string,
    type: TransactionType,
    amount: number,
    key: string | undefined,
  ): Promise<number | null> {
    const values = [clientId, signed(type, amount)]
    const row =
      key === undefined
        ? await this.#ask<ChangedRow>('changeBalance', [...values, type]).then(([one]) => one)
        : await this.#askOnce<ChangedRow>('changeBalanceOnce', [...values, key, type], 'key')
    const answered = answerOf(row as ChangedRow, { clientId, type, amount }, 'key')
    return answered === 'unknown' ? null : answered
  }

  async recordTransaction(transaction: TransactionRecord): Promise<void> {
    const one = check.transaction(transaction)
    const { clientId, id, type, amount, stripePaymentIntentId = null, resource = null, createdAt } = one
    const values = [clientId, id, type, amount, stripePaymentIntentId, resource, createdAt.toISOString()]
    for (let looks = 1; looks <= LOOKS_MAX; looks += 1) {
      const [row] = await this.#ask<{ made: boolean; type: TransactionType | null; amount: string }>(
        'recordTransaction',
        values,
        clientId,
      )
      if (row?.made) return
      if (!row?.type) continue
      if (isSame(one, { type: row.type, amount: Number(row.amount) })) return
      break
    }
    // With the others, or of another client: ids are unique over all of them in the tables of an older installation.
    throw conflict('id')
  }

  async move(transaction: Movement): Promise<number | null> {
    const one = check.movement(transaction, new Date())
    const { clientId, id, type, amount, stripePaymentIntentId = null, resource = null, createdAt } = one
    const row = await this.#askOnce<ChangedRow>(
      'move',
      [clientId, signed(type, amount), id, type, stripePaymentIntentId, resource, createdAt.toISOString()],
      'id',
    )
    const answered = answerOf(row, one, 'id')
    if (answered === 'unknown') throw clientNotFound(clientId)
    return answered
  }

  async getTransaction(clientId: string, id: string): Promise<TransactionRecord | null> {
    const values = [check.clientId(clientId), check.transactionId(id)]
    const [row] = await this.#ask<TransactionRow>('getTransaction', values)
    return row ? transactionOf(row) : null
  }

  async listTransactions(clientId: string, options?: ListTransactionsOptions): Promise<TransactionPage> {
    const id = check.clientId(clientId)
    const { order, limit, after, onDamaged } = check.page(options, readPlace)
    const [name, start] =
      order === 'newest' ? (['listNewest', 'infinity'] as const) : (['listOldest', '-infinity'] as const)
    // One more than asked for tells whether there are more.
    const values = [id, after?.at ?? start, after?.id ?? '', limit + 1]
    const rows = await this.#ask<TransactionRow>(name, values).catch((error: unknown) => {
      if (error instanceof PostgresError && error.sqlstate === NO_SUCH_TIME) throw noPlace(options?.after)
      throw error
    })
    const shown = rows.slice(0, limit)
    const last = shown.at(-1)
    return {
      transactions: shown.flatMap((row) => unlessDamaged(() => transactionOf(row), onDamaged)),
      next: rows.length > limit && last ? writePlace({ at: last.created_at ?? '', id: last.id }) : null,
    }
  }

  async *listClients(options?: ListClientsOptions): AsyncGenerator<ClientRecord, void, void> {
    const { signal, onDamaged } = check.walk(options)
    const damaged: Error[] = []
    // Without a listener the first is thrown, at the end: what is sound comes before.
    const note = onDamaged ?? ((error: Error) => void (damaged.length === 0 && damaged.push(error)))
    for (let after = ''; ; ) {
      stopIfAborted(signal)
      const rows = await this.#ask<ClientRow>('listClients', [after, PAGE_SIZE])
      for (const row of rows) yield* unlessDamaged(() => clientOf(row), note)
      after = rows.at(-1)?.client_id ?? ''
      if (rows.length < PAGE_SIZE) break
    }
    if (damaged[0]) throw damaged[0]
  }

  /** Also forgets what was answered to keys and moves before that time: they may be done again then. */
  async pruneTransactions(options: PruneOptions): Promise<number> {
    const { olderThan, signal } = check.prune(options)
    // In this order: where one was forgotten and the other is still there, nothing is moved again.
    await this.#prune('pruneKeys', olderThan, signal)
    return this.#prune('pruneTransactions', olderThan, signal)
  }

  async #prune(
    name: 'pruneTransactions' | 'pruneKeys',
    olderThan: Date,
    signal: AbortSignal | undefined,
  ): Promise<number> {
    let went = 0
    let after = ''
    for (;;) {
      stopIfAborted(signal)
      const values = [after, olderThan.toISOString(), PAGE_SIZE]
      const [row] = await this.#ask<{ last: string | null; gone: number }>(name, values)
      if (!row || row.last === null) return went
      went += row.gone
      after = row.last
    }
  }

  /** Sent again where it ran into another with the same key or id: then it sees what the other did. */
  async #askOnce<Row extends pg.QueryResultRow>(
    name: keyof typeof QUERIES,
    values: readonly unknown[],
    what: 'key' | 'id',
  ): Promise<Row> {
    for (let looks = 1; looks <= LOOKS_MAX; looks += 1) {
      try {
        const [row] = await this.#ask<Row>(name, values)
        return row as Row
      } catch (error) {
        if (!(error instanceof PostgresError) || error.sqlstate !== UNIQUE_VIOLATION) throw error
      }
    }
    throw conflict(what)
  }

  async #ask<Row extends pg.QueryResultRow>(
    name: keyof typeof QUERIES,
    values: readonly unknown[],
    clientId = '',
  ): Promise<Row[]> {
    try {
      return await this.#statements.run<Row>({ name: `stripe402_${name}`, text: QUERIES[name], values })
    } catch (error) {
      throw error instanceof PostgresError ? explained(error, clientId) : error
    }
  }
}

const signed = (type: TransactionType, amount: number): number => (type === 'topup' ? amount : 0 - amount)

/** The balance after; null: not enough. */
function answerOf(
  row: ChangedRow,
  asked: Pick<TransactionRecord, 'clientId' | 'type' | 'amount'>,
  what: 'key' | 'id',
): number | null | 'unknown' {
  const { clientId, type, amount } = asked
  if (row.seen_type) {
    if (!isSame(asked, { type: row.seen_type, amount: Number(row.seen_amount) })) throw conflict(what)
    // What was recorded by other means is answered with the balance as it stands.
    if (row.seen_balance) return Number(row.seen_balance)
    return row.known ? readBalance(clientId, row.before) : 'unknown'
  }
  if (row.after !== null) return Number(row.after)
  if (!row.known) return 'unknown'
  readBalance(clientId, row.before)
  if (type === 'topup') throw tooMuch(amount)
  return null
}

function explained(error: PostgresError, clientId: string): HoldfastError {
  const { sqlstate } = error
  if (sqlstate === FOREIGN_KEY_VIOLATION) return clientNotFound(clientId)
  if (sqlstate === UNDEFINED_TABLE) {
    return new HoldfastError(
      'incompatible',
      'A table of the stripe402 store is missing: call createTables()',
      {},
      { cause: error },
    )
  }
  if (sqlstate === OUT_OF_RANGE) {
    const message =
      'amount: expected a balance and an amount that the columns can take (integer: up to 2147483647), got more. ' +
      'createTables({ widen: true }) makes them bigint'
    return new HoldfastError('invalid_amount', message, { argument: 'amount' }, { cause: error })
  }
  return error
}
