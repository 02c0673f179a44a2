import type { Entry } from '../machine/index.js'
import { partOf, type Run } from './runs.js'
import type { Owner, Verdict } from './types.js'

/** What the journal says about a refused entry, read after the refusal. Null where there is no wallet or no such entry. */
export interface Inspection {
  /** The wallet's epoch, and whether it is one of this server's timeline. */
  epoch: number | null
  owner: Owner
  current: boolean
  seq: number
  head: string
  available: number
  reserved: number
  hashThere: string | null
  keySeq: number | null
}

export interface Judgement {
  readonly verdicts: readonly Verdict[]
  /** The part of the run that continues the journal as it is now: worth another try at once. */
  readonly fits: Run | null
}

/**
 * Two processes send overlapping runs of a busy wallet all the time: what is left of the second fits behind the first. After so
 * many tries in one call others are faster, and the caller hears `gap`.
 */
export const APPEND_ROUNDS_MAX = 3

/**
 * Why the entries of a refused run were refused. The order matters: what is already there is a yes whatever else changed since,
 * and a key that was seen must be told before anything that sounds like "try again".
 */
export function judgeRun(run: Run, inspections: readonly Inspection[], clock: number): Judgement {
  const verdicts: Verdict[] = []
  const keys = new Set<string>()
  let hopeless: Verdict | null = null
  let from = -1
  let to = -1
  for (const [index, entry] of run.entries.entries()) {
    const at = inspections[index] as Inspection
    const stale: Verdict = { type: 'stale', epoch: at.epoch ?? 0 }
    if (at.hashThere === entry.hash) {
      verdicts.push({ type: 'there' })
      continue
    }
    if (at.keySeq !== null) {
      verdicts.push({ type: 'seen' })
      hopeless ??= stale
      continue
    }
    // A key that comes twice in one run: the second can never follow the first.
    if (keys.has(entry.key)) hopeless ??= stale
    keys.add(entry.key)
    const why: Verdict | null = hopeless ?? whyHopeless(entry, run.deadlines[index] ?? 0, at, clock)
    verdicts.push(why ?? { type: 'gap', seq: at.seq })
    // What rests on a late entry is not late itself, but has nothing to rest on.
    hopeless = why?.type === 'late' ? stale : why
    if (why) continue
    if (entry.seq === at.seq + 1) from = index
    to = index + 1
  }
  return { verdicts, fits: from >= 0 ? partOf(run, from, to) : null }
}

/** What would fit was left out, because somebody has its row locked: nothing is missing before it. */
export function judgeLocked(runs: readonly Run[], verdicts: Verdict[]): void {
  for (const { places } of runs) {
    for (const place of places) verdicts[place] = { ...(verdicts[place] as Verdict & { type: 'gap' }), locked: true }
  }
}

/** What rests on an entry that can't be stored will never be accepted: that is the verdict for the runs behind `before`, as far as they do. Returns the others. */
export function judgeBehindBad(before: Run, runs: readonly Run[], verdicts: Verdict[]): readonly Run[] {
  let last = before
  for (const [number, run] of runs.entries()) {
    const verdict = verdicts[last.places.at(-1) as number]?.type
    const behindBad = verdict === 'bad' || verdict === 'stale'
    if (!behindBad || run.entries[0]?.prev !== last.entries.at(-1)?.hash) return runs.slice(number)
    for (const [index, place] of run.places.entries()) {
      verdicts[place] = { type: 'stale', epoch: (run.entries[index] as Entry).epoch }
    }
    last = run
  }
  return []
}

/** Null: it may still fit, now or when what it rests on has come. */
function whyHopeless(entry: Entry, deadline: number, at: Inspection, clock: number): Verdict | null {
  if (at.epoch === null) return { type: 'stale', epoch: 0 }
  if (at.epoch !== entry.epoch || !at.current) return { type: 'epoch', epoch: at.epoch, owner: at.owner }
  if (entry.seq <= at.seq) return { type: 'stale', epoch: at.epoch }
  if (deadline > 0 && clock > deadline) return { type: 'late' }
  if (entry.seq > at.seq + 1) return null
  const continues =
    entry.prev === at.head &&
    entry.available === at.available + entry.availableDelta &&
    entry.reserved === at.reserved + entry.reservedDelta
  return continues ? null : { type: 'stale', epoch: at.epoch }
}
