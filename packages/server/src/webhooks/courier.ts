import type { FeedHead, FeedItem, FeedRow, PostgresFeed, WalletEvent } from 'holdfast'
import { type Subscription, toldOf, wantsSales } from '../events/index.js'
import type { ServerTelemetry } from '../metrics/index.js'
import { backoffMs } from './backoff.js'
import { type Claimed, type Deliveries, LeaseLost, laneOf, type Parked } from './deliveries.js'
import { postSigned } from './post.js'

export interface CourierSettings {
  readonly timeoutMs: number
  readonly backoffMs: number
  readonly backoffMaxMs: number
  /** How long an event is tried. */
  readonly lifeMs: number
}

export interface CourierParts extends CourierSettings {
  readonly deliveries: Deliveries
  readonly feed: PostgresFeed
  readonly telemetry: ServerTelemetry
  readonly secret: string
  /** Whether its host may be inside: an operator has named it. */
  readonly inside: boolean
  /** How far the feed is known to go. */
  head(): number
  /** Resolves when there may be news, when so much time has passed, or when it is over. */
  untilNews(ms: number, signal: AbortSignal): Promise<void>
}

interface Told {
  readonly event: WalletEvent
  readonly at: number
}

/** Wallets that are told of at a time. */
const LANES = 8
/** So many failures in a row, whichever the wallets: then it is the address. */
const STREAK_MAX = 5
const IDLE_MS = 1_000
const UNREACHABLE = 'nothing was taken for too long'

/**
 * Serves one webhook. An event that is not taken waits in Postgres, and with it what comes after it of the same wallet; other wallets go on. When
 * nothing is taken at all, the address is left alone for a while, twice as long each time, and what happens meanwhile waits in the feed.
 */
export class Courier {
  readonly webhook: Claimed
  readonly #parts: CourierParts
  readonly #subscription: Subscription
  readonly #salesOf: readonly string[]
  readonly #signal: AbortSignal
  #position: number
  #tries: number
  #pausedUntil: number
  #streak = 0
  #failingSinceMs: number | null

  constructor(webhook: Claimed, parts: CourierParts, signal: AbortSignal) {
    const { tenant, walletPrefix, events, balanceLow } = webhook
    this.webhook = webhook
    this.#parts = parts
    this.#signal = signal
    this.#subscription = { tenant, wallet: null, sale: null, walletPrefix, events: new Set(events), balanceLow }
    this.#salesOf = wantsSales(this.#subscription) ? [tenant] : []
    this.#position = webhook.position
    this.#tries = webhook.tries
    this.#pausedUntil = performance.now() + webhook.pauseMs
    this.#failingSinceMs = webhook.failingSince
  }

  /** For how long it has taken nothing. */
  get failingMs(): number {
    return this.#failingSinceMs === null ? 0 : Math.max(0, Date.now() - this.#failingSinceMs)
  }

  async run(): Promise<void> {
    const { telemetry, untilNews } = this.#parts
    await this.#checkPlace()
    while (!this.#signal.aborted) {
      try {
        const pauseMs = this.#pausedUntil - performance.now()
        if (pauseMs > 0) await untilNews(Math.min(pauseMs, IDLE_MS), this.#signal)
        else if (!(await this.#round())) await untilNews(IDLE_MS, this.#signal)
      } catch (error) {
        if (error instanceof LeaseLost) return
        // Postgres is away, most likely. What was told and not written down is told again.
        telemetry.log?.('warn', 'webhook_interrupted', { webhook: this.webhook.id, reason: String(error) })
        await untilNews(IDLE_MS, this.#signal)
      }
    }
  }

  /** Where it was may be gone: nobody delivered for as long as the feed is kept, or Postgres was put back. Then it goes on with what there is. */
  async #checkPlace(): Promise<void> {
    const { feed, deliveries, telemetry } = this.#parts
    const { id, position, mark } = this.webhook
    if ((await feed.markAt(position)).mark === mark) return
    telemetry.log?.('error', 'webhook_events_gone', { webhook: id, position })
    const oldest = await feed.oldest()
    await deliveries.advance(id, oldest)
    this.#position = oldest.position
  }

  /** Whether there was anything to do. */
  async #round(): Promise<boolean> {
    const retried = await this.#retry()
    if (this.#isPaused()) return true
    return (await this.#tell()) || retried
  }

  #isPaused(): boolean {
    return this.#pausedUntil > performance.now() || this.#signal.aborted
  }

  /** What waits, the first of each wallet. Of an address that took nothing, one, to see. */
  async #retry(): Promise<boolean> {
    const { deliveries } = this.#parts
    const probing = this.#tries > 0
    const waiting = await deliveries.waiting(this.webhook.id, probing, probing ? 1 : LANES)
    await Promise.all(
      waiting.map(async ({ id, eventId, body, tries }) => {
        const reason = await this.#send(eventId, body)
        if (this.#signal.aborted) return
        if (reason === '') await deliveries.end(id)
        else await this.#failed(id, tries + 1, reason)
      }),
    )
    if (probing && this.#tries > 0) await this.#bury()
    return waiting.length > 0
  }

  async #failed(id: string, tries: number, reason: string): Promise<void> {
    const { deliveries, lifeMs } = this.#parts
    const dead = await deliveries.fail(id, this.#pauseAfter(tries), reason, lifeMs)
    this.#count(dead ? 'failed' : 'retried')
    await this.#pauseIfDead(reason)
  }

  #pauseAfter(tries: number): number {
    return backoffMs(tries, this.#parts.backoffMs, this.#parts.backoffMaxMs)
  }

  /** The next page of the feed: the wallets beside each other, the events of each one after the other. */
  async #tell(): Promise<boolean> {
    const { feed, deliveries, head } = this.#parts
    const { id, tenant } = this.webhook
    const upTo = head()
    if (this.#position >= upTo) return false
    const asked = { tenants: [tenant], salesOf: this.#salesOf, after: this.#position, upTo }
    const { rows, end } = await feed.read(asked)
    const lanes = this.#lanesOf(rows)
    const busy = await deliveries.lanesWaiting(id, [...lanes.keys()])
    const queue = [...lanes]
    const work = async (): Promise<void> => {
      for (let next = queue.shift(); next; next = queue.shift()) await this.#tellLane(next[1], busy.has(next[0]))
    }
    await Promise.all(Array.from({ length: LANES }, work))
    // What was not told, or not written down, is told again by whoever comes next.
    if (this.#signal.aborted) return true
    await this.#advance(end, rows)
    return true
  }

  async #advance(end: number, rows: readonly FeedRow[]): Promise<void> {
    const { feed, deliveries } = this.#parts
    const known = rows.find(({ position }) => position === end)
    const place: FeedHead = { position: end, mark: known?.mark ?? (await feed.markAt(end)).mark ?? 0 }
    await deliveries.advance(this.webhook.id, place)
    this.#position = end
  }

  #lanesOf(rows: readonly FeedRow[]): Map<string, Told[]> {
    const lanes = new Map<string, Told[]>()
    const add = (row: FeedRow, item: FeedItem): void => {
      for (const event of toldOf(this.#subscription, row, item)) {
        const lane = lanes.get(laneOf(event)) ?? []
        lanes.set(laneOf(event), lane)
        lane.push({ event, at: row.at })
      }
    }
    for (const row of rows) for (const item of row.items) add(row, item)
    return lanes
  }

  async #tellLane(told: readonly Told[], busy: boolean): Promise<void> {
    const { deliveries } = this.#parts
    let done = 0
    let failed: Parked | undefined
    while (!busy && !this.#isPaused() && done < told.length) {
      const { event, at } = told[done] as Told
      const reason = await this.#send(event.id, JSON.stringify(event))
      if (this.#signal.aborted) return
      done += 1
      if (reason === '') continue
      failed = { event, at, tries: 1, pauseMs: this.#pauseAfter(1), reason }
      this.#count('retried')
      await this.#pauseIfDead(reason)
      break
    }
    const behind = told.slice(done).map((one) => ({ ...one, tries: 0, pauseMs: 0, reason: null }))
    await deliveries.park(this.webhook.id, failed ? [failed, ...behind] : behind)
  }

  async #send(eventId: string, body: string): Promise<string> {
    const { secret, inside, timeoutMs, telemetry, deliveries } = this.#parts
    const { id, url } = this.webhook
    const reason = await postSigned({ url, secret, id: eventId, body, timeoutMs, inside, signal: this.#signal })
    if (this.#signal.aborted) return reason
    this.#streak = reason === '' ? 0 : this.#streak + 1
    if (reason !== '') return reason
    this.#count('delivered')
    telemetry.count('events_sent_total', { by: 'webhook' })
    if (this.#tries > 0) {
      this.#tries = 0
      this.#failingSinceMs = null
      await deliveries.pause(id, 0, 0)
      telemetry.log?.('info', 'webhook_recovered', { webhook: id })
    }
    return ''
  }

  /** Nothing is taken: it is left alone for a while. */
  async #pauseIfDead(reason: string): Promise<void> {
    if (this.#streak < STREAK_MAX && this.#tries === 0) return
    if (this.#isPaused()) return
    const { deliveries, telemetry } = this.#parts
    const { id } = this.webhook
    this.#tries += 1
    this.#failingSinceMs ??= Date.now()
    const pauseMs = this.#pauseAfter(this.#tries)
    this.#pausedUntil = performance.now() + pauseMs
    if (this.#tries === 1) telemetry.log?.('warn', 'webhook_fails', { webhook: id, reason })
    await deliveries.pause(id, this.#tries, pauseMs)
  }

  /** It still takes nothing: what has waited for too long is given up, in the feed as well, which would be forgotten one day. */
  async #bury(): Promise<void> {
    const { feed, deliveries, lifeMs, head } = this.#parts
    const { id, tenant } = this.webhook
    const buried = await deliveries.bury(id, lifeMs, UNREACHABLE)
    this.#count('failed', buried)
    while (!this.#signal.aborted && this.#position < head()) {
      const asked = { tenants: [tenant], salesOf: this.#salesOf, after: this.#position, upTo: head() }
      const { rows } = await feed.read(asked)
      const old = rows.filter(({ at }) => at < Date.now() - lifeMs)
      const last = old.at(-1)
      if (!last) return
      const dead = [...this.#lanesOf(old).values()].flat()
      const parked = dead.map((one) => ({ ...one, tries: 0, pauseMs: 0, reason: UNREACHABLE }))
      await deliveries.park(id, parked, true)
      this.#count('failed', dead.length)
      await this.#advance(last.position, old)
    }
  }

  #count(outcome: 'delivered' | 'retried' | 'failed', by = 1): void {
    this.#parts.telemetry.count('webhook_deliveries_total', { outcome }, by)
  }
}
