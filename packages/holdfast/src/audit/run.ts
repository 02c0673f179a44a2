import type { Clock } from '../engine/index.js'
import type { Difference, Finding } from './causes.js'
import type { AuditLimits, AuditParts } from './context.js'
import { isDecided, type Tally } from './report.js'

export interface ShardAudit {
  readonly shard: number
  readonly repair: boolean
  /** Reads every journal from the beginning. */
  readonly full: boolean
  /** Looks whether journals go on behind their rows, also where nothing has changed: that nobody appends so, and it costs as much again. */
  readonly ends: boolean
  /** The part of the time that it works; for the rest it leaves Redis and Postgres to others. 0 to 1. */
  readonly share: number
  readonly signal: AbortSignal
  onProgress?(tally: Tally): void
}

/** One audit of one shard: what its two parts share. */
export class Run {
  readonly parts: AuditParts
  readonly limits: AuditLimits
  readonly work: ShardAudit
  readonly tally: Tally
  /** Wallets with something wrong in Postgres, that was not put right: what Redis has of them can't be measured by it. */
  readonly tainted = new Set<string>()
  /** Wallets whose journals were read: used since the last time, or due for it. */
  readonly used: { readonly tenant: string; readonly ref: string }[] = []
  /** Entries that may still be read only because their time has come again. */
  fullEntriesLeft: number

  constructor(parts: AuditParts, limits: AuditLimits, work: ShardAudit, tally: Tally) {
    this.parts = parts
    this.limits = limits
    this.work = work
    this.tally = tally
    this.fullEntriesLeft = limits.fullEntriesMax
  }

  /** Works, and rests for as long as its share of the time asks for: where others are busy it takes longer, and rests longer too. */
  async paced<T>(step: () => Promise<T>): Promise<T> {
    const { clock } = this.parts
    const { share, signal } = this.work
    signal.throwIfAborted()
    const from = clock.now()
    const result = await step()
    this.work.onProgress?.(this.tally)
    if (share < 1) await this.pause((clock.now() - from) * (1 / share - 1))
    return result
  }

  async pause(ms: number): Promise<void> {
    await waitFor(this.parts.clock, ms, this.work.signal)
    this.work.signal.throwIfAborted()
  }

  mayRepair(differences: readonly Difference[]): boolean {
    return this.work.repair && differences.every(isDecided)
  }

  /** A repair that fails, for whatever reason, has failed: that is told, and the audit goes on. */
  async attempted(repair: () => Promise<boolean>): Promise<boolean> {
    try {
      return await repair()
    } catch (error) {
      this.work.signal.throwIfAborted()
      this.parts.telemetry.log?.('warn', 'audit_repair_failed', { shard: this.work.shard, reason: String(error) })
      return false
    }
  }

  /** Tells what was found of a wallet, without the names of its holds: those are callers' own. */
  async report(
    { tenant, ref }: { tenant: string; ref: string },
    differences: readonly Difference[],
    action: Finding['action'],
  ): Promise<void> {
    const keys = [...new Set(differences.flatMap(({ hold }) => (hold === undefined ? [] : [hold])))]
    const made = keys.length > 0 ? await this.parts.journal.find(keys.map((key) => ({ ref, key }))) : []
    for (const { hold, ...difference } of differences) {
      const seq = hold === undefined ? difference.seq : made[keys.indexOf(hold)]?.seq
      this.file({ ...difference, ...(seq !== undefined && { seq }), shard: this.work.shard, tenant, ref, action })
    }
  }

  file(finding: Finding): void {
    const { telemetry } = this.parts
    this.tally.add(finding)
    telemetry.count?.('holdfast_audit_findings_total', { cause: finding.cause, action: finding.action })
    telemetry.log?.(finding.action === 'repaired' ? 'warn' : 'error', 'audit_finding', { ...finding })
  }
}

/** Until the time is over, or nobody wants to wait any more. */
function waitFor(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const end = (): void => {
      cancel()
      signal.removeEventListener('abort', end)
      resolve()
    }
    const cancel = clock.after(ms, end)
    signal.addEventListener('abort', end, { once: true })
  })
}
