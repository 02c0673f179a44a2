import { type AuditLimits, type AuditParts, DEFAULT_LIMITS } from './context.js'
import { HotAudit } from './hot-audit.js'
import { JournalAudit } from './journal-audit.js'
import { Tally } from './report.js'
import { Run, type ShardAudit } from './run.js'

/** Before the first ref. */
const NOBODY = '0'.repeat(32)

/**
 * Audits one shard beside whatever else goes on in it:
 *
 *     1  every wallet: its row and what was verified of it, compared inside Postgres, a page at a time
 *     2  those that are not as they were: their journals are read from where they were verified, and must obey the laws
 *     3  every wallet in Redis: compared with what its journal leads to
 *
 * Whatever looks wrong is looked at again before it is called so, and before Redis is put right by a journal that is read from its
 * beginning: it may be what is wrong. A repair is the engine's own loading under a raised epoch, or a row put back by compare; nothing is ever
 * written into a state that others go by.
 */
export class Auditor {
  readonly #parts: AuditParts
  readonly #limits: AuditLimits

  constructor(parts: AuditParts) {
    this.#parts = parts
    this.#limits = { ...DEFAULT_LIMITS, ...parts.limits }
  }

  async audit(work: ShardAudit): Promise<Tally> {
    const { clock, telemetry } = this.#parts
    const startedAt = clock.now()
    const tally = new Tally()
    const run = new Run(this.#parts, this.#limits, work, tally)
    const journals = new JournalAudit(run)
    try {
      let after: string | null = NOBODY
      while (after !== null) {
        const from: string = after
        after = await run.paced(() => journals.auditPage(from))
      }
      await new HotAudit(run, journals).audit()
      for (const finding of tally.unbalancedBooks(work.shard)) run.file(finding)
    } finally {
      // Whatever kept it from its end: what it found until then stands.
      await this.#keep(tally)
    }
    telemetry.count?.('holdfast_audit_wallets_total', { where: 'journal' }, tally.wallets)
    telemetry.count?.('holdfast_audit_wallets_total', { where: 'hot' }, tally.hot)
    telemetry.observe?.('holdfast_audit_duration_seconds', (clock.now() - startedAt) / 1_000)
    return tally
  }

  /** They were told already: where they can't be kept they are found again. */
  async #keep({ findings }: Tally): Promise<void> {
    if (findings.length === 0) return
    const { audits, telemetry } = this.#parts
    await audits.keep(findings).catch((error: Error) => {
      telemetry.log?.('warn', 'findings_not_kept', { findings: findings.length, reason: error.message })
    })
  }
}
