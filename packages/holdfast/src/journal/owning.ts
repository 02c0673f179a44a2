import { type Entry, isWhole, REMEMBERED } from '../machine/index.js'
import { isOfData, type Postgres, PostgresError, type Transaction } from '../postgres/index.js'
import { bytesArray } from './array-text.js'
import type { EpochStep } from './epochs.js'
import { type EntryRow, type HoldRow, readEntry, readState, type StateRow } from './rows.js'
import type { Raise, Snapshot, TakenOver, TakeOver } from './types.js'
import { isLocked } from './wait-once.js'

/** Reading a wallet that has grown for long without a checkpoint takes a second for a million entries. Who closes waits for it. */
const CHECKPOINT_MS = 30_000
const QUERY_CANCELED = '57014'
/** Who takes over many waits for none of them: so long may it take to read the open holds of one. */
const AT_ONCE_MS = 250
/** Who takes over one alone waits so long for its row. Where others decide for it too, each has it for a few ms, in turn. */
const ROW_WAIT_MS = 100

/** Who decides about a wallet from now on, and the state with its open holds to begin with. */
export class Owning {
  readonly #postgres: Postgres
  readonly #step: EpochStep

  constructor(postgres: Postgres, step: EpochStep) {
    this.#postgres = postgres
    this.#step = step
  }

  async raise(raises: readonly Raise[]): Promise<(Snapshot | 'locked' | null)[]> {
    const [first, ...others] = raises
    if (first && others.length === 0) return this.#withHolds(first.ref, (tx) => this.#raise(tx, raises))
    try {
      return await this.#postgres.transaction((tx) => this.#raise(tx, raises))
    } catch (error) {
      if (!isOfData(error) && !isTooLong(error)) throw error
      // One of them has something that nobody can read, or not in time. Each for itself, the others need not wait for that.
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
    const values = [...valuesOf(free), `{${free.map(() => this.#step())}}`]
    const rows =
      free.length > 0 ? await tx.query<StateRow & { ref: string; holds: boolean }>('raiseEpochs', values) : []
    const holds = await openHolds(tx, rows)
    const recent = await recentEntries(tx, rows)
    for (const [n, row] of rows.entries()) {
      answers.set(row.ref, { ...snapshot(row, holds[n] ?? []), holds: row.holds, recent: recent.get(row.ref) ?? [] })
    }
    return raises.map(({ ref }) => answers.get(ref) ?? null)
  }

  async takeOver(ref: string, { patient = false, ...how }: TakeOver): Promise<TakenOver> {
    const withinMs = patient ? null : AT_ONCE_MS
    try {
      return await this.#withHolds(ref, async (tx) => {
        if (patient) await waitForRow(tx, ref)
        return this.#takeOver(tx, ref, how, withinMs)
      })
    } catch (error) {
      if (isLocked(error)) return 'locked'
      if (!patient && isTooLong(error)) return 'slow'
      throw error
    }
  }

  async #takeOver(
    tx: Transaction,
    ref: string,
    { joinOnly = false, announce = false }: TakeOver,
    withinMs: number | null,
  ): Promise<TakenOver> {
    const take = () => tx.query<StateRow>('takeOver', [ref, joinOnly, announce, this.#step(), withinMs])
    let [row] = await take()
    if (!row) {
      const [there] = await tx.query<{ memory: boolean; free: boolean }>('whyNotOwned', [ref])
      if (!there) return null
      if (there.memory) return 'memory'
      if (!there.free) return 'locked'
      ;[row] = await take()
      if (!row) return 'loaded'
    }
    return snapshot(row, (await openHolds(tx, [{ ref, since: row.since }]))[0] ?? [])
  }

  async checkpoint(ref: string): Promise<void> {
    const note = async (tx: Transaction): Promise<void> => {
      await tx.execute('note_patiently', `SET LOCAL statement_timeout = ${CHECKPOINT_MS}`)
      await tx.query('writeCheckpoint', [ref])
    }
    await this.#withHolds(ref, note, { answerTimeoutMs: 2 * CHECKPOINT_MS })
  }

  /** Work that reads open holds. A checkpoint is only a shortcut: one that can't be read is removed, and the journal read in its place. */
  async #withHolds<T>(
    ref: string,
    work: (tx: Transaction) => Promise<T>,
    patience: { answerTimeoutMs?: number } = {},
  ): Promise<T> {
    try {
      return await this.#postgres.transaction(work, patience)
    } catch (error) {
      if (!isOfData(error)) throw error
    }
    await this.#postgres.query('dropCheckpoint', [ref])
    return this.#postgres.transaction(work, patience)
  }
}

const isTooLong = (error: unknown): boolean => error instanceof PostgresError && error.sqlstate === QUERY_CANCELED

/** For a moment, and in what follows as long as ever: the row is only where somebody else is in the way. */
async function waitForRow(tx: Transaction, ref: string): Promise<void> {
  const set = (value: string) =>
    `SELECT current_setting('lock_timeout') AS before, set_config('lock_timeout', '${value}', true)`
  const [timeout] = await tx.execute<{ before: string }>('wait_a_moment', set(`${ROW_WAIT_MS}`))
  await tx.query('waitForRow', [ref])
  await tx.execute('wait_as_ever', set(timeout?.before ?? '0'))
}

function snapshot(row: StateRow, holds: readonly HoldRow[]): Snapshot {
  return { state: readState(row, holds), memory: row.memory, holds: true, recent: [], clock: Number(row.clock) }
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

/** Of those that are used from memory. What somebody has damaged is left out, and what lies before it. */
async function recentEntries(
  tx: Transaction,
  rows: readonly (StateRow & { ref: string })[],
): Promise<Map<string, Entry[]>> {
  const recent = new Map<string, Entry[]>()
  const used = rows.filter(({ memory, seq }) => memory && seq !== '0')
  if (used.length === 0) return recent
  const values = [`{${used.map(({ ref }) => ref)}}`, `{${used.map(({ seq }) => seq)}}`, REMEMBERED]
  for (const { ref } of used) recent.set(ref, [])
  for (const row of await tx.query<EntryRow & { ref: string; prev_hex: string }>('recentEntries', values)) {
    recent.get(row.ref)?.push(readEntry(row, row.prev_hex))
  }
  for (const { ref, seq, head } of used) recent.set(ref, chainUpTo(Number(seq), head, recent.get(ref) as Entry[]))
  return recent
}

/** The last of these that are one chain, whole, and end so. */
function chainUpTo(seq: number, head: string, entries: readonly Entry[]): Entry[] {
  const chain: Entry[] = []
  for (const entry of entries.toReversed()) {
    const [next] = chain
    if (entry.seq !== (next ? next.seq - 1 : seq) || entry.hash !== (next?.prev ?? head) || !isWhole(entry)) break
    chain.unshift(entry)
  }
  return chain
}

/** Of rows that the transaction has locked: with a statement of its own, because a hold that was made while they were waited for counts. */
async function openHolds(tx: Transaction, rows: readonly { ref: string; since: string }[]): Promise<HoldRow[][]> {
  const holds: HoldRow[][] = rows.map(() => [])
  if (rows.every(({ since }) => since === '0')) return holds
  const values = [`{${rows.map(({ ref }) => ref)}}`, `{${rows.map(({ since }) => since)}}`]
  for (const row of await tx.query<HoldRow & { n: string }>('openHolds', values)) holds[Number(row.n) - 1]?.push(row)
  return holds
}
