import type { AuditedRow, AuditedWallet, Remembered, Verified } from '../journal/index.js'
import type { Difference } from './causes.js'
import { boundsOf, compareHolds, compareRow } from './laws.js'
import { Reading, readAll } from './reading.js'
import type { Run } from './run.js'

/** A wallet after its journal was read: what is wrong with it. */
interface Judged {
  readonly reading: Reading
  readonly differences: readonly Difference[]
}

/** The part of an audit that is about Postgres alone: rows, journals, checkpoints, and holds that have run out. */
export class JournalAudit {
  readonly #run: Run
  #clock = 0

  constructor(run: Run) {
    this.#run = run
  }

  /** Audits the wallets behind `after`; returns the last of them, or null when there are no more. */
  async auditPage(after: string): Promise<string | null> {
    const { parts, limits, work, tally } = this.#run
    const now = parts.clock.now()
    const fullBefore = work.full
      ? Number.MAX_SAFE_INTEGER
      : this.#run.fullEntriesLeft > 0
        ? Math.floor(now - limits.fullEveryMs)
        : -1
    const page = await parts.audits.page(work.shard, after, limits.pageMax, {
      overdueBefore: Math.floor(now - limits.overdueAfterMs),
      fullBefore,
    })
    // Of two clocks the one that is behind: by the other nothing may have run out yet.
    this.#clock = Math.min(now, page.clock)
    tally.wallets += page.wallets
    for (const { tenant, currency, money } of page.same) tally.book(tenant, currency, money, money)
    const readings = page.others.map((wallet) => new Reading(wallet, wallet.fullAt <= fullBefore))
    await this.#read(readings)
    const sound: Remembered[] = []
    for (const reading of readings) {
      const verified = await this.#settle(reading)
      if (verified) sound.push(verified)
    }
    await parts.audits.remember(work.shard, sound)
    return page.last
  }

  async #read(readings: readonly Reading[]): Promise<void> {
    const { parts, limits, work, tally } = this.#run
    await readAll(parts.audits, readings, limits, work.signal)
    for (const { entries, full, wallet } of readings) {
      tally.entries += entries
      if (full && wallet.verified) this.#run.fullEntriesLeft -= entries
    }
  }

  /** Says and does what is to be said and done of one wallet. Returns what may be taken for verified from now on. */
  async #settle(reading: Reading): Promise<Remembered | null> {
    let judged = await this.#judge(reading)
    if (judged.differences.length > 0) judged = await this.#confirm(judged)
    const { wallet, state, moved, full } = judged.reading
    const { row } = wallet
    const { differences } = judged
    const sound = { ref: wallet.ref, verified: state, full }
    if (differences.length === 0) {
      this.#book(wallet, row, moved)
      return row ? sound : null
    }
    const late = differences.every(({ cause }) => cause === 'hold_overdue')
    if (!this.#run.mayRepair(differences)) {
      if (!late) this.#run.tainted.add(wallet.ref)
      this.#book(wallet, row, moved)
      await this.#run.report(wallet, differences, 'reported')
      return late ? sound : null
    }
    const repaired = await this.#repair(judged)
    if (!repaired && !late) this.#run.tainted.add(wallet.ref)
    this.#book(wallet, repaired ? state : row, moved)
    await this.#run.report(wallet, differences, repaired ? 'repaired' : 'failed')
    return repaired || late ? sound : null
  }

  #book(
    { tenant, currency }: AuditedWallet,
    has: Pick<AuditedRow, 'available' | 'reserved'> | null,
    moved: bigint,
  ): void {
    if (has) this.#run.tally.book(tenant, currency, BigInt(has.available) + BigInt(has.reserved), moved)
  }

  async #judge(reading: Reading): Promise<Judged> {
    const { wallet, state, breach } = reading
    const { row, lastSeq, verified } = wallet
    const judged = (...differences: Difference[]): Judged => ({ reading, differences })
    if (!row) {
      return judged({
        cause: 'row_missing',
        field: 'seq',
        expected: Math.max(lastSeq, verified?.seq ?? 0),
        found: null,
      })
    }
    if (breach) return judged(breach)
    const end = Math.max(row.seq, verified?.seq ?? 0)
    if (lastSeq < end) return judged({ cause: 'journal_short', field: 'seq', expected: end, found: lastSeq })
    const differences = compareRow(state, row)
    if (differences.length > 0) return judged(...differences)
    return judged(...(await this.#compareLoadable(wallet, state)), ...this.#overdue(state))
  }

  /** Open holds as they would be loaded, by a checkpoint and the bound of the row, against those that the whole journal leads to. */
  async #compareLoadable({ ref }: AuditedWallet, state: Verified): Promise<Difference[]> {
    if (state.holds.size === 0) return []
    const [loadable] = await this.#run.parts.audits.states([ref])
    // Used meanwhile: then it is another audit's turn.
    if (loadable?.state.head !== state.head) return []
    const causes = { missing: 'holds_differ', unknown: 'holds_differ', differs: 'holds_differ' } as const
    return compareHolds(state.holds, loadable.state.holds, causes)
  }

  #overdue({ holds }: Verified): Difference[] {
    const before = this.#clock - this.#run.limits.overdueAfterMs
    return [...holds]
      .filter(([, { expiresAt }]) => expiresAt <= before)
      .sort(([, a], [, b]) => a.expiresAt - b.expiresAt)
      .map(([hold, { expiresAt }]) => {
        return { cause: 'hold_overdue', hold, field: 'expiresAt', expected: expiresAt, found: this.#clock }
      })
  }

  /** Read again from the beginning, beside a row of that moment: what was remembered may be what is wrong. */
  async #confirm(first: Judged): Promise<Judged> {
    const { limits } = this.#run
    const late = first.differences.every(({ cause }) => cause === 'hold_overdue')
    await this.#run.pause(late ? limits.confirmLateAfterMs : limits.confirmAfterMs)
    return this.#again(first.reading.wallet)
  }

  async #again({ ref }: AuditedWallet): Promise<Judged> {
    const { parts, work } = this.#run
    const bounds = { overdueBefore: Number.MAX_SAFE_INTEGER, fullBefore: Number.MAX_SAFE_INTEGER }
    const page = await parts.audits.page(work.shard, before(ref), 1, bounds)
    const wallet = page.others.find((one) => one.ref === ref)
    if (!wallet) throw new Error('A wallet that was noted for the auditor is not noted any more')
    this.#clock = Math.min(parts.clock.now(), page.clock)
    const reading = new Reading(wallet, true)
    await this.#read([reading])
    return this.#judge(reading)
  }

  /** True: it is as its journal says now. */
  async #repair({ reading: { wallet, state }, differences }: Judged): Promise<boolean> {
    const { audits, placeOf, touch } = this.#run.parts
    const { ref, tenant } = wallet
    const causes = new Set(differences.map(({ cause }) => cause))
    if (causes.has('row_differs')) {
      const mended = await audits.mendRow(ref, wallet.row as AuditedRow, { ...state, ...boundsOf(state) })
      if (!mended) return false
    }
    if (causes.has('holds_differ')) await audits.dropCheckpoint(ref)
    // It may take several steps: one lets 64 expire.
    for (let left = differences.length; causes.has('hold_overdue') && left > 0; left -= 64) {
      await touch(placeOf(tenant, ref)).catch(() => {})
    }
    return (await this.#again(wallet)).differences.length === 0
  }
}

/** The ref before this one, so that a page behind it begins with it. */
function before(ref: string): string {
  return (BigInt(`0x${ref}`) - 1n).toString(16).padStart(32, '0')
}
