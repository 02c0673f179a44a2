export interface ShardedTotal {
  /** A bigint: shards together may well pass 2^53. */
  readonly count: bigint
  /** All that was counted before is in it, and of what came since perhaps a part. */
  readonly asOf: Date
}

interface Held {
  readonly startedMs: number
  readonly total: Promise<ShardedTotal>
}

const HELD_MAX = 1_000

/** Sums that were read a moment ago, or are being read: for those to whom a moment does not matter. */
export class Totals {
  readonly #now: () => number
  readonly #held = new Map<string, Held>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** One whose reading began at most `maxAgeMs` ago: its age counts from then, since what came later may be missing in it. */
  get(name: string, maxAgeMs: number, read: () => Promise<ShardedTotal>): Promise<ShardedTotal> {
    const held = this.#held.get(name)
    const nowMs = this.#now()
    const ageMs = held === undefined ? Number.POSITIVE_INFINITY : nowMs - held.startedMs
    // A clock that was put back would make it look young for ever.
    if (held !== undefined && ageMs >= 0 && ageMs <= maxAgeMs) return held.total
    const mine: Held = { startedMs: nowMs, total: read() }
    this.#held.delete(name)
    this.#held.set(name, mine)
    // Who asks next does not get the failure of somebody else.
    mine.total.catch(() => {
      if (this.#held.get(name) === mine) this.#held.delete(name)
    })
    const [oldest] = this.#held.keys()
    if (this.#held.size > HELD_MAX && oldest !== undefined) this.#held.delete(oldest)
    return mine.total
  }

  clear(): void {
    this.#held.clear()
  }
}
