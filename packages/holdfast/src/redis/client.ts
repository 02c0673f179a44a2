import { Cluster, type ClusterNode, type ClusterOptions, Redis, type RedisOptions } from 'ioredis'
import { HoldfastError } from '../errors/index.js'
import { watchHandshake } from './handshake.js'
import { isDatabase, noDatabase, readRedisUrl } from './url.js'

/** Where Redis is: a URL as in `url.ts`, or what ioredis takes. Sentinel is its option `sentinels` with `name`. */
export type RedisTarget = string | RedisOptions | ClusterTarget | Redis | Cluster

export interface ClusterTarget {
  /** Some of the nodes: the rest is learned from them. */
  readonly cluster: readonly ClusterNode[]
  readonly options?: ClusterOptions
}

export type Client = Redis | Cluster

export interface ClientSettings {
  readonly commandTimeoutMs: number
  readonly connectTimeoutMs: number
  /** Told of each failed attempt to connect, and of a connection that broke; gives the time to wait before the next. */
  readonly failed: () => number
  /** Told on each connection to a server that has no use for the password. */
  readonly passwordNotNeeded: () => void
}

const isOptions = (target: unknown): target is object => typeof target === 'object' && target !== null

/** A client that holds the target's options and never connects: what all connections are duplicated from. */
export function template(target: RedisTarget): Client {
  const client = unchecked(target)
  if (client instanceof Redis) checkDatabase(client.options.db)
  else if (client.options.redisOptions?.db) throw noDatabase()
  return client
}

function unchecked(target: RedisTarget): Client {
  if (target instanceof Redis || target instanceof Cluster) return target
  if (typeof target === 'string') {
    const read = readRedisUrl(target)
    return typeof read === 'string' ? new Redis(read, { lazyConnect: true }) : unchecked(read)
  }
  if (!isOptions(target)) {
    throw new HoldfastError(
      'invalid_argument',
      `redis: expected a URL, options or an ioredis client, got ${typeof target}`,
      { argument: 'redis' },
    )
  }
  if ('duplicate' in target) {
    throw new HoldfastError(
      'invalid_argument',
      'redis: expected a client of the ioredis that holdfast uses, got one of another copy or version: pass its URL or options',
      { argument: 'redis' },
    )
  }
  if (!('cluster' in target)) {
    // ioredis reads as much of a text as is a number.
    if ('db' in target) checkDatabase(target.db)
    return new Redis({ ...target, replyMapping: 'legacy', lazyConnect: true })
  }
  if (!Array.isArray(target.cluster) || target.cluster.length === 0) {
    const argument = 'redis.cluster'
    throw new HoldfastError('invalid_argument', `${argument}: expected at least one node, got none`, { argument })
  }
  return new Cluster([...(target.cluster as ClusterNode[])], {
    ...target.options,
    redisOptions: { ...target.options?.redisOptions, replyMapping: 'legacy' },
    lazyConnect: true,
  })
}

function checkDatabase(db: unknown): void {
  if (db === undefined || db === null || isDatabase(String(db))) return
  const argument = 'redis.db'
  const got =
    typeof db === 'number' ? `${db}` : typeof db === 'string' ? `a string of ${db.length} characters` : typeof db
  throw new HoldfastError('invalid_argument', `${argument}: expected the number of a database, got ${got}`, {
    argument,
  })
}

/** Where the target is, for messages and logs: hosts and ports, never credentials. */
export function addressOf(client: Client): string {
  if (client instanceof Cluster) return `cluster ${startupNodesOf(client).map(nodeAddress).join(', ')}`
  const { sentinels, name, path, host, port } = client.options
  if (sentinels) return `sentinel master ${name} (${sentinels.map(nodeAddress).join(', ')})`
  return path || `${host}:${port}`
}

function nodeAddress(node: ClusterNode): string {
  if (typeof node === 'number') return `127.0.0.1:${node}`
  if (typeof node === 'object') return `${node.host ?? '127.0.0.1'}:${node.port ?? 6379}`
  return URL.canParse(node) ? new URL(node).host : node
}

// Not in ioredis's types, and the only place where it keeps them.
const startupNodesOf = (cluster: Cluster) => (cluster as unknown as { startupNodes: ClusterNode[] }).startupNodes

/**
 * What every connection gets, whatever the target says: how often a script runs is decided by the runner alone, so that
 * nothing may be sent, or sent again, behind its back. Each line is there because ioredis's own default breaks that.
 */
function overrides({ commandTimeoutMs, connectTimeoutMs }: ClientSettings) {
  return {
    // An unanswered call is not sent again on the next connection: it may have run.
    autoResendUnfulfilledCommands: false,
    // With 0 it is rejected the moment its connection closes; otherwise it would wait for reconnects that can't help it.
    maxRetriesPerRequest: 0,
    // READONLY comes from a master that was demoted: look again where the master is. 1 reconnects and does not resend.
    reconnectOnError: (error: Error) => (error.message.includes('READONLY') ? 1 : false) as 1 | false,
    // Costs half the throughput, and the engine batches already.
    enableAutoPipelining: false,
    commandTimeout: commandTimeoutMs,
    connectTimeout: connectTimeoutMs,
    sentinelCommandTimeout: commandTimeoutMs,
    // A host that vanished answers nothing, and TCP takes a quarter of an hour to notice.
    socketTimeout: commandTimeoutMs,
    disconnectTimeout: 500,
    enableReadyCheck: true,
    // Keys are made in one place, and replies have one shape.
    keyPrefix: '',
    stringNumbers: false,
    protocol: 2,
    replyMapping: 'legacy',
    readOnly: false,
    lazyConnect: true,
  } as const
}

/**
 * A connection of our own with the options of `from`. Also for a client that was brought: its owner's settings (offline
 * queue, automatic resend, key prefix) are right for the owner and wrong here, and its lifetime is the owner's.
 */
export function createClient(from: Client, settings: ClientSettings): Client {
  const { failed } = settings
  if (from instanceof Redis) {
    const client = from.duplicate({
      ...overrides(settings),
      // Calls wait in the runner, where they are counted and can be withdrawn.
      enableOfflineQueue: false,
      // Decisions are made on masters.
      role: 'master',
      retryStrategy: failed,
      sentinelRetryStrategy: failed,
    })
    watchHandshake(client, settings.passwordNotNeeded)
    return client
  }
  return from.duplicate([], {
    lazyConnect: true,
    keyPrefix: '',
    enableAutoPipelining: false,
    enableReadyCheck: true,
    // Nodes are connected on first use, and a call waits for that here. `ScriptCommand` sees to it that a call that was
    // given up is not sent afterwards.
    enableOfflineQueue: true,
    scaleReads: 'master',
    // Above 0 a call whose connection closed would be sent again, though it may have run.
    retryDelayOnFailover: 0,
    // These answers say that nothing ran, so that following them is safe. CLUSTERDOWN goes to the runner at once.
    retryDelayOnMoved: 0,
    retryDelayOnTryAgain: 50,
    retryDelayOnClusterDown: 0,
    maxRedirections: 5,
    // A move is learned from MOVED; this is for nodes that come and go without one.
    slotsRefreshInterval: 10_000,
    clusterRetryStrategy: failed,
    redisOptions: overrides(settings),
  })
}
