import type { LoadableState } from '../journal/index.js'
import { apply, type Entry, type WalletState } from '../machine/index.js'
import type { CoreState, HotState } from '../sequencer/index.js'
import { DAMAGED_CHECKPOINT, type Difference } from './causes.js'
import { compareHolds, hashOf } from './laws.js'

/**
 * What Redis says of a wallet against what the journal says, beside live traffic and without a doubt.
 *
 *     journal (read first)  ──▶ j            the state after entry j, with its open holds
 *     Redis (read second)        ──▶ R       the state after entry R ≥ j, because it only grows within an epoch
 *                              j+1 … R       from the journal as far as Redis knows them to be there (`acked`), and the rest,
 *                                            which is pending, from Redis itself
 *
 * The first and those entries together must be the second, to the last digit. Under another epoch there is nothing to compare: the state
 * in Redis is one that nobody goes by any more, or one that was loaded in between. Nor is there in another life of Redis, but that somebody
 * was told of what waits in it.
 */
export type Comparison =
  /** Nothing in Redis that anybody would go by. */
  | { readonly type: 'absent' }
  /** Loaded anew between the two readings: read again. */
  | { readonly type: 'moved' }
  /** The entries behind `after`, up to `upTo`, are to be read from the journal first. */
  | { readonly type: 'wanting'; readonly after: number; readonly upTo: number }
  | { readonly type: 'compared'; readonly differences: readonly Difference[] }

export interface HotLimits {
  /** A pending entry that is older is too old, ms. */
  readonly pendingMaxMs: number
  /** A wallet's time may be so far ahead of Redis's clock, ms. */
  readonly aheadMaxMs: number
}

/** `between` are the entries of the journal that were asked for as `wanting`; null before that. */
export function compareHot(
  loadable: LoadableState | undefined,
  hot: HotState,
  between: readonly Entry[] | null,
  limits: HotLimits,
): Comparison {
  if (hot.why === 'missing') return { type: 'absent' }
  if (hot.why === 'incarnation') {
    // What was acknowledged from memory counts in whichever life it waits: somebody should have had it loaded.
    const late = loadable && !isKept(loadable, hot) ? tooOld(hot.pending, hot, limits) : []
    return late.length > 0 ? differing(late) : { type: 'absent' }
  }
  if (hot.why === 'unreadable') {
    return differing([{ cause: 'hot_unreadable', expected: 'a wallet', found: 'something else' }])
  }
  const core = hot.core as CoreState
  if (!loadable) return differing([{ cause: 'hot_wallet_unknown', expected: null, found: core.seq }])
  if (loadable.damaged) return differing([DAMAGED_CHECKPOINT])
  const { state } = loadable
  if (core.epoch < state.epoch) return { type: 'absent' }
  if (core.epoch > state.epoch) return { type: 'moved' }
  if (core.seq < state.seq) {
    return differing([{ cause: 'hot_behind', field: 'seq', expected: state.seq, found: core.seq }])
  }
  if (core.acked > state.seq && between === null) return { type: 'wanting', after: state.seq, upTo: core.acked }
  const known = between ?? []
  const journalSeq = state.seq + known.length
  if (journalSeq < core.acked) {
    return differing([{ cause: 'hot_ahead', field: 'seq', expected: journalSeq, found: core.acked }])
  }
  const expected: WalletState = { ...state, holds: new Map(state.holds) }
  const pending = hot.pending.filter(({ seq }) => seq > journalSeq)
  const damaged = follow(expected, [...known, ...pending])
  if (damaged) return differing([damaged])
  if (expected.seq < core.seq) {
    return differing([{ cause: 'hot_entry_damaged', seq: expected.seq + 1, expected: core.seq, found: expected.seq }])
  }
  // What bounds loading is not written down in the journal: it is known as far as nothing was read from there.
  const since = known.length > 0 ? core.since : expected.since
  const memory = core.memory && !loadable.memory
  return differing([
    ...compareCore({ ...expected, since }, core, hot),
    ...(memory ? [{ cause: 'hot_state_differs', field: 'memory', expected: 0, found: 1 } as const] : []),
    ...tooFarAhead(expected, core, hot, limits),
    ...tooOld(pending, hot, limits),
  ])
}

/** Redis was not told yet that the journal has it. */
const isKept = ({ state }: LoadableState, { core, pending }: HotState): boolean =>
  core?.epoch === state.epoch && pending.every(({ seq }) => seq <= state.seq)

const differing = (differences: readonly Difference[]): Comparison => ({ type: 'compared', differences })

/** Takes entries into the state, each of which must rest on the one before and be what its hash is of. */
function follow(state: WalletState, entries: readonly Entry[]): Difference | null {
  for (const entry of entries) {
    const hash = hashOf(entry, state.head)
    if (entry.seq !== state.seq + 1 || hash !== entry.hash) {
      return { cause: 'hot_entry_damaged', seq: state.seq + 1, expected: hash, found: entry.hash }
    }
    apply(state, entry)
  }
  return null
}

function compareCore(expected: WalletState, core: CoreState, { holds }: HotState): Difference[] {
  const differences: Difference[] = []
  const differs = (field: string, right: string | number, found: string | number): void => {
    if (right !== found) differences.push({ cause: 'hot_state_differs', field, expected: right, found })
  }
  for (const field of ['seq', 'head', 'at', 'available', 'reserved', 'creditLimit', 'status', 'since'] as const) {
    differs(field, expected[field], core[field])
  }
  differs('open', expected.holds.size, core.open)
  differences.push(
    ...compareHolds(expected.holds, holds, {
      missing: 'hot_hold_missing',
      unknown: 'hot_hold_unknown',
      differs: 'hot_hold_differs',
    }),
  )
  let sum = 0
  let due = 0
  for (const { left, expiresAt } of holds.values()) {
    sum += left
    if (due === 0 || expiresAt < due) due = expiresAt
  }
  if (sum !== core.reserved) {
    differences.push({ cause: 'hot_holds_sum', field: 'reserved', expected: sum, found: core.reserved })
  }
  // A bound: it may be earlier than the next expiry, never later.
  if (due > 0 && (core.due === 0 || core.due > due)) differs('due', due, core.due)
  return differences
}

/** Time goes by the clock, or stands still where the journal is ahead of it. */
function tooFarAhead(expected: WalletState, core: CoreState, { clock }: HotState, limits: HotLimits): Difference[] {
  const latest = Math.max(clock, expected.at)
  if (core.clock <= latest + limits.aheadMaxMs) return []
  return [{ cause: 'hot_state_differs', field: 'clock', expected: latest, found: core.clock }]
}

function tooOld(pending: readonly Entry[], { clock }: HotState, { pendingMaxMs }: HotLimits): Difference[] {
  const [oldest] = pending
  if (!oldest || clock - oldest.at <= pendingMaxMs) return []
  return [{ cause: 'pending_too_old', field: 'age', seq: oldest.seq, expected: pendingMaxMs, found: clock - oldest.at }]
}
