import { HoldfastError } from '../../errors/index.js'

/** Renewed so often within its time; a renewal that failed is tried again sooner than the next one is due. */
const RENEWALS = 3
const RETRIES = 12
/** By so much of its time a lease ends earlier here than where it is kept: who works under it hears of its end before others can have it. */
const MARGIN = 0.05

/** Renews a lease until it is stopped, and tells when it is lost. */
export class Renewal {
  readonly #leaseMs: number
  readonly #renew: () => Promise<boolean>
  readonly #lost = new AbortController()
  #until: number
  #next: NodeJS.Timeout | undefined
  #end: NodeJS.Timeout | undefined
  #stopped = false

  /** `askedAt`: when the lease was asked for, by `performance.now()`. `renew` is false when somebody else has it. */
  constructor(leaseMs: number, askedAt: number, renew: () => Promise<boolean>) {
    this.#leaseMs = leaseMs
    this.#renew = renew
    this.#until = askedAt + leaseMs * (1 - MARGIN)
    this.#watch()
    this.#renewIn(leaseMs / RENEWALS)
  }

  /** Fires when it is lost: renewals did not come through in time, or somebody else has it. */
  get signal(): AbortSignal {
    return this.#lost.signal
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#next)
    clearTimeout(this.#end)
  }

  #watch(): void {
    clearTimeout(this.#end)
    this.#end = setTimeout(() => this.#lose(), Math.max(0, this.#until - performance.now()))
  }

  #renewIn(ms: number): void {
    this.#next = setTimeout(() => void this.#try(), ms)
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
    this.#lost.abort(new HoldfastError('claim_lost'))
  }
}
