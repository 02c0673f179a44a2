/** Three masters with a third of the slots each, and a replica for every one of them. */
import { freePort } from '../port.js'
import { ask, askForFields } from './ask.js'
import { RedisGroup } from './group.js'
import type { RedisNode } from './node.js'
import { areLinked } from './sentinel.js'

export interface RedisClusterOptions {
  /** Silence after which members take a node for dead. Default: 1,000 ms. */
  readonly nodeTimeoutMs?: number
  /** Further lines of configuration for all nodes. */
  readonly settings?: readonly string[]
}

export interface RedisClusterHandle {
  /** What `new Cluster(…)` of ioredis takes. */
  readonly addresses: readonly { readonly host: string; readonly port: number }[]
  /** Masters as they were at the start, then the replica of each in the same order. */
  readonly nodes: readonly RedisNode[]
  /** The node that serves this slot right now, replicas that were promoted included. */
  masterOfSlot(slot: number): Promise<RedisNode>
  stop(): Promise<void>
}

const MASTERS = 3
const SLOTS = 16_384
const READY_TIMEOUT_MS = 30_000

interface Member {
  readonly node: RedisNode
  readonly busPort: number
  readonly id: string
}

export async function startRedisCluster(options: RedisClusterOptions = {}): Promise<RedisClusterHandle> {
  const { nodeTimeoutMs = 1_000, settings = [] } = options
  const group = new RedisGroup('Cluster')
  return await group.setUp(async () => {
    const startMember = async (name: string): Promise<Member> => {
      let busPort = 0
      const node = await group.add(name, async () => {
        busPort = await freePort()
        return [
          'cluster-enabled yes',
          `cluster-port ${busPort}`,
          `cluster-node-timeout ${nodeTimeoutMs}`,
          'cluster-replica-validity-factor 0',
          'save ""',
          'appendonly no',
          'repl-diskless-sync yes',
          'repl-diskless-sync-delay 0',
          ...settings,
        ]
      })
      return { node, busPort, id: String(await ask(node.port, 'CLUSTER', 'MYID')) }
    }
    const masters = await Promise.all([1, 2, 3].map((n) => startMember(`master-${n}`)))
    const replicas = await Promise.all([1, 2, 3].map((n) => startMember(`replica-${n}`)))
    const members = [...masters, ...replicas]
    const nodes = members.map(({ node }) => node)

    await giveSlots(masters)
    await meet(members)
    await group.until('members that know each other', READY_TIMEOUT_MS, () =>
      every(nodes, async ({ port }) => (await clusterInfo(port)).get('cluster_known_nodes') === String(nodes.length)),
    )
    for (const [at, { node }] of replicas.entries()) {
      const master = masters[at] as Member
      // A replica accepts its master only once gossip has told it that this node is one.
      await group.until('replicas that know their master', READY_TIMEOUT_MS, async () => {
        return (await ask(node.port, 'CLUSTER', 'REPLICATE', master.id)) === 'OK'
      })
    }
    await group.until('cluster_state:ok on every node', READY_TIMEOUT_MS, () =>
      every(nodes, async ({ port }) => (await clusterInfo(port)).get('cluster_state') === 'ok'),
    )
    await group.until('replicas linked to their masters', READY_TIMEOUT_MS, () => areLinked(nodes.slice(MASTERS)))
    await group.until('replicas known to every node', READY_TIMEOUT_MS, () =>
      every(nodes, async ({ port }) => (await replicaCount(port)) === replicas.length),
    )

    return {
      addresses: nodes.map(({ port }) => ({ host: '127.0.0.1', port })),
      nodes,
      masterOfSlot: (slot) => masterOfSlot(nodes, slot),
      stop: () => group.stop(),
    }
  })
}

async function giveSlots(masters: readonly Member[]): Promise<void> {
  for (const [at, { node }] of masters.entries()) {
    const first = Math.floor((at * SLOTS) / MASTERS)
    const last = Math.floor(((at + 1) * SLOTS) / MASTERS) - 1
    await ask(node.port, 'CLUSTER', 'ADDSLOTSRANGE', first, last)
    // Distinct from the start, so that members need not sort out a tie first.
    await ask(node.port, 'CLUSTER', 'SET-CONFIG-EPOCH', at + 1)
  }
}

/** Everybody meets everybody: gossip alone would take seconds to introduce six. */
async function meet(members: readonly Member[]): Promise<void> {
  for (const [at, { node }] of members.entries()) {
    const others = members.slice(at + 1)
    await Promise.all(
      others.map((other) => ask(node.port, 'CLUSTER', 'MEET', '127.0.0.1', other.node.port, other.busPort)),
    )
  }
}

const clusterInfo = (port: number) => askForFields(port, 'CLUSTER', 'INFO')

async function every(nodes: readonly RedisNode[], isSo: (node: RedisNode) => Promise<boolean>): Promise<boolean> {
  return (await Promise.all(nodes.map(isSo))).every(Boolean)
}

async function replicaCount(port: number): Promise<number> {
  const lines = String(await ask(port, 'CLUSTER', 'NODES')).split('\n')
  return lines.filter((line) => line.split(' ')[2]?.includes('slave')).length
}

type SlotRange = [first: number, last: number, master: [host: string, port: number]]

async function masterOfSlot(nodes: readonly RedisNode[], slot: number): Promise<RedisNode> {
  for (const asked of nodes) {
    const ranges = (await ask(asked.port, 'CLUSTER', 'SLOTS').catch(() => [])) as SlotRange[]
    const range = ranges.find(([first, last]) => first <= slot && slot <= last)
    const master = nodes.find(({ port }) => port === range?.[2][1])
    // A node that is down is still named by members that haven't noticed yet.
    if (master?.pid !== undefined) return master
  }
  throw new Error(`No running node of the cluster serves slot ${slot}`)
}
