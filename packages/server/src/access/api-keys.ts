import { HoldfastError, type Postgres, readSettings } from 'holdfast'
import { makeKeyText } from './key-text.js'
import type { Scope } from './scopes.js'

/** Limits of a key's own; null: the server's. */
export interface KeyLimits {
  /** Requests a second. */
  readonly rateMax: number | null
  readonly concurrentMax: number | null
  readonly bodyMaxBytes: number | null
}

export interface ApiKey extends KeyLimits {
  readonly id: string
  readonly tenant: string
  readonly name: string
  readonly scopes: readonly Scope[]
  /** Only wallets whose id begins with it; empty: all of the tenant. */
  readonly walletPrefix: string
  readonly createdAt: number
  readonly expiresAt: number | null
  readonly revokedAt: number | null
  readonly lastUsedAt: number | null
}

/** A key as the database had it at `clock`, its own time. */
export interface FoundKey extends ApiKey {
  readonly hash: Buffer
  readonly clock: number
}

export interface NewKey extends Partial<KeyLimits> {
  readonly tenant: string
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly walletPrefix?: string
  readonly expiresInMs?: number | undefined
}

interface Row {
  id: string
  tenant: string
  name: string
  scopes: Scope[]
  wallet_prefix: string
  hash: Buffer
  created_at: string
  expires_at: string | null
  revoked_at: string | null
  last_used_at: string | null
  rate_max: number | null
  concurrent_max: number | null
  body_max_bytes: number | null
  clock: string
}

/** The keys of a database. */
export class ApiKeys {
  readonly secret: Buffer
  readonly #postgres: Postgres

  private constructor(postgres: Postgres, secret: Buffer) {
    this.#postgres = postgres
    this.secret = secret
  }

  static async of(postgres: Postgres): Promise<ApiKeys> {
    return new ApiKeys(postgres, (await readSettings(postgres)).secret)
  }

  /** `text` is the key itself: nobody can read it again later. */
  async create(asked: NewKey): Promise<{ text: string; key: ApiKey }> {
    const { text, id, hash } = makeKeyText(this.secret)
    const { tenant, name, scopes, walletPrefix = '', expiresInMs = null } = asked
    const { rateMax = null, concurrentMax = null, bodyMaxBytes = null } = asked
    const limits = [rateMax, concurrentMax, bodyMaxBytes]
    const values = [id, tenant, name, scopes, walletPrefix, hash, expiresInMs, ...limits]
    const [row] = await this.#postgres.query<Row>('insertApiKey', values)
    return { text, key: publicOf(read(row as Row)) }
  }

  async find(id: string): Promise<FoundKey | null> {
    const [row] = await this.#postgres.query<Row>('findApiKeys', [[id]])
    return row ? read(row) : null
  }

  /** Oldest first; of all tenants where none is given. */
  async list(tenant?: string): Promise<ApiKey[]> {
    const rows = await this.#postgres.query<Row>('listApiKeys', [tenant ?? null])
    return rows.map((row) => publicOf(read(row)))
  }

  /** Every server notices within a second. */
  async revoke(id: string): Promise<ApiKey> {
    const [row] = await this.#postgres.query<Row>('revokeApiKey', [id])
    if (!row) throw new HoldfastError('invalid_argument', 'id: expected that of a key, got one that no key has')
    return publicOf(read(row))
  }

  async noteUse(ids: readonly string[]): Promise<void> {
    await this.#postgres.query('touchApiKeys', [ids])
  }
}

function read(row: Row): FoundKey {
  return {
    id: row.id,
    tenant: row.tenant,
    name: row.name,
    scopes: row.scopes,
    walletPrefix: row.wallet_prefix,
    createdAt: Number(row.created_at),
    expiresAt: numberOrNull(row.expires_at),
    revokedAt: numberOrNull(row.revoked_at),
    lastUsedAt: numberOrNull(row.last_used_at),
    rateMax: row.rate_max,
    concurrentMax: row.concurrent_max,
    bodyMaxBytes: row.body_max_bytes,
    hash: row.hash,
    clock: Number(row.clock),
  }
}

const numberOrNull = (text: string | null): number | null => (text === null ? null : Number(text))

/** Without the hash: it has no business in an answer. */
function publicOf({ hash, clock, ...key }: FoundKey): ApiKey {
  return key
}
