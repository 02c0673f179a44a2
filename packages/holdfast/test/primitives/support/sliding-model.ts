/** Sliding windows as one would write them down, with whole numbers of any size. Times are found by trying one ms after the other. */

interface Answer {
  readonly allowed: boolean
  readonly count: number
  readonly left: number
  readonly retryAfterMs: number
  readonly resetAfterMs: number
}

abstract class Model {
  constructor(
    readonly windowMs: number,
    readonly limit: number,
  ) {}

  abstract used(ms: number): number
  abstract take(by: number, ms: number): void
  abstract giveBack(by: number, ms: number): void
  abstract reset(): void

  /** Who only looks, and who is refused, leaves no trace: not even of the time. */
  ask(by: number, ms: number, takes: boolean): Answer {
    const retryAfterMs = this.#msUntil(ms, (used) => used + by <= this.limit)
    if (takes && retryAfterMs === 0) this.take(by, ms)
    return { allowed: retryAfterMs === 0, retryAfterMs, ...this.#state(ms) }
  }

  refund(by: number, ms: number): Omit<Answer, 'allowed' | 'retryAfterMs'> {
    if (this.used(ms) > 0) this.giveBack(by, ms)
    return this.#state(ms)
  }

  #state(ms: number) {
    const count = this.used(ms)
    const resetAfterMs = this.#msUntil(ms, (used) => used === 0)
    return { count, left: Math.max(0, this.limit - count), resetAfterMs }
  }

  #msUntil(ms: number, is: (used: number) => boolean): number {
    let waited = 0
    while (!is(this.used(ms + waited))) waited += 1
    return waited
  }
}

/** A count for each window. A clock that goes back behind the last of them stands still at its beginning. */
export class WeightedModel extends Model {
  /** Whether the window before still counts. */
  protected readonly slides: boolean = true
  #counts = new Map<number, number>()
  #last = 0

  used(ms: number): number {
    const now = Math.max(ms, this.#last * this.windowMs)
    const window = Math.floor(now / this.windowMs)
    const before = this.slides ? (this.#counts.get(window - 1) ?? 0) : 0
    return (this.#counts.get(window) ?? 0) + weight(before, now, this.windowMs)
  }

  take(by: number, ms: number): void {
    this.#last = this.#windowAt(ms)
    this.#counts.set(this.#last, (this.#counts.get(this.#last) ?? 0) + by)
  }

  giveBack(by: number, ms: number): void {
    this.#last = this.#windowAt(ms)
    const count = this.#counts.get(this.#last) ?? 0
    const before = this.#counts.get(this.#last - 1) ?? 0
    this.#counts.set(this.#last, Math.max(0, count - by))
    this.#counts.set(this.#last - 1, Math.max(0, before - Math.max(0, by - count)))
  }

  reset(): void {
    this.#counts = new Map()
    this.#last = 0
  }

  #windowAt = (ms: number): number => Math.max(this.#last, Math.floor(ms / this.windowMs))
}

export class FixedModel extends WeightedModel {
  protected override readonly slides = false
}

/** What a window that is over still counts for at a time in the next one, rounded up. */
export function weight(count: number, now: number, windowMs: number): number {
  const [span, rest] = [BigInt(windowMs), BigInt(windowMs - (now % windowMs))]
  return Number((BigInt(count) * rest + span - 1n) / span)
}

/** Everything that was let through, one by one. A clock that goes back stands still at the newest. */
export class ExactModel extends Model {
  #times: number[] = []

  used(ms: number): number {
    const now = this.#now(ms)
    return this.#times.filter((time) => time > now - this.windowMs).length
  }

  /** What does not count any more is forgotten: it does not come back when the clock, or the newest, does. */
  take(by: number, ms: number): void {
    const now = this.#now(ms)
    const counted = this.#times.filter((time) => time > now - this.windowMs)
    this.#times = [...counted, ...Array.from({ length: by }, () => now)]
  }

  giveBack(by: number, ms: number): void {
    this.#times.splice(this.#times.length - Math.min(by, this.used(ms)))
  }

  reset(): void {
    this.#times = []
  }

  #now = (ms: number): number => Math.max(ms, this.#times.at(-1) ?? ms)
}
