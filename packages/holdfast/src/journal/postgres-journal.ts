import { setTimeout } from 'node:timers/promises'
import type { Entry, Stock } from '../machine/index.js'
import { isOfData, type Postgres, PostgresError, type Transaction } from '../postgres/index.js'
import { appendValues } from './append-values.js'
import { bytesArray, textArray } from './array-text.js'
import {
  type EntryRow,
  type HoldRow,
  type InspectionRow,
  readEntry,
  readInspection,
  readState,
  readWalletRow,
  type StateRow,
  type WalletTableRow,
} from './rows.js'
import { cutRuns, halve, type Run } from './runs.js'
import { type Ask, prove, stop } from './standing.js'
import { Stocks } from './stock.js'
import { isStorableEntry } from './storable.js'
import type {
  Charge,
  Confirmation,
  Filed,
  Journal,
  OpenRequest,
  Owner,
  Raise,
  Refusal,
  Snapshot,
  Standing,
  TakeOver,
  Verdict,
  WalletRow,
  Witness,
} from './types.js'
import { APPEND_ROUNDS_MAX, judgeBehindBad, judgeRun } from './verdicts.js'

const APPENDED: Verdict = { type: 'appended' }
const THERE: Verdict = { type: 'there' }
const ATTEMPTS_MAX = 5
const BACKOFF_MS = 2
/** Longer than any statement may take. */
const QUIESCE_MS = 20_000
const LOCK_NOT_AVAILABLE = '55P03'

interface AppendRow {
  refused: number[] | null
  present: number[] | null
  begun: string[][] | null
  clock: string
  skippedLocked: boolean
}

interface Answer {
  readonly refused: readonly Run[]
  readonly clock: number
  /** Somebody else had a row locked for too long, and its runs were refused for that. */
  readonly skippedLocked: boolean
}

/** The journal in Postgres. See sql/0002_journal.sql for what an append compares, and why it is done in this order. */
export class PostgresJournal implements Journal {
  readonly #postgres: Postgres
  readonly #ask: Ask
  readonly #stocks: Stocks

  constructor(postgres: Postgres) {
    this.#postgres = postgres
    this.#ask = (name, values) => postgres.query(name, values)
    this.#stocks = new Stocks(this.#ask)
  }

  async append(filed: readonly Filed[]): Promise<{ verdicts: Verdict[]; clock: number }> {
    const verdicts: Verdict[] = new Array(filed.length)
    const { runs, copies } = cutRuns(filed)
    let clock = 0
    let open = runs
    for (let round = 1; open.length > 0; round += 1) {
      const answer = await this.#appendRuns(open, verdicts)
      clock = Math.max(clock, answer.clock)
      const fitting = answer.refused.length > 0 ? await this.#inspect(answer.refused, verdicts) : []
      // Who met a locked row has waited for it already, and with it everybody else in the batch.
      open = round < APPEND_ROUNDS_MAX && !answer.skippedLocked ? fitting : []
    }
    for (const [place, of] of copies) verdicts[place] = verdicts[of] as Verdict
    return { verdicts, clock }
  }

  async #appendRuns(runs: readonly Run[], verdicts: Verdict[]): Promise<Answer> {
    const values = appendValues(runs)
    if (!values) return this.#bisect(runs, verdicts)
    let row: AppendRow
    try {
      const alone = runs.length === 1 && runs[0]?.entries.length === 1
      row = await (alone ? this.#sendOne(values) : this.#send(values))
    } catch (error) {
      if (!(error instanceof PostgresError) || error.outcome !== 'data') throw error
      return this.#bisect(runs, verdicts)
    }
    const refused = new Set(row.refused)
    const present = new Set(row.present)
    const begun = new Map(row.begun?.map(([run, seq]) => [Number(run), Number(seq)]))
    for (const [index, run] of runs.entries()) {
      if (refused.has(index + 1)) continue
      const presentTo = present.has(index + 1) ? Number.POSITIVE_INFINITY : (begun.get(index + 1) ?? 0)
      for (const [at, { seq }] of run.entries.entries()) {
        verdicts[run.places[at] as number] = seq <= presentTo ? THERE : APPENDED
      }
    }
    return {
      refused: runs.filter((_, index) => refused.has(index + 1)),
      clock: Number(row.clock),
      skippedLocked: row.skippedLocked,
    }
  }

  /** A single entry that fits, as a lone caller sends it, costs Postgres a third less this way. Whatever is the matter with it, the other way tells. */
  async #sendOne(values: readonly Buffer[]): Promise<AppendRow> {
    let waited = false
    try {
      const [row] = await this.#postgres.query<{ clock: string }>('appendOne', values)
      if (row) return { refused: null, present: null, begun: null, clock: row.clock, skippedLocked: false }
    } catch (error) {
      if (!(error instanceof PostgresError) || (error.outcome !== 'retry' && error.outcome !== 'data')) throw error
      waited = error.sqlstate === LOCK_NOT_AVAILABLE
    }
    return this.#send(values, waited)
  }

  /** A deadlock or a row that somebody keeps locked undid the statement: nothing happened, and it may work now. */
  async #send(values: readonly Buffer[], waited = false): Promise<AppendRow> {
    let skippedLocked = waited
    for (let attempt = 1; ; attempt += 1) {
      try {
        const [row] = await this.#postgres.query<Omit<AppendRow, 'skippedLocked'>>('append', [...values, skippedLocked])
        if (!row) throw new Error('append returned no row')
        return { ...row, skippedLocked }
      } catch (error) {
        const again = error instanceof PostgresError && error.outcome === 'retry' && attempt < ATTEMPTS_MAX
        if (!again) throw error
        // One row that a paused process keeps locked must not hold up the wallets beside it.
        skippedLocked = error.sqlstate === LOCK_NOT_AVAILABLE
        await setTimeout(Math.random() * BACKOFF_MS * 2 ** attempt)
      }
    }
  }

  /** Postgres can't take something in here. The rest of the batch must not pay for it: halves, until the one is alone. */
  async #bisect(runs: readonly Run[], verdicts: Verdict[]): Promise<Answer> {
    const halves = halve(runs)
    if (!halves) {
      for (const place of runs[0]?.places ?? []) verdicts[place] = { type: 'bad' }
      return { refused: [], clock: 0, skippedLocked: false }
    }
    const first = await this.#appendRuns(halves[0], verdicts)
    const left = judgeBehindBad(halves[0].at(-1) as Run, halves[1], verdicts)
    if (left.length === 0) return first
    const second = await this.#appendRuns(left, verdicts)
    return {
      refused: [...first.refused, ...second.refused],
      clock: Math.max(first.clock, second.clock),
      skippedLocked: first.skippedLocked || second.skippedLocked,
    }
  }

  /** Verdicts for what was refused; returns what should be tried again. */
  async #inspect(runs: readonly Run[], verdicts: Verdict[]): Promise<Run[]> {
    const refs: string[] = []
    const seqs: number[] = []
    const keys: string[] = []
    for (const run of runs) {
      for (const entry of run.entries) {
        refs.push(run.ref)
        seqs.push(entry.seq)
        keys.push(entry.key)
      }
    }
    const rows = await this.#postgres.query<InspectionRow>('inspectRefused', [
      textArray(refs),
      `{${seqs}}`,
      textArray(keys),
    ])
    const fitting: Run[] = []
    let next = 0
    for (const run of runs) {
      const part = rows.slice(next, next + run.entries.length)
      next += run.entries.length
      const judged = judgeRun(run, part.map(readInspection), Number(part[0]?.clock ?? 0))
      for (const [index, place] of run.places.entries()) verdicts[place] = judged.verdicts[index] as Verdict
      if (judged.fits) fitting.push(judged.fits)
    }
    return fitting
  }

  canKeep(entry: Entry): boolean {
    return isStorableEntry(entry)
  }

  async confirm(refusals: readonly Refusal[]): Promise<Confirmation[]> {
    const rows = await this.#postgres.query<{
      current: boolean
      held: boolean
      seen: boolean
      hold_made: boolean
      hold_expired: boolean
      epoch: string | null
      owner: Owner | null
    }>('confirm', [
      textArray(refusals.map(({ ref }) => ref)),
      `{${refusals.map(({ epoch }) => epoch)}}`,
      `{${refusals.map(({ seq }) => seq)}}`,
      bytesArray(refusals.map(({ head }) => head)),
      textArray(refusals.map(({ key }) => key)),
      textArray(refusals.map(({ hold }) => hold)),
    ])
    return rows.map((row) => ({
      stands: row.current && row.held,
      epoch: Number(row.epoch ?? 0),
      owner: row.owner,
      seen: row.seen,
      hold: row.hold_expired ? 'expired' : row.hold_made ? 'closed' : 'unknown',
    }))
  }

  async raise(raises: readonly Raise[]): Promise<(Snapshot | 'locked' | null)[]> {
    const [first, ...others] = raises
    if (first && others.length === 0) return this.#withHolds(first.ref, (tx) => this.#raise(tx, raises))
    try {
      return await this.#postgres.transaction((tx) => this.#raise(tx, raises))
    } catch (error) {
      if (!isOfData(error)) throw error
      // One of them has something that nobody can read. Each for itself, the others need not wait for that.
      return raises.map(() => 'locked')
    }
  }

  async #raise(tx: Transaction, raises: readonly Raise[]): Promise<(Snapshot | 'locked' | null)[]> {
    const answers = new Map<string, Snapshot | 'locked'>()
    let free = raises
    if (raises.length > 1) {
      const there = await tx.query<{ ref: string; free: boolean }>('lockFree', [`{${raises.map(({ ref }) => ref)}}`])
      for (const row of there) if (!row.free) answers.set(row.ref, 'locked')
      const mine = new Set(there.flatMap((row) => (row.free ? [row.ref] : [])))
      free = raises.filter(({ ref }) => mine.has(ref))
    }
    const rows =
      free.length > 0 ? await tx.query<StateRow & { ref: string; holds: boolean }>('raiseEpochs', valuesOf(free)) : []
    const holds = await openHolds(tx, rows)
    for (const [n, row] of rows.entries()) answers.set(row.ref, { ...snapshot(row, holds[n] ?? []), holds: row.holds })
    return raises.map(({ ref }) => answers.get(ref) ?? null)
  }

  async stock(ref: string, seq: number): Promise<Stock> {
    return this.#stocks.at(ref, seq)
  }

  /** Work that reads open holds. A checkpoint is only a shortcut: one that can't be read is removed, and the journal read in its place. */
  async #withHolds<T>(ref: string, work: (tx: Transaction) => Promise<T>): Promise<T> {
    try {
      return await this.#postgres.transaction(work)
    } catch (error) {
      if (!isOfData(error)) throw error
    }
    await this.#postgres.query('dropCheckpoint', [ref])
    return this.#postgres.transaction(work)
  }

  async prove(witnesses: readonly Witness[]): Promise<Standing> {
    return prove(this.#ask, witnesses)
  }

  async stop(epoch: number, because: string): Promise<void> {
    await stop(this.#ask, epoch, because)
  }

  async takeOver(
    ref: string,
    { joinOnly = false, announce = false }: TakeOver = {},
  ): Promise<Snapshot | 'memory' | 'loaded' | null> {
    return this.#withHolds(ref, async (tx): Promise<Snapshot | 'memory' | 'loaded' | null> => {
      const [row] = await tx.query<StateRow>('takeOver', [ref, joinOnly, announce])
      if (row) return snapshot(row, (await openHolds(tx, [{ ref, since: row.since }]))[0] ?? [])
      const [there] = await tx.query<WalletTableRow>('readWallets', [`{${ref}}`])
      if (!there) return null
      return there.memory ? 'memory' : 'loaded'
    })
  }

  /** Who writes has the table for writing: this waits for all of them. Who comes after them sees the stop. */
  async quiesce(): Promise<void> {
    await this.#postgres.transaction(
      async (tx) => {
        await tx.execute('quiesce', `SET LOCAL lock_timeout = ${QUIESCE_MS}; LOCK TABLE wallets IN SHARE MODE`)
      },
      { answerTimeoutMs: 2 * QUIESCE_MS },
    )
  }

  async lift(epoch: number, stoppedAt: number): Promise<number | null> {
    return this.#postgres.transaction(
      async (tx) => {
        // It looks at every wallet.
        await tx.execute('lift_patiently', 'SET LOCAL statement_timeout = 0')
        const [row] = await tx.query<{ floor: string }>('liftStop', [epoch, stoppedAt])
        return row ? Number(row.floor) : null
      },
      { answerTimeoutMs: 0 },
    )
  }

  async find(wanted: readonly { ref: string; key: string }[]): Promise<(Entry | null)[]> {
    const rows = await this.#postgres.query<EntryRow & { n: number; prev_hex: string }>('findKeys', [
      textArray(wanted.map(({ ref }) => ref)),
      textArray(wanted.map(({ key }) => key)),
    ])
    const found: (Entry | null)[] = wanted.map(() => null)
    for (const row of rows) found[row.n - 1] = readEntry(row, row.prev_hex)
    return found
  }

  async holdEntry(ref: string, hold: string): Promise<Entry | null> {
    const [row] = await this.#postgres.query<EntryRow & { prev_hex: string }>('holdEntry', [ref, hold])
    return row ? readEntry(row, row.prev_hex) : null
  }

  async charge(ref: string, seq: number): Promise<Charge | null> {
    const [row] = await this.#postgres.query<{
      epoch: string
      seq: string
      kind: string | null
      hold: string | null
      charge: string
      refunded: string
      hold_closed: boolean | null
      hold_charged: string | null
      hold_refunded: string | null
    }>('refundFacts', [ref, seq])
    if (!row?.kind || !['debit', 'capture', 'tick', 'settle'].includes(row.kind)) return null
    return {
      charge: Number(row.charge),
      hold: row.hold ?? '',
      facts: {
        epoch: Number(row.epoch),
        seq: Number(row.seq),
        refunded: Number(row.refunded),
        holdClosed: row.hold_closed ?? false,
        hold: { charged: Number(row.hold_charged ?? 0), refunded: Number(row.hold_refunded ?? 0) },
      },
    }
  }

  async due(until: number, most: number): Promise<{ ref: string; tenant: string }[]> {
    return this.#postgres.query<{ ref: string; tenant: string }>('dueWallets', [until, most])
  }

  async relax(ref: string, epoch: number, seq: number, due: number): Promise<void> {
    await this.#postgres.query('relaxDue', [ref, epoch, seq, due])
  }

  async checkpoint(ref: string): Promise<void> {
    await this.#withHolds(ref, (tx) => tx.query('writeCheckpoint', [ref]))
  }

  async open(request: OpenRequest): Promise<boolean> {
    const { ref, tenant, id, currency, metadata, creditLimit, head } = request
    const [row] = await this.#postgres.query<{ made: boolean }>('openWallet', [
      ref,
      tenant,
      id,
      currency,
      metadata === '' ? null : metadata,
      creditLimit,
      Buffer.from(head, 'hex'),
    ])
    return row?.made ?? false
  }

  async read(refs: readonly string[]): Promise<WalletRow[]> {
    return (await this.#postgres.query<WalletTableRow>('readWallets', [`{${refs}}`])).map(readWalletRow)
  }

  async entries(ref: string, seq: number, most: number): Promise<Entry[]> {
    const rows = await this.#postgres.query<EntryRow & { prev_hex: string }>('readEntries', [ref, seq, most])
    return rows.map((row) => readEntry(row, row.prev_hex))
  }
}

function snapshot(row: StateRow, holds: readonly HoldRow[]): Snapshot {
  return { state: readState(row, holds), memory: row.memory, holds: true, clock: Number(row.clock) }
}

function valuesOf(raises: readonly Raise[]): string[] {
  const known = raises.map((raise) => raise.known ?? { epoch: 0, seq: 0, hash: '' })
  return [
    `{${raises.map(({ ref }) => ref)}}`,
    `{${raises.map(({ epochMin }) => epochMin)}}`,
    `{${raises.map(({ memory }) => memory)}}`,
    `{${known.map(({ epoch }) => epoch)}}`,
    `{${known.map(({ seq }) => seq)}}`,
    bytesArray(known.map(({ hash }) => hash)),
  ]
}

/** Of rows that the transaction has locked: with a statement of its own, because a hold that was made while they were waited for counts. */
async function openHolds(tx: Transaction, rows: readonly { ref: string; since: string }[]): Promise<HoldRow[][]> {
  const holds: HoldRow[][] = rows.map(() => [])
  if (rows.every(({ since }) => since === '0')) return holds
  const values = [`{${rows.map(({ ref }) => ref)}}`, `{${rows.map(({ since }) => since)}}`]
  for (const row of await tx.query<HoldRow & { n: string }>('openHolds', values)) holds[Number(row.n) - 1]?.push(row)
  return holds
}
