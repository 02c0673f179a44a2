import { randomBytes } from 'node:crypto'
import { type Durability, Engine, type EngineOptions, systemClock } from '../engine/index.js'
import { HoldfastError } from '../errors/index.js'
import {
  JournalReader,
  PostgresAttempts,
  PostgresAudits,
  PostgresIntents,
  PostgresJournal,
  PostgresPayments,
  PostgresSchedules,
  PostgresSold,
  prove,
  stop,
} from '../journal/index.js'
import { Locks } from '../lock/index.js'
import {
  checkMigrated,
  checkServer,
  migrate,
  Postgres,
  type PostgresOptions,
  type PostgresSource,
  readSettings,
} from '../postgres/index.js'
import { Primitives } from '../primitives/index.js'
import { type ReconcileOptions, type ReconcileReport, reconcile } from '../reconcile/index.js'
import {
  type ConnectionOptions,
  inspectRedis,
  Keys,
  type Place,
  RedisConnection,
  RedisScriptRunner,
  type RedisTarget,
  readWalletKey,
  WALLET_KEYS,
} from '../redis/index.js'
import { Sequencer } from '../sequencer/index.js'
import type { Telemetry } from '../telemetry/index.js'
import { Auditing, type BackgroundAudit, checkBackground } from './audit.js'
import { checkAttempts, SaleAttempts, type SaleAttemptsOptions } from './sale-attempts.js'
import { SaleFinder } from './sale-checkout.js'
import { type CheckedEarlyReject, checkEarlyReject, type EarlyRejectOptions, EarlyRejects } from './sale-early.js'
import { SaleMemory } from './sale-items.js'
import { PatientSales } from './sale-reads.js'
import { Schedules } from './sale-schedule.js'
import { SoldOutWatch } from './sale-sold-out.js'
import type { SaleTenant } from './tenant.js'
import * as check from './validate.js'

const DEFAULT_SHARDS = 64
const DEFAULT_TIMEOUT_MS = 10_000
const SCAN_PORTION = 500
/** Sales that a process remembers; then it begins anew. */
const SALES_MAX = 1_000
const REDIS_PATIENCE_MAX_MS = 600_000

export interface Limits {
  /** Operations under way. Default 20,000. */
  readonly operations?: number
  /** Entries that wait for Postgres. While it is away, `memory` operations go on until then. Default 50,000, some 1 to 2 kB each. */
  readonly backlog?: number
  /** Entries of one wallet that wait for Postgres, in Redis. Default 1,000. */
  readonly backlogPerWallet?: number
}

export interface ConnectOptions {
  /**
   * A URL (`redis://host:6379`, `redis+sentinel://host:26379,host:26379/master`, `redis+cluster://host:6379,host:6379`; `rediss` for TLS),
   * ioredis options, `{ cluster: [...] }`, an ioredis client to connect like, or a connection that is made already.
   */
  readonly redis: RedisTarget | RedisConnection
  /** A URL, the options of `pg`, a pool of your own, or a connection that is made already. */
  readonly postgres: PostgresSource | Postgres
  /** Default `default`. */
  readonly tenant?: string
  /** Into how many shards wallets are hashed: fixed by the first who connects to a database. Default 64. */
  readonly shards?: number
  /** When an operation is acknowledged: `ledger` (default): committed in Postgres. `memory`: decided in Redis. */
  readonly durability?: Durability
  /** How long an operation waits for its answer, ms. Default 10,000. */
  readonly timeout?: number
  /**
   * Redis has not worked for so long (ms), though it was asked: then operations go through Postgres until it is back. Default 20: a
   * lost connection, and not the next one. How long one call may be silent is `redisOptions.commandTimeoutMs`, 2,000 by default.
   */
  readonly redisPatience?: number
  /** Postgres's schema. Default `holdfast`. */
  readonly schema?: string
  /** Bring the schema up to date. Default true; false: refuse to run on another version. */
  readonly migrate?: boolean
  /** Refuse to start where a setting of Redis or Postgres endangers what was acknowledged. Default false: it is told to `telemetry.log`. */
  readonly strict?: boolean
  readonly telemetry?: Telemetry
  readonly redisOptions?: Omit<ConnectionOptions, 'telemetry'>
  readonly postgresOptions?: Omit<PostgresOptions, 'telemetry' | 'schema'>
  /** The audits that run by themselves: every shard each five minutes. False: none do. */
  readonly audit?: BackgroundAudit | false
  /** The record of what is tried in sales. False: none is kept. */
  readonly saleAttempts?: SaleAttemptsOptions | false
  /** Refuses checkouts of what is sold for good without asking anybody. Default: by an exact bitmap. False: the engine is always asked. */
  readonly earlyReject?: EarlyRejectOptions | false
  /** How much this process takes on at most; what is above is refused as `unavailable`, with the limit as a fact. */
  readonly limits?: Limits
  /** For those who measure. */
  readonly engine?: Partial<EngineOptions>
}

/** What the instances of all tenants share. */
export interface Shared extends Omit<SaleTenant, 'keys' | 'saleMemory'> {
  readonly auditing: Auditing
  memoryOf(tenant: string, saleId: string): SaleMemory
  readonly saleFinder: SaleFinder
  readonly telemetry: Telemetry
  readonly close: () => Promise<void>
  readonly reconcile: (options: ReconcileOptions) => Promise<ReconcileReport>
  keysOf(tenant: string): Keys
}

/** Both servers there and fit for use, and the engine at work on them; or nothing is left behind. */
export async function open(options: ConnectOptions): Promise<{ tenant: string; shared: Shared }> {
  const given = check.options('options', options)
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
    const settings = await prepare(postgres, options, { shards, strict }, telemetry)
    shared = share(redis, postgres, settings, {
      durability,
      telemetry,
      audit,
      saleAttempts,
      earlyReject,
      disconnect,
      pendingMax: limits.backlogPerWallet,
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

async function checkRedis(
  redis: RedisConnection,
  durability: Durability,
  strict: boolean,
  telemetry: Telemetry,
): Promise<void> {
  // Without Redis there is still Postgres: what can't be asked now is not held against it.
  const checks = await inspectRedis(redis, { memory: durability === 'memory' }).catch(() => [])
  for (const check of checks) {
    if (check.severity === 'ok') continue
    if (strict && check.severity === 'danger') {
      throw new HoldfastError('incompatible', check.text, { setting: check.setting })
    }
    telemetry.log?.('warn', 'redis_setting', { ...check })
  }
}

function checkLimits(given: unknown): Required<Limits> {
  const limits = check.options('limits', given)
  return {
    operations: check.integer('limits.operations', limits.operations ?? 20_000, 1, 1_000_000),
    backlog: check.integer('limits.backlog', limits.backlog ?? 50_000, 1, 1_000_000),
    // More than a script that hands out what is pending may return at once would never be seen.
    backlogPerWallet: check.integer('limits.backlogPerWallet', limits.backlogPerWallet ?? 1_000, 1, 4_000),
  }
}

interface Settings {
  readonly secret: Buffer
  readonly shards: number
}

async function prepare(
  postgres: Postgres,
  options: ConnectOptions,
  { shards, strict }: { shards: number | null; strict: boolean },
  telemetry: Telemetry,
): Promise<Settings> {
  if (options.migrate === false) await checkMigrated(postgres)
  else await migrate(postgres)
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
    throw new HoldfastError(
      'invalid_argument',
      `shards: expected ${row.shards}, as the database was made with, got ${shards}`,
    )
  }
  return { secret, shards: row.shards }
}

function share(
  redis: RedisConnection,
  postgres: Postgres,
  { secret, shards }: Settings,
  given: {
    durability: Durability
    telemetry: Telemetry
    pendingMax: number
    engine: Partial<EngineOptions>
    audit: BackgroundAudit | false
    saleAttempts: { retentionMs: number } | null
    earlyReject: CheckedEarlyReject | null
    disconnect: () => Promise<void>
  },
): Shared {
  const tenants = new Map<string, Keys>()
  const keysOf = (tenant: string): Keys => {
    let keys = tenants.get(tenant)
    if (!keys) {
      keys = new Keys({ tenant, secret, shards })
      tenants.set(tenant, keys)
    }
    return keys
  }
  const anyTenant = new Keys({ tenant: 'any', secret, shards })
  const runner = new RedisScriptRunner(redis)
  const sequencer = new Sequencer(runner, {
    aheadMaxMs: 60_000,
    helpAfterMs: 10_000,
    idleAfterMs: 600_000,
    pendingMax: given.pendingMax,
    now: () => Math.floor(systemClock.now()),
  })
  const journal = new PostgresJournal(postgres)
  const reader = new JournalReader(postgres)
  const sales = new PatientSales(postgres)
  const soldOut = new SoldOutWatch(sales)
  const schedules = new Schedules({
    schedules: new PostgresSchedules(postgres),
    clock: systemClock,
    telemetry: given.telemetry,
  })
  const attempts = new SaleAttempts(new PostgresAttempts(postgres), given.saleAttempts, given.telemetry)
  const sold = new PostgresSold(postgres)
  let primitives: Promise<Primitives> | undefined
  const primitivesOf = async (tenant: string): Promise<Primitives> => {
    primitives ??= Primitives.connect({ redis, secret, owner: 'sales', telemetry: given.telemetry })
    return (await primitives).forTenant(tenant)
  }
  const isStopped = (): boolean => engine.health.stopped !== null
  const early =
    given.earlyReject &&
    new EarlyRejects(
      { journal, sold, clock: systemClock, telemetry: given.telemetry, isStopped, primitivesOf },
      given.earlyReject,
    )
  const memories = new Map<string, SaleMemory>()
  const locks = new Locks(runner, () => reader.nextLockToken(), given.telemetry)
  const asker = randomBytes(12).toString('hex')
  const agendaOf = (shard: number): string => anyTenant.agenda(shard)
  const placeOf = (tenant: string, ref: string): Place => keysOf(tenant).place(ref)
  const engine = new Engine({
    sequencer,
    journal,
    intents: new PostgresIntents(postgres),
    payments: new PostgresPayments(postgres),
    clock: systemClock,
    telemetry: given.telemetry,
    asker,
    shards,
    agendaOf,
    placeOf,
    witnessesKey: anyTenant.witnesses,
    cluster: redis.isCluster,
    options: given.engine,
  })
  const takeBack = measure(engine, given.telemetry)
  const auditing = new Auditing(
    {
      audits: new PostgresAudits(postgres),
      journal,
      sequencer,
      engine,
      clock: systemClock,
      telemetry: given.telemetry,
      holder: asker,
      shards,
      agendaOf,
      placeOf,
    },
    given.audit,
  )
  // A server that was started, promoted or restored since: is all there? If not it is stopped, and refuses by itself whatever decides.
  const unguard = postgres.guardWith((ask) =>
    engine.prove({ prove: (known) => prove(ask, known), stop: (...given) => stop(ask, ...given) }).catch((error) => {
      if (!HoldfastError.is(error, 'reconcile_required')) throw error
    }),
  )
  const timeoutMs = given.engine.timeoutMs ?? DEFAULT_TIMEOUT_MS
  const close = async (): Promise<void> => {
    for (const gauge of takeBack) gauge()
    locks.close()
    soldOut.close()
    // At once, both: nothing new is taken on from here.
    await Promise.all([engine.close(), auditing.close(), schedules.close(), early?.close()])
    await attempts.close(timeoutMs)
    await primitives?.then((made) => made.close())
    unguard()
    runner.close()
    await given.disconnect()
  }
  const reconciling = async (options: ReconcileOptions): Promise<ReconcileReport> => {
    const parts = { journal, sequencer, witnessesKey: anyTenant.witnesses, places: () => placesIn(redis, keysOf) }
    const report = await reconcile(parts, options)
    // Others find out within a second.
    if (report.done) await engine.prove()
    return report
  }
  const memoryOf = (tenant: string, saleId: string): SaleMemory => {
    const name = `${tenant}\0${saleId}`
    const memory = memories.get(name) ?? new SaleMemory(sales, tenant, saleId)
    if (memories.size >= SALES_MAX) memories.clear()
    memories.set(name, memory)
    return memory
  }
  const { durability } = given
  return {
    engine,
    journal,
    reader,
    sequencer,
    locks,
    sales,
    soldOut,
    schedules,
    attempts,
    early,
    memoryOf,
    saleFinder: new SaleFinder(),
    telemetry: given.telemetry,
    auditing,
    durability,
    timeoutMs,
    close,
    reconcile: reconciling,
    keysOf,
  }
}

/** Every wallet that Redis has something of. */
async function* placesIn(redis: RedisConnection, keysOf: (tenant: string) => Keys): AsyncGenerator<Place[]> {
  for await (const found of redis.scan(WALLET_KEYS, SCAN_PORTION)) {
    const places = found.map(readWalletKey).filter((one) => one !== null)
    yield places.map(({ tenant, ref }) => keysOf(tenant).place(ref))
  }
}

function measure(engine: Engine, telemetry: Telemetry): (() => void)[] {
  const gauges = [
    telemetry.gauge?.('holdfast_circuit_open', () => engine.health.redisGroupsAway, { dependency: 'redis' }),
    telemetry.gauge?.('holdfast_circuit_open', () => (engine.health.postgres ? 0 : 1), { dependency: 'postgres' }),
    telemetry.gauge?.('holdfast_stopped', () => (engine.health.stopped === null ? 0 : 1)),
    telemetry.gauge?.('holdfast_backlog_entries', () => engine.load.backlog),
    telemetry.gauge?.('holdfast_operations_under_way', () => engine.load.attempts, { which: 'all' }),
    telemetry.gauge?.('holdfast_operations_under_way', () => engine.load.postgresPath, { which: 'waiting' }),
  ]
  return gauges.filter((gauge) => gauge !== undefined)
}
