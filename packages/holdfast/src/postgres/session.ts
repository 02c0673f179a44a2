import { HoldfastError } from '../errors/index.js'

/**
 * Every statement of Holdfast runs under settings of its own, whatever the server, the role or the database say.
 *
 * - A pool of ours sets them once a connection (`connection`): nobody else uses it.
 * - A pool that was brought is shared with code we don't know, so nothing may stay behind on its connections: there each call
 *   is a transaction that begins with SET LOCAL (`transaction`), which Postgres itself takes back at its end. That costs two
 *   round trips a call. It is also the way through a pooler in transaction mode, where a connection has no memory.
 */
export type SettingsScope = 'connection' | 'transaction'

export interface SessionOptions {
  /** The schema of Holdfast's tables. It leads the search path, so statements name their tables bare. Default `holdfast`. */
  schema?: string
  /** When a commit counts. `off` is not offered: it acknowledges what a crash loses. Default `on`. */
  synchronousCommit?: 'on' | 'remote_apply' | 'remote_write' | 'local'
  /** How long Postgres works on a statement at most. Default 10,000. */
  statementTimeoutMs?: number
  /** How long a statement waits for a lock. Default 2,000. */
  lockTimeoutMs?: number
  /** How long a transaction may rest: a paused process must not keep its rows locked. Default 10,000. */
  idleInTransactionTimeoutMs?: number
}

export const DEFAULT_SCHEMA = 'holdfast'
export const DEFAULT_STATEMENT_TIMEOUT_MS = 10_000
const DEFAULT_LOCK_TIMEOUT_MS = 2_000
const DEFAULT_IDLE_IN_TRANSACTION_TIMEOUT_MS = 10_000
const TIMEOUT_MAX_MS = 24 * 60 * 60 * 1000

const SYNCHRONOUS_COMMIT = ['on', 'remote_apply', 'remote_write', 'local']

/** Lower case only, so that the name needs no quotes anywhere: psql, grants, dumps. */
export function checkSchema(schema: string): string {
  const valid = /^[a-z_][a-z0-9_]{0,62}$/.test(schema)
  if (!valid || schema.startsWith('pg_') || schema === 'public' || schema === 'information_schema') {
    throw new HoldfastError(
      'invalid_argument',
      `schema: expected a schema of its own, of 1 to 63 of a-z, 0-9 and _ (not public, not pg_…), got ${JSON.stringify(schema)}`,
      { argument: 'schema' },
    )
  }
  return schema
}

export function checkMs(name: string, ms: number): number {
  if (!Number.isInteger(ms) || ms < 1 || ms > TIMEOUT_MAX_MS) {
    const expected = `expected whole milliseconds from 1 to ${TIMEOUT_MAX_MS}`
    throw new HoldfastError('invalid_argument', `${name}: ${expected}, got ${ms}`, { argument: name })
  }
  return ms
}

/** Name and value of each setting that statements run under, in either scope. */
export function sessionSettings(options: SessionOptions): readonly (readonly [name: string, value: string])[] {
  const schema = checkSchema(options.schema ?? DEFAULT_SCHEMA)
  const synchronousCommit = options.synchronousCommit ?? 'on'
  if (!SYNCHRONOUS_COMMIT.includes(synchronousCommit)) {
    const expected = `expected one of ${SYNCHRONOUS_COMMIT.join(', ')}`
    const message = `synchronousCommit: ${expected}, got ${JSON.stringify(synchronousCommit)}`
    throw new HoldfastError('invalid_argument', message, { argument: 'synchronousCommit' })
  }
  const { statementTimeoutMs, lockTimeoutMs, idleInTransactionTimeoutMs } = options
  return [
    // pg_temp last: a temporary table of the same name must not take a real one's place.
    ['search_path', `${schema}, pg_temp`],
    ['synchronous_commit', synchronousCommit],
    ['statement_timeout', `${checkMs('statementTimeoutMs', statementTimeoutMs ?? DEFAULT_STATEMENT_TIMEOUT_MS)}`],
    ['lock_timeout', `${checkMs('lockTimeoutMs', lockTimeoutMs ?? DEFAULT_LOCK_TIMEOUT_MS)}`],
    [
      'idle_in_transaction_session_timeout',
      `${checkMs('idleInTransactionTimeoutMs', idleInTransactionTimeoutMs ?? DEFAULT_IDLE_IN_TRANSACTION_TIMEOUT_MS)}`,
    ],
    // A custom plan for a batch of a thousand hash-joins whole partitions; the generic one takes the index.
    ['plan_cache_mode', 'force_generic_plan'],
    // Every statement of ours looks rows up by key. A plan made while the tables are small would read them whole, and a connection
    // keeps its plan while they grow. What must be read whole all the same looks so dear then that it would be compiled first.
    ['enable_seqscan', 'off'],
    ['enable_hashjoin', 'off'],
    ['enable_mergejoin', 'off'],
    ['jit', 'off'],
    // The wait for a replica that is cut short is told in a WARNING and nowhere else.
    ['client_min_messages', 'warning'],
    ['timezone', 'UTC'],
    ['datestyle', 'ISO, MDY'],
    ['bytea_output', 'hex'],
  ]
}

const literal = (text: string) => `'${text.replaceAll("'", "''")}'`

type Settings = ReturnType<typeof sessionSettings>

/**
 * Which life of which server this is: another one after every start, promotion, and for a database or schema that was made anew. Null on
 * a replica. What is behind an address can be put back to an earlier state only by one of these.
 */
const LIFE = `CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN pg_catalog.concat_ws(' ',
  pg_catalog.date_part('epoch', pg_catalog.pg_postmaster_start_time()),
  pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8),
  (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()),
  pg_catalog.to_regclass('settings')::oid) END AS life, pg_catalog.to_regclass('settings') IS NULL AS before_schema`

/** For a connection of ours, once. The isolation and the access mode of a transaction are defaults here, explicit in BEGIN. */
export function setForConnection(settings: Settings): string {
  const all = [
    ...settings,
    ['default_transaction_isolation', 'read committed'],
    ['default_transaction_read_only', 'off'],
    ['application_name', 'holdfast'],
  ]
  return `SELECT ${all.map(([name, value]) => `pg_catalog.set_config('${name}', ${literal(value as string)}, false)`).join(', ')}, ${LIFE}`
}

const BEGIN = 'BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE'

/** The opening of a transaction. The application's name stays the owner's on a connection that was brought. */
export function beginStatement(settings: Settings, scope: SettingsScope): string {
  if (scope === 'connection') return BEGIN
  const local = settings.map(([name, value]) => `pg_catalog.set_config('${name}', ${literal(value)}, true)`)
  return `${BEGIN}; SELECT ${local.join(', ')}, ${LIFE}`
}
