import type { AuditedRow, AuditedWallet, LoadableState, Remembered, Verified } from '../journal/index.js'
import { DAMAGED_CHECKPOINT, type Difference } from './causes.js'
import { boundsOf, compareHolds, compareRow } from './laws.js'
import { Reading, readAll } from './reading.js'
import type { Run } from './run.js'

/** At a suspect: the first may have begun where it was verified before. */
const LOOKS = 4

/** A wallet after its journal was read: what is wrong with it. */
interface Judged {
  readonly reading: Reading
  readonly differences: readonly Difference[]
}

type Money = Pick<AuditedRow, 'available' | 'reserved'>

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
    const now = parts.clock.timeOfDay()
    const fullBefore = work.full
      ? Number.MAX_SAFE_INTEGER
      : this.#run.fullEntriesLeft > 0
        ? Math.floor(now - limits.fullEveryMs)
        : -1
    const page = await parts.audits.page(work.shard, after, limits.pageMax, {
      overdueBefore: Math.floor(now - limits.overdueAfterMs),
      fullBefore,
      ends: work.ends,
    })
    // Of two clocks the one that is behind: by the other nothing may have run out yet.
    this.#clock = Math.min(now, page.clock)
    tally.wallets += page.wallets
    for (const { tenant, ref, row } of page.others) if (row) this.#run.used.push({ tenant, ref })
    for (const { tenant, currency, money } of page.same) tally.book(tenant, currency, money, money)
    const readings = page.others.map((wallet) => new Reading(wallet, wallet.fullAt <= fullBefore))
    const sound: Remembered[] = []
    for (const judged of await this.#confirm(await this.#judgeAll(readings))) {
      const { wallet, moved } = judged.reading
      const verified = await this.#settle(judged, (has) => this.#book(wallet, has, moved))
      if (verified) sound.push(verified)
    }
    await parts.audits.remember(work.shard, sound)
    return page.last
  }

  async #judgeAll(readings: readonly Reading[]): Promise<Judged[]> {
    await this.#read(readings)
    const holding = readings.filter(({ breach, state }) => !breach && state.holds.size > 0)
    const states =
      holding.length > 0 ? await this.#run.parts.audits.states(holding.map(({ wallet }) => wallet.ref)) : []
    const loadable = new Map(states.map((state) => [state.ref, state]))
    return readings.map((reading) => this.#judge(reading, loadable.get(reading.wallet.ref)))
  }

  async #read(readings: readonly Reading[]): Promise<void> {
    const { parts, limits, work, tally } = this.#run
    await readAll(parts.audits, readings, limits, work.signal)
    for (const { entries, full, wallet } of readings) {
      tally.entries += entries
      if (full && wallet.verified) this.#run.fullEntriesLeft -= entries
    }
  }

  /**
   * Says and does what is to be said and done of one wallet; `book` gets what it has then. Returns what may be taken for verified from now
   * on.
   */
  async #settle(judged: Judged, book: (has: Money | null) => void): Promise<Remembered | null> {
    const { wallet, state, full } = judged.reading
    const { row } = wallet
    const { differences } = judged
    const sound = { ref: wallet.ref, verified: state, full }
    if (differences.length === 0) {
      book(row)
      return row ? sound : null
    }
    const late = differences.every(isLate)
    if (!this.#run.mayRepair(differences)) {
      if (!late) this.#run.tainted.add(wallet.ref)
      book(row)
      await this.#run.report(wallet, differences, 'reported')
      return late ? sound : null
    }
    const repaired = await this.#run.attempted(() => this.#repair(judged))
    if (!repaired && !late) this.#run.tainted.add(wallet.ref)
    book(repaired ? state : row)
    await this.#run.report(wallet, differences, repaired ? 'repaired' : 'failed')
    return repaired || late ? sound : null
  }

  #book({ tenant, currency }: AuditedWallet, has: Money | null, moved: bigint): void {
    if (has) this.#run.tally.book(tenant, currency, BigInt(has.available) + BigInt(has.reserved), moved)
  }

  #judge(reading: Reading, loadable: LoadableState | undefined): Judged {
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
    // Less was read than there was a moment before: Postgres went back in time meanwhile.
    const last = state.seq < row.seq ? state.seq : lastSeq
    if (last < end) return judged({ cause: 'journal_short', field: 'seq', expected: end, found: last })
    const early = this.#early(state)
    if (early) return judged(early)
    const differences = compareRow(state, row)
    if (differences.length > 0) return judged(...differences)
    return judged(...compareLoadable(state, loadable), ...this.#overdue(state))
  }

  /** Time that has not come yet: no clock can have led there, and until it comes no hold of the wallet runs out. */
  #early({ seq, at }: Verified): Difference | null {
    const { limits, parts } = this.#run
    const now = Math.max(this.#clock, parts.clock.timeOfDay())
    if (at <= now + limits.aheadMaxMs) return null
    return { cause: 'journal_order', field: 'at', seq, expected: Math.floor(now), found: at }
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

  /**
   * What looks wrong is read again from the beginning, beside rows of that moment: what was remembered may be what is wrong. Two such looks
   * must agree. A database that is put back while one is under way shows rows of one life and entries of another.
   */
  async #confirm(all: readonly Judged[]): Promise<Judged[]> {
    const settled = all.filter(({ differences }) => differences.length === 0)
    let suspects = all.filter(({ differences }) => differences.length > 0)
    for (let look = 1; look < LOOKS && suspects.length > 0; look += 1) {
      const { confirmAfterMs, confirmLateAfterMs } = this.#run.limits
      const late = suspects.some(({ differences }) => differences.every(isLate))
      await this.#run.pause(late ? confirmLateAfterMs : confirmAfterMs)
      const before = new Map(suspects.map((suspect) => [suspect.reading.wallet.ref, suspect]))
      const again = await this.#again([...before.keys()])
      suspects = []
      for (const judged of again) {
        const { reading, differences } = judged
        const agreed = agreement(before.get(reading.wallet.ref), differences)
        if (differences.length === 0) settled.push(judged)
        else if (agreed.length > 0) settled.push({ reading, differences: agreed })
        else suspects.push(judged)
      }
    }
    this.#run.tally.unsettled += suspects.length
    return settled
  }

  /**
   * Reads the journal of one wallet from its beginning, and does what is to be done about it. True: all that would be loaded is as it says. What Redis
   * has is measured by that, and put back to it: so it has to be known first.
   */
  async verify(ref: string): Promise<boolean> {
    const judged = await this.#confirm(await this.#again([ref]))
    // In the books it stands already.
    for (const one of judged) await this.#settle(one, () => {})
    return !this.#run.tainted.has(ref)
  }

  /** Of wallets in the order of their refs. */
  async #again(refs: readonly string[]): Promise<Judged[]> {
    const { parts, work } = this.#run
    const [first] = refs
    if (first === undefined) return []
    const page = await parts.audits.page(work.shard, before(first), refs.length, {
      overdueBefore: Number.MAX_SAFE_INTEGER,
      fullBefore: Number.MAX_SAFE_INTEGER,
      ends: true,
      only: refs,
    })
    this.#clock = Math.min(parts.clock.timeOfDay(), page.clock)
    return this.#judgeAll(page.others.map((wallet) => new Reading(wallet, true)))
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
      await touch(placeOf(tenant, ref), wallet.row?.epoch).catch(() => {})
    }
    return (await this.#again([ref])).every(({ differences: left }) => left.length === 0)
  }
}

/** Open holds as they would be loaded, by a checkpoint and the bound of the row, against those that the whole journal leads to. */
function compareLoadable(state: Verified, loadable: LoadableState | undefined): Difference[] {
  // Used meanwhile: then it is another audit's turn.
  if (loadable?.state.head !== state.head) return []
  if (loadable.damaged) return [DAMAGED_CHECKPOINT]
  const causes = { missing: 'holds_differ', unknown: 'holds_differ', differs: 'holds_differ' } as const
  return compareHolds(state.holds, loadable.state.holds, causes)
}

/**
 * The same thing wrong with the same number, in two looks at the whole journal. Nothing is appended to a row with a wrong head, so it stays as it
 * is: where each look saw another one, the database was put back in the middle of both.
 */
function agreement(before: Judged | undefined, differences: readonly Difference[]): Difference[] {
  if (!before?.reading.full || wrongHead(before.differences) !== wrongHead(differences)) return []
  return differences.filter(({ cause, field, hold, seq }) =>
    before.differences.some(
      (one) => one.cause === cause && one.field === field && one.hold === hold && one.seq === seq,
    ),
  )
}

const wrongHead = (differences: readonly Difference[]) => differences.find(({ field }) => field === 'head')?.found

/** Only a matter of time, where the others are a matter of what stands there. */
const isLate = ({ cause }: Difference): boolean => cause === 'hold_overdue'

/** The ref before this one, so that a page behind it begins with it. */
function before(ref: string): string {
  return (BigInt(`0x${ref}`) - 1n).toString(16).padStart(32, '0')
}
