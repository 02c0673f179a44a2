/** What the simulated journal answers out of a wallet's entries, as the queries of the real one do. */
import type { Charge, WalletRow } from '../packages/holdfast/src/journal/index.js'
import {
  applyStock,
  type Entry,
  emptyStock,
  type HoldState,
  type Stock,
} from '../packages/holdfast/src/machine/index.js'

const CHARGES = new Set(['debit', 'capture', 'tick', 'settle'])
export const CLOSES_HOLD = new Set(['settle', 'release', 'expire'])

type Writable<T> = { -readonly [Key in keyof T]: T[Key] }

export interface Checkpoint {
  readonly seq: number
  readonly holds: ReadonlyMap<string, HoldState>
}

/** A wallet's row and its journal: entry `seq` stands at `seq - 1`. */
export interface Kept {
  readonly tenant: string
  readonly genesis: string
  readonly row: Writable<WalletRow>
  readonly entries: Entry[]
  readonly seqByKey: Map<string, number>
  checkpoint: Checkpoint | null
}

/** As refund-facts.sql: null when there is no such entry, or it charged nothing. */
export function chargeOf({ row, entries }: Kept, seq: number): Charge | null {
  const charged = entries[seq - 1]
  if (!charged || !CHARGES.has(charged.kind)) return null
  const facts = { epoch: row.epoch, seq: row.seq, refunded: 0, holdClosed: false, hold: { charged: 0, refunded: 0 } }
  for (const entry of entries) {
    if (entry.of === seq) facts.refunded = Math.max(facts.refunded, entry.ofRefunded)
    if (charged.hold === '' || entry.hold !== charged.hold) continue
    facts.holdClosed ||= CLOSES_HOLD.has(entry.kind)
    facts.hold = { charged: entry.holdCaptured, refunded: Math.max(facts.hold.refunded, entry.holdRefunded) }
  }
  return { charge: 0 - (charged.availableDelta + charged.reservedDelta), hold: charged.hold, facts }
}

/** As `open_holds()` in SQL: the checkpoint where it is not too old, and what came since. Wrong bounds show here as they do there. */
export function openHolds({ row, entries, checkpoint }: Kept): Map<string, HoldState> {
  const holds = new Map<string, HoldState>()
  if (row.since === 0) return holds
  const start = checkpoint && checkpoint.seq >= row.since ? checkpoint : null
  for (const [id, hold] of start?.holds ?? []) holds.set(id, { ...hold })
  for (let seq = Math.max(row.since, (start?.seq ?? 0) + 1); seq <= entries.length; seq += 1) {
    const entry = entries[seq - 1] as Entry
    if (entry.hold === '') continue
    // A refund of a hold that was closed before knows no expiry.
    if (CLOSES_HOLD.has(entry.kind) || entry.holdExpiresAt === 0) {
      holds.delete(entry.hold)
      continue
    }
    holds.set(entry.hold, {
      amount: entry.holdAmount,
      captured: entry.holdCaptured,
      left: entry.holdLeft,
      expiresAt: entry.holdExpiresAt,
      refunded: entry.holdRefunded,
    })
  }
  return holds
}

/** As the journal loads it: from the beginning. */
export function stockOf(entries: readonly Entry[]): Stock {
  const stock = emptyStock()
  for (const entry of entries) applyStock(stock, entry)
  return stock
}

/** The bounds are hints for the wallet's row and are not kept with an entry. */
export function asRead(entry: Entry): Entry {
  return { ...entry, due: 0, since: 0 }
}
