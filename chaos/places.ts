/**
 * Real servers of one kind. Every worker reaches them through proxies of its own, so that it can be cut off alone:
 *
 *     worker ──▶ its proxies ──▶ Redis: one server, or each node of a Sentinel group or a Cluster
 *        └─────▶ its proxy ────▶ Postgres
 */
import {
  type PostgresHandle,
  type RedisNode,
  type RedisSentinelHandle,
  startPostgres,
  startRedis,
  startRedisCluster,
  startRedisSentinel,
} from '@holdfast/services'
import type { ConnectOptions } from 'holdfast'
import { Redis } from 'ioredis'
import pg from 'pg'
import { type FaultyProxy, startProxy } from '../packages/holdfast/test/redis/support/proxy.js'

export const TOPOLOGIES = ['single', 'sentinel', 'cluster'] as const
export type Topology = (typeof TOPOLOGIES)[number]

/** One worker's way to the servers. */
export interface Way {
  readonly redis: ConnectOptions['redis']
  readonly postgres: string
  /** One for each node. */
  readonly redisProxies: readonly FaultyProxy[]
  readonly postgresProxy: FaultyProxy
  close(): Promise<void>
}

/** What is particular to a topology. */
interface Group {
  readonly nodes: readonly RedisNode[]
  /** What a client is given, where each node is reached through the proxy at the same place. */
  target(proxies: readonly FaultyProxy[]): ConnectOptions['redis']
  direct(): ConnectOptions['redis']
  /** Nodes that decide now. */
  masters(): Promise<RedisNode[]>
  /** Has a replica take over while its master lives. */
  promote?(): Promise<void>
  stop(): Promise<void>
}

/** More than a machine that is busy with all of this stands still, most often: a master that lives should not be taken for dead. */
const DOWN_AFTER_MS = 1_500

const natMapOf = (nodes: readonly RedisNode[], proxies: readonly FaultyProxy[]) =>
  Object.fromEntries(
    nodes.map(({ port }, at) => [`127.0.0.1:${port}`, { host: '127.0.0.1', port: (proxies[at] as FaultyProxy).port }]),
  )

async function single(): Promise<Group> {
  const server = await startRedis({ source: 'installed' })
  return {
    nodes: [server],
    target: ([proxy]) => `redis://127.0.0.1:${(proxy as FaultyProxy).port}`,
    direct: () => server.url,
    masters: async () => [server],
    stop: () => server.stop(),
  }
}

async function sentinel(): Promise<Group> {
  const group: RedisSentinelHandle = await startRedisSentinel({ downAfterMs: DOWN_AFTER_MS })
  const { nodes, name } = group
  const sentinels = [...group.sentinels]
  return {
    nodes,
    target: (proxies) => ({ sentinels, name, natMap: natMapOf(nodes, proxies) }),
    direct: () => ({ sentinels, name }),
    async masters() {
      const port = await group.masterPort()
      return nodes.filter((node) => node.port === port)
    },
    async promote() {
      const [sentinel] = group.sentinelNodes as [RedisNode]
      await onNode(sentinel, (redis) => redis.call('SENTINEL', 'FAILOVER', name))
    },
    stop: () => group.stop(),
  }
}

async function cluster(): Promise<Group> {
  const group = await startRedisCluster({ nodeTimeoutMs: DOWN_AFTER_MS })
  const { nodes } = group
  return {
    nodes,
    target: (proxies) => ({
      cluster: proxies.map(({ port }) => ({ host: '127.0.0.1', port })),
      options: { natMap: natMapOf(nodes, proxies) },
    }),
    direct: () => ({ cluster: [...group.addresses] }),
    async masters() {
      const found = await Promise.all([0, 6_000, 12_000].map((slot) => group.masterOfSlot(slot)))
      return [...new Set(found)]
    },
    async promote() {
      const replicas = await Promise.all(nodes.map((node) => onNode(node, (redis) => redis.role())))
      const at = replicas.findIndex(([role]) => role === 'slave')
      await onNode(nodes[at] as RedisNode, (redis) => redis.cluster('FAILOVER'))
    },
    stop: () => group.stop(),
  }
}

const STARTS = { single, sentinel, cluster }

export class Place {
  readonly topology: Topology
  readonly postgres: PostgresHandle
  readonly #group: Group
  #databases = 0

  private constructor(topology: Topology, group: Group, postgres: PostgresHandle) {
    this.topology = topology
    this.#group = group
    this.postgres = postgres
  }

  static async start(topology: Topology): Promise<Place> {
    const started = await Promise.allSettled([STARTS[topology](), startPostgres({ durable: true })])
    const [group, postgres] = started
    if (group.status === 'fulfilled' && postgres.status === 'fulfilled')
      return new Place(topology, group.value, postgres.value)
    await Promise.all(started.map((one) => (one.status === 'fulfilled' ? one.value.stop() : undefined)))
    throw (started.find((one) => one.status === 'rejected') as PromiseRejectedResult).reason
  }

  get nodes(): readonly RedisNode[] {
    return this.#group.nodes
  }

  masters(): Promise<RedisNode[]> {
    return this.#group.masters()
  }

  async promote(): Promise<void> {
    await this.#group.promote?.()
  }

  /** Past all proxies. */
  get direct(): ConnectOptions['redis'] {
    return this.#group.direct()
  }

  /** An empty database of its own; the nodes of Redis are emptied by whoever wants that. */
  async newDatabase(): Promise<string> {
    const name = `chaos_${++this.#databases}`
    const client = new pg.Client(this.postgres.url)
    await client.connect()
    await client.query(`CREATE DATABASE ${name}`)
    await client.end()
    return Object.assign(new URL(this.postgres.url), { pathname: `/${name}` }).href
  }

  async way(databaseUrl: string): Promise<Way> {
    const redisProxies = await Promise.all(this.nodes.map(({ port }) => startProxy(port)))
    const postgresProxy = await startProxy(this.postgres.port)
    return {
      redis: this.#group.target(redisProxies),
      postgres: Object.assign(new URL(databaseUrl), { port: String(postgresProxy.port) }).href,
      redisProxies,
      postgresProxy,
      async close() {
        await Promise.all([...redisProxies, postgresProxy].map((proxy) => proxy.close()))
      },
    }
  }

  async stop(): Promise<void> {
    await Promise.all([this.#group.stop(), this.postgres.stop()])
  }
}

/** A few commands to one node, on a connection of their own. */
export async function onNode<T>({ port }: RedisNode, work: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis({ host: '127.0.0.1', port, retryStrategy: () => null, maxRetriesPerRequest: 0 })
  redis.on('error', () => {})
  try {
    return await work(redis)
  } finally {
    redis.disconnect()
  }
}
