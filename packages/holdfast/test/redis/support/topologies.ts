import { type RedisNode, startRedis, startRedisCluster, startRedisSentinel } from '@holdfast/services'
import { Cluster, Redis } from 'ioredis'
import type { RedisTarget } from '../../../src/redis/index.js'
import { type FaultyProxy, startProxy } from './proxy.js'

/** A machine that stands still for a moment is not to be taken for a master that died: a failover loses data. */
const DOWN_AFTER_MS = 3_000
const FAILOVER_WITHIN_MS = 60_000

/** A Redis of one kind, reached through proxies, so that one test body can do the same harm to each of them. */
export interface Topology {
  /** Through the proxies. */
  readonly target: RedisTarget
  readonly proxies: readonly FaultyProxy[]
  /** A client of the owner's own, past the proxies: for looking and for bringing along. */
  readonly owner: Redis | Cluster
  /** Makes every server forget all scripts. */
  flushScripts(): Promise<void>
  /** The server that decides about `key` dies; resolves when another one, or the same restarted, decides. */
  failOver(key: string): Promise<void>
  stop(): Promise<void>
}

async function proxiesFor(nodes: readonly RedisNode[]) {
  const proxies = await Promise.all(nodes.map(({ port }) => startProxy(port)))
  const natMap = Object.fromEntries(
    nodes.map(({ port }, at) => [`127.0.0.1:${port}`, { host: '127.0.0.1', port: (proxies[at] as FaultyProxy).port }]),
  )
  return { proxies, natMap }
}

/** Servers die here on purpose: that need not be told. */
function quiet<T extends Redis | Cluster>(client: T): T {
  client.on('error', () => {})
  return client
}

async function eachNode(nodes: readonly RedisNode[], act: (node: Redis) => Promise<unknown>): Promise<void> {
  await Promise.all(
    nodes.map(async ({ port }) => {
      const node = new Redis({ host: '127.0.0.1', port, retryStrategy: () => null })
      await act(node).finally(() => node.disconnect())
    }),
  )
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + FAILOVER_WITHIN_MS
  while (!(await isSo().catch(() => false))) {
    if (Date.now() > deadline) throw new Error(`no failover within ${FAILOVER_WITHIN_MS} ms`)
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

async function single(): Promise<Topology> {
  const server = await startRedis({ source: 'installed' })
  const { proxies } = await proxiesFor([server])
  const owner = quiet(new Redis(server.url))
  return {
    target: `redis://127.0.0.1:${proxies[0]?.port}`,
    proxies,
    owner,
    flushScripts: () => eachNode([server], (node) => node.script('FLUSH')),
    async failOver() {
      await server.kill()
      // Long enough that callers notice.
      await new Promise((resolve) => setTimeout(resolve, 700))
      await server.restart()
    },
    async stop() {
      owner.disconnect()
      await Promise.all(proxies.map((proxy) => proxy.close()))
      await server.stop()
    },
  }
}

async function sentinel(): Promise<Topology> {
  const group = await startRedisSentinel({ downAfterMs: DOWN_AFTER_MS })
  const { proxies, natMap } = await proxiesFor(group.nodes)
  const { name } = group
  const sentinels = [...group.sentinels]
  const owner = quiet(new Redis({ sentinels, name }))
  return {
    target: { sentinels, name, natMap },
    proxies,
    owner,
    flushScripts: () => eachNode(group.nodes, (node) => node.script('FLUSH')),
    async failOver() {
      const before = await group.masterPort()
      await group.nodes.find(({ port }) => port === before)?.kill()
      await until(async () => {
        const now = await group.masterPort()
        return now !== undefined && now !== before
      })
    },
    async stop() {
      owner.disconnect()
      await Promise.all(proxies.map((proxy) => proxy.close()))
      await group.stop()
    },
  }
}

async function cluster(): Promise<Topology> {
  const group = await startRedisCluster({ nodeTimeoutMs: DOWN_AFTER_MS })
  const { proxies, natMap } = await proxiesFor(group.nodes)
  const owner = quiet(new Cluster([...group.addresses]))
  return {
    target: { cluster: proxies.map(({ port }) => ({ host: '127.0.0.1', port })), options: { natMap } },
    proxies,
    owner,
    flushScripts: () => eachNode(group.nodes, (node) => node.script('FLUSH')),
    async failOver(key) {
      const slot = await owner.cluster('KEYSLOT', key)
      const before = await group.masterOfSlot(slot)
      await before.kill()
      await until(async () => (await group.masterOfSlot(slot)).port !== before.port)
    },
    async stop() {
      owner.disconnect()
      await Promise.all(proxies.map((proxy) => proxy.close()))
      await group.stop()
    },
  }
}

export const TOPOLOGIES = { single, sentinel, cluster }
