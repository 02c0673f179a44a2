import { createHash } from 'node:crypto'
import pg from 'pg'
import { HoldfastError } from '../errors/index.js'
import type { Telemetry } from '../telemetry/index.js'
import { PostgresError } from './failure.js'
import { Lease, type Send } from './lease.js'
import { QUERIES } from './queries.generated.js'
import {
  beginStatement,
  checkMs,
  DEFAULT_SCHEMA,
  DEFAULT_STATEMENT_TIMEOUT_MS,
  type SessionOptions,
  type SettingsScope,
  sessionSettings,
  setForConnection,
} from './session.js'
import { addressOf, configOf, isPool, type PostgresSource, takeClient } from './source.js'

export interface PostgresOptions extends SessionOptions {
  /** Size of a pool of ours: one that was brought has its own. Default 10. */
  maxConnections?: number
  /** How long a call waits for a connection, new or free. Default 5,000. */
  connectTimeoutMs?: number
  /**
   * How long a call waits for the server's answer. The server stops a statement by itself before that; this is for a server,
   * or a way to it, that has gone silent. Default: `statementTimeoutMs` and 5,000.
   */
  answerTimeoutMs?: number
  /**
   * For how long settings stay on a connection: behind a pooler in transaction mode it has to be `transaction`. Default: `connection` for
   * a pool of ours, `transaction` for one that was brought.
   */
  settingsScope?: SettingsScope
  /** Prepare each statement once a connection. Say false behind a pooler in transaction mode that does not keep track of them. Default true. */
  prepared?: boolean
  telemetry?: Telemetry
}

/** A statement's name: the file `sql/queries/<name>.sql`, in camelCase. */
export type QueryName = keyof typeof QUERIES

/** Asks a server that is not known yet whether it has what it should have. Whatever it throws, nobody else gets to use the connection now. */
export type Guard = (ask: Transaction['query']) => Promise<void>

export interface Transaction {
  /** Runs one of `sql/queries`, prepared once a connection unless `prepared` is false. */
  query<Row extends pg.QueryResultRow>(name: QueryName, values: readonly unknown[]): Promise<Row[]>
  /** Runs plain SQL, one or many statements, unprepared: for migrations. */
  execute<Row extends pg.QueryResultRow>(name: string, sql: string): Promise<Row[]>
}

const DEFAULT_CONNECTIONS = 10
const CONNECTIONS_MAX = 1_000
const DEFAULT_CONNECT_TIMEOUT_MS = 5_000
const ANSWER_GRACE_MS = 5_000
/**
 * How long a connection keeps its plans: at first, and then twice as long each time. A plan that was made while there was little in a table may
 * read all of a wallet's entries for each one wanted, and Postgres makes another only once it has looked at the table: after a minute, often.
 */
const PLANS_MS = 500
const PLANS_MAX_MS = 60_000
const PREFIX_MAX = 32

/** The one way to Postgres: every statement of the library passes through here, with its settings, its timing and its errors. */
export class Postgres {
  readonly schema: string
  /** `host:port`, never a user or a password. */
  readonly address: string
  readonly telemetry: Telemetry | undefined
  /** How many connections it may open at most. */
  readonly maxConnections: number
  readonly #pool: pg.Pool
  readonly #owned: boolean
  readonly #scope: SettingsScope
  readonly #prepared: boolean
  readonly #begin: string
  /** Of the names of prepared statements. */
  readonly #prefix: string
  readonly #connectTimeoutMs: number
  readonly #answerTimeoutMs: number
  readonly #takeBackGauges: (() => void)[] = []
  #closing: Promise<void> | undefined
  /** Of connections of ours, where they lead to; of those that were brought each transaction tells. */
  readonly #lives = new WeakMap<pg.ClientBase, string | null>()
  /** Those of ours that were there before the schema was. Each is for one call: the life that it was told of is not that of those to come. */
  readonly #beforeSchema = new WeakSet<pg.ClientBase>()
  /** Of connections of ours: until when their plans are kept, and how long the last ones were. */
  readonly #plans = new WeakMap<pg.ClientBase, { until: number; keptMs: number }>()
  /** Each with the life of the server that it was content with last: there is one for everybody who was connected over this. */
  readonly #guards = new Map<Guard, string | null>()

  /** No I/O: the first call connects. */
  constructor(source: PostgresSource, options: PostgresOptions = {}) {
    const settings = sessionSettings(options)
    this.schema = options.schema ?? DEFAULT_SCHEMA
    this.telemetry = options.telemetry
    this.#owned = !isPool(source)
    this.#scope = options.settingsScope ?? (this.#owned ? 'connection' : 'transaction')
    this.#prepared = options.prepared ?? true
    this.#prefix = prefixOf(this.schema)
    this.#begin = beginStatement(settings, this.#scope)
    this.#connectTimeoutMs = checkMs('connectTimeoutMs', options.connectTimeoutMs ?? DEFAULT_CONNECT_TIMEOUT_MS)
    const statementTimeoutMs = options.statementTimeoutMs ?? DEFAULT_STATEMENT_TIMEOUT_MS
    this.#answerTimeoutMs = checkMs('answerTimeoutMs', options.answerTimeoutMs ?? statementTimeoutMs + ANSWER_GRACE_MS)

    const config = isPool(source) ? source.options : configOf(source)
    this.address = addressOf(config)
    this.#pool = isPool(source) ? source : this.#makePool(config, options, setForConnection(settings))
    this.maxConnections = this.#pool.options.max
    this.#showGauges()
  }

  #makePool(config: pg.PoolConfig, options: PostgresOptions, setSettings: string): pg.Pool {
    const pool = new pg.Pool({
      keepAlive: true,
      max: checkConnections(options.maxConnections ?? DEFAULT_CONNECTIONS),
      ...config,
      connectionTimeoutMillis: this.#connectTimeoutMs,
      ...(this.#scope === 'connection' && {
        onConnect: async (client: pg.ClientBase) => {
          await config.onConnect?.(client)
          // Without a limit a server that has gone silent would keep the place in the pool for ever.
          const set = { text: setSettings, query_timeout: this.#connectTimeoutMs }
          const { rows } = await client.query<{ life: string | null; before_schema: boolean }>(set)
          this.#lives.set(client, rows[0]?.life ?? null)
          if (rows[0]?.before_schema) this.#beforeSchema.add(client)
          this.#plans.set(client, { until: performance.now() + PLANS_MS, keptMs: PLANS_MS })
        },
      }),
    })
    // An idle connection that breaks is no failure of anybody's call; without a listener it would end the process.
    pool.on('error', (error: Error & { code?: string }) => {
      // While it closes, the server may be faster than our goodbye.
      if (this.#closing) return
      this.telemetry?.log?.('warn', 'postgres_idle_connection_lost', { address: this.address, reason: error.code })
    })
    return pool
  }

  #showGauges(): void {
    const gauge = this.telemetry?.gauge?.bind(this.telemetry)
    if (gauge === undefined) return
    this.#takeBackGauges.push(
      gauge('postgres_pool_connections', () => this.#pool.totalCount, { state: 'total' }),
      gauge('postgres_pool_connections', () => this.#pool.idleCount, { state: 'idle' }),
      gauge('postgres_pool_waiting', () => this.#pool.waitingCount),
    )
  }

  /**
   * From now on a server that was started, promoted or restored since is asked by `guard` first whether it has what it should have. A call
   * of the guard's own goes over the very connection that is in question. Returns how to end that: the connections may outlive who guards.
   */
  guardWith(guard: Guard): () => void {
    this.#guards.set(guard, null)
    return () => void this.#guards.delete(guard)
  }

  #isProven(life: string | null | undefined): boolean {
    for (const proven of this.#guards.values()) {
      if (!life || proven !== life) return false
    }
    return true
  }

  async #prove(lease: Lease, life: string | null | undefined): Promise<void> {
    if (this.#isProven(life)) return
    if (!life) throw this.#isReplica()
    const guards = [...this.#guards].flatMap(([guard, proven]) => (proven === life ? [] : [guard]))
    for (const guard of guards) {
      await guard(async (name, values) => (await lease.send(this.#statement(name, values))).rows as never)
    }
    // Only now: what one of them wrote may be undone with what the next one could not do. One that has left meanwhile does not come back.
    for (const guard of guards) {
      if (this.#guards.has(guard)) this.#guards.set(guard, life)
    }
  }

  /** As it is sent where it commits by itself. */
  #statement(name: QueryName, values: readonly unknown[]): Send {
    const sent = { name, text: QUERIES[name], values, prepared: this.#prepared }
    return { ...sent, ifLost: 'unknown', answerTimeoutMs: this.#answerTimeoutMs }
  }

  #isReplica(): PostgresError {
    return new PostgresError('not_executed', `Postgres at ${this.address} is a replica and takes no writes`)
  }

  /** One statement, committed when this resolves. */
  async query<Row extends pg.QueryResultRow>(name: QueryName, values: readonly unknown[]): Promise<Row[]> {
    if (this.#scope === 'transaction') return this.transaction((tx) => tx.query<Row>(name, values))
    const lease = await this.#take()
    try {
      return (await lease.send<Row>(this.#statement(name, values))).rows
    } finally {
      lease.release()
    }
  }

  /** One round trip to a server that takes writes; a replica does not count. */
  async ping(): Promise<void> {
    const [state] = await this.query<{ in_recovery: boolean }>('ping', [])
    if (state?.in_recovery) throw this.#isReplica()
  }

  /**
   * Several statements in one transaction, committed when this resolves. Whatever `work` throws rolls it back.
   * `answerTimeoutMs` is for work that lifts the server's own timeout, as migrations do; 0 waits for ever.
   */
  async transaction<T>(
    work: (tx: Transaction) => Promise<T>,
    { answerTimeoutMs = this.#answerTimeoutMs }: { answerTimeoutMs?: number } = {},
  ): Promise<T> {
    const lease = await this.#take()
    const inside = { ifLost: 'not_executed', answerTimeoutMs } as const
    try {
      await this.#beginProven(lease, answerTimeoutMs)
      const result = await this.#orRollBack(lease, () =>
        work({
          query: async <Row extends pg.QueryResultRow>(name: QueryName, values: readonly unknown[]) =>
            (await lease.send<Row>({ ...this.#statement(name, values), ...inside })).rows,
          execute: async <Row extends pg.QueryResultRow>(name: string, sql: string) =>
            lastRows(await lease.send<Row>({ name, text: sql, ...inside })),
        }),
      )
      await commit(lease, answerTimeoutMs)
      return result
    } finally {
      lease.release()
    }
  }

  /** Where each transaction tells anew where it leads to, the guard gets one of its own: what it writes stays, whatever becomes of the work. */
  async #beginProven(lease: Lease, answerTimeoutMs: number): Promise<void> {
    const life = await this.#open(lease, answerTimeoutMs)
    if (this.#scope === 'connection' || this.#isProven(life)) return
    await this.#orRollBack(lease, () => this.#prove(lease, life))
    await commit(lease, answerTimeoutMs)
    await this.#open(lease, answerTimeoutMs)
  }

  async #open(lease: Lease, answerTimeoutMs: number): Promise<string | null | undefined> {
    const begin = { name: 'begin', text: this.#begin, ifLost: 'not_executed', answerTimeoutMs } as const
    try {
      return lastRows(await lease.send<{ life?: string | null }>(begin))[0]?.life
    } catch (error) {
      // BEGIN may have worked and the settings after it not: the next to get it would be inside a transaction that failed.
      lease.discard()
      throw error
    }
  }

  async #orRollBack<T>(lease: Lease, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      // It goes away, and its transaction with it. One that did not answer would not answer this either.
      if (lease.broken) throw error
      const rollback = { name: 'rollback', text: 'ROLLBACK', ifLost: 'not_executed' } as const
      await lease.send({ ...rollback, answerTimeoutMs: this.#answerTimeoutMs }).catch(() => lease.discard())
      throw error
    }
  }

  async #take(): Promise<Lease> {
    if (this.#closing) throw new HoldfastError('unavailable', 'The connection to Postgres was closed')
    const client = await takeClient(this.#pool, this.address, this.#connectTimeoutMs)
    const lease = new Lease(client, this.address, this.telemetry, this.#prefix)
    if (this.#scope === 'transaction') return lease
    if (this.#beforeSchema.has(client)) lease.discard()
    try {
      await this.#prove(lease, this.#lives.get(client))
      await this.#renewPlans(lease, client)
      return lease
    } catch (error) {
      // A replica may be promoted at any time, and then it has another life than this connection was told of.
      lease.discard()
      lease.release()
      throw error
    }
  }

  async #renewPlans(lease: Lease, client: pg.ClientBase): Promise<void> {
    const plans = this.#plans.get(client)
    const now = performance.now()
    if (!plans || now < plans.until) return
    plans.keptMs = Math.min(2 * plans.keptMs, PLANS_MAX_MS)
    plans.until = now + plans.keptMs
    const answerTimeoutMs = this.#answerTimeoutMs
    await lease.send({ name: 'renewPlans', text: 'DISCARD PLANS', ifLost: 'not_executed', answerTimeoutMs })
  }

  /** Ends the connections of a pool of ours, after the calls that are under way. One that was brought is left alone. */
  async close(): Promise<void> {
    this.#closing ??= (async () => {
      for (const takeBack of this.#takeBackGauges) takeBack()
      if (this.#owned) await this.#pool.end()
    })()
    return this.#closing
  }
}

async function commit(lease: Lease, answerTimeoutMs: number): Promise<void> {
  const end = await lease.send({ name: 'commit', text: 'COMMIT', ifLost: 'unknown', answerTimeoutMs })
  // A COMMIT of a transaction in which a statement failed unnoticed is a ROLLBACK, and says so in its tag alone.
  if (end.command !== 'COMMIT') throw new PostgresError('refused', 'Postgres rolled back instead of committing')
}

/** Postgres keeps 63 characters of a name, and a schema's may have as many. */
function prefixOf(schema: string): string {
  return schema.length <= PREFIX_MAX ? schema : createHash('sha1').update(schema).digest('hex').slice(0, PREFIX_MAX)
}

function checkConnections(connections: number): number {
  if (Number.isInteger(connections) && connections >= 1 && connections <= CONNECTIONS_MAX) return connections
  const message = `maxConnections: expected an integer from 1 to ${CONNECTIONS_MAX}, got ${connections}`
  throw new HoldfastError('invalid_argument', message, { argument: 'maxConnections' })
}

/** Several statements in one text answer with an array of results. */
function lastRows<Row extends pg.QueryResultRow>(result: pg.QueryResult<Row> | pg.QueryResult<Row>[]): Row[] {
  return (Array.isArray(result) ? result.at(-1)?.rows : result.rows) ?? []
}
