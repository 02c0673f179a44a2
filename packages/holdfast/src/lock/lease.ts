import { HoldfastError } from '../errors/index.js'

/** Renewed so often within its time; a renewal that failed is tried again sooner than the next one is due. */
const RENEWALS = 3
const RETRIES = 12
/**
 * By so much of its time a lease ends earlier here than in Redis: whoever works under it hears that it is over before anybody else can
 * have it, also when the two clocks do not run alike.
 */
const MARGIN = 0.05

export interface LeaseParts {
  readonly token: number
  readonly ttlMs: number
  /** Until when it is safe, by `performance.now()`. */
  readonly until: number
  /** False: it is somebody else's by now, or nobody's. */
  renew(): Promise<boolean>
  release(): Promise<void>
  /** Told once, when it is lost before it was given back. */
  lost(): void
}

/** When a lease is over at the latest that was asked for at `askedAt`. */
export function safeUntil(askedAt: number, ttlMs: number): number {
  return askedAt + ttlMs * (1 - MARGIN)
}

/** A lock that is held: renewed until it is given back or lost. Its end is never later here than it is in Redis. */
export class Lease {
  readonly token: number
  readonly #parts: LeaseParts
  readonly #over = new AbortController()
  readonly #stopFollowing: () => void
  #until: number
  #renewal: NodeJS.Timeout | undefined
  #end: NodeJS.Timeout | undefined
  #ended = false

  /** `given` is the caller's own: when it fires the work is told, and the lock stays until it has stopped. */
  constructor(parts: LeaseParts, given: AbortSignal | undefined) {
    this.token = parts.token
    this.#parts = parts
    this.#until = parts.until
    const abort = () => this.#over.abort(new HoldfastError('aborted'))
    given?.addEventListener('abort', abort, { once: true })
    this.#stopFollowing = () => given?.removeEventListener('abort', abort)
    this.#watch()
    this.#renewIn(parts.ttlMs / RENEWALS)
  }

  /** Fires when the lock is lost. */
  get signal(): AbortSignal {
    return this.#over.signal
  }

  #watch(): void {
    clearTimeout(this.#end)
    this.#end = setTimeout(() => this.lose('It was not renewed in time'), Math.max(0, this.#until - performance.now()))
  }

  #renewIn(ms: number): void {
    this.#renewal = setTimeout(() => void this.#renew(), ms)
  }

  async #renew(): Promise<void> {
    const askedAt = performance.now()
    // After a pause both timers are due, and this one may come first: what is over by our own clock is not asked for again.
    if (askedAt >= this.#until) return this.lose('It was not renewed in time')
    const { ttlMs } = this.#parts
    const held = await this.#parts.renew().catch(() => null)
    if (this.#ended) return
    if (held === null) return this.#renewIn(ttlMs / RETRIES)
    if (!held) return this.lose('Redis gave it to somebody else, or forgot it')
    this.#until = safeUntil(askedAt, ttlMs)
    this.#watch()
    this.#renewIn(ttlMs / RENEWALS)
  }

  lose(why: string): void {
    if (this.#ended) return
    this.#stop()
    this.#parts.lost()
    this.#over.abort(new HoldfastError('lock_lost', `The lock of the wallet was lost. ${why}.`))
  }

  /** Given back if it is still ours; if it was lost there is nothing to give back. */
  async release(): Promise<void> {
    if (this.#ended) return
    this.#stop()
    await this.#parts.release()
  }

  #stop(): void {
    this.#ended = true
    clearTimeout(this.#renewal)
    clearTimeout(this.#end)
    this.#stopFollowing()
  }
}
