import { HoldfastError } from '../errors/index.js'
import type { Postgres } from './pool.js'

/** What a database keeps about itself, the same for every process that uses it. */
export interface DatabaseSettings {
  /** 32 random bytes, made with the database. Personal ids in Redis keys are HMACed with it. */
  secret: Buffer
  createdAt: Date
}

/** Why nothing is decided in this database until an operator has acted; null: nothing is in the way. */
export async function readStop(postgres: Postgres): Promise<string | null> {
  const [row] = await postgres.query<{ stopped_because: string | null }>('readStop', [])
  return row?.stopped_because ?? null
}

export async function readSettings(postgres: Postgres): Promise<DatabaseSettings> {
  const [row] = await postgres.query<{ secret: Buffer; created_at: Date }>('readSettings', [])
  if (row === undefined) {
    throw new HoldfastError('incompatible', `The table ${postgres.schema}.settings is empty: its row was deleted`)
  }
  return { secret: row.secret, createdAt: row.created_at }
}
