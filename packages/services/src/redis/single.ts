/** One private Redis on a loopback port. */
import { randomBytes } from 'node:crypto'
import { mkdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { scratchFolder } from '../folder.js'
import { settleFormerServer } from '../former-server.js'
import { findRedis, type RedisSource, redisSource } from './binaries.js'
import { type RedisNode, startNode } from './node.js'

export interface RedisOptions {
  /** Keeps the data here between runs (an installed server only). Without it: in memory alone. */
  readonly folder?: string
  /** Default: HOLDFAST_REDIS if set, else `any`. */
  readonly source?: RedisSource
  /** Further lines of its configuration, such as `maxmemory 64mb`; not for wasm. */
  readonly settings?: readonly string[]
}

export interface RedisHandle extends RedisNode {
  readonly url: string
  readonly source: 'installed' | 'wasm'
  /** Whether data outlives the server. */
  readonly persistent: boolean
}

const IN_MEMORY = ['save ""', 'appendonly no']
/** At most the last second is lost when the machine crashes, nothing when only the server does. */
const KEPT = ['save ""', 'appendonly yes', 'appendfsync everysec', 'pidfile redis.pid']

export async function startRedis(options: RedisOptions = {}): Promise<RedisHandle> {
  const binary = findRedis(options.source ?? redisSource())
  const persistent = options.folder !== undefined && binary.source === 'installed'
  const scratch = options.folder === undefined ? scratchFolder('redis') : undefined
  const folder = options.folder ?? scratch?.path ?? ''
  try {
    mkdirSync(folder, { recursive: true })
    // Unlike Postgres, Redis would write to files that another Redis still writes to.
    if (persistent) {
      const pidFile = join(folder, 'redis.pid')
      await settleFormerServer({ pidFile, folder: realpathSync(folder), orderly: 'SIGTERM', hard: 'SIGKILL' })
    }
    // Kept data is a person's, and other people on the machine reach the loopback interface too. New at every start.
    const password = options.folder === undefined ? undefined : randomBytes(24).toString('hex')
    const settings = [...(persistent ? KEPT : IN_MEMORY), ...(options.settings ?? [])]
    const node = await startNode({
      name: 'Redis',
      binary,
      folder,
      settings: () => settings,
      ...(password && { password }),
    })
    return {
      ...node,
      get pid() {
        return node.pid
      },
      url: `redis://${password ? `:${password}@` : ''}127.0.0.1:${node.port}`,
      source: binary.source,
      persistent,
      async stop() {
        await node.stop()
        scratch?.remove()
      },
    }
  } catch (error) {
    scratch?.remove()
    throw error
  }
}
