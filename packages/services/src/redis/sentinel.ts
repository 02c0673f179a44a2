/** A master, two replicas, three sentinels: the smallest group that survives the loss of any one of them. */
import { ask, askForFields } from './ask.js'
import { RedisGroup } from './group.js'
import type { RedisNode } from './node.js'

export interface RedisSentinelOptions {
  /** Silence after which a sentinel takes the master for dead. Default: 1,000 ms. */
  readonly downAfterMs?: number
  /** Further lines of configuration for master and replicas. */
  readonly settings?: readonly string[]
}

export interface RedisSentinelHandle {
  /** The name that the sentinels know the master by. */
  readonly name: string
  /** As clients want them: `{ sentinels, name }` is what ioredis takes. */
  readonly sentinels: readonly { readonly host: string; readonly port: number }[]
  /** The master as it was at the start, then its replicas. */
  readonly nodes: readonly RedisNode[]
  readonly sentinelNodes: readonly RedisNode[]
  /** Port of the master that the sentinels agree on right now; undefined while they don't. */
  masterPort(): Promise<number | undefined>
  stop(): Promise<void>
}

const NAME = 'holdfast'
const QUORUM = 2
const READY_TIMEOUT_MS = 30_000
/** Sentinels that could not agree on who leads a failover try again only after twice their timeout: nobody should wait for a minute then. */
const FAILOVER_TIMEOUT_MAX_MS = 10_000
const IN_MEMORY = ['save ""', 'appendonly no', 'repl-diskless-sync yes', 'repl-diskless-sync-delay 0']

export async function startRedisSentinel(options: RedisSentinelOptions = {}): Promise<RedisSentinelHandle> {
  const { downAfterMs = 1_000, settings = [] } = options
  const group = new RedisGroup('Sentinel')
  return await group.setUp(async () => {
    const base = [...IN_MEMORY, ...settings]
    const master = await group.add('master', () => base)
    const replica = (name: string) => group.add(name, () => [...base, `replicaof 127.0.0.1 ${master.port}`])
    const replicas = await Promise.all([replica('replica-1'), replica('replica-2')])
    // Sentinels learn of replicas from the master: it has to know them first.
    await group.until('replicas linked to their master', READY_TIMEOUT_MS, () => areLinked(replicas))

    const sentinelSettings = [
      `sentinel monitor ${NAME} 127.0.0.1 ${master.port} ${QUORUM}`,
      `sentinel down-after-milliseconds ${NAME} ${downAfterMs}`,
      `sentinel failover-timeout ${NAME} ${Math.min(10 * downAfterMs, FAILOVER_TIMEOUT_MAX_MS)}`,
      `sentinel parallel-syncs ${NAME} 2`,
    ]
    const sentinel = (name: string) => group.add(name, () => sentinelSettings, true)
    const sentinelNodes = await Promise.all([sentinel('sentinel-1'), sentinel('sentinel-2'), sentinel('sentinel-3')])
    await group.until('sentinels in agreement', READY_TIMEOUT_MS, () => agree(sentinelNodes, replicas.length))

    return {
      name: NAME,
      sentinels: sentinelNodes.map(({ port }) => ({ host: '127.0.0.1', port })),
      nodes: [master, ...replicas],
      sentinelNodes,
      masterPort: () => masterPort(sentinelNodes),
      stop: () => group.stop(),
    }
  })
}

export async function areLinked(replicas: readonly RedisNode[]): Promise<boolean> {
  const infos = await Promise.all(replicas.map(({ port }) => askForFields(port, 'INFO', 'replication')))
  return infos.every((info) => info.get('master_link_status') === 'up')
}

async function agree(sentinels: readonly RedisNode[], replicaCount: number): Promise<boolean> {
  const views = await Promise.all(sentinels.map(({ port }) => viewOf(port)))
  return views.every(
    (view) =>
      view.get('flags') === 'master' &&
      view.get('num-slaves') === String(replicaCount) &&
      view.get('num-other-sentinels') === String(sentinels.length - 1),
  )
}

async function viewOf(port: number): Promise<Map<string, string>> {
  const flat = (await ask(port, 'SENTINEL', 'MASTER', NAME)) as string[]
  return new Map(flat.flatMap((name, at) => (at % 2 === 0 ? [[name, flat[at + 1] ?? ''] as const] : [])))
}

async function masterPort(sentinels: readonly RedisNode[]): Promise<number | undefined> {
  const up = sentinels.filter(({ pid }) => pid !== undefined)
  const answers = await Promise.allSettled(up.map(({ port }) => ask(port, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME)))
  const ports = answers.map((answer) =>
    answer.status === 'fulfilled' ? Number((answer.value as string[])[1]) : undefined,
  )
  const [first] = ports
  return ports.length >= QUORUM && ports.every((port) => port === first) ? first : undefined
}
