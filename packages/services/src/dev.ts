/** Redis and Postgres for one person at one machine: private, on free ports, with data kept between runs. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { ServicesError } from './error.js'
import { type FolderLock, lockFolder } from './lock.js'
import { type PostgresHandle, startPostgres } from './postgres/index.js'
import { type RedisHandle, startRedis } from './redis/index.js'

export interface DevServicesOptions {
  /** Where the data is kept. Default: `.holdfast` in the working folder. */
  readonly dir?: string
  /** False: it comes from elsewhere, such as REDIS_URL, and is not started. Default: true. */
  readonly redis?: boolean
  /** The same for Postgres and DATABASE_URL. */
  readonly postgres?: boolean
}

export interface DevServices {
  readonly dir: string
  /** The servers themselves; undefined where not asked for. */
  readonly redis: RedisHandle | undefined
  readonly postgres: PostgresHandle | undefined
  readonly redisUrl: string | undefined
  readonly databaseUrl: string | undefined
  /** Stops both and lets go of the folder. */
  stop(): Promise<void>
}

export async function openDevServices(options: DevServicesOptions = {}): Promise<DevServices> {
  const dir = resolve(options.dir ?? '.holdfast')
  if (options.redis === false && options.postgres === false) return describe(dir, undefined, undefined, async () => {})

  const lock = await occupy(dir)
  const [redis, postgres] = await Promise.allSettled([
    options.redis === false ? undefined : startRedis({ folder: join(dir, 'redis') }),
    options.postgres === false ? undefined : startPostgres({ folder: join(dir, 'postgres') }),
  ])
  const stop = async () => {
    try {
      await Promise.all([startedOf(redis)?.stop(), startedOf(postgres)?.stop()])
    } finally {
      lock.release()
    }
  }
  const failed = [redis, postgres].find((result) => result.status === 'rejected')
  if (failed) {
    await stop()
    throw readable(failed.reason, dir)
  }
  return describe(dir, startedOf(redis), startedOf(postgres), stop)
}

function describe(
  dir: string,
  redis: RedisHandle | undefined,
  postgres: PostgresHandle | undefined,
  stop: () => Promise<void>,
): DevServices {
  return { dir, redis, postgres, redisUrl: redis?.url, databaseUrl: postgres?.url, stop }
}

const startedOf = <T>(result: PromiseSettledResult<T>) => (result.status === 'fulfilled' ? result.value : undefined)

async function occupy(dir: string): Promise<FolderLock> {
  try {
    mkdirSync(dir, { recursive: true })
    // So that nobody commits a database by accident, whatever project this folder is in.
    writeFileSync(join(dir, '.gitignore'), '*\n')
    return await lockFolder(dir)
  } catch (error) {
    throw readable(error, dir)
  }
}

/** Errors of the file system say what happened to which file, but not what a person can do about it. */
function readable(error: unknown, dir: string): unknown {
  const { code, path } = error as NodeJS.ErrnoException
  if (code === undefined || path === undefined) return error
  return new ServicesError(
    `The data folder ${dir} can't be written (${code} at ${path}). Choose one that you may write to (--data-dir), or set both REDIS_URL and DATABASE_URL.`,
  )
}
