import { sleep } from '../engine/index.js'
import { type LeaseParts, underLease } from './lease.js'
import { type AuditReport, reportOf, type Tally } from './report.js'
import type { ScheduleParts } from './schedule.js'

const BUSY_POLL_MS = 200

export interface AuditProgress {
  /** The shard that is being audited, how many are done, and of how many. */
  readonly shard: number
  readonly done: number
  readonly of: number
  /** Wallets that were audited so far, and what was found. */
  readonly wallets: number
  readonly found: number
}

export interface Demand {
  readonly shards: readonly number[]
  readonly repair: boolean
  readonly full: boolean
  readonly share: number
  /** For how long shards are waited for that another process is auditing. */
  readonly busyMaxMs: number
  readonly signal: AbortSignal
  onProgress?(progress: AuditProgress): void
}

/** Audits the given shards now, one after the other. Those that another process is at come last, and are waited for for a while. */
export async function auditOnDemand(
  parts: LeaseParts & Pick<ScheduleParts, 'auditor' | 'telemetry'>,
  demand: Demand,
): Promise<AuditReport> {
  const { clock } = parts
  const from = clock.now()
  const tallies = new Map<number, Tally>()
  let open = demand.shards
  let busyUntil = Number.POSITIVE_INFINITY
  while (open.length > 0) {
    for (const shard of open) {
      demand.signal.throwIfAborted()
      const tally = await auditOne(parts, demand, shard, [...tallies.values()])
      if (tally) tallies.set(shard, tally)
    }
    open = demand.shards.filter((shard) => !tallies.has(shard))
    busyUntil = Math.min(busyUntil, clock.now() + demand.busyMaxMs)
    if (open.length === 0 || clock.now() >= busyUntil) break
    await sleep(clock, BUSY_POLL_MS)
  }
  return reportOf(tallies, open, clock.now() - from)
}

/** Null: somebody else is at it. */
async function auditOne(
  parts: LeaseParts & Pick<ScheduleParts, 'auditor' | 'telemetry'>,
  { shards, repair, full, share, signal: stop, onProgress }: Demand,
  shard: number,
  before: readonly Tally[],
): Promise<Tally | null> {
  const sum = (read: (tally: Tally) => number): number => before.reduce((total, tally) => total + read(tally), 0)
  const done = { shard, done: before.length, of: shards.length }
  const earlier = { wallets: sum(({ wallets }) => wallets), found: sum(({ found }) => found) }
  const tally = await underLease(parts, { shard, everyMs: 0, stop }, (_, signal) =>
    parts.auditor.audit({
      shard,
      repair,
      full,
      ends: true,
      share,
      signal,
      onProgress: ({ wallets, found }) =>
        onProgress?.({ ...done, wallets: earlier.wallets + wallets, found: earlier.found + found }),
    }),
  )
  if (tally) parts.telemetry.count?.('holdfast_audits_total', { outcome: 'done' })
  return tally
}
