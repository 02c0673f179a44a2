import { randomUUID } from 'node:crypto'
import type { Postgres } from 'holdfast'
import type { EventHub } from '../events/index.js'
import type { ServerTelemetry } from '../metrics/index.js'
import { type AllowedHosts, isAllowed } from './address.js'
import { Courier, type CourierSettings } from './courier.js'
import { type Claimed, Deliveries } from './deliveries.js'
import type { Webhooks } from './webhooks.js'

export interface DispatcherSettings extends CourierSettings {
  readonly leaseMs: number
  readonly pollMs: number
}

export interface DispatcherParts {
  readonly postgres: Postgres
  readonly hub: EventHub
  readonly webhooks: Webhooks
  readonly allowed: AllowedHosts
  readonly telemetry: ServerTelemetry
}

const DEFAULTS: DispatcherSettings = {
  timeoutMs: 10_000,
  backoffMs: 1_000,
  backoffMaxMs: 15 * 60 * 1_000,
  lifeMs: 24 * 60 * 60 * 1_000,
  leaseMs: 10_000,
  pollMs: 1_000,
}
const WEBHOOKS_AT_A_TIME = 1_000
/** A lease is renewed when half of it is over. Who could not do that stops before the rest is over too, when somebody else may begin. */
const LEASE_SHARE = 0.4

interface Served {
  readonly courier: Courier
  readonly stop: AbortController
  readonly running: Promise<void>
}

/** Serves the webhooks that are this process's: each is one process's at a time, and another's when that is gone. */
export class WebhookDispatcher {
  readonly #parts: DispatcherParts
  readonly #settings: DispatcherSettings
  readonly #deliveries: Deliveries
  readonly #served = new Map<string, Served>()
  readonly #takeBack: () => void
  #timer: NodeJS.Timeout | undefined
  #working: Promise<void> | undefined
  #release: (() => void) | undefined
  #claimedAt = Number.NEGATIVE_INFINITY
  #failing = false
  #closed = false

  constructor(parts: DispatcherParts, settings: Partial<DispatcherSettings> = {}) {
    this.#parts = parts
    this.#settings = { ...DEFAULTS, ...settings }
    this.#deliveries = new Deliveries(parts.postgres, randomUUID())
    this.#takeBack = parts.telemetry.gauge('webhooks_failing_seconds', () => this.#failingMs() / 1_000)
    this.#schedule(0)
  }

  #failingMs(): number {
    return Math.max(0, ...[...this.#served.values()].map(({ courier }) => courier.failingMs))
  }

  #schedule(ms: number): void {
    if (this.#closed) return
    this.#timer = setTimeout(() => {
      this.#working = this.#claim().finally(() => this.#schedule(this.#settings.pollMs))
    }, ms)
    this.#timer.unref()
  }

  async #claim(): Promise<void> {
    const { leaseMs } = this.#settings
    const askedAt = performance.now()
    try {
      const claimed = await this.#deliveries.claim(leaseMs, WEBHOOKS_AT_A_TIME)
      this.#claimedAt = askedAt
      this.#failing = false
      await this.#follow(claimed.length > 0)
      const ids = new Set(claimed.map(({ id }) => id))
      for (const [id, { stop }] of this.#served) if (!ids.has(id)) stop.abort()
      for (const webhook of claimed) if (!this.#served.has(webhook.id) && !this.#closed) this.#serve(webhook)
    } catch (error) {
      if (!this.#failing) this.#parts.telemetry.log?.('warn', 'webhooks_not_claimed', { reason: String(error) })
      this.#failing = true
      if (performance.now() - this.#claimedAt > leaseMs * LEASE_SHARE) this.#stopAll()
    }
  }

  /** The feed is looked at only while there is somebody to tell. */
  async #follow(wanted: boolean): Promise<void> {
    if (wanted) this.#release ??= await this.#parts.hub.live.use()
    else {
      this.#release?.()
      this.#release = undefined
    }
  }

  #serve(webhook: Claimed): void {
    const { hub, webhooks, allowed, telemetry } = this.#parts
    const stop = new AbortController()
    const parts = {
      ...this.#settings,
      deliveries: this.#deliveries,
      feed: hub.feed,
      telemetry,
      secret: webhooks.secretOf(webhook.id),
      inside: isAllowed(allowed, new URL(webhook.url)),
      head: () => hub.live.head.position,
      untilNews: (ms: number, signal: AbortSignal) => this.#untilNews(ms, signal),
    }
    const courier = new Courier(webhook, parts, stop.signal)
    const running = courier
      .run()
      .catch((error: unknown) => {
        telemetry.log?.('warn', 'webhook_interrupted', { webhook: webhook.id, reason: String(error) })
      })
      .finally(() => this.#served.delete(webhook.id))
    this.#served.set(webhook.id, { courier, stop, running })
  }

  #untilNews(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer)
        deaf()
        signal.removeEventListener('abort', end)
        resolve()
      }
      const timer = setTimeout(end, ms)
      const deaf = this.#parts.hub.live.follow(end)
      signal.addEventListener('abort', end, { once: true })
    })
  }

  #stopAll(): void {
    for (const { stop } of this.#served.values()) stop.abort()
  }

  /** What is on its way is given up, and told again by who comes next. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#takeBack()
    await this.#working
    this.#stopAll()
    await Promise.all([...this.#served.values()].map(({ running }) => running))
    this.#release?.()
    // Where Postgres is away the lease runs out by itself.
    await this.#deliveries.releaseAll().catch(() => {})
  }
}
