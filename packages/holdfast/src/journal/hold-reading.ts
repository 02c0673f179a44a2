import type { Entry, EntryKind } from '../machine/index.js'

export type HoldStatus = 'open' | 'settled' | 'released' | 'expired'

/** A hold as the journal tells it, open or closed. */
export interface HoldReading {
  readonly id: string
  /** The entry that made it. */
  readonly seq: number
  readonly madeAt: number
  /** JSON text as it was given with the hold; empty for none. */
  readonly metadata: string
  readonly status: HoldStatus
  /** 0 while it is open. */
  readonly closedAt: number
  readonly amount: number
  readonly captured: number
  readonly left: number
  readonly expiresAt: number
  readonly refunded: number
}

const STATUS_AFTER: Partial<Record<EntryKind, HoldStatus>> = {
  settle: 'settled',
  release: 'released',
  expire: 'expired',
}

export function statusAfterEntry(kind: EntryKind): HoldStatus {
  return STATUS_AFTER[kind] ?? 'open'
}

/** The hold after one more entry about it; `before` is null for the entry that makes it. */
export function holdAfter(before: HoldReading | null, entry: Entry): HoldReading {
  // A refund of a closed hold tells of it only what was charged and refunded.
  if (entry.kind === 'refund' && before) return { ...before, refunded: entry.holdRefunded }
  const status = statusAfterEntry(entry.kind)
  return {
    id: entry.hold,
    seq: before?.seq ?? entry.seq,
    madeAt: before?.madeAt ?? entry.at,
    metadata: before ? before.metadata : entry.metadata,
    status,
    closedAt: status === 'open' ? 0 : entry.at,
    amount: entry.holdAmount,
    captured: entry.holdCaptured,
    left: entry.holdLeft,
    expiresAt: entry.holdExpiresAt,
    refunded: entry.holdRefunded,
  }
}
