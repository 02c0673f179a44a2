import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { type Finding, HoldfastError, type Postgres, PostgresFeed } from 'holdfast'
import type { Gate } from '../access/index.js'
import type { ServerTelemetry } from '../metrics/index.js'
import { LiveFeed } from './live-feed.js'
import { type Position, PositionText } from './position.js'
import { streamOf } from './stream.js'
import type { Subscription } from './subscription.js'
import { CredentialWatch } from './watch.js'

export interface EventSettings {
  /** For how long events are kept: so long one may stay away and come back with `Last-Event-ID`. */
  readonly keepMs: number
  /** How long before it runs out a hold is told to do so. 0: it is not. */
  readonly expiringMs: number
  /** Default: 15 s, 30 s, 10,000. */
  readonly heartbeatMs?: number
  readonly stallMs?: number
  readonly streamsMax?: number
}

export interface Parts {
  readonly postgres: Postgres
  readonly secret: Uint8Array
  readonly gate: Gate
  readonly telemetry: ServerTelemetry
}

export interface Asked {
  readonly subscription: Subscription
  readonly lastEventId: string | undefined
  readonly authorization: string
  /** Fires when the subscriber goes. */
  readonly left: AbortSignal
}

const HEARTBEAT_MS = 15_000
const STALL_MS = 30_000
const STREAMS_MAX = 10_000

/** All streams of this process: one reader of the feed, and an end for each. */
export class EventHub {
  readonly live: LiveFeed
  readonly feed: PostgresFeed
  readonly #text: PositionText
  readonly #watch: CredentialWatch
  readonly #settings: Required<EventSettings>
  readonly #telemetry: ServerTelemetry
  readonly #open = new Set<AbortController>()
  readonly #takeBack: () => void

  constructor({ postgres, secret, gate, telemetry }: Parts, settings: EventSettings) {
    this.#settings = { heartbeatMs: HEARTBEAT_MS, stallMs: STALL_MS, streamsMax: STREAMS_MAX, ...settings }
    this.#telemetry = telemetry
    this.feed = new PostgresFeed(postgres)
    this.live = new LiveFeed(this.feed, { telemetry, keepMs: settings.keepMs, expiringMs: settings.expiringMs })
    this.#text = new PositionText(secret)
    this.#watch = new CredentialWatch(gate)
    this.#takeBack = telemetry.gauge('events_streams', () => this.#open.size)
  }

  /** A stream of what a subscriber wants to know, from where it was or from now on. */
  async open({ subscription, lastEventId, authorization, left }: Asked): Promise<Readable> {
    const { streamsMax, heartbeatMs, stallMs } = this.#settings
    if (this.#open.size >= streamsMax) {
      throw new HoldfastError('unavailable', `Expected at most ${streamsMax} streams at a time, got one more`)
    }
    const ending = new AbortController()
    this.#open.add(ending)
    const forget: (() => void)[] = [() => this.#open.delete(ending)]
    const leave = (): void => {
      ending.abort()
      for (const one of forget.splice(0)) one()
    }
    try {
      forget.push(await this.live.use())
      const from = await this.#placeOf(lastEventId)
      forget.push(this.#watch.over(authorization, () => ending.abort()))
      const events = streamOf({
        live: this.live,
        text: this.#text,
        subscription,
        from,
        signal: ending.signal,
        heartbeatMs,
        stallMs,
        onStall: () => {
          this.#telemetry.count('events_streams_cut_total', { reason: 'stalled' })
          stream.destroy()
        },
        onSent: (count) => this.#telemetry.count('events_sent_total', { by: 'stream' }, count),
      })
      const stream = Readable.from(events, { objectMode: false, highWaterMark: 64 * 1024 })
      stream.once('close', leave)
      // First the end, so that nobody waits for news on its behalf; also where it went while this was being opened.
      const goAway = (): void => {
        ending.abort()
        stream.destroy()
      }
      if (left.aborted) goAway()
      else left.addEventListener('abort', goAway, { once: true })
      return stream
    } catch (error) {
      leave()
      throw error
    }
  }

  async #placeOf(lastEventId: string | undefined): Promise<Position> {
    if (lastEventId === undefined || lastEventId === '') return this.live.now()
    const place = this.#text.read(lastEventId)
    if (!place) {
      throw new HoldfastError(
        'invalid_argument',
        'header.last-event-id: expected the id of an event, got another text',
        {
          argument: 'header.last-event-id',
        },
      )
    }
    if (await this.live.check(place)) return place
    throw new HoldfastError('events_gone')
  }

  /** Never throws and never waits. */
  noteFindings(findings: readonly Finding[]): void {
    if (findings.length === 0) return
    const notices = findings.map((finding) => {
      const { ref, tenant, ...facts } = finding
      return {
        ref: ref || null,
        tenant,
        notice: { event: 'audit.finding', id: randomUUID(), finding: { ref, ...facts } },
      }
    })
    this.feed.note(notices).catch((error: Error) => {
      this.#telemetry.log?.('warn', 'findings_not_noted', { reason: error.message })
    })
  }

  /** Each between two events: their clients come again, to another process, from where they were. */
  endStreams(): void {
    for (const ending of this.#open) ending.abort()
  }

  async close(): Promise<void> {
    this.endStreams()
    this.#watch.close()
    this.#takeBack()
    await this.live.close()
  }
}
