import pg from 'pg'
import { HoldfastError } from '../../errors/index.js'
import { PostgresStore } from '../postgres/store.js'
import type { LedgerStore } from '../types.js'

/** Where a stripe402 store is, as URLs. */
export type StoreSource = { readonly redis: string } | { readonly postgres: string }

export interface OpenedStore {
  readonly store: LedgerStore
  close(): Promise<void>
}

const CONNECTIONS = 4

/** The store at an address, with connections of its own, for a tool that looks at it and leaves again. */
export async function openStore(source: StoreSource): Promise<OpenedStore> {
  if ('redis' in source) throw new HoldfastError('invalid_argument')
  const pool = new pg.Pool({ connectionString: source.postgres, max: CONNECTIONS })
  // An idle connection that breaks is no failure of anybody's call; without a listener it would end the process.
  pool.on('error', () => {})
  return { store: new PostgresStore(pool), close: () => pool.end() }
}
