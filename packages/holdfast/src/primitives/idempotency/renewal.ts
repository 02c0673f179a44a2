import { HoldfastError } from '../../errors/index.js'
import { TIMER_MAX_MS } from '../keys.js'

/** Renewed so often within its time; a renewal that failed is tried again sooner than the next one is due. */
const RENEWALS = 3
const RETRIES = 12
/** By so much of its time a lease ends earlier here than where it is kept: who works under it hears of its end before others can have it. */
const MARGIN = 0.05

/** Renews a lease until it is stopped, and tells when it is lost. */
export class Renewal {
  readonly #leaseMs: number
  readonly #renew: () => Promise<boolean>
  readonly #over = new AbortController()
  readonly #unfollow: () => void
  #until: number
  #next: NodeJS.Timeout | undefined
  #end: NodeJS.Timeout | undefined
  #stopped = false

  /**
   * `askedAt`: when the lease was asked for, by `performance.now()`. `renew` is false when somebody else has it. `given` is the caller's own:
   * when it fires the work is told, and the lease is renewed until it has stopped.
   */
  constructor(leaseMs: number, askedAt: number, renew: () => Promise<boolean>, given: AbortSignal | undefined) {
    this.#leaseMs = leaseMs
    this.#renew = renew
    const abort = () => this.#over.abort(given?.reason)
    given?.addEventListener('abort', abort, { once: true })
    this.#unfollow = () => given?.removeEventListener('abort', abort)
    this.#until = askedAt + leaseMs * (1 - MARGIN)
    this.#watch()
    this.#renewIn(leaseMs / RENEWALS)
  }

  /** Fires when the lease is lost (renewals did not come through in time, or somebody else has it), and with the caller's own. */
  get signal(): AbortSignal {
    return this.#over.signal
  }

  /** The work is over. */
  end(): void {
    this.stop()
    this.#unfollow()
  }

  /** Renews no more, and does not miss it. */
  stop(): void {
    this.#stopped = true
    clearTimeout(this.#next)
    clearTimeout(this.#end)
  }

  #watch(): void {
    clearTimeout(this.#end)
    const leftMs = Math.max(0, this.#until - performance.now())
    const isLong = leftMs > TIMER_MAX_MS
    this.#end = setTimeout(() => (isLong ? this.#watch() : this.#lose()), isLong ? TIMER_MAX_MS : leftMs)
  }

  #renewIn(ms: number): void {
    this.#next = setTimeout(() => void this.#try(), Math.min(ms, TIMER_MAX_MS))
  }

  async #try(): Promise<void> {
    const askedAt = performance.now()
    // After a pause both timers are due, and this one may come first.
    if (askedAt >= this.#until) return this.#lose()
    const isOurs = await this.#renew().catch(() => null)
    if (this.#stopped) return
    if (isOurs === null) return this.#renewIn(this.#leaseMs / RETRIES)
    if (!isOurs) return this.#lose()
    this.#until = askedAt + this.#leaseMs * (1 - MARGIN)
    this.#watch()
    this.#renewIn(this.#leaseMs / RENEWALS)
  }

  #lose(): void {
    if (this.#stopped) return
    this.stop()
    this.#over.abort(new HoldfastError('claim_lost'))
  }
}
