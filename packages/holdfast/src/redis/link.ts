import type { Telemetry } from '../telemetry/index.js'
import { type Backoff, backoffMs } from './backoff.js'
import { addressOf, type Client, type ClientSettings, createClient } from './client.js'
import { RedisUnavailable } from './outcome.js'

/** After the first attempt. Who waits then gets an error; the link goes on trying in the background. */
const RETRIES_MAX = 3
const RECONNECT: Backoff = { baseMs: 50, capMs: 2_000 }
const CLOSE_WAIT_MS = 1_000

export type LinkState = 'connecting' | 'ready' | 'away' | 'closed'

interface Waiting {
  promise: Promise<void>
  resolve: () => void
  reject: (error: Error) => void
}

/**
 * One connection (with Cluster: one to each node) that is made anew for as long as it is not closed.
 *
 *   connecting ──▶ ready ──▶ connecting ──(3 retries)──▶ away ──▶ ready …        closed
 */
export class Link {
  readonly client: Client
  readonly #address: string
  readonly #telemetry: Telemetry
  #failures = 0
  #attemptError: string | undefined
  #lastError = 'no answer'
  #wasReady = false
  #closed = false
  #waiting: Waiting | undefined
  #restart: NodeJS.Timeout | undefined

  constructor(from: Client, settings: Omit<ClientSettings, 'failed' | 'passwordNotNeeded'>, telemetry: Telemetry) {
    this.#address = addressOf(from)
    this.#telemetry = telemetry
    this.client = createClient(from, {
      ...settings,
      failed: () => this.#failed(),
      passwordNotNeeded: () => this.#passwordNotNeeded(),
    })
    this.client.on('ready', () => this.#becameReady())
    // Three events of ioredis, one meaning; the first error of an attempt is the cause, the others follow from it.
    for (const event of ['error', 'sentinelError', 'node error']) {
      this.client.on(event, (error: Error & { code?: string }) => {
        // Comes after the attempt, and only repeats what `sentinelError` told.
        if (error.message.startsWith('All sentinels are unreachable')) return
        this.#attemptError ??= error.message || error.code
      })
    }
    this.client.on('end', () => this.#ended())
    this.#connect()
  }

  get state(): LinkState {
    if (this.#closed) return 'closed'
    if (this.client.status === 'ready') return 'ready'
    return this.#failures > RETRIES_MAX ? 'away' : 'connecting'
  }

  /** Resolves when the link can be used; rejects once it is away, and at once while it is. */
  ready(): Promise<void> {
    const { state } = this
    if (state === 'ready') return Promise.resolve()
    if (state !== 'connecting') return Promise.reject(this.#unavailable())
    this.#waiting ??= waiting()
    return this.#waiting.promise
  }

  /** Lets what was sent be answered, then closes. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    clearTimeout(this.#restart)
    this.#giveUpWaiting()
    const { client } = this
    const { status } = client
    if (status !== 'ready') {
      client.disconnect()
      return
    }
    // `end` is not sure to come (the server may be gone in the same moment), so that the wait has a bound.
    const ended = new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, CLOSE_WAIT_MS)
      client.once('end', () => {
        clearTimeout(timer)
        resolve()
      })
    })
    await client.quit().catch(() => client.disconnect())
    await ended
    client.disconnect()
  }

  #connect(): void {
    // The outcome comes as events.
    this.client.connect().catch(() => {})
  }

  #becameReady(): void {
    if (this.#wasReady) this.#telemetry.count?.('redis_reconnects_total')
    if (this.#failures > RETRIES_MAX) this.#telemetry.log?.('info', 'redis_back', { address: this.#address })
    this.#wasReady = true
    this.#failures = 0
    this.#attemptError = undefined
    this.#waiting?.resolve()
    this.#waiting = undefined
  }

  #failed(): number {
    this.#failures += 1
    this.#lastError = this.#attemptError ?? this.#lastError
    this.#attemptError = undefined
    if (this.#failures === RETRIES_MAX + 1) {
      this.#telemetry.log?.('warn', 'redis_away', { address: this.#address, reason: this.#lastError })
    }
    if (this.#failures > RETRIES_MAX) this.#giveUpWaiting()
    return backoffMs(this.#failures, RECONNECT)
  }

  #passwordNotNeeded(): void {
    // With the next connection it is the same server, most likely.
    if (this.#wasReady) return
    const text = 'A password was given, and this Redis lets everybody in without one'
    this.#telemetry.log?.('warn', 'redis_setting', { severity: 'warning', setting: 'password', text })
  }

  /** ioredis gives up by itself when it can't even begin to connect. We don't. */
  #ended(): void {
    if (this.#closed) return
    this.#restart = setTimeout(() => this.#connect(), this.#failed())
  }

  #giveUpWaiting(): void {
    this.#waiting?.reject(this.#unavailable())
    this.#waiting = undefined
  }

  #unavailable(): RedisUnavailable {
    if (this.#closed)
      return new RedisUnavailable('not_executed', `the connection to Redis at ${this.#address} is closed`)
    return new RedisUnavailable(
      'not_executed',
      `Redis at ${this.#address} is away: ${this.#lastError} (tried ${RETRIES_MAX + 1} times; still trying)`,
    )
  }
}

function waiting(): Waiting {
  const result = {} as Waiting
  result.promise = new Promise((resolve, reject) => {
    result.resolve = resolve
    result.reject = reject
  })
  // Whoever waits hears of it; nobody waiting is not an error.
  result.promise.catch(() => {})
  return result
}
