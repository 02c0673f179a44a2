/**
 * Where Redis is, in one line of configuration:
 *
 *     redis://user:password@host:6379/0                                     one server
 *     redis+sentinel://user:password@host:26379,host:26379/main/0           the master that these sentinels call `main`
 *     redis+cluster://user:password@host:6379,host:6379                     a Cluster: the rest of its nodes is learned from these
 *
 * `rediss` in place of `redis`: over TLS. `?sentinelPassword=…` and `?sentinelUsername=…` where the sentinels ask for some themselves.
 */
import type { RedisOptions } from 'ioredis'
import { HoldfastError } from '../errors/index.js'

/** As `ClusterTarget` of ioredis's options. */
interface ClusterAddress {
  readonly cluster: readonly { host: string; port: number }[]
  readonly options: { redisOptions: RedisOptions }
}

const SENTINEL_PORT = 26_379
const REDIS_PORT = 6_379
const PORT_MAX = 65_535
const SENTINEL_QUERY = ['sentinelUsername', 'sentinelPassword'] as const

/** protocol, kind, credentials, hosts, path, query: what `URL` can't read, because there are several hosts. */
const SEVERAL = /^(rediss?)\+(sentinel|cluster):\/\/(?:([^@/?#]*)@)?([^@/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/
const HOST = /^(\[[0-9a-f:.]+\]|[^\s:[\]]+)(?::(\d{1,5}))?$/i

/** A password may stand anywhere in a broken URL, so nothing of it is repeated. */
const expected = (what: string, got: string) =>
  new HoldfastError('invalid_argument', `redis: expected ${what}, got ${got}`, { argument: 'redis' })

/** How many there are, the server says when it is asked for one. */
export const isDatabase = (text: string): boolean => /^\d{1,4}$/.test(text)

export const noDatabase = () => expected('no database, since a Cluster has only one', 'one')

export function readRedisUrl(url: string): string | RedisOptions | ClusterAddress {
  const parts = SEVERAL.exec(url)
  if (!parts) return checkSingle(url)
  const [, protocol, kind, credentials, hosts = '', path = '', query = ''] = parts
  const settings = { ...credentialsOf(credentials), ...(protocol === 'rediss' && { tls: {} }) }
  if (kind === 'sentinel') {
    const sentinels = addressesOf(hosts, SENTINEL_PORT)
    const secure = protocol === 'rediss' && { sentinelTLS: {}, enableTLSForSentinelMode: true }
    return { ...settings, ...secure, ...masterOf(path), ...sentinelCredentials(query), sentinels }
  }
  if (path !== '' && path !== '0') throw noDatabase()
  if (query !== '') throw expected('nothing behind a ? in the URL of a Cluster', 'something')
  return { cluster: addressesOf(hosts, REDIS_PORT), options: { redisOptions: settings } }
}

function checkSingle(url: string): string {
  // ioredis takes what it can't read for a host or a socket's path: `localhost:6379` would be tried as one, for ever.
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed?.protocol === 'redis:' || parsed?.protocol === 'rediss:') {
    const database = parsed.pathname.slice(1)
    if (database === '' || isDatabase(database)) return url
    throw expected('the number of a database behind the host, or nothing', 'something else')
  }
  throw expected(
    'a URL like redis://host:6379, rediss://user:password@host:6379/0, redis+sentinel://host:26379,host:26379/master ' +
      'or redis+cluster://host:6379,host:6379',
    'something else',
  )
}

function credentialsOf(text: string | undefined): { username?: string; password?: string } {
  if (text === undefined) return {}
  const colon = text.indexOf(':')
  const username = decode(colon < 0 ? text : text.slice(0, colon))
  const password = colon < 0 ? '' : decode(text.slice(colon + 1))
  return { ...(username !== '' && { username }), ...(password !== '' && { password }) }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw expected('a % in the URL to be followed by two hexadecimal digits (%25 for itself)', 'something else')
  }
}

function addressesOf(hosts: string, defaultPort: number): { host: string; port: number }[] {
  return hosts.split(',').map((text, index) => {
    const [, host, port = `${defaultPort}`] = HOST.exec(text) ?? []
    if (host === undefined || Number(port) < 1 || Number(port) > PORT_MAX)
      throw expected(`hosts like a:${defaultPort},b:${defaultPort}`, `something else at place ${index + 1}`)
    return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
  })
}

function masterOf(path: string): { name: string; db: number } {
  const [name = '', db = '0', ...more] = path.split('/')
  if (name === '') throw expected('the name of the master behind the sentinels, as in …:26379/main', 'none')
  if (!isDatabase(db) || more.length > 0)
    throw expected('the number of a database behind the name of the master, or nothing', 'something else')
  return { name: decode(name), db: Number(db) }
}

function sentinelCredentials(query: string): Partial<Record<(typeof SENTINEL_QUERY)[number], string>> {
  const given = new URLSearchParams(query)
  for (const name of given.keys()) {
    if (!SENTINEL_QUERY.some((known) => known === name))
      throw expected(`${SENTINEL_QUERY.join(' or ')} behind the ?`, 'something else')
  }
  return Object.fromEntries(given)
}
