import { HoldfastError } from 'holdfast'

export interface Limits {
  /** Requests a second; twice as many may come at once. */
  readonly rateMax: number
  readonly concurrentMax: number
}

interface Bucket {
  tokens: number
  at: number
  running: number
}

const BUCKETS_MAX = 10_000
const BURST_SECONDS = 2

/** A token bucket and a count of running requests for each name. Of this process alone: two servers let through twice as much. */
export class Limiter {
  readonly #buckets = new Map<string, Bucket>()
  readonly #now: () => number

  constructor(now = () => performance.now()) {
    this.#now = now
  }

  /** Lets a request in, until `leave` is called with the same name, or throws `rate_limited`. */
  enter(name: string, limits: Limits): void {
    const bucket = this.#bucketOf(name, limits)
    if (bucket.running >= limits.concurrentMax) {
      const { concurrentMax } = limits
      throw new HoldfastError('rate_limited', `Expected at most ${concurrentMax} requests at a time, got one more`, {
        limit: concurrentMax,
        retryAfter: 1,
      })
    }
    this.#take(bucket, limits, 1)
    bucket.running += 1
  }

  /** For a request that stands for several. */
  spend(name: string, limits: Limits, count: number): void {
    this.#take(this.#bucketOf(name, limits), limits, count)
  }

  leave(name: string): void {
    const bucket = this.#buckets.get(name)
    if (bucket) bucket.running -= 1
  }

  #take(bucket: Bucket, { rateMax }: Limits, count: number): void {
    // What is asked for at once may be more than ever fits in: it is let through by a full bucket, less the one that the request itself has
    // taken, which then has debts.
    const needed = Math.min(count, rateMax * BURST_SECONDS - 1)
    if (bucket.tokens < needed) {
      const retryAfter = Math.ceil((needed - bucket.tokens) / rateMax)
      throw new HoldfastError('rate_limited', `Expected at most ${rateMax} operations a second, got more`, {
        limit: rateMax,
        retryAfter,
      })
    }
    bucket.tokens -= count
  }

  #bucketOf(name: string, { rateMax }: Limits): Bucket {
    const now = this.#now()
    let bucket = this.#buckets.get(name)
    if (!bucket) {
      if (this.#buckets.size >= BUCKETS_MAX) this.#forgetIdle(now)
      bucket = { tokens: rateMax * BURST_SECONDS, at: now, running: 0 }
      this.#buckets.set(name, bucket)
    }
    bucket.tokens = Math.min(rateMax * BURST_SECONDS, bucket.tokens + ((now - bucket.at) * rateMax) / 1_000)
    bucket.at = now
    return bucket
  }

  /** Who has not come for so long has a full bucket again, or one that is better forgotten than kept. */
  #forgetIdle(now: number): void {
    for (const [name, { running, at }] of this.#buckets) {
      if (running === 0 && now - at > BURST_SECONDS * 1_000) this.#buckets.delete(name)
    }
  }
}
