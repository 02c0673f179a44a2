import { type Postgres, PostgresError } from '../postgres/index.js'
import { appendValues } from './append-values.js'
import { textArray } from './array-text.js'
import { type InspectionRow, readInspection } from './rows.js'
import { cutRuns, halve, type Run } from './runs.js'
import type { Filed, Verdict } from './types.js'
import { APPEND_ROUNDS_MAX, judgeBehindBad, judgeLocked, judgeRun } from './verdicts.js'
import { isLocked, waitOnce } from './wait-once.js'

const APPENDED: Verdict = { type: 'appended' }
const THERE: Verdict = { type: 'there' }

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

/** Entries of many wallets in one statement, and what became of each. See sql/0002_journal.sql for what is compared, and why in this order. */
export class Appending {
  readonly #postgres: Postgres
  /** Wallets whose row somebody had locked the last time. They are not waited for again, nor is whoever is sent with them. */
  readonly #locked = new Set<string>()

  constructor(postgres: Postgres) {
    this.#postgres = postgres
  }

  async append(filed: readonly Filed[]): Promise<{ verdicts: Verdict[]; clock: number }> {
    const verdicts: Verdict[] = new Array(filed.length)
    const { runs, copies } = cutRuns(filed)
    let clock = 0
    let open = runs
    for (let round = 1; open.length > 0; round += 1) {
      const skipLocked = this.#locked.size > 0 && open.some(({ ref }) => this.#locked.has(ref))
      const answer = await this.#appendRuns(open, verdicts, skipLocked)
      clock = Math.max(clock, answer.clock)
      const fitting = answer.refused.length > 0 ? await this.#inspect(answer.refused, verdicts) : []
      if (skipLocked) this.#forgetFree(open, verdicts)
      open = round < APPEND_ROUNDS_MAX && !answer.skippedLocked ? fitting : []
      // Who met a locked row has waited for it already, and with it everybody else in the batch.
      if (answer.skippedLocked) {
        for (const { ref } of fitting) this.#locked.add(ref)
        judgeLocked(fitting, verdicts)
      }
    }
    for (const [place, of] of copies) verdicts[place] = verdicts[of] as Verdict
    return { verdicts, clock }
  }

  #forgetFree(runs: readonly Run[], verdicts: readonly Verdict[]): void {
    // What found a gap may rest on what is left out: then its row is as it was.
    for (const { ref, places } of runs) {
      if (verdicts[places.at(-1) as number]?.type !== 'gap') this.#locked.delete(ref)
    }
  }

  async #appendRuns(runs: readonly Run[], verdicts: Verdict[], skipLocked: boolean): Promise<Answer> {
    const values = appendValues(runs)
    if (!values) return this.#bisect(runs, verdicts, skipLocked)
    let row: AppendRow
    try {
      const alone = runs.length === 1 && runs[0]?.entries.length === 1
      row = await (alone && !skipLocked ? this.#sendOne(values) : this.#send(values, skipLocked))
    } catch (error) {
      if (!(error instanceof PostgresError) || error.outcome !== 'data') throw error
      return this.#bisect(runs, verdicts, skipLocked)
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
      waited = isLocked(error)
    }
    return this.#send(values, waited)
  }

  #send(values: readonly Buffer[], skipLocked: boolean): Promise<AppendRow> {
    return waitOnce(async (skippedLocked) => {
      const [row] = await this.#postgres.query<Omit<AppendRow, 'skippedLocked'>>('append', [...values, skippedLocked])
      if (!row) throw new Error('append returned no row')
      return { ...row, skippedLocked }
    }, skipLocked)
  }

  /** Postgres can't take something in here. The rest of the batch must not pay for it: halves, until the one is alone. */
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
}
