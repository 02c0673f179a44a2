import { checkMigrated, checkServer, HoldfastError, migrate, Postgres, RedisConnection, type Telemetry } from 'holdfast'
import { StartError } from './start-error.js'

export interface ConnectionSettings {
  redisUrl: string
  databaseUrl: string
  schema: string
  redisConnections: number
  databaseConnections: number
  /** Whether to bring the database to this version, or only to check that it is. */
  migrate: boolean
  /** What to blame, such as REDIS_URL. */
  names: { redis: string; postgres: string }
  telemetry: Telemetry
}

export interface Connections {
  redis: RedisConnection
  postgres: Postgres
  close(): Promise<void>
}

/** Connecting retries inside; this is the end of it for one who waits at a terminal. */
const START_TIMEOUT_MS = 9_000

/** Both at once, and both there and fit for use, or an error that says which is not. */
export async function openConnections(settings: ConnectionSettings): Promise<Connections> {
  const { telemetry, names } = settings
  const redis = blaming(names.redis, () => {
    return new RedisConnection(settings.redisUrl, { connections: settings.redisConnections, telemetry })
  })
  const postgres = blaming(names.postgres, () => {
    const { schema, databaseConnections: maxConnections } = settings
    return new Postgres(settings.databaseUrl, { schema, maxConnections, telemetry })
  })
  const close = async () => {
    await Promise.all([redis.close(), postgres.close()])
  }
  const [redisResult, postgresResult] = await Promise.allSettled([
    withinStartTimeout(redis.ready(), `Redis at ${redis.address}`),
    preparePostgres(postgres, settings),
  ])
  const failures = [failureOf(redisResult, names.redis), failureOf(postgresResult, names.postgres)].filter(Boolean)
  if (failures.length === 0) return { redis, postgres, close }
  await close()
  throw new StartError(failures.join('\n'))
}

async function preparePostgres(postgres: Postgres, settings: ConnectionSettings): Promise<void> {
  await withinStartTimeout(postgres.ping(), `Postgres at ${postgres.address}`)
  if (settings.migrate) await migrate(postgres)
  else await checkMigrated(postgres)
  for (const { severity, setting, text } of await checkServer(postgres)) {
    settings.telemetry.log?.('warn', 'postgres_setting', { severity, setting, text })
  }
}

async function withinStartTimeout(promise: Promise<void>, what: string): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const message = `${what} does not answer within ${START_TIMEOUT_MS / 1000} s`
    timer = setTimeout(() => reject(new HoldfastError('unavailable', message)), START_TIMEOUT_MS)
  })
  await Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

function failureOf(result: PromiseSettledResult<void>, name: string): string | undefined {
  if (result.status === 'fulfilled') return undefined
  if (!(result.reason instanceof HoldfastError)) throw result.reason
  return `${name}: ${result.reason.message}`
}

/** A URL that passed the first look can still be none for the client, and only here is known whose mistake that is. */
function blaming<T>(name: string, make: () => T): T {
  try {
    return make()
  } catch (error) {
    if (error instanceof HoldfastError) throw new StartError(`${name}: ${error.message}`)
    throw error
  }
}
