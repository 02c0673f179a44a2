import pg from 'pg'
import { HoldfastError } from '../errors/index.js'
import { connectFailure } from './failure.js'

/** Where Postgres is: a URL, the options of `pg`, or a pool that the application made and will close itself. */
export type PostgresSource = string | pg.PoolConfig | pg.Pool

export const isPool = (source: unknown): source is pg.Pool =>
  typeof source === 'object' && source !== null && 'connect' in source && typeof source.connect === 'function'

/** A pool that was brought may be set to wait for ever: the wait is bounded here as well. */
export async function takeClient(pool: pg.Pool, address: string, timeoutMs: number): Promise<pg.PoolClient> {
  const connecting = pool.connect()
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const tooLong = () => reject(new Error(`no connection within ${timeoutMs} ms`))
    timer = setTimeout(tooLong, timeoutMs + 100)
  })
  try {
    return await Promise.race([connecting, late])
  } catch (error) {
    // Too late for us is not too late for the next: what still comes goes back.
    connecting.then(
      (client) => client.release(),
      () => {},
    )
    throw connectFailure(error, address)
  } finally {
    clearTimeout(timer)
  }
}

/** What `pg` reads as it is meant: a URL, a URL of a socket, or the folder of a socket. All else it takes for the name of a database. */
const READABLE = /^(postgres(ql)?:\/\/|socket:|\/)/i

/** A password may stand anywhere in a URL that can't be read, so nothing of it is repeated. */
const unreadable = (reason = '') => {
  const expected = 'expected a URL such as postgres://user:password@host:5432/database, options of pg, or a pool of pg'
  const message = `postgres: ${expected}, got something that can't be read as such${reason}`
  return new HoldfastError('invalid_argument', message, { argument: 'postgres' })
}

export function configOf(source: string | pg.PoolConfig): pg.PoolConfig {
  const config = typeof source === 'string' ? { connectionString: source } : source
  if (typeof config !== 'object' || config === null) throw unreadable()
  const { connectionString } = config
  if (connectionString !== undefined && !READABLE.test(connectionString)) throw unreadable()
  return config
}

/** `host:port`, never a user or a password. */
export function addressOf(config: pg.PoolConfig): string {
  try {
    // Never connected: it knows how a URL, options and PGHOST, PGPORT add up.
    const { host, port } = new pg.Client(config)
    return host.startsWith('/') ? host : `${host.includes(':') ? `[${host}]` : host}:${port}`
  } catch (error) {
    // The reason of `new URL` quotes the URL with its password: it must not become the cause.
    throw unreadable(error instanceof Error && 'code' in error ? ` (${error.code})` : '')
  }
}
