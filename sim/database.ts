/**
 * The tables without Postgres: every method is one statement, or one transaction, and one atomic step. Restates
 * packages/holdfast/sql; the tests in packages/holdfast/test/journal hold both to the same cases.
 *
 *     const database = new SimDatabase({ now: () => postgresClockMs })
 *     const before = database.snapshot()     // a replica that lags, a backup
 *     database.restore(before)               // promoted, restored: acknowledged work may be gone
 *     database.timeline += 1                 // and every epoch of the old server is past
 */
import {
  type Charge,
  type Confirmation,
  type DuePlace,
  type DueWallet,
  deadlineOf,
  type EpochStep,
  type Inspection,
  JournalEnds,
  limitAfter,
  type Open,
  type OpenIntent,
  type OpenRequest,
  type PaymentIntent,
  type Raise,
  type Refusal,
  type Run,
  type Snapshot,
  type Standing,
  statusAfter,
  type TakenOver,
  type TakeOver,
  type WalletRow,
  type Witness,
} from '../packages/holdfast/src/journal/index.js'
import { type Entry, REMEMBERED, type Stock } from '../packages/holdfast/src/machine/index.js'
import { PostgresError } from '../packages/holdfast/src/postgres/index.js'
import { asRead, type Checkpoint, CLOSES_HOLD, chargeOf, type Kept, openHolds, stockOf } from './database-folds.js'
import { paymentTable, transferTable } from './intents.js'

const EPOCHS_A_TIMELINE = 1_000_000_000_000
const EPOCHS_SKIPPED = 10_000_000_000

/** For a checker: a wallet and all that was ever appended to it. */
export interface SimWallet {
  readonly tenant: string
  readonly genesis: string
  readonly row: WalletRow
  readonly entries: readonly Entry[]
}

/** Everything that the journal held at one moment. Plain data; later appends leave it alone. */
export interface DatabaseCopy {
  readonly wallets: readonly (SimWallet & { readonly checkpoint: Checkpoint | null })[]
  readonly intents: readonly OpenIntent[]
  readonly payments: readonly Open<PaymentIntent>[]
  readonly standing: StandingRow
}

/** Of the table `settings`. */
interface StandingRow {
  readonly settled: number
  readonly stopped: { readonly at: number; readonly because: string; readonly epoch: number } | null
}

export class SimDatabase {
  /** The server's, not the data's: `restore` leaves it alone. */
  timeline = 1
  /** Who wants to know of every entry that is accepted. */
  onEntry: ((entry: Entry) => void) | undefined
  readonly intents = transferTable((ref) => this.#currencyOf(ref))
  readonly payments = paymentTable((ref) => this.#currencyOf(ref))
  readonly #now: () => number
  readonly #step: EpochStep
  readonly #wallets = new Map<string, Kept>()
  #standing: StandingRow = { settled: 0, stopped: null }

  /** `step`: how far an epoch is raised. */
  constructor({ now, step = () => 1 }: { now(): number; step?: EpochStep }) {
    this.#now = now
    this.#step = step
  }

  get clock(): number {
    return this.#now()
  }

  /** For each run the seq behind which its entries were appended, Infinity where all of it was there; null: refused, and nothing changed. */
  append(runs: readonly Run[]): (number | null)[] {
    this.#mayDecide()
    return runs.map((run) => this.#appendRun(run))
  }

  /** An append of these would write nothing. */
  hasAll(runs: readonly Run[]): boolean {
    return runs.every((run) => this.#isPresent(run))
  }

  #isPresent({ ref, entries }: Run): boolean {
    const last = entries.at(-1) as Entry
    return this.#wallets.get(ref)?.entries[last.seq - 1]?.hash === last.hash
  }

  #appendRun(run: Run): number | null {
    const wallet = this.#wallets.get(run.ref)
    if (!wallet) return null
    const last = run.entries.at(-1) as Entry
    const present = this.#isPresent(run) ? Number.POSITIVE_INFINITY : null
    if (!this.#continues(wallet.row, run)) return present
    const after = wallet.row.seq
    const fresh = run.entries.filter(({ seq }) => seq > after)
    const keys = new Set<string>()
    for (const { key } of fresh) {
      if (wallet.seqByKey.has(key) || keys.has(key)) return null
      keys.add(key)
    }
    for (const entry of fresh) {
      wallet.entries.push(entry)
      wallet.seqByKey.set(entry.key, entry.seq)
      this.onEntry?.(entry)
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
    return after
  }

  /** The compare: with what the run rests on, or with what another process has appended of it. */
  #continues(row: WalletRow, run: Run): boolean {
    const first = run.entries[0] as Entry
    const begun = run.entries[row.seq - first.seq]
    if (begun && begun !== run.entries.at(-1)) {
      return (
        row.head === begun.hash &&
        row.available === begun.available &&
        row.reserved === begun.reserved &&
        this.#mayAppend(row, run)
      )
    }
    return (
      row.seq === first.seq - 1 &&
      row.head === first.prev &&
      row.available === first.available - first.availableDelta &&
      row.reserved === first.reserved - first.reservedDelta &&
      this.#mayAppend(row, run)
    )
  }

  #mayAppend(row: WalletRow, run: Run): boolean {
    const deadline = deadlineOf(run)
    return (
      row.epoch === run.entries[0]?.epoch && this.#isCurrent(row.epoch) && (deadline === 0 || this.#now() <= deadline)
    )
  }

  /** What the journal says about each entry of a run that was refused. */
  inspect(run: Run): Inspection[] {
    this.#mayDecide()
    return run.entries.map((entry) => this.#inspect(run.ref, entry))
  }

  #inspect(ref: string, { seq, key }: Entry): Inspection {
    const wallet = this.#wallets.get(ref)
    return {
      epoch: wallet?.row.epoch ?? null,
      owner: wallet?.row.owner ?? 'redis',
      current: wallet !== undefined && this.#isCurrent(wallet.row.epoch),
      seq: wallet?.row.seq ?? 0,
      head: wallet?.row.head ?? '',
      available: wallet?.row.available ?? 0,
      reserved: wallet?.row.reserved ?? 0,
      hashThere: wallet?.entries[seq - 1]?.hash ?? null,
      keySeq: wallet?.seqByKey.get(key) ?? null,
    }
  }

  /** `confirm` writes the rows that the Postgres path owns, as they are. */
  confirmWrites(refusals: readonly Refusal[]): boolean {
    return refusals.some(({ ref }) => this.#wallets.get(ref)?.row.owner === 'postgres')
  }

  /** `locked`: somebody has the first of the rows that would be written. */
  confirm(refusals: readonly Refusal[], locked = false): (Confirmation | 'locked')[] {
    this.#mayDecide()
    const lockedRef = locked ? refusals.find((refusal) => this.confirmWrites([refusal]))?.ref : undefined
    return refusals.map(({ ref, epoch, seq, head, key, hold }) => {
      const wallet = this.#wallets.get(ref)
      if (!wallet) return { stands: false, epoch: 0, owner: null, seen: false, hold: 'unknown' }
      const held = (seq === 0 ? wallet.genesis : wallet.entries[seq - 1]?.hash) === head
      const madeAt = wallet.seqByKey.get(hold) ?? Number.POSITIVE_INFINITY
      const made = madeAt <= seq && wallet.entries[madeAt - 1]?.kind === 'hold'
      const expired = (wallet.seqByKey.get(`~expire:${hold}`) ?? Number.POSITIVE_INFINITY) <= seq
      const isLocked = ref === lockedRef && wallet.row.epoch === epoch
      const seen = wallet.seqByKey.has(key)
      if (isLocked && !seen) return 'locked'
      const stands = wallet.row.epoch === epoch && this.#isCurrent(epoch) && held
      return {
        stands: stands && !isLocked,
        epoch: wallet.row.epoch,
        owner: stands ? null : wallet.row.owner,
        seen,
        hold: expired ? 'expired' : made ? 'closed' : 'unknown',
      }
    })
  }

  /** `locked`: somebody has the first of several. */
  raise(raises: readonly Raise[], locked = false): (Snapshot | 'locked' | null)[] {
    this.#mayDecide()
    const isLocked = ({ ref }: Raise, n: number) => locked && raises.length > 1 && n === 0 && this.#wallets.has(ref)
    return raises.map((raise, n) => (isLocked(raise, n) ? 'locked' : this.#raise(raise)))
  }

  #raise({ ref, epochMin, memory, known }: Raise): Snapshot | null {
    const wallet = this.#wallets.get(ref)
    if (!wallet) return null
    const { row } = wallet
    row.epoch = this.#nextEpoch(Math.max(row.epoch, epochMin - 1, this.epochFloor))
    row.owner = 'redis'
    row.memory ||= memory
    const recent = row.memory ? wallet.entries.slice(-REMEMBERED).map(asRead) : []
    return { ...this.#load(wallet), holds: known === null || !this.#lacks(known), recent }
  }

  /** `locked`: somebody has it, and lets go soon enough for who is patient. */
  takeOver(ref: string, { joinOnly = false, announce = false, patient = false }: TakeOver, locked = false): TakenOver {
    const wallet = this.#wallets.get(ref)
    if (!wallet) return null
    const { row } = wallet
    if (row.memory) return 'memory'
    if (locked && !patient) return 'locked'
    if (joinOnly && row.owner !== 'postgres') return 'loaded'
    this.#mayDecide()
    const joined = row.owner === 'postgres' && this.#isCurrent(row.epoch)
    if (joinOnly && !joined) return 'loaded'
    if (!joined || announce) {
      row.epoch = this.#nextEpoch(Math.max(row.epoch, this.epochFloor))
      row.owner = 'postgres'
    }
    return this.#load(wallet)
  }

  stock(ref: string, seq: number): Stock {
    const entries = this.#wallets.get(ref)?.entries ?? []
    if (entries.length < seq) throw new JournalEnds(seq)
    return stockOf(entries.slice(0, seq))
  }

  find(wanted: readonly { ref: string; key: string }[]): (Entry | null)[] {
    return wanted.map(({ ref, key }) => {
      const wallet = this.#wallets.get(ref)
      const entry = wallet?.entries[(wallet.seqByKey.get(key) ?? 0) - 1]
      return entry ? asRead(entry) : null
    })
  }

  holdEntry(ref: string, hold: string): Entry | null {
    const about = this.#wallets.get(ref)?.entries.filter((entry) => entry.hold === hold) ?? []
    const entry = about.find(({ kind }) => CLOSES_HOLD.has(kind)) ?? about.at(-1)
    return entry ? asRead(entry) : null
  }

  charge(ref: string, seq: number): Charge | null {
    const wallet = this.#wallets.get(ref)
    return wallet ? chargeOf(wallet, seq) : null
  }

  due(until: number, most: number, after: DuePlace | null): DueWallet[] {
    return [...this.#wallets.values()]
      .map(({ row: { ref, due, epoch }, tenant }) => ({ ref, tenant, due, epoch }))
      .filter((wallet) => wallet.due > 0 && wallet.due <= until && (after === null || compareDue(wallet, after) > 0))
      .sort(compareDue)
      .slice(0, most)
  }

  relax(ref: string, epoch: number, seq: number, due: number): void {
    const row = this.#wallets.get(ref)?.row
    if (row?.epoch === epoch && row.seq === seq) row.due = due
  }

  checkpoint(ref: string): void {
    const wallet = this.#wallets.get(ref)
    if (!wallet || wallet.row.since === 0) return
    const { seq, since } = wallet.row
    const last = wallet.checkpoint
    if (last && last.seq >= since && seq - last.seq < Math.max(1, 4 * last.holds.size)) return
    wallet.checkpoint = { seq: wallet.row.seq, holds: openHolds(wallet) }
  }

  seqOf(ref: string): number {
    return this.#wallets.get(ref)?.row.seq ?? 0
  }

  get stopped(): boolean {
    return this.#standing.stopped !== null
  }

  prove(witnesses: readonly Witness[]): Standing {
    const { settled, stopped } = this.#standing
    const missing = witnesses.filter((witness) => this.#lacks(witness))
    return { floor: this.epochFloor, settled, stopped, missing }
  }

  stop(epoch: number, because: string): void {
    const { settled, stopped } = this.#standing
    if (epoch <= settled) return
    this.#standing = {
      settled,
      stopped: {
        at: stopped?.at ?? this.#now(),
        because: stopped?.because ?? because,
        epoch: Math.max(epoch, stopped?.epoch ?? 0),
      },
    }
  }

  lift(epoch: number, stoppedAt: number): number | null {
    const { stopped } = this.#standing
    if (stopped?.at !== stoppedAt) return null
    const epochs = [...this.#wallets.values()].map(({ row }) => row.epoch)
    const settled = Math.max(this.epochFloor, epoch, stopped.epoch, ...epochs) + EPOCHS_SKIPPED
    this.#standing = { settled, stopped: null }
    return settled
  }

  #lacks({ ref, epoch, seq, hash }: Witness): boolean {
    if (epoch <= this.#standing.settled) return false
    const wallet = this.#wallets.get(ref)
    return (seq === 0 ? wallet?.genesis : wallet?.entries[seq - 1]?.hash) !== hash
  }

  #mayDecide(): void {
    if (this.stopped) throw new PostgresError('not_executed', 'stopped', { sqlstate: 'HF001' })
  }

  open({ ref, tenant, id, currency, metadata, creditLimit, head }: OpenRequest): boolean {
    this.#mayDecide()
    if (this.#wallets.has(ref)) return false
    const now = this.#now()
    const row: WalletRow = {
      ref,
      id,
      currency,
      metadata,
      openedAt: now,
      initialLimit: creditLimit,
      epoch: this.#nextEpoch(this.epochFloor),
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

  read(refs: readonly string[]): WalletRow[] {
    const rows: WalletRow[] = []
    for (const ref of new Set(refs)) {
      const wallet = this.#wallets.get(ref)
      if (wallet) rows.push({ ...wallet.row })
    }
    return rows
  }

  entries(ref: string, seq: number, most: number): Entry[] {
    const from = Math.max(seq - 1, 0)
    return (this.#wallets.get(ref)?.entries.slice(from, from + most) ?? []).map(asRead)
  }

  /** All wallets with all their entries, as they are now, without asking as a process would. */
  wallets(): Iterable<SimWallet> {
    return this.#wallets.values()
  }

  snapshot(): DatabaseCopy {
    const wallets = [...this.#wallets.values()].map(({ tenant, genesis, row, entries, checkpoint }) => {
      return { tenant, genesis, row: { ...row }, entries: entries.slice(), checkpoint }
    })
    const [intents, payments] = [this.intents.snapshot(), this.payments.snapshot()]
    return { wallets, intents, payments, standing: this.#standing }
  }

  restore({ wallets, intents, payments, standing }: DatabaseCopy): void {
    this.intents.restore(intents)
    this.payments.restore(payments)
    this.#standing = standing
    this.#wallets.clear()
    for (const { tenant, genesis, row, entries, checkpoint } of wallets) {
      const seqByKey = new Map(entries.map(({ key, seq }) => [key, seq]))
      const kept = { tenant, genesis, row: { ...row }, entries: entries.slice(), seqByKey, checkpoint }
      this.#wallets.set(row.ref, kept)
    }
  }

  /** Epochs up to this one are past. */
  get epochFloor(): number {
    return Math.max(this.timeline * EPOCHS_A_TIMELINE, this.#standing.settled)
  }

  #currencyOf(ref: string): string | null {
    return this.#wallets.get(ref)?.row.currency ?? null
  }

  #nextEpoch(after: number): number {
    return after + (after % EPOCHS_A_TIMELINE < 0.9 * EPOCHS_A_TIMELINE ? this.#step() : 1)
  }

  #isCurrent(epoch: number): boolean {
    return epoch > this.epochFloor
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
      stock: null,
    }
    return { state, memory, holds: true, recent: [], clock: this.#now() }
  }
}

/** As Postgres compares (due, ref). */
function compareDue(a: DuePlace, b: DuePlace): number {
  if (a.due !== b.due) return a.due - b.due
  return a.ref < b.ref ? -1 : Number(a.ref > b.ref)
}
