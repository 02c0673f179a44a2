import { randomBytes } from 'node:crypto'
import { type EventName, HoldfastError, type Postgres, PostgresFeed, readSettings, WALLET_EVENT_NAMES } from 'holdfast'
import { type AllowedHosts, checkUrl } from './address.js'
import { webhookSecret } from './signature.js'

export interface Webhook {
  readonly id: string
  readonly tenant: string
  readonly url: string
  readonly events: readonly EventName[]
  /** Only wallets whose id begins with it; empty: all of the tenant. */
  readonly walletPrefix: string
  readonly balanceLow: number | null
  readonly createdAt: number
  /** Since when it takes nothing; null: it does. */
  readonly failingSince: number | null
  /** Events that wait for another try, and those that are not tried any more. */
  readonly waiting: number
  readonly dead: number
}

export interface NewWebhook {
  readonly tenant: string
  readonly url: string
  readonly events?: readonly EventName[] | undefined
  readonly walletPrefix?: string | undefined
  readonly balanceLow?: number | null | undefined
}

/** An event that was not taken within a day. */
export interface DeadDelivery {
  readonly id: number
  readonly event: EventName
  /** As it would be sent. */
  readonly data: unknown
  readonly tries: number
  readonly reason: string | null
  readonly deadAt: number
}

interface Row {
  id: string
  tenant: string
  url: string
  events: EventName[]
  wallet_prefix: string
  balance_low: string | null
  created_at: string
  failing_since: string | null
  waiting: number
  dead: number
}

export const WEBHOOKS_MAX = 50
export const KEEP_MS = 7 * 24 * 60 * 60 * 1_000
const ID_BYTES = 12

/** The webhooks of a database. */
export class Webhooks {
  readonly #postgres: Postgres
  readonly #secret: Uint8Array
  readonly #allowed: AllowedHosts
  readonly #keepMs: number

  constructor(postgres: Postgres, secret: Uint8Array, allowed: AllowedHosts, keepMs = KEEP_MS) {
    this.#postgres = postgres
    this.#secret = secret
    this.#allowed = allowed
    this.#keepMs = keepMs
  }

  static async of(postgres: Postgres, allowed: AllowedHosts): Promise<Webhooks> {
    return new Webhooks(postgres, (await readSettings(postgres)).secret, allowed)
  }

  /** Tells of what happens from now on. The secret is given this once. */
  async create(asked: NewWebhook, argument: string): Promise<{ secret: string; webhook: Webhook }> {
    const url = checkUrl(argument, asked.url, this.#allowed)
    const id = `wh_${randomBytes(ID_BYTES).toString('base64url')}`
    await new PostgresFeed(this.#postgres).start(this.#keepMs)
    const { tenant, events = WALLET_EVENT_NAMES, walletPrefix = '', balanceLow = null } = asked
    const values = [id, tenant, url, [...new Set(events)], walletPrefix, balanceLow, WEBHOOKS_MAX]
    const [row] = await this.#postgres.query<Row>('insertWebhook', values)
    if (!row) {
      const message = `Expected at most ${WEBHOOKS_MAX} webhooks of a tenant, got one more`
      throw new HoldfastError('invalid_argument', message, { limit: WEBHOOKS_MAX })
    }
    return { secret: this.secretOf(id), webhook: read(row) }
  }

  secretOf(id: string): string {
    return webhookSecret(this.#secret, id)
  }

  /** Oldest first; of all tenants where none is given. */
  async list(tenant?: string): Promise<Webhook[]> {
    return (await this.#postgres.query<Row>('listWebhooks', [tenant ?? null, null])).map(read)
  }

  async find(id: string, tenant?: string): Promise<Webhook> {
    const [row] = await this.#postgres.query<Row>('listWebhooks', [tenant ?? null, id])
    if (!row) throw new HoldfastError('webhook_not_found')
    return read(row)
  }

  async delete(id: string): Promise<void> {
    await this.#postgres.query('deleteWebhook', [id])
  }

  async dead(id: string, after: number, limit: number): Promise<DeadDelivery[]> {
    const rows = await this.#postgres.query<{
      id: string
      event: EventName
      body: string
      tries: number
      reason: string | null
      dead_at: string
    }>('deadDeliveries', [id, after, limit])
    return rows.map(({ id, event, body, tries, reason, dead_at }) => {
      return { id: Number(id), event, data: JSON.parse(body), tries, reason, deadAt: Number(dead_at) }
    })
  }

  /** Has what is dead tried again, for another day; returns how many. */
  async replay(id: string, deliveries?: readonly number[]): Promise<number> {
    return (await this.#postgres.query('replayDeliveries', [id, deliveries ?? null])).length
  }
}

function read(row: Row): Webhook {
  return {
    id: row.id,
    tenant: row.tenant,
    url: row.url,
    events: row.events,
    walletPrefix: row.wallet_prefix,
    balanceLow: row.balance_low === null ? null : Number(row.balance_low),
    createdAt: Number(row.created_at),
    failingSince: row.failing_since === null ? null : Number(row.failing_since),
    waiting: row.waiting,
    dead: row.dead,
  }
}
