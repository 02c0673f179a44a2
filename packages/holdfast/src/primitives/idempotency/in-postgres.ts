import { HoldfastError } from '../../errors/index.js'
import { given, invalid } from '../../input/index.js'
import { type CallersClient, callWithin, type Postgres, PostgresError } from '../../postgres/index.js'
import { type Context, tell } from '../context.js'
import type { Scope } from '../keys.js'
import { type Completed, Front } from './front.js'
import { readLook } from './in-redis.js'
import type { RecordLook, Records, Standing, Terms } from './records.js'

/** As `complete_idempotency_key_within` raises it. */
const LOST = 'HF002'
const NO_TRANSACTION = '25P01'
const COMPLETE_WITHIN = { table: 'idempotency_keys', name: 'complete_idempotency_key_within' }

interface Row {
  readonly token: string
  readonly request: string | null
  readonly attempt: number
  readonly took_over: boolean
  readonly response: string
  readonly created_at: string
  readonly updated_at: string
  readonly keep_left_ms: string
}

interface ClaimRow extends Row {
  readonly standing: Standing['result']
  readonly left_ms: string
}

interface LookRow {
  readonly state: string
  readonly attempt: number
  readonly left_ms: string
  readonly response: string
  readonly reason: string
}

/** Records that Postgres keeps, with Redis in front. */
export class RecordsInPostgres implements Records {
  readonly #context: Context
  readonly #postgres: Postgres
  readonly #terms: Terms
  readonly #front: Front

  constructor(context: Context, postgres: Postgres, terms: Terms) {
    this.#context = context
    this.#postgres = postgres
    this.#terms = terms
    this.#front = new Front(context)
  }

  async claim(scope: Scope, token: string, request: string | null): Promise<Standing> {
    const shown = await this.#front.ask(scope, token)
    if (shown.result === 'processing') return shown
    if (shown.result === 'completed') {
      const isOther = request !== null && shown.request !== null && request !== shown.request
      return isOther ? { result: 'conflict' } : { result: 'completed', response: shown.response }
    }
    try {
      const row = await this.#claimRow(scope, token, request)
      if (row.standing === 'completed') {
        // Postgres had committed, and Redis was not told or has forgotten.
        await this.#front.show(scope, completedOf(row))
        tell(this.#context, 'idempotency', 'repaired')
      }
      if (row.standing === 'conflict') await this.#front.hide(scope)
      return standingOf(row)
    } catch (error) {
      // Nobody was told anything, so nobody should have to wait for us.
      await this.#front.hide(scope).catch(() => {})
      throw error
    }
  }

  async complete(scope: Scope, token: string, response: string): Promise<string | null> {
    const [row] = await this.#query<Row>('completeIdempotencyKey', scope, [token, response, this.#terms.retentionMs])
    if (row === undefined) return null
    await this.#front.show(scope, completedOf(row))
    return row.response
  }

  /** In a transaction of the caller's: with its commit the key is completed, and Redis hears of it by the next claim. */
  async completeWithin(client: CallersClient, scope: Scope, token: string, response: string): Promise<void> {
    given('client', client, 'a client of pg within a transaction')
    if (typeof client.query !== 'function')
      throw invalid('client', 'a client of pg within a transaction', 'another object')
    const values = [...this.#rowOf(scope), token, response, this.#terms.retentionMs]
    try {
      await callWithin(client, { schema: this.#postgres.schema, ...COMPLETE_WITHIN }, values)
    } catch (error) {
      if (!(error instanceof PostgresError)) throw error
      if (error.sqlstate === LOST) throw new HoldfastError('claim_lost')
      if (error.sqlstate === NO_TRANSACTION) throw invalid('client', 'one within a transaction', 'one outside of any')
      throw error
    }
  }

  /**
   * The response that the caller's transaction has kept; null: lost. A COMMIT after a statement that has failed unnoticed is a ROLLBACK, and
   * says so in its tag alone: then there is no effect, and nobody may hear that there was.
   */
  async committed(scope: Scope, token: string): Promise<string | null> {
    const [row] = await this.#query<Row & { state: string }>('committedIdempotencyKey', scope, [token])
    if (row === undefined) return null
    if (row.state !== 'COMPLETED') throw new PostgresError('refused', 'The transaction of completeIn was not committed')
    await this.#front.show(scope, completedOf(row))
    return row.response
  }

  async fail(scope: Scope, token: string, reason: string): Promise<boolean> {
    const rows = await this.#query('failIdempotencyKey', scope, [token, reason, this.#terms.retentionMs])
    if (rows.length === 0) return false
    await this.#front.hide(scope)
    return true
  }

  async renew(scope: Scope, token: string): Promise<boolean> {
    const { leaseMs, retentionMs } = this.#terms
    return (await this.#query('renewIdempotencyKey', scope, [token, leaseMs, retentionMs])).length === 1
  }

  async peek(scope: Scope): Promise<RecordLook> {
    const [row] = await this.#query<LookRow>('lookAtIdempotencyKey', scope, [])
    if (row === undefined) return { result: 'free' }
    const payload = row.state === 'COMPLETED' ? row.response : row.reason
    return readLook(row.state, row.attempt, Number(row.left_ms), payload)
  }

  /** How many rows that have expired it has removed: `limit` at most. */
  async prune(limit: number): Promise<number> {
    const [row] = await this.#postgres.query<{ gone: number }>('pruneIdempotencyKeys', [limit])
    return row?.gone ?? 0
  }

  async #claimRow(scope: Scope, token: string, request: string | null): Promise<ClaimRow> {
    const { leaseMs, retentionMs } = this.#terms
    const [row] = await this.#query<ClaimRow>('claimIdempotencyKey', scope, [token, request, leaseMs, retentionMs])
    return row as ClaimRow
  }

  async #query<Found extends object>(
    name: Parameters<Postgres['query']>[0],
    scope: Scope,
    values: readonly unknown[],
  ): Promise<Found[]> {
    try {
      return (await this.#postgres.query(name, [...this.#rowOf(scope), ...values])) as Found[]
    } catch (error) {
      if (HoldfastError.is(error, 'unavailable')) tell(this.#context, 'idempotency', 'unavailable')
      throw error
    }
  }

  #rowOf({ space, hash }: Scope): readonly string[] {
    return [this.#context.owner, space.tenant, space.operation, hash]
  }
}

const completedOf = (row: Row): Completed => ({
  token: row.token,
  request: row.request,
  attempt: row.attempt,
  tookOver: row.took_over,
  createdMs: Number(row.created_at),
  updatedMs: Number(row.updated_at),
  keepMs: Number(row.keep_left_ms),
  response: row.response,
})

function standingOf({ standing, attempt, took_over, left_ms, response }: ClaimRow): Standing {
  switch (standing) {
    case 'claimed':
      return { result: 'claimed', attempt, tookOver: took_over }
    case 'processing':
      return { result: 'processing', leftMs: Number(left_ms) }
    case 'completed':
      return { result: 'completed', response }
    case 'conflict':
      return { result: 'conflict' }
  }
}
