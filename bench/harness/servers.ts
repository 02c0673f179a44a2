/** Redis and Postgres for one run: real, private, on loopback, durable as `npm start` runs them; gone afterwards. */
import { type PostgresHandle, type RedisHandle, startPostgres, startRedis } from '@holdfast/services'
import { Redis } from 'ioredis'
import pg from 'pg'

const POSTGRES_SETTINGS = [
  'server_version',
  'fsync',
  'synchronous_commit',
  'full_page_writes',
  'wal_sync_method',
  'commit_delay',
  'shared_buffers',
  'max_wal_size',
  'max_connections',
] as const
const REDIS_SETTINGS = ['save', 'appendonly', 'maxmemory', 'io-threads', 'hash-max-listpack-entries'] as const

export interface ServerFacts {
  readonly redis: Readonly<Record<string, string>>
  readonly postgres: Readonly<Record<string, string>>
}

/** Postgres waits so long before each flush of its log, whoever else is about to commit. */
export const slowerDisk = (commitDelayMs: number) => ({
  commit_delay: `${commitDelayMs * 1_000}`,
  commit_siblings: '0',
})

export class Servers {
  /** For what the harness asks itself, outside of what is measured. */
  readonly admin: Redis
  readonly #redis: RedisHandle
  readonly #postgres: PostgresHandle
  #databases = 0

  private constructor(redis: RedisHandle, postgres: PostgresHandle) {
    this.#redis = redis
    this.#postgres = postgres
    this.admin = new Redis(redis.url)
    this.admin.on('error', () => {})
  }

  static async start({ commitDelayMs }: { commitDelayMs: number }): Promise<Servers> {
    // WebAssembly would be compared with itself, at a fifth of the speed: only the real server tells something.
    const started = await Promise.allSettled([
      startRedis({ source: 'installed' }),
      startPostgres({ durable: true, settings: slowerDisk(commitDelayMs) }),
    ])
    const [redis, postgres] = started
    if (redis.status === 'fulfilled' && postgres.status === 'fulfilled') return new Servers(redis.value, postgres.value)
    await Promise.all(started.map((one) => (one.status === 'fulfilled' ? one.value.stop() : undefined)))
    throw (started.find((one) => one.status === 'rejected') as PromiseRejectedResult).reason
  }

  get redisPid(): number {
    return this.#redis.pid as number
  }

  get postgresPid(): number {
    return this.#postgres.pid as number
  }

  /** A database of its own in each of the two servers. */
  async allot(name: string): Promise<{ redisUrl: string; databaseUrl: string }> {
    await inDatabase(this.#postgres.url, (client) => client.query(`CREATE DATABASE ${name}`))
    const databaseUrl = Object.assign(new URL(this.#postgres.url), { pathname: `/${name}` }).href
    return { redisUrl: `${this.#redis.url}/${this.#databases++}`, databaseUrl }
  }

  async facts(): Promise<ServerFacts> {
    const info = await this.admin.info('server')
    const redis: Record<string, string> = { version: /redis_version:(\S+)/.exec(info)?.[1] ?? 'unknown' }
    for (const name of REDIS_SETTINGS) {
      const [, value] = (await this.admin.config('GET', name)) as string[]
      redis[name] = value === '' ? 'off' : (value ?? 'unknown')
    }
    const postgres: Record<string, string> = {}
    await inDatabase(this.#postgres.url, async (client) => {
      for (const name of POSTGRES_SETTINGS) {
        const { rows } = await client.query<Record<string, string>>(`SHOW ${name}`)
        postgres[name] = Object.values(rows[0] ?? {})[0] ?? 'unknown'
      }
    })
    return { redis, postgres }
  }

  async stop(): Promise<void> {
    this.admin.disconnect()
    await Promise.all([this.#redis.stop(), this.#postgres.stop()])
  }
}

async function inDatabase(url: string, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await work(client)
  } finally {
    await client.end()
  }
}
