/** Redis and Postgres for one person at one machine: private, kept between runs. */
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { startPostgres } from './postgres/index.js'
import { startRedis } from './redis/index.js'

export interface DevServicesOptions {
  /** Where the data is kept. Default: `.holdfast` in the working folder. */
  readonly dir?: string
  /** Which to start; the others come from elsewhere, such as REDIS_URL. Default: both. */
  readonly redis?: boolean
  readonly postgres?: boolean
}

export interface DevServices {
  /** Undefined only where it was not asked for. */
  readonly redisUrl: string | undefined
  readonly databaseUrl: string | undefined
  readonly dir: string
  /** In a few words, for people: which servers these are and whether they keep their data. */
  readonly description: string
  stop(): Promise<void>
}

export async function openDevServices(options: DevServicesOptions = {}): Promise<DevServices> {
  const dir = resolve(options.dir ?? '.holdfast')
  mkdirSync(dir, { recursive: true })
  const [redis, postgres] = await Promise.all([
    options.redis === false ? undefined : startRedis({ folder: join(dir, 'redis') }),
    options.postgres === false ? undefined : startPostgres({ folder: join(dir, 'postgres') }),
  ])
  return {
    redisUrl: redis?.url,
    databaseUrl: postgres?.url,
    dir,
    description: '',
    async stop() {
      await Promise.all([redis?.stop(), postgres?.stop()])
    },
  }
}
