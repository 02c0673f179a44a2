import {
  APPEND_ROUNDS_MAX,
  type Charge,
  type Confirmation,
  cutRuns,
  type DuePlace,
  type DueWallet,
  type Filed,
  halve,
  isStorableEntry,
  type Journal,
  judgeBehindBad,
  judgeLocked,
  judgeRun,
  type OpenRequest,
  type Raise,
  type Refusal,
  type Run,
  type Snapshot,
  type Standing,
  type TakenOver,
  type TakeOver,
  type Verdict,
  type WalletRow,
  type Witness,
} from '../packages/holdfast/src/journal/index.js'
import type { Entry, Stock } from '../packages/holdfast/src/machine/index.js'
import { PostgresError } from '../packages/holdfast/src/postgres/index.js'
import type { Reconcilable } from '../packages/holdfast/src/reconcile/index.js'
import type { SimDatabase } from './database.js'
import type { Writes } from './postgres.js'

const APPENDED: Verdict = { type: 'appended' }
const THERE: Verdict = { type: 'there' }
const ATTEMPTS_MAX = 5
const LOCK_NOT_AVAILABLE = '55P03'

/**
 * Has one statement run. Between two of them others get their turn; each can fail by itself. `writes`: it has something to commit.
 * `locked` is for the statement that may leave out what somebody else keeps locked. `tells`: callers may be told of what it found.
 */
export type Statement = <T>(
  name: string,
  writes: Writes,
  run: (locked: boolean) => T,
  tells?: (found: T) => boolean,
) => Promise<T>

export const AT_ONCE: Statement = async (_name, _writes, run) => run(false)

interface Answer {
  readonly refused: readonly Run[]
  readonly clock: number
  readonly skippedLocked: boolean
}

/**
 * The journal over a database that is simulated, as one process has it. How runs are cut and refusals are judged is the shipped code;
 * which statements it takes, and when they are tried again, restates `PostgresJournal`.
 */
export class SimJournal implements Journal, Reconcilable {
  readonly #database: SimDatabase
  readonly #statement: Statement
  readonly #locked = new Set<string>()

  constructor(database: SimDatabase, statement: Statement = AT_ONCE) {
    this.#database = database
    this.#statement = statement
  }

  async append(filed: readonly Filed[]): Promise<{ verdicts: Verdict[]; clock: number }> {
    const verdicts: Verdict[] = new Array(filed.length)
    const { runs, copies } = cutRuns(filed)
    let clock = 0
    let open = runs
    for (let round = 1; open.length > 0; round += 1) {
      const skipLocked = open.some(({ ref }) => this.#locked.has(ref))
      const answer = await this.#appendRuns(open, verdicts, skipLocked)
      clock = Math.max(clock, answer.clock)
      const fitting = answer.refused.length > 0 ? await this.#judge(answer.refused, verdicts) : []
      if (skipLocked) this.#forgetFree(open, verdicts)
      open = round < APPEND_ROUNDS_MAX && !answer.skippedLocked ? fitting : []
      if (answer.skippedLocked) {
        for (const { ref } of fitting) this.#locked.add(ref)
        judgeLocked(fitting, verdicts)
      }
    }
    for (const [place, of] of copies) verdicts[place] = verdicts[of] as Verdict
    return { verdicts, clock }
  }

  #forgetFree(runs: readonly Run[], verdicts: readonly Verdict[]): void {
    for (const { ref, places } of runs) {
      if (verdicts[places.at(-1) as number]?.type !== 'gap') this.#locked.delete(ref)
    }
  }

  async #appendRuns(runs: readonly Run[], verdicts: Verdict[], skipLocked: boolean): Promise<Answer> {
    if (!runs.every(({ entries }) => entries.every(isStorableEntry))) return this.#bisect(runs, verdicts, skipLocked)
    const { appended, clock, skippedLocked } = await this.#send(runs, skipLocked)
    const refused: Run[] = []
    for (const [number, run] of runs.entries()) {
      const after = appended[number] ?? null
      if (after === null) refused.push(run)
      else
        for (const [at, { seq }] of run.entries.entries())
          verdicts[run.places[at] as number] = seq > after ? APPENDED : THERE
    }
    return { refused, clock, skippedLocked }
  }

  #send(runs: readonly Run[], skipLocked: boolean) {
    return this.#waitOnce(
      (skippedLocked) =>
        this.#statement(
          'append',
          () => !this.#database.hasAll(runs),
          (locked) => {
            const clock = this.#database.clock
            // The first wallet of the batch is the one that somebody keeps locked.
            const left = skippedLocked && locked ? runs.slice(1) : runs
            const appended = this.#database.append(left)
            return { appended: left === runs ? appended : [null, ...appended], clock, skippedLocked }
          },
          ({ appended }) => appended.some((after) => after !== null),
        ),
      skipLocked,
    )
  }

  async #waitOnce<T>(send: (skipLocked: boolean) => Promise<T>, waited = false): Promise<T> {
    let skipLocked = waited
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await send(skipLocked)
      } catch (error) {
        const again = error instanceof PostgresError && error.outcome === 'retry' && attempt < ATTEMPTS_MAX
        if (!again) throw error
        skipLocked ||= error.sqlstate === LOCK_NOT_AVAILABLE
      }
    }
  }

  async #bisect(runs: readonly Run[], verdicts: Verdict[], skipLocked: boolean): Promise<Answer> {
    const halves = halve(runs)
    if (!halves) {
      for (const place of runs[0]?.places ?? []) verdicts[place] = { type: 'bad' }
      return { refused: [], clock: 0, skippedLocked: false }
    }
    const first = await this.#appendRuns(halves[0], verdicts, skipLocked)
    const left = judgeBehindBad(halves[0].at(-1) as Run, halves[1], verdicts)
    if (left.length === 0) return first
    const second = await this.#appendRuns(left, verdicts, skipLocked)
    return {
      refused: [...first.refused, ...second.refused],
      clock: Math.max(first.clock, second.clock),
      skippedLocked: first.skippedLocked || second.skippedLocked,
    }
  }

  /** Verdicts for what was refused; returns what should be tried again. */
  async #judge(runs: readonly Run[], verdicts: Verdict[]): Promise<Run[]> {
    const { inspections, clock } = await this.#statement(
      'inspect',
      false,
      () => ({ inspections: runs.map((run) => this.#database.inspect(run)), clock: this.#database.clock }),
      (found) => found.inspections.flat().some(({ hashThere }) => hashThere !== null),
    )
    const fitting: Run[] = []
    for (const [number, run] of runs.entries()) {
      const judged = judgeRun(run, inspections[number] ?? [], clock)
      for (const [index, place] of run.places.entries()) verdicts[place] = judged.verdicts[index] as Verdict
      if (judged.fits) fitting.push(judged.fits)
    }
    return fitting
  }

  canKeep(entry: Entry): boolean {
    return isStorableEntry(entry)
  }

  confirm(refusals: readonly Refusal[]): Promise<(Confirmation | 'locked')[]> {
    return this.#waitOnce((skipLocked) => {
      const writes = this.#database.confirmWrites(refusals)
      const confirm = (locked: boolean) => this.#database.confirm(refusals, skipLocked && locked)
      return this.#statement('confirm', writes, confirm, () => true)
    })
  }

  raise(raises: readonly Raise[]): Promise<(Snapshot | 'locked' | null)[]> {
    return this.#statement('raise', true, (locked) => this.#database.raise(raises, locked))
  }

  prove(witnesses: readonly Witness[]): Promise<Standing> {
    return this.#statement('prove', false, () => this.#database.prove(witnesses))
  }

  proveWrites(): Promise<boolean> {
    return this.#statement('proveWrites', true, () => true)
  }

  stop(epoch: number, because: string): Promise<void> {
    return this.#statement('stop', true, () => this.#database.stop(epoch, because))
  }

  /** A statement is one step here: nothing is under way that could still see how it was before the stop. */
  quiesce(): Promise<void> {
    return this.#statement('quiesce', false, () => {})
  }

  lift(epoch: number, stoppedAt: number): Promise<number | null> {
    return this.#statement('lift', true, () => this.#database.lift(epoch, stoppedAt))
  }

  async takeOver(ref: string, how: TakeOver = {}): Promise<TakenOver> {
    try {
      return await this.#statement('takeOver', true, (locked) => this.#database.takeOver(ref, how, locked))
    } catch (error) {
      if (error instanceof PostgresError && error.sqlstate === LOCK_NOT_AVAILABLE) return 'locked'
      throw error
    }
  }

  stock(ref: string, seq: number): Promise<Stock> {
    return this.#statement('stock', false, () => this.#database.stock(ref, seq))
  }

  find(wanted: readonly { ref: string; key: string }[]): Promise<(Entry | null)[]> {
    const find = () => this.#database.find(wanted)
    return this.#statement('find', false, find, (found) => found.some((entry) => entry !== null))
  }

  holdEntry(ref: string, hold: string): Promise<Entry | null> {
    const find = () => this.#database.holdEntry(ref, hold)
    return this.#statement('holdEntry', false, find, (entry) => entry !== null)
  }

  charge(ref: string, seq: number): Promise<Charge | null> {
    return this.#statement('charge', false, () => this.#database.charge(ref, seq))
  }

  due(until: number, most: number, after: DuePlace | null): Promise<DueWallet[]> {
    return this.#statement('due', false, () => this.#database.due(until, most, after))
  }

  relax(ref: string, epoch: number, seq: number, due: number): Promise<void> {
    return this.#statement('relax', true, () => this.#database.relax(ref, epoch, seq, due))
  }

  checkpoint(ref: string): Promise<void> {
    return this.#statement('checkpoint', true, () => this.#database.checkpoint(ref))
  }

  open(request: OpenRequest): Promise<boolean> {
    return this.#statement('open', true, () => this.#database.open(request))
  }

  read(refs: readonly string[]): Promise<WalletRow[]> {
    return this.#statement('read', false, () => this.#database.read(refs))
  }

  entries(ref: string, seq: number, most: number): Promise<Entry[]> {
    return this.#statement('entries', false, () => this.#database.entries(ref, seq, most))
  }
}
