/** A bucket as one would write it down: tokens in `refillMs`-ths, of which each ms brings `refill`, in whole numbers of any size. */
export class BucketModel {
  readonly #full: bigint
  readonly #token: bigint
  readonly #refill: bigint
  #state: { readonly level: bigint; readonly since: number | null }

  constructor(capacity: number, refill: number, refillMs: number) {
    this.#token = BigInt(refillMs)
    this.#refill = BigInt(refill)
    this.#full = BigInt(capacity) * this.#token
    this.#state = { level: this.#full, since: null }
  }

  /** Who only looks, and who is refused, leaves no trace: not even of the time. */
  ask(cost: number, ms: number, takes: boolean) {
    const { level, since } = this.#at(ms)
    const wanted = BigInt(cost) * this.#token
    const allowed = level >= wanted
    const after = allowed && takes ? level - wanted : level
    if (after !== level) this.#state = { level: after, since }
    return { allowed, retryAfterMs: this.#msFor(wanted - level, since, ms), ...this.#tell(after, since, ms) }
  }

  refund(cost: number, ms: number) {
    const { level, since } = this.#at(ms)
    const after = least(this.#full, level + BigInt(cost) * this.#token)
    if (level !== this.#full) this.#state = { level: after, since }
    return this.#tell(after, since, ms)
  }

  reset(): void {
    this.#state = { level: this.#full, since: null }
  }

  /** A clock that is behind stands still. */
  #at(ms: number): { level: bigint; since: number } {
    const since = Math.max(ms, this.#state.since ?? ms)
    const passed = BigInt(since - (this.#state.since ?? since))
    return { level: least(this.#full, this.#state.level + passed * this.#refill), since }
  }

  #tell(level: bigint, since: number, ms: number) {
    return { left: Number(level / this.#token), resetAfterMs: this.#msFor(this.#full - level, since, ms) }
  }

  #msFor(parts: bigint, since: number, ms: number): number {
    return parts <= 0n ? 0 : since - ms + Number((parts + this.#refill - 1n) / this.#refill)
  }
}

const least = (a: bigint, b: bigint): bigint => [a, b].sort((x, y) => Number(x - y))[0] as bigint
