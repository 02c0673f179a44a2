import type { Entry, WalletStatus } from '../machine/index.js'
import type { Filed } from './types.js'

/** Consecutive entries of one wallet under one epoch, each resting on the one before: compared with the row as one. */
export interface Run {
  readonly ref: string
  readonly entries: readonly Entry[]
  /** Of each entry, ms; 0 for none. */
  readonly deadlines: readonly number[]
  /** Where each entry stands in what was sent. */
  readonly places: readonly number[]
}

interface GrowingRun extends Run {
  readonly entries: Entry[]
  readonly deadlines: number[]
  readonly places: number[]
}

export interface Cut {
  readonly runs: readonly Run[]
  /** Entries that were sent more than once: where the copy stands, and where the one stands that is in a run. */
  readonly copies: readonly (readonly [place: number, of: number])[]
}

/**
 * Cuts what is sent into runs. Only neighbours that are linked in every respect (epoch, seq, hash and arithmetic) share a run, so
 * that comparing the first with the row vouches for all of them. Sorted by wallet: those who append at once lock rows in one order.
 */
export function cutRuns(filed: readonly Filed[]): Cut {
  const order = filed.map((_, place) => place)
  order.sort((a, b) => {
    const x = filed[a] as Filed
    const y = filed[b] as Filed
    if (x.ref !== y.ref) return x.ref < y.ref ? -1 : 1
    return x.entry.epoch - y.entry.epoch || x.entry.seq - y.entry.seq || a - b
  })
  const runs: GrowingRun[] = []
  const copies: [number, number][] = []
  for (const place of order) {
    const { ref, entry, deadline } = filed[place] as Filed
    const run = findRun(runs, ref, entry)
    if (!run) {
      runs.push({ ref, entries: [entry], deadlines: [deadline], places: [place] })
      continue
    }
    const last = run.entries.length - 1
    if (run.entries[last]?.seq !== entry.seq) {
      run.entries.push(entry)
      run.deadlines.push(deadline)
      run.places.push(place)
      continue
    }
    copies.push([place, run.places[last] as number])
    run.deadlines[last] = earlier(run.deadlines[last] as number, deadline)
  }
  return { runs, copies }
}

/** The run that the entry continues or is the last of. Usually the latest; with a fork under way there are several a wallet. */
function findRun(runs: readonly GrowingRun[], ref: string, entry: Entry): GrowingRun | undefined {
  for (let i = runs.length - 1; i >= 0; i -= 1) {
    const run = runs[i] as GrowingRun
    if (run.ref !== ref) return undefined
    const last = run.entries.at(-1) as Entry
    if (follows(last, entry) || (last.hash === entry.hash && last.seq === entry.seq)) return run
  }
  return undefined
}

function follows(last: Entry, next: Entry): boolean {
  return (
    next.epoch === last.epoch &&
    next.seq === last.seq + 1 &&
    next.prev === last.hash &&
    next.available === last.available + next.availableDelta &&
    next.reserved === last.reserved + next.reservedDelta
  )
}

function earlier(a: number, b: number): number {
  return a === 0 || b === 0 ? Math.max(a, b) : Math.min(a, b)
}

export function partOf({ ref, entries, deadlines, places }: Run, from: number, to: number): Run {
  return {
    ref,
    entries: entries.slice(from, to),
    deadlines: deadlines.slice(from, to),
    places: places.slice(from, to),
  }
}

/** Two halves of what can't be stored as a whole: of the runs, or of the entries of the only one. Null: it is a single entry. */
export function halve(runs: readonly Run[]): readonly [readonly Run[], readonly Run[]] | null {
  if (runs.length > 1) return [runs.slice(0, runs.length >> 1), runs.slice(runs.length >> 1)]
  const run = runs[0]
  if (!run || run.entries.length === 1) return null
  const middle = run.entries.length >> 1
  return [[partOf(run, 0, middle)], [partOf(run, middle, run.entries.length)]]
}

/** When the first of its entries runs out of time; 0 for never. */
export function deadlineOf(run: Run): number {
  let deadline = 0
  for (const one of run.deadlines) deadline = earlier(deadline, one)
  return deadline
}

/** What a run makes of the wallet beside its balances; null: leaves it as it is. */
export function statusAfter(run: Run): WalletStatus | null {
  for (let i = run.entries.length - 1; i >= 0; i -= 1) {
    const kind = run.entries[i]?.kind
    if (kind === 'freeze') return 'frozen'
    if (kind === 'unfreeze') return 'active'
    if (kind === 'close') return 'closed'
  }
  return null
}

export function limitAfter(run: Run): number | null {
  for (let i = run.entries.length - 1; i >= 0; i -= 1) {
    const entry = run.entries[i]
    if (entry?.kind === 'limit') return entry.amount
  }
  return null
}
