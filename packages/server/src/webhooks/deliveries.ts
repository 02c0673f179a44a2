import type { EventName, FeedHead, Postgres, WalletEvent } from 'holdfast'

/** A webhook that is this process's to serve. */
export interface Claimed {
  readonly id: string
  readonly tenant: string
  readonly url: string
  readonly events: readonly EventName[]
  readonly walletPrefix: string
  readonly balanceLow: number | null
  readonly position: number
  readonly mark: number
  readonly tries: number
  readonly failingSince: number | null
  readonly pauseMs: number
}

export interface Waiting {
  readonly id: string
  readonly lane: string
  readonly eventId: string
  readonly body: string
  readonly tries: number
}

/** What was not taken, or has to wait behind that. */
export interface Parked {
  readonly event: WalletEvent
  /** When it happened, by the feed: its day begins then. */
  readonly at: number
  readonly tries: number
  readonly pauseMs: number
  readonly reason: string | null
}

/** What is told in order: a wallet, or a sale. No id of a wallet has a control character. */
export const laneOf = ({ wallet, sale }: Pick<WalletEvent, 'wallet' | 'sale'>): string =>
  sale === undefined ? (wallet ?? '') : `\u0001${sale}`

/** Somebody else serves it by now, or it is gone. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost'
}

/** How far webhooks have come, and what waits: in Postgres, so that another process can go on. */
export class Deliveries {
  readonly #postgres: Postgres
  readonly holder: string

  constructor(postgres: Postgres, holder: string) {
    this.#postgres = postgres
    this.holder = holder
  }

  async claim(leaseMs: number, most: number): Promise<Claimed[]> {
    const rows = await this.#postgres.query<{
      id: string
      tenant: string
      url: string
      events: EventName[]
      wallet_prefix: string
      balance_low: string | null
      position: string
      mark: number
      tries: number
      failing_since: string | null
      pause_ms: string
    }>('claimWebhooks', [this.holder, leaseMs, most])
    return rows.map((row) => ({
      id: row.id,
      tenant: row.tenant,
      url: row.url,
      events: row.events,
      walletPrefix: row.wallet_prefix,
      balanceLow: row.balance_low === null ? null : Number(row.balance_low),
      position: Number(row.position),
      mark: row.mark,
      tries: row.tries,
      failingSince: row.failing_since === null ? null : Number(row.failing_since),
      pauseMs: Number(row.pause_ms),
    }))
  }

  async releaseAll(): Promise<void> {
    await this.#postgres.query('releaseWebhooks', [this.holder])
  }

  async advance(webhook: string, { position, mark }: FeedHead): Promise<void> {
    await this.#held('advanceWebhook', [webhook, this.holder, position, mark])
  }

  async pause(webhook: string, tries: number, pauseMs: number): Promise<void> {
    await this.#held('pauseWebhook', [webhook, this.holder, tries, pauseMs])
  }

  /** What is answered only to who has the webhook. */
  async #held<T extends object>(
    name: 'advanceWebhook' | 'pauseWebhook' | 'waitingLanes',
    values: readonly unknown[],
  ): Promise<T[]> {
    const rows = await this.#postgres.query<T>(name, values)
    if (rows.length === 0) throw new LeaseLost('The webhook is another process’s, or was deleted')
    return rows
  }

  /** The first of each lane whose time has come; `early`: also where it has not. */
  async waiting(webhook: string, early: boolean, most: number): Promise<Waiting[]> {
    const rows = await this.#postgres.query<{
      id: string
      lane: string
      event_id: string
      body: string
      tries: number
    }>('waitingDeliveries', [webhook, early, most])
    return rows.map(({ id, lane, event_id, body, tries }) => ({ id, lane, eventId: event_id, body, tries }))
  }

  async lanesWaiting(webhook: string, lanes: readonly string[]): Promise<Set<string>> {
    const rows = await this.#held<{ lane: string | null }>('waitingLanes', [webhook, this.holder, lanes])
    return new Set(rows.flatMap(({ lane }) => lane ?? []))
  }

  async park(webhook: string, parked: readonly Parked[], dead = false): Promise<void> {
    if (parked.length === 0) return
    await this.#postgres.query('parkDeliveries', [
      webhook,
      parked.map(({ event }) => laneOf(event)),
      parked.map(({ event }) => event.id),
      parked.map(({ event }) => event.event),
      parked.map(({ event }) => JSON.stringify(event)),
      parked.map(({ at }) => at),
      parked.map(({ tries }) => tries),
      parked.map(({ pauseMs }) => pauseMs),
      parked.map(({ reason }) => reason),
      dead,
    ])
  }

  async end(id: string): Promise<void> {
    await this.#postgres.query('endDelivery', [id])
  }

  /** Whether it is dead now. */
  async fail(id: string, pauseMs: number, reason: string, lifeMs: number): Promise<boolean> {
    const [row] = await this.#postgres.query<{ dead: boolean }>('failDelivery', [id, pauseMs, reason, lifeMs])
    return row?.dead ?? false
  }

  /** What has waited for too long; returns how many. */
  async bury(webhook: string, lifeMs: number, reason: string): Promise<number> {
    return (await this.#postgres.query('buryDeliveries', [webhook, lifeMs, reason])).length
  }
}
