import type { KeyObject } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { HoldfastError } from '../errors/index.js'
import { flag, given, invalid, namesOf, options as optionsOf, show } from '../input/index.js'
import { HeldLeases } from '../lock/index.js'
import {
  checkMigrated,
  migrate,
  Postgres,
  type PostgresOptions,
  type PostgresSource,
  readSettings,
} from '../postgres/index.js'
import { type ConnectionOptions, RedisConnection, RedisScriptRunner, type RedisTarget } from '../redis/index.js'
import type { Telemetry } from '../telemetry/index.js'
import type { Context } from './context.js'
import { checkSecret, word } from './keys.js'

export interface PrimitivesOptions {
  /** As for `Holdfast.connect`: a URL, options, a client of ioredis to connect like, or a connection that is made already. */
  readonly redis: RedisTarget | RedisConnection
  /** For what Postgres has to remember: durable idempotency, strict sequences, the audit of tokens and flags. */
  readonly postgres?: PostgresSource | Postgres
  /**
   * What ids are hashed with before they become part of a key: 16 bytes at least, the same in all processes, for good. The database's own
   * unless it is given; without a database it must be.
   */
  readonly secret?: string | Uint8Array
  /** Whose keys these are: the application or the part of it. Default `app`. */
  readonly owner?: string
  /** Default `default`. */
  readonly tenant?: string
  readonly telemetry?: Telemetry
  /** The clock, for tests. Default `Date.now`. */
  readonly now?: () => number
  /** Postgres's schema. Default `holdfast`. */
  readonly schema?: string
  /** Bring the schema up to date. Default true; false: refuse to run on another version. */
  readonly migrate?: boolean
  readonly redisOptions?: Omit<ConnectionOptions, 'telemetry'>
  readonly postgresOptions?: Omit<PostgresOptions, 'telemetry' | 'schema'>
}

const OPTION_NAMES = namesOf<PrimitivesOptions>({
  redis: true,
  postgres: true,
  secret: true,
  owner: true,
  tenant: true,
  telemetry: true,
  now: true,
  schema: true,
  migrate: true,
  redisOptions: true,
  postgresOptions: true,
})

/** The connections, and the keys, that primitives share: `new FixedWindow(primitives, 'login', …)`. */
export class Primitives {
  /** What primitives are made of: also those that you write yourself. */
  readonly context: Context
  readonly #close: () => Promise<void>

  private constructor(context: Context, close: () => Promise<void>) {
    this.context = context
    this.#close = close
  }

  /** Redis need not be there yet: calls fail as `unavailable` until it is. Postgres, if it is given, must be. */
  static async connect(options: PrimitivesOptions): Promise<Primitives> {
    const asked = optionsOf('options', options, OPTION_NAMES)
    given('redis', asked.redis, 'a URL, options or an ioredis client')
    if (asked.postgres === undefined)
      given('secret', asked.secret, '16 bytes or more, or else a postgres, which has one of its own')
    const owner = word('owner', asked.owner ?? 'app')
    const tenant = word('tenant', asked.tenant ?? 'default')
    const secret = asked.secret === undefined ? null : checkSecret(asked.secret)
    const now = asked.now ?? Date.now
    if (typeof now !== 'function') throw invalid('now', 'a function', show(now))
    const mayMigrate = asked.migrate === undefined || flag('migrate', asked.migrate)
    const { telemetry = {} } = options
    const postgres = postgresOf(options, telemetry)
    let redis: RedisConnection | undefined
    let runner: RedisScriptRunner | undefined
    const closing = new AbortController()
    const held = new HeldLeases()
    // One of each that goes on by itself, for as long as it does, however many there are.
    setMaxListeners(0, closing.signal)
    // Who brought a connection closes it.
    const close = async (): Promise<void> => {
      closing.abort(new HoldfastError('unavailable', 'Holdfast is being closed'))
      held.close()
      runner?.close()
      await Promise.all([redis !== options.redis && redis?.close(), postgres !== options.postgres && postgres?.close()])
    }
    try {
      const connection = redisOf(options, telemetry)
      redis = connection
      runner = new RedisScriptRunner(redis)
      if (postgres) await (mayMigrate ? migrate(postgres) : checkMigrated(postgres))
      const databaseSecret = postgres ? checkSecret((await readSettings(postgres)).secret) : null
      const context: Context = {
        owner,
        tenant,
        secret: secret ?? (databaseSecret as KeyObject),
        runner,
        isCluster: redis.isCluster,
        scan: (pattern, portion) => connection.scan(pattern, portion),
        telemetry,
        now: now as () => number,
        postgres: postgres ?? null,
        databaseSecret,
        held,
        closing: closing.signal,
      }
      await redis.ready().catch((error) => telemetry.log?.('error', 'redis_away', { reason: String(error) }))
      return new Primitives(context, close)
    } catch (error) {
      await close()
      throw error
    }
  }

  /** The same connections, another tenant: none of its keys can be one of ours. */
  forTenant(tenant: string): Primitives {
    return new Primitives({ ...this.context, tenant: word('tenant', tenant) }, this.#close)
  }

  /** Closes what `connect` opened, for all tenants. */
  close(): Promise<void> {
    return this.#close()
  }
}

function postgresOf(
  { postgres, postgresOptions, schema }: PrimitivesOptions,
  telemetry: Telemetry,
): Postgres | undefined {
  if (postgres === undefined || postgres instanceof Postgres) return postgres
  return new Postgres(postgres, { ...postgresOptions, ...(schema !== undefined && { schema }), telemetry })
}

function redisOf({ redis, redisOptions }: PrimitivesOptions, telemetry: Telemetry): RedisConnection {
  return redis instanceof RedisConnection ? redis : new RedisConnection(redis, { ...redisOptions, telemetry })
}
