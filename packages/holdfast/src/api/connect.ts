import { DEFAULT_OPTIONS, type Durability, type EngineOptions } from '../engine/index.js'
import { HoldfastError } from '../errors/index.js'
import {
  checkMigrated,
  checkServer,
  migrate,
  Postgres,
  PostgresError,
  type PostgresOptions,
  type PostgresSource,
  readSettings,
} from '../postgres/index.js'
import {
  type ConnectionOptions,
  inspectRedis,
  type RedisCheck,
  RedisConnection,
  type RedisTarget,
} from '../redis/index.js'
import type { Telemetry } from '../telemetry/index.js'
import { type BackgroundAudit, checkBackground } from './audit.js'
import { checkAttempts, type SaleAttemptsOptions } from './sale/attempts.js'
import { checkEarlyReject, type EarlyRejectOptions } from './sale/early.js'
import { type Shared, share } from './share.js'
import * as check from './validate.js'

const DEFAULT_SHARDS = 64
const REDIS_PATIENCE_MAX_MS = 600_000
/** What Postgres calls it that it has no such database. */
const NO_DATABASE = '3D000'

export interface Limits {
  /** Operations under way in this process, and a quarter of them of one wallet or one bucket of a sale. Default 20,000. */
  readonly operations?: number
  /**
   * Entries that wait for Postgres in this process, some 1 to 2 kB each. While it is away, `memory` operations go on until then.
   * Default 50,000.
   */
  readonly backlog?: number
  /** Entries of one wallet that wait for Postgres, in Redis. Default 1,000. */
  readonly backlogPerWallet?: number
  /** Reads, and openings, that wait while as many as may be are under way: one for every two connections to Postgres. Default 5,000. */
  readonly reads?: number
}

export interface ConnectOptions {
  /**
   * A URL (`redis://host:6379`, `redis+sentinel://host:26379,host:26379/master`, `redis+cluster://host:6379,host:6379`; `rediss` for TLS),
   * ioredis options, `{ cluster: [...] }`, an ioredis client to connect like, or a connection that is made already.
   */
  readonly redis: RedisTarget | RedisConnection
  /** A URL, the options of `pg`, a pool of your own, or a connection that is made already. */
  readonly postgres: PostgresSource | Postgres
  /** Whose wallets these are: 1 to 64 characters of a-z, 0-9, _ and -. Default `default`. */
  readonly tenant?: string
  /**
   * Into how many shards wallets are hashed, 1 to 16,384. Fixed by the first who connects to a database: another number is refused from
   * then on. Default 64, or what it was fixed to.
   */
  readonly shards?: number
  /**
   * When an operation is acknowledged, unless its call says otherwise. `ledger`: committed in Postgres; `memory`: decided in Redis.
   * Default `ledger`.
   */
  readonly durability?: Durability
  /** How long a call waits for its answer, ms, unless it says otherwise: up to 600,000. Default 10,000. */
  readonly timeout?: number
  /**
   * Redis has not worked for so long (ms), though it was asked: then operations go through Postgres until it is back. Default 20.
   *
   * That is a lost connection, and not the next one. How long one call may be silent is `redisOptions.commandTimeoutMs`.
   */
  readonly redisPatience?: number
  /** The schema of Postgres that its tables are in: one of its own. Default `holdfast`. */
  readonly schema?: string
  /** Bring the schema up to date. False: refuse to run on another version. Default true. */
  readonly migrate?: boolean
  /**
   * Refuse to start where a setting of Redis or Postgres endangers what was acknowledged. False: it is told to `telemetry.log`.
   * Default false.
   */
  readonly strict?: boolean
  /** Hooks for metrics and logs. Default: none, and the library is silent. */
  readonly telemetry?: Telemetry
  /** How it speaks to Redis; not of use with a connection that is made already. */
  readonly redisOptions?: Omit<ConnectionOptions, 'telemetry'>
  /** How it speaks to Postgres; not of use with a connection that is made already. */
  readonly postgresOptions?: Omit<PostgresOptions, 'telemetry' | 'schema'>
  /** The audits that run by themselves. False: none do. Default: every shard each five minutes. */
  readonly audit?: BackgroundAudit | false
  /** The record of what is tried in sales. False: none is kept. Default: of the last 30 days. */
  readonly saleAttempts?: SaleAttemptsOptions | false
  /** Refuses checkouts of what is sold for good without asking anybody. False: the engine is always asked. Default: by an exact bitmap. */
  readonly earlyReject?: EarlyRejectOptions | false
  /** How much this process takes on at most; what is above is refused as `unavailable`, with the limit as a fact. */
  readonly limits?: Limits
  /** The numbers inside of the engine (`EngineOptions`): for those who measure. */
  readonly engine?: Partial<EngineOptions>
}

const CONNECT_NAMES = check.namesOf<ConnectOptions>({
  redis: true,
  postgres: true,
  tenant: true,
  shards: true,
  durability: true,
  timeout: true,
  redisPatience: true,
  schema: true,
  migrate: true,
  strict: true,
  telemetry: true,
  redisOptions: true,
  postgresOptions: true,
  audit: true,
  saleAttempts: true,
  earlyReject: true,
  limits: true,
  engine: true,
})
const LIMIT_NAMES = check.namesOf<Limits>({ operations: true, backlog: true, backlogPerWallet: true, reads: true })
const REDIS_NAMES = check.namesOf<NonNullable<ConnectOptions['redisOptions']>>({
  connections: true,
  commandTimeoutMs: true,
  connectTimeoutMs: true,
})
const POSTGRES_NAMES = check.namesOf<NonNullable<ConnectOptions['postgresOptions']>>({
  maxConnections: true,
  connectTimeoutMs: true,
  answerTimeoutMs: true,
  settingsScope: true,
  prepared: true,
  synchronousCommit: true,
  statementTimeoutMs: true,
  lockTimeoutMs: true,
  idleInTransactionTimeoutMs: true,
})
const ENGINE_NAMES = new Set(Object.keys(DEFAULT_OPTIONS))

/** Both servers there and fit for use, and the engine at work on them; or nothing is left behind. */
export async function open(options: ConnectOptions): Promise<{ tenant: string; shared: Shared }> {
  const given = check.options('options', options, CONNECT_NAMES)
  check.given('redis', given.redis, 'a URL, options or an ioredis client')
  check.given('postgres', given.postgres, 'a URL, options of pg or a pool of pg')
  const tenant = check.tenant(given.tenant ?? 'default')
  const shards = given.shards === undefined ? null : check.integer('shards', given.shards, 1, 16_384)
  const durability = check.oneOf('durability', given.durability ?? 'ledger', ['ledger', 'memory'] as const)
  const timeoutMs = check.timeoutMs(given.timeout)
  const redisPatienceMs =
    given.redisPatience === undefined
      ? undefined
      : check.integer('redisPatience', given.redisPatience, 0, REDIS_PATIENCE_MAX_MS)
  const audit = checkBackground(given.audit)
  const saleAttempts = checkAttempts(given.saleAttempts)
  const limits = checkLimits(given.limits)
  const earlyReject = checkEarlyReject(given.earlyReject)
  const strict = check.flag('strict', given.strict)
  const migrates = check.flag('migrate', given.migrate ?? true)
  check.options('redisOptions', given.redisOptions, REDIS_NAMES)
  const { settingsScope, prepared } = check.options('postgresOptions', given.postgresOptions, POSTGRES_NAMES)
  if (settingsScope !== undefined) check.oneOf('settingsScope', settingsScope, ['connection', 'transaction'] as const)
  check.flag('prepared', prepared)
  check.options('engine', given.engine, ENGINE_NAMES)
  const { telemetry = {} } = options
  const postgres = postgresOf(options, telemetry)
  let redis: RedisConnection | undefined
  let shared: Shared | undefined
  // Who brought a connection closes it.
  const disconnect = async (): Promise<void> => {
    await Promise.all([redis !== options.redis && redis?.close(), postgres !== options.postgres && postgres.close()])
  }
  try {
    // Connects while the database is being prepared.
    redis = redisOf(options, telemetry)
    const settings = await prepare(postgres, options, { shards, strict, migrates }, telemetry).catch((error) => {
      throw isMissing(error) ? new HoldfastError('incompatible', error.message, { sqlstate: NO_DATABASE }) : error
    })
    shared = share(redis, postgres, {
      settings,
      durability,
      telemetry,
      audit,
      sales: { attempts: saleAttempts, early: earlyReject },
      disconnect,
      pendingMax: limits.backlogPerWallet,
      readsWaitingMax: limits.reads,
      engine: {
        attemptsMax: limits.operations,
        backlogMax: limits.backlog,
        ...options.engine,
        ...(timeoutMs !== undefined && { timeoutMs }),
        ...(redisPatienceMs !== undefined && { redisPatienceMs }),
      },
    })
    await redis.ready().catch((error) => telemetry.log?.('error', 'redis_away', { reason: String(error) }))
    await checkRedis(redis, durability, strict, telemetry)
    // Before anything is decided: this process may be new, and Postgres have been put back while it was not there.
    await shared.engine.prove().catch((error) => telemetry.log?.('error', 'not_proven', { reason: String(error) }))
    shared.engine.start()
    shared.auditing.start()
    return { tenant, shared }
  } catch (error) {
    await (shared ? shared.close() : disconnect())
    throw error
  }
}

function postgresOf({ postgres, postgresOptions, schema }: ConnectOptions, telemetry: Telemetry): Postgres {
  if (postgres instanceof Postgres) return postgres
  return new Postgres(postgres, { ...postgresOptions, ...(schema !== undefined && { schema }), telemetry })
}

function redisOf({ redis, redisOptions }: ConnectOptions, telemetry: Telemetry): RedisConnection {
  return redis instanceof RedisConnection ? redis : new RedisConnection(redis, { ...redisOptions, telemetry })
}

/** Only at the start: one that was there may be gone for a while, as when it is restored, and then it pays to try again. */
const isMissing = (error: unknown): error is PostgresError =>
  error instanceof PostgresError && error.sqlstate === NO_DATABASE

async function checkRedis(
  redis: RedisConnection,
  durability: Durability,
  strict: boolean,
  telemetry: Telemetry,
): Promise<void> {
  // Without Redis there is still Postgres: what can't be asked now is not held against it.
  const checks = await inspectRedis(redis, { memory: durability === 'memory' }).catch((error): RedisCheck[] => {
    telemetry.log?.('warn', 'redis_unchecked', { reason: String(error) })
    return []
  })
  for (const check of checks) {
    if (check.severity === 'ok') continue
    if (strict && check.severity === 'danger') {
      throw new HoldfastError('incompatible', check.text, { setting: check.setting })
    }
    telemetry.log?.('warn', 'redis_setting', { ...check })
  }
}

function checkLimits(given: unknown): Required<Limits> {
  const limits = check.options('limits', given, LIMIT_NAMES)
  return {
    operations: check.integer('limits.operations', limits.operations ?? 20_000, 1, 1_000_000),
    backlog: check.integer('limits.backlog', limits.backlog ?? 50_000, 1, 1_000_000),
    reads: check.integer('limits.reads', limits.reads ?? 5_000, 1, 1_000_000),
    // More than a script that hands out what is pending may return at once would never be seen.
    backlogPerWallet: check.integer('limits.backlogPerWallet', limits.backlogPerWallet ?? 1_000, 1, 4_000),
  }
}

async function prepare(
  postgres: Postgres,
  options: ConnectOptions,
  { shards, strict, migrates }: { shards: number | null; strict: boolean; migrates: boolean },
  telemetry: Telemetry,
): Promise<{ secret: Buffer; shards: number }> {
  if (migrates) await migrate(postgres)
  else await checkMigrated(postgres)
  for (const finding of await checkServer(postgres)) {
    // A key that can't be stored would be refused after it was decided: such a database can't keep the promise at all.
    const refused = finding.setting === 'server_encoding' || (strict && finding.severity === 'danger')
    if (refused) throw new HoldfastError('incompatible', finding.text, { setting: finding.setting })
    // Who brought a connection has looked at its server already.
    if (postgres !== options.postgres) telemetry.log?.('warn', 'postgres_setting', { ...finding })
  }
  const { secret } = await readSettings(postgres)
  const [row] = await postgres.query<{ shards: number }>('fixShards', [shards ?? DEFAULT_SHARDS])
  if (!row) throw new HoldfastError('unavailable', 'The settings of the database are gone')
  if (shards !== null && row.shards !== shards) {
    throw check.invalid('shards', `${row.shards}, as the database was made with`, `${shards}`)
  }
  return { secret, shards: row.shards }
}
