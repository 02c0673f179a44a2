/**
 * Latencies in buckets that are 1 % wide each, so that those of several processes add up and a long run takes no more room than
 * a short one.
 */
const GROWTH = Math.log(1.01)
/** 1 µs … 100 s. */
const BUCKETS = Math.ceil(Math.log(1e8) / GROWTH)

export class Latencies {
  readonly counts: number[]

  constructor(counts: readonly number[] = new Array(BUCKETS).fill(0)) {
    this.counts = [...counts]
  }

  record(ms: number): void {
    const bucket = Math.floor(Math.log(Math.max(1, ms * 1_000)) / GROWTH)
    const index = Math.min(bucket, BUCKETS - 1)
    this.counts[index] = (this.counts[index] as number) + 1
  }

  add({ counts }: Latencies): void {
    for (let i = 0; i < counts.length; i += 1) this.counts[i] = (this.counts[i] as number) + (counts[i] as number)
  }

  /** In ms, the middle of the bucket in which that share is reached; NaN of nothing. */
  percentile(percent: number): number {
    const wanted = (this.counts.reduce((sum, count) => sum + count, 0) * percent) / 100
    if (wanted === 0) return Number.NaN
    let seen = 0
    for (const [index, count] of this.counts.entries()) {
      seen += count
      if (count > 0 && seen >= wanted) return Math.exp((index + 0.5) * GROWTH) / 1_000
    }
    return Number.NaN
  }
}
