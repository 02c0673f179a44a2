/**
 * The journal without Postgres: the same interface, in memory, every call one atomic step. What can be shared with the real one is:
 * how runs are cut and how refusals are judged is the shipped code. The rest restates sql/0002_journal.sql, and the tests in
 * packages/holdfast/test/journal hold both to the same cases.
 *
 *     const journal = new SimJournal({ now: () => postgresClockMs })
 *     const before = journal.snapshot()      // a replica that lags, a backup
 *     journal.restore(before)                // promoted, restored: acknowledged work may be gone
 *     journal.timeline += 1                  // and every epoch of the old server is past
 */
import {
  APPEND_ROUNDS_MAX,
  type Charge,
  type Confirmation,
  cutRuns,
  deadlineOf,
  type Filed,
  type Inspection,
  isStorableEntry,
  type Journal,
  judgeRun,
  limitAfter,
  type OpenRequest,
  type Refusal,
  type Run,
  type Snapshot,
  statusAfter,
  type Verdict,
  type WalletRow,
} from '../packages/holdfast/src/journal/index.js'
import type { Entry } from '../packages/holdfast/src/machine/index.js'
import { asRead, type Checkpoint, chargeOf, type Kept, openHolds } from './journal-folds.js'

const EPOCHS_A_TIMELINE = 1_000_000_000
const APPENDED: Verdict = { type: 'appended' }

/** For a checker: a wallet and all that was ever appended to it. */
export interface SimWallet {
  readonly tenant: string
  readonly genesis: string
  readonly row: WalletRow
  readonly entries: readonly Entry[]
}

/** Everything that the journal held at one moment. Plain data; later appends leave it alone. */
export interface JournalCopy {
  readonly wallets: readonly (SimWallet & { readonly checkpoint: Checkpoint | null })[]
}

export class SimJournal implements Journal {
  /** The server's, not the data's: `restore` leaves it alone. */
  timeline = 1
  readonly #now: () => number
  readonly #wallets = new Map<string, Kept>()

  constructor({ now }: { now(): number }) {
    this.#now = now
  }

  async append(filed: readonly Filed[]): Promise<{ verdicts: Verdict[]; clock: number }> {
    const verdicts: Verdict[] = new Array(filed.length)
    const { runs, copies } = cutRuns(filed)
    let open = runs
    for (let round = 1; open.length > 0; round += 1) {
      const refused = open.filter((run) => !this.#appendRun(run, verdicts))
      open = this.#judge(refused, verdicts, round < APPEND_ROUNDS_MAX)
    }
    for (const [place, of] of copies) verdicts[place] = verdicts[of] as Verdict
    return { verdicts, clock: this.#now() }
  }

  /** False: refused; nothing was changed. */
  #appendRun(run: Run, verdicts: Verdict[]): boolean {
    if (!run.entries.every(isStorableEntry)) {
      for (const place of run.places) verdicts[place] = { type: 'bad' }
      return true
    }
    const wallet = this.#wallets.get(run.ref)
    if (!wallet || !this.#continues(wallet.row, run)) return false
    const keys = new Set<string>()
    for (const { key } of run.entries) {
      if (wallet.seqByKey.has(key) || keys.has(key)) return false
      keys.add(key)
    }
    const last = run.entries.at(-1) as Entry
    for (const entry of run.entries) {
      wallet.entries.push(entry)
      wallet.seqByKey.set(entry.key, entry.seq)
    }
    const { row } = wallet
    row.seq = last.seq
    row.head = last.hash
    row.at = last.at
    row.available = last.available
    row.reserved = last.reserved
    row.creditLimit = limitAfter(run) ?? row.creditLimit
    row.status = statusAfter(run) ?? row.status
    row.due = last.due
    row.since = last.since
    for (const place of run.places) verdicts[place] = APPENDED
    return true
  }

  /** The compare. */
  #continues(row: WalletRow, run: Run): boolean {
    const first = run.entries[0] as Entry
    const deadline = deadlineOf(run)
    return (
      row.epoch === first.epoch &&
      row.seq === first.seq - 1 &&
      row.head === first.prev &&
      row.available === first.available - first.availableDelta &&
      row.reserved === first.reserved - first.reservedDelta &&
      this.#isCurrent(row.epoch) &&
      (deadline === 0 || this.#now() <= deadline)
    )
  }

  /** Verdicts for what was refused; returns what should be tried again. */
  #judge(runs: readonly Run[], verdicts: Verdict[], again: boolean): Run[] {
    const fitting: Run[] = []
    for (const run of runs) {
      const inspections = run.entries.map((entry) => this.#inspect(run.ref, entry))
      const judged = judgeRun(run, inspections, this.#now())
      for (const [index, place] of run.places.entries()) verdicts[place] = judged.verdicts[index] as Verdict
      if (judged.fits && again) fitting.push(judged.fits)
    }
    return fitting
  }

  #inspect(ref: string, { seq, key }: Entry): Inspection {
    const wallet = this.#wallets.get(ref)
    return {
      epoch: wallet?.row.epoch ?? null,
      current: wallet !== undefined && this.#isCurrent(wallet.row.epoch),
      seq: wallet?.row.seq ?? 0,
      head: wallet?.row.head ?? '',
      available: wallet?.row.available ?? 0,
      reserved: wallet?.row.reserved ?? 0,
      hashThere: wallet?.entries[seq - 1]?.hash ?? null,
      keySeq: wallet?.seqByKey.get(key) ?? null,
    }
  }

  async confirm(refusals: readonly Refusal[]): Promise<Confirmation[]> {
    return refusals.map(({ ref, epoch, seq, head, key, hold }) => {
      const wallet = this.#wallets.get(ref)
      if (!wallet) return { stands: false, epoch: 0, seen: false, hold: 'unknown' }
      const held = (seq === 0 ? wallet.genesis : wallet.entries[seq - 1]?.hash) === head
      const made = wallet.entries[(wallet.seqByKey.get(hold) ?? 0) - 1]?.kind === 'hold'
      const expired = wallet.seqByKey.has(`~expire:${hold}`)
      return {
        stands: wallet.row.epoch === epoch && this.#isCurrent(epoch) && held,
        epoch: wallet.row.epoch,
        seen: wallet.seqByKey.has(key),
        hold: expired ? 'expired' : made ? 'closed' : 'unknown',
      }
    })
  }

  async raise(ref: string, epochMin: number, memory: boolean): Promise<Snapshot | null> {
    const wallet = this.#wallets.get(ref)
    if (!wallet) return null
    const { row } = wallet
    row.epoch = Math.max(row.epoch + 1, epochMin, this.#epochFloor() + 1)
    row.owner = 'redis'
    row.memory ||= memory
    return this.#load(wallet)
  }

  async takeOver(ref: string): Promise<Snapshot | 'memory' | null> {
    const wallet = this.#wallets.get(ref)
    if (!wallet) return null
    const { row } = wallet
    if (row.memory) return 'memory'
    if (row.owner !== 'postgres' || !this.#isCurrent(row.epoch)) {
      row.epoch = Math.max(row.epoch + 1, this.#epochFloor() + 1)
      row.owner = 'postgres'
    }
    return this.#load(wallet)
  }

  async find(wanted: readonly { ref: string; key: string }[]): Promise<(Entry | null)[]> {
    return wanted.map(({ ref, key }) => {
      const wallet = this.#wallets.get(ref)
      const entry = wallet?.entries[(wallet.seqByKey.get(key) ?? 0) - 1]
      return entry ? asRead(entry) : null
    })
  }

  async charge(ref: string, seq: number): Promise<Charge | null> {
    const wallet = this.#wallets.get(ref)
    return wallet ? chargeOf(wallet, seq) : null
  }

  async due(until: number, most: number): Promise<{ ref: string; tenant: string }[]> {
    return [...this.#wallets.values()]
      .filter(({ row }) => row.due > 0 && row.due <= until)
      .sort(({ row: a }, { row: b }) => a.due - b.due || (a.ref < b.ref ? -1 : 1))
      .slice(0, most)
      .map(({ row, tenant }) => ({ ref: row.ref, tenant }))
  }

  async relax(ref: string, epoch: number, seq: number, due: number): Promise<void> {
    const row = this.#wallets.get(ref)?.row
    if (row?.epoch === epoch && row.seq === seq) row.due = due
  }

  async checkpoint(ref: string): Promise<void> {
    const wallet = this.#wallets.get(ref)
    if (!wallet || wallet.row.since === 0 || wallet.row.seq <= (wallet.checkpoint?.seq ?? 0)) return
    wallet.checkpoint = { seq: wallet.row.seq, holds: openHolds(wallet) }
  }

  async open({ ref, tenant, id, currency, metadata, creditLimit, head }: OpenRequest): Promise<boolean> {
    if (this.#wallets.has(ref)) return false
    const now = this.#now()
    const row: WalletRow = {
      ref,
      id,
      currency,
      metadata,
      openedAt: now,
      initialLimit: creditLimit,
      epoch: this.#epochFloor() + 1,
      owner: 'postgres',
      memory: false,
      seq: 0,
      head,
      at: now,
      available: 0,
      reserved: 0,
      creditLimit,
      status: 'active',
      due: 0,
      since: 0,
    }
    this.#wallets.set(ref, { tenant, genesis: head, row, entries: [], seqByKey: new Map(), checkpoint: null })
    return true
  }

  async read(refs: readonly string[]): Promise<WalletRow[]> {
    const rows: WalletRow[] = []
    for (const ref of new Set(refs)) {
      const wallet = this.#wallets.get(ref)
      if (wallet) rows.push({ ...wallet.row })
    }
    return rows
  }

  async entries(ref: string, seq: number, most: number): Promise<Entry[]> {
    const from = Math.max(seq - 1, 0)
    return (this.#wallets.get(ref)?.entries.slice(from, from + most) ?? []).map(asRead)
  }

  /** All wallets with all their entries, as they are now, without asking as a process would. */
  wallets(): Iterable<SimWallet> {
    return this.#wallets.values()
  }

  snapshot(): JournalCopy {
    const wallets = [...this.#wallets.values()].map(({ tenant, genesis, row, entries, checkpoint }) => {
      return { tenant, genesis, row: { ...row }, entries: entries.slice(), checkpoint }
    })
    return { wallets }
  }

  restore({ wallets }: JournalCopy): void {
    this.#wallets.clear()
    for (const { tenant, genesis, row, entries, checkpoint } of wallets) {
      const seqByKey = new Map(entries.map(({ key, seq }) => [key, seq]))
      const kept = { tenant, genesis, row: { ...row }, entries: entries.slice(), seqByKey, checkpoint }
      this.#wallets.set(row.ref, kept)
    }
  }

  #epochFloor(): number {
    return this.timeline * EPOCHS_A_TIMELINE
  }

  #isCurrent(epoch: number): boolean {
    return epoch > this.#epochFloor()
  }

  #load(wallet: Kept): Snapshot {
    const { epoch, seq, head, at, available, reserved, creditLimit, status, due, since, memory } = wallet.row
    const core = { epoch, seq, head, at, available, reserved, creditLimit, status, due, since }
    const state = {
      ...core,
      holds: openHolds(wallet),
      base: seq,
      refundedByEntry: new Map<number, number>(),
      closedHolds: new Map<string, { charged: number; refunded: number }>(),
    }
    return { state, memory, clock: this.#now() }
  }
}
