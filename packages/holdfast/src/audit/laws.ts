import type { AuditedRow, AuditedWallet, Verified } from '../journal/index.js'
import { type Entry, genesisHash, type HoldState, hashEntry } from '../machine/index.js'
import type { Difference } from './causes.js'

/**
 * What every journal must obey, written down a second time: not by what the machine would decide, but by what may never be, whoever
 * decided. Pure functions over plain data.
 */

const CLOSES_HOLD: ReadonlySet<string> = new Set(['settle', 'release', 'expire'])
/** As in lua/wallet/state.lua and sql/queries/audit-page.sql. */
const EPOCH_MAX = 2 ** 52
const NO_HOLD: HoldState = { amount: 0, captured: 0, left: 0, expiresAt: 0, refunded: 0 }

/** Before the first entry. */
export function beginning({ genesis, openedAt, initialLimit }: AuditedWallet): Verified {
  return {
    seq: 0,
    head: genesis,
    epoch: 0,
    at: openedAt,
    available: 0,
    reserved: 0,
    creditLimit: initialLimit,
    status: 'active',
    holds: new Map(),
  }
}

export function copyOf(verified: Verified): Verified {
  return { ...verified, holds: new Map(verified.holds) }
}

/** A chain is bound to its wallet and currency by what it begins with. */
export function checkBeginning({ ref, currency, genesis }: AuditedWallet): Difference | null {
  const expected = genesisHash(ref, currency)
  return genesis === expected ? null : { cause: 'journal_hash', seq: 0, expected, found: genesis }
}

/** Takes the next entry into the state, or says which law it breaks; then the state is as it was before. */
export function take(state: Verified, entry: Entry): Difference | null {
  const { seq } = entry
  if (seq <= state.seq) return { cause: 'journal_duplicate', seq, expected: state.seq + 1, found: seq }
  if (seq > state.seq + 1) return { cause: 'journal_gap', seq: state.seq + 1, expected: state.seq + 1, found: seq }
  const hash = hashOf(entry, state.head)
  if (hash !== entry.hash) return { cause: 'journal_hash', seq, expected: hash, found: entry.hash }
  const broken = checkOrder(state, entry) ?? checkArithmetic(state, entry) ?? checkConservation(state, entry)
  if (broken) return { ...broken, seq }
  state.seq = seq
  state.head = entry.hash
  state.epoch = entry.epoch
  state.at = entry.at
  state.available = entry.available
  state.reserved = entry.reserved
  if (entry.kind === 'limit') state.creditLimit = entry.amount
  if (entry.kind === 'freeze') state.status = 'frozen'
  if (entry.kind === 'unfreeze') state.status = 'active'
  if (entry.kind === 'close') state.status = 'closed'
  takeHold(state, entry)
  if (state.available >= -state.creditLimit) return null
  return { cause: 'journal_limit', seq, field: 'available', expected: -state.creditLimit, found: state.available }
}

/** What the hash of an entry should be that rests on `prev`; null: it has become something that has none. */
export function hashOf(entry: Entry, prev: string): string | null {
  try {
    return hashEntry({ ...entry, prev })
  } catch (error) {
    if (error instanceof RangeError) return null
    throw error
  }
}

function takeHold({ holds }: Verified, entry: Entry): void {
  const { hold, kind } = entry
  if (hold === '') return
  const before = holds.get(hold)
  // A refund of a hold that is closed leaves it closed.
  if (CLOSES_HOLD.has(kind) || (kind === 'refund' && !before)) {
    holds.delete(hold)
    return
  }
  holds.set(hold, {
    amount: entry.holdAmount,
    captured: entry.holdCaptured,
    left: entry.holdLeft,
    expiresAt: entry.holdExpiresAt,
    refunded: entry.holdRefunded,
    madeSeq: before?.madeSeq ?? entry.seq,
  })
}

function checkOrder(state: Verified, { at, epoch }: Entry): Difference | null {
  if (at < state.at) return { cause: 'journal_order', field: 'at', expected: state.at, found: at }
  if (epoch < state.epoch) return { cause: 'journal_order', field: 'epoch', expected: state.epoch, found: epoch }
  return null
}

function checkArithmetic(state: Verified, entry: Entry): Difference | null {
  const cause = 'journal_arithmetic'
  const available = state.available + entry.availableDelta
  if (available !== entry.available) return { cause, field: 'available', expected: available, found: entry.available }
  const reserved = state.reserved + entry.reservedDelta
  if (reserved !== entry.reserved) return { cause, field: 'reserved', expected: reserved, found: entry.reserved }
  return null
}

/**
 * Money comes in by credits and refunds, and goes out by debits and charges; everything else only moves it between `available` and
 * `reserved`, and `reserved` moves as far as what is left of the hold. So `credited + refunded − debited − captured = available +
 * reserved` and `reserved = Σ open holds` hold after every entry, if they held before it.
 */
function checkConservation(state: Verified, entry: Entry): Difference | null {
  const before = state.holds.get(entry.hold) ?? NO_HOLD
  const moved = entry.availableDelta + entry.reservedDelta
  const expected = movedBy(entry, before)
  if (moved !== expected) return { cause: 'journal_conservation', field: 'moved', expected, found: moved }
  const left = entry.hold === '' || entry.kind === 'refund' ? 0 : entry.holdLeft - before.left
  if (entry.reservedDelta === left) return null
  return { cause: 'journal_conservation', field: 'reserved', expected: left, found: entry.reservedDelta }
}

function movedBy({ kind, amount, holdCaptured }: Entry, before: HoldState): number {
  switch (kind) {
    case 'credit':
    case 'refund':
      return amount
    case 'debit':
      return 0 - amount
    case 'capture':
    case 'tick':
    case 'settle':
      return before.captured - holdCaptured
    default:
      return 0
  }
}

/** A row against the state that its journal leads to. The bounds of expiry and of loading may be earlier than need be, never later. */
export function compareRow(state: Verified, row: AuditedRow): Difference[] {
  const differences: Difference[] = []
  for (const field of ['seq', 'head', 'at', 'available', 'reserved', 'creditLimit', 'status'] as const) {
    if (row[field] === state[field]) continue
    differences.push({ cause: 'row_differs', field, expected: state[field], found: row[field] })
  }
  // Raised by whoever loads the wallet, so the journal does not say what it is; but where counting does not lead it can't be.
  if (row.epoch < 0 || row.epoch >= EPOCH_MAX) {
    differences.push({ cause: 'row_differs', field: 'epoch', expected: state.epoch, found: row.epoch })
  }
  const { due, since } = boundsOf(state)
  if (due === 0 ? row.since !== 0 : row.since < 1 || row.since > since) {
    differences.push({ cause: 'row_differs', field: 'since', expected: since, found: row.since })
  }
  if (due > 0 && (row.due === 0 || row.due > due)) {
    differences.push({ cause: 'row_differs', field: 'due', expected: due, found: row.due })
  }
  return differences
}

/** When the next hold runs out, and the oldest that is open: exactly. */
export function boundsOf({ holds }: Verified): { due: number; since: number } {
  let due = 0
  let since = 0
  for (const { expiresAt, madeSeq } of holds.values()) {
    if (due === 0 || expiresAt < due) due = expiresAt
    if (since === 0 || madeSeq < since) since = madeSeq
  }
  return { due, since }
}

/** Two sets of open holds, as far as they are not alike. */
export function compareHolds(
  expected: ReadonlyMap<string, HoldState>,
  found: ReadonlyMap<string, HoldState>,
  causes: { missing: Difference['cause']; unknown: Difference['cause']; differs: Difference['cause'] },
): Difference[] {
  const differences: Difference[] = []
  for (const [hold, right] of expected) {
    const other = found.get(hold)
    if (!other) {
      differences.push({ cause: causes.missing, hold, field: 'left', expected: right.left, found: null })
      continue
    }
    for (const field of ['amount', 'captured', 'left', 'expiresAt', 'refunded'] as const) {
      if (right[field] === other[field]) continue
      differences.push({ cause: causes.differs, hold, field, expected: right[field], found: other[field] })
    }
  }
  for (const [hold, { left }] of found) {
    if (!expected.has(hold)) {
      differences.push({ cause: causes.unknown, hold, field: 'left', expected: null, found: left })
    }
  }
  return differences
}
