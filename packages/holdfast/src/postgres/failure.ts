import { ERRORS, HoldfastError } from '../errors/index.js'

/**
 * What a failed call did to the database:
 *
 * - `not_executed`  nothing: no connection, a server that is starting, stopping, read-only or out of resources, a timeout inside
 *                   the server, a connection that is of no use any more, or one lost before COMMIT was sent
 * - `unknown`       everything or nothing: the connection was lost, or the wait for a replica cut short, when it could have
 *                   been committed already
 * - `retry`         nothing: a deadlock, a serialization failure or a lock not had in time; the same call may work at once
 * - `data`          nothing: a value or a constraint was violated, and the same call fails again
 * - `refused`       nothing: the statement itself is wrong, or lacks rights or tables
 */
export type PostgresOutcome = 'not_executed' | 'unknown' | 'retry' | 'data' | 'refused'

/** What `timeline_epoch()` of the schema raises: entries that were acknowledged are missing, and an operator has to act. */
const STOPPED = 'HF001'

const isMistake = (outcome: PostgresOutcome) => outcome === 'data' || outcome === 'refused'

/** What Postgres did wrong, with an outcome to decide by. The text of the server stays in `cause`: it can quote values. */
export class PostgresError extends HoldfastError {
  declare readonly outcome: PostgresOutcome
  declare readonly sqlstate?: string
  declare readonly constraint?: string

  constructor(
    outcome: PostgresOutcome,
    message: string,
    facts: { sqlstate?: string | undefined; constraint?: string | undefined } = {},
    options?: ErrorOptions,
  ) {
    const { sqlstate, constraint } = facts
    super(
      sqlstate === STOPPED ? 'reconcile_required' : isMistake(outcome) ? 'internal_error' : 'unavailable',
      message,
      { outcome, ...(sqlstate && { sqlstate }), ...(constraint && { constraint }) },
      options,
    )
  }
}

/** What is read of an error of `pg`: its own (no code), Node's (`ECONNREFUSED`) or the server's (five characters). */
interface RawError {
  message?: string
  code?: string
  severity?: string
  constraint?: string
  routine?: string
}

const SQLSTATE = /^[0-9A-Z]{5}$/

const sqlstateOf = (error: RawError) =>
  error.severity !== undefined && error.code !== undefined && SQLSTATE.test(error.code) ? error.code : undefined

/**
 * A FATAL ends the connection, in the middle of a commit too. The severity comes in the server's language, so the states that
 * are never less than FATAL are named as well.
 */
const FATAL_STATES = new Set(['25P03', '25P04', '57P01', '57P02', '57P04', '57P05'])

const isFatal = (sqlstate: string, severity: string | undefined) =>
  severity === 'FATAL' || severity === 'PANIC' || FATAL_STATES.has(sqlstate)

/** Class 08 is of something in between that lost the server, in the middle of a commit too, and goes on talking to us. */
const isLost = (sqlstate: string, severity: string | undefined) =>
  sqlstate.startsWith('08') || isFatal(sqlstate, severity)

/**
 * What a connection says to one call, and would say to every other: somebody left a transaction on it that failed, or its prepared
 * statements are gone, or others have their names.
 */
const SPOILT = ['25P02', '26000', '42P05']
/** "Cached plan must not change result type", and that for good. By routine: 0A000 is more than that, the message depends on the language. */
const STALE_PLAN_ROUTINE = 'RevalidateCachedQuery'

/** What a replica says, because the primary moved: 25006 to a write, 0A000 to BEGIN READ WRITE, 55000 to a look at its WAL. */
const NOT_EXECUTED = new Set(['0A000', '25006', '55000', '57014', '57P03', STOPPED, ...SPOILT])
/** `statement_completion_unknown` and `transaction_resolution_unknown`: from a proxy or a distributed Postgres. */
const UNKNOWN = new Set(['40003', '08007'])
const RETRY = new Set(['40001', '40P01', '55P03'])
const NOT_EXECUTED_CLASSES = new Set(['53', '58'])
const DATA_CLASSES = new Set(['22', '23'])

function outcomeOfSqlstate(sqlstate: string): PostgresOutcome {
  if (UNKNOWN.has(sqlstate)) return 'unknown'
  if (RETRY.has(sqlstate)) return 'retry'
  const sqlClass = sqlstate.slice(0, 2)
  if (NOT_EXECUTED.has(sqlstate) || NOT_EXECUTED_CLASSES.has(sqlClass)) return 'not_executed'
  if (DATA_CLASSES.has(sqlClass)) return 'data'
  return 'refused'
}

/** True when the connection can't be used again: anything but a plain error of the server about what it was asked. */
export function endsConnection(error: unknown): boolean {
  const raw = error as RawError
  const sqlstate = sqlstateOf(raw)
  if (sqlstate === undefined || isLost(sqlstate, raw.severity)) return true
  return SPOILT.includes(sqlstate) || raw.routine === STALE_PLAN_ROUTINE
}

/**
 * The failure of one statement. `ifLost` is what a lost connection means at this point: `unknown` where the statement commits
 * by itself or is a COMMIT, `not_executed` inside a transaction, which the server then rolls back.
 */
export function statementFailure(
  error: unknown,
  statement: string,
  address: string,
  ifLost: 'unknown' | 'not_executed',
): PostgresError {
  if (error instanceof PostgresError) return error
  const raw = error as RawError
  const sqlstate = sqlstateOf(raw)
  if (sqlstate === undefined || isLost(sqlstate, raw.severity)) {
    const outcome = sqlstate !== undefined && UNKNOWN.has(sqlstate) ? 'unknown' : ifLost
    const message = `Postgres at ${address} was lost during ${statement}: ${reasonOf(raw)}`
    return new PostgresError(outcome, message, { sqlstate }, { cause: error })
  }
  const outcome = outcomeOfSqlstate(sqlstate)
  if (sqlstate === STOPPED)
    return new PostgresError(outcome, ERRORS.reconcile_required.meaning, { sqlstate }, { cause: error })
  const { constraint } = raw
  // Only syntax, rights and names (class 42) are safe to repeat: other messages quote values, and values can be personal.
  const detail = sqlstate.startsWith('42') ? `: ${raw.message}` : constraint ? ` on ${constraint}` : ''
  const message = `Postgres refused ${statement} with ${sqlstate}${detail}`
  return new PostgresError(outcome, message, { sqlstate, constraint }, { cause: error })
}

/** No connection was had: nothing was sent. Says where, and nothing about who or with which password. */
export function connectFailure(error: unknown, address: string): PostgresError {
  const raw = error as RawError
  const message = `Postgres at ${address} can't be reached: ${reasonOf(raw)}`
  return new PostgresError('not_executed', message, { sqlstate: sqlstateOf(raw) }, { cause: error })
}

const REASONS: Record<string, string> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'the connection was cut',
  EPIPE: 'the connection was cut',
  ENOTFOUND: 'the host name is not known',
  EAI_AGAIN: 'the host name is not known at the moment',
  ENOENT: 'there is no such socket',
  ETIMEDOUT: 'no answer in time',
  '28000': 'the server does not let this user in',
  '28P01': 'the server does not accept this user and password',
  '3D000': 'the server has no such database',
  '53300': 'the server has no connection left',
  '57P01': 'the server is shutting down',
  '57P02': 'the server crashed',
  '57P03': 'the server is starting or stopping',
  '25P03': 'the transaction stood idle for too long',
}

function reasonOf(error: RawError): string {
  if (error.code === undefined) return error.message || 'no reason given'
  const reason = REASONS[error.code]
  if (reason !== undefined) return `${reason} (${error.code})`
  // The message of a server can name the user; that of Node and pg (TLS, SASL) is plain and tells more than its code.
  return sqlstateOf(error) === undefined && error.message ? `${error.message} (${error.code})` : error.code
}

/** Some value was not what it must be: the server is well, and says the same the next time. */
export function isOfData(error: unknown): boolean {
  return error instanceof PostgresError && error.outcome === 'data'
}
