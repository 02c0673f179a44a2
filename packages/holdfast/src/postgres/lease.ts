import type pg from 'pg'
import type { Telemetry } from '../telemetry/index.js'
import { endsConnection, PostgresError, type PostgresOutcome, statementFailure } from './failure.js'
import { ROW_TYPES } from './rows.js'

/** What the server says when a commit's wait for its replica is cut short. By routine: the message depends on the language. */
const SYNC_WAIT_ROUTINE = 'SyncRepWaitForLSN'

export interface Send {
  /** The statement's name: its label in metrics, and the prepared statement when `values` are given. */
  name: string
  text: string
  values?: readonly unknown[]
  /** False: parsed and planned at each call, for poolers that hand a connection's prepared statements to somebody else. Default true. */
  prepared?: boolean
  /** What a lost connection means here, see `statementFailure`. */
  ifLost: 'unknown' | 'not_executed'
  /** When to give up on an answer; 0 waits for ever. */
  answerTimeoutMs: number
}

/**
 * One connection, taken from the pool for one call. It listens while it is out: a checked-out connection that breaks emits
 * `error`, which would end the process if nobody did, and a warning can turn a success into "unknown".
 */
export class Lease {
  readonly #client: pg.PoolClient
  readonly #address: string
  readonly #telemetry: Telemetry | undefined
  readonly #prefix: string
  #broken = false
  #syncWaitCut = false

  /** `prefix`: of the names of what is prepared. A connection that was brought may serve several, and each plan belongs to one of them. */
  constructor(client: pg.PoolClient, address: string, telemetry: Telemetry | undefined, prefix = 'holdfast') {
    this.#client = client
    this.#address = address
    this.#telemetry = telemetry
    this.#prefix = prefix
    client.on('error', this.#onError)
    client.on('notice', this.#onNotice)
  }

  readonly #onError = () => {
    this.#broken = true
  }

  readonly #onNotice = (notice: { routine?: string | undefined }) => {
    if (notice.routine === SYNC_WAIT_ROUTINE) this.#syncWaitCut = true
  }

  async send<Row extends pg.QueryResultRow>({
    name,
    text,
    values,
    prepared = true,
    ifLost,
    answerTimeoutMs,
  }: Send): Promise<pg.QueryResult<Row>> {
    const started = performance.now()
    let outcome: 'ok' | PostgresOutcome = 'ok'
    try {
      const result = await this.#client.query<Row>({
        text,
        types: ROW_TYPES,
        ...(values && { values: values as unknown[] }),
        ...(values && prepared && { name: `${this.#prefix}_${name}` }),
        ...(answerTimeoutMs > 0 && { query_timeout: answerTimeoutMs }),
      })
      if (this.#syncWaitCut) {
        this.#syncWaitCut = false
        const message = `Postgres at ${this.#address} committed ${name}, and was stopped before a replica confirmed it`
        throw new PostgresError('unknown', message)
      }
      return result
    } catch (error) {
      const failure = statementFailure(error, name, this.#address, ifLost)
      outcome = failure.outcome
      if (!(error instanceof PostgresError) && endsConnection(error)) this.#broken = true
      throw failure
    } finally {
      const seconds = (performance.now() - started) / 1000
      this.#telemetry?.observe?.('postgres_query_duration_seconds', seconds, { query: name, outcome })
    }
  }

  /** The connection goes back to the pool, or away if it can't be trusted any more. */
  release(): void {
    this.#client.off('notice', this.#onNotice)
    this.#client.release(this.#broken)
    // Only now: the pool's own listener stands again, so that no moment passes without one.
    this.#client.off('error', this.#onError)
  }

  /** It can't be used again: it goes away when it is released. */
  get broken(): boolean {
    return this.#broken
  }

  /** Nobody may get this connection again: a BEGIN or a ROLLBACK did not come through, or it is not known where it leads to. */
  discard(): void {
    this.#broken = true
  }
}
