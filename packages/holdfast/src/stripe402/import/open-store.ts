import pg from 'pg'
import { HoldfastError } from '../../errors/index.js'
import { type BorrowedClient, RedisConnection } from '../../redis/index.js'
import { PostgresStore } from '../postgres/store.js'
import { RedisStore } from '../redis/store.js'
import type { LedgerStore } from '../types.js'

/** Where a stripe402 store is, by its URL. */
export type StoreSource = RedisSource | { readonly postgres: string }

export interface RedisSource {
  readonly redis: string
  /** What stands before all its keys, where its owner gave ioredis a `keyPrefix`. */
  readonly keyPrefix?: string | undefined
  /** Whether it was made with `tagged`. */
  readonly tagged?: boolean | undefined
}

export interface OpenedStore {
  readonly store: LedgerStore
  close(): Promise<void>
}

const CONNECTIONS = 4

/** The store at an address, over connections of its own: for a tool that looks at it and leaves again. */
export async function openStore(source: StoreSource): Promise<OpenedStore> {
  return 'redis' in source ? openRedis(source) : openPostgres(source.postgres)
}

async function openRedis({ redis: url, keyPrefix = '', tagged = false }: RedisSource): Promise<OpenedStore> {
  const connection = new RedisConnection(url)
  try {
    await connection.ready()
    const client = connection.take()
    if (!client) throw new HoldfastError('unavailable', `Redis at ${connection.address} can't be reached`)
    return { store: new RedisStore(prefixed(client, keyPrefix), { tagged }), close: () => connection.close() }
  } catch (error) {
    await connection.close()
    throw error
  }
}

/** Our connections put nothing before keys by themselves, and a store adds what its client says. */
function prefixed(
  client: BorrowedClient & { nodes?(role: 'master'): BorrowedClient[] },
  keyPrefix: string,
): BorrowedClient {
  const { isCluster, options } = client
  const borrowed = {
    isCluster,
    options: { keyPrefix, commandTimeout: options.commandTimeout },
    sendCommand: (command: unknown) => client.sendCommand(command),
    nodes: (role: 'master') => client.nodes?.(role),
  }
  return borrowed
}

async function openPostgres(url: string): Promise<OpenedStore> {
  const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS })
  // An idle connection that breaks is no failure of anybody's call; without a listener it would end the process.
  pool.on('error', () => {})
  const store = new PostgresStore(pool)
  try {
    // The first step of a walk tells whether the server is there, and the tables are.
    for await (const _ of store.listClients({ onDamaged: () => {} })) break
    return { store, close: () => pool.end() }
  } catch (error) {
    await pool.end()
    throw error
  }
}
