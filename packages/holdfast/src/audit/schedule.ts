import type { Telemetry } from '../telemetry/index.js'
import type { Auditor } from './auditor.js'
import { type LeaseParts, underLease } from './lease.js'
import { type AuditReport, reportOf } from './report.js'

/** In the background an audit works for a fifth of its time, on one connection to each server. */
const BACKGROUND_SHARE = 0.2
const POLL_MIN_MS = 50
const POLL_MAX_MS = 30_000

export interface ScheduleParts extends LeaseParts {
  readonly auditor: Auditor
  readonly telemetry: Telemetry
  readonly shards: number
  /** How often each shard is audited. */
  readonly everyMs: number
  readonly repair: boolean
  prepare(shards: number, everyMs: number): Promise<void>
  waitedMs(): Promise<number>
  /** Told of each shard that was audited. */
  onReport?(report: AuditReport): void
}

/**
 * Audits in the background. Every process asks now and then whether a shard's time has come, and takes one at a time: so the shards are
 * spread over the processes, and over the time between two audits of each.
 */
export class AuditSchedule {
  readonly #parts: ScheduleParts
  readonly #stop = new AbortController()
  #cancel: (() => void) | undefined
  #working: Promise<void> | undefined
  #prepared = false
  #waitedMs = 0
  #waitedAt = 0
  readonly #takeBack: (() => void) | undefined

  constructor(parts: ScheduleParts) {
    this.#parts = parts
    const { clock, telemetry } = parts
    this.#waitedAt = clock.now()
    this.#takeBack = telemetry.gauge?.(
      'holdfast_audit_waited_seconds',
      () => (this.#waitedMs + clock.now() - this.#waitedAt) / 1_000,
    )
  }

  start(): void {
    if (this.#stop.signal.aborted) return
    const { clock, shards, everyMs } = this.#parts
    const pollMs = Math.min(POLL_MAX_MS, Math.max(POLL_MIN_MS, everyMs / shards / 2))
    this.#cancel = clock.after(
      pollMs * (0.5 + clock.random()),
      () => {
        this.#working = this.#round().finally(() => this.start())
      },
      true,
    )
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    this.#cancel?.()
    this.#takeBack?.()
    await this.#working
  }

  async #round(): Promise<void> {
    const { shards, everyMs, telemetry, clock } = this.#parts
    try {
      if (!this.#prepared) await this.#parts.prepare(shards, everyMs)
      this.#prepared = true
      const audited = await underLease(
        this.#parts,
        { shard: null, everyMs, stop: this.#stop.signal },
        (shard, signal) => this.#audit(shard, signal),
      )
      this.#waitedMs = await this.#parts.waitedMs()
      this.#waitedAt = clock.now()
      if (!audited) return
      telemetry.count?.('holdfast_audits_total', { outcome: 'done' })
      this.#parts.onReport?.(audited)
    } catch (error) {
      if (this.#stop.signal.aborted) return
      telemetry.count?.('holdfast_audits_total', { outcome: 'failed' })
      telemetry.log?.('warn', 'audit_failed', { reason: String(error) })
    }
  }

  async #audit(shard: number, signal: AbortSignal): Promise<AuditReport> {
    const { auditor, clock, repair } = this.#parts
    const from = clock.now()
    const tally = await auditor.audit({ shard, repair, full: false, ends: false, share: BACKGROUND_SHARE, signal })
    return reportOf(new Map([[shard, tally]]), [], clock.now() - from)
  }
}
