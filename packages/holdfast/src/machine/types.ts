import type { Stock } from './stock.js'

/** Everything the machine knows about a wallet. Plain data; no I/O, no clock, no randomness. */

/** Amounts and balances are integers within ±MAX_AMOUNT, so that Lua, JavaScript and Postgres agree on every digit. */
export const MAX_AMOUNT = Number.MAX_SAFE_INTEGER

/** Due holds that one command may expire on its way. More than that, and the command is asked to come again. */
export const EXPIRE_MAX = 64

export type WalletStatus = 'active' | 'frozen' | 'closed'

export type EntryKind =
  | 'credit'
  | 'debit'
  | 'hold'
  | 'capture'
  | 'tick'
  | 'extend'
  | 'settle'
  | 'release'
  | 'expire'
  | 'refund'
  | 'freeze'
  | 'unfreeze'
  | 'limit'
  | 'close'
  | 'void'

/**
 * What callers may ask for. `meter` opens a metered session and makes a `hold`, `end` ends one and makes a `settle`. `void` moves
 * nothing and uses its key up: nothing else can happen under it any more. `touch` only lets due holds expire and makes no entry of its own.
 *
 * Of stock: `checkout` makes a `hold` or an `extend`, `purchase` a `settle`, `cancel` a `release`; `give` and `take` make a `debit` and a
 * `credit` that name items.
 */
export type CommandKind = Exclude<EntryKind, 'expire'> | 'meter' | 'end' | 'touch' | StockKind

export type StockKind = 'checkout' | 'purchase' | 'cancel' | 'give' | 'take'

/** What a metered session charges and reserves. */
export interface Terms {
  /** By time: periods that have begun, periods that are over, or parts of periods. Or by units. */
  counting: 'started' | 'completed' | 'prorated' | 'units'
  /** The price of a period, or of a unit. */
  rate: number
  /** How long a period is; 0 for units. */
  perMs: number
  /** The money that is reserved at a time. */
  stretch: number
  /** When more than this share of all that was reserved is used, the next stretch is reserved. 1 to 100. */
  extendAtPercent: number
  /** Without a tick for so long the session expires. */
  heartbeatMs: number
}

export interface Meter extends Terms {
  /** meter: the money that must be there to begin. tick, end: when it began (by time), or the units so far (by units). */
  measure: number
}

/**
 * What was known in Postgres about the charge that a refund is for. Only valid for the epoch it was read in and only when read at
 * `seq` or later: refunds decided since then stand in the state itself.
 */
export interface RefundFacts {
  epoch: number
  seq: number
  /** Refunded so far of the entry itself. */
  refunded: number
  /** For a charge out of a hold: is the hold closed, what was charged to it in all, and what of that was refunded. */
  holdClosed: boolean
  hold: { charged: number; refunded: number }
}

export interface Command {
  kind: CommandKind
  /** The caller's idempotency key; a hold is known by the key it was made with. */
  key: string
  /** Deciding parameters as one string: the same key with another string here (or another hold) is a conflict. */
  params: string
  /** The hold this is about; for `hold` and `meter` the key itself, and for `checkout`, unless the buyer has one running; empty for none. */
  hold: string
  /** credit, debit, hold, capture, refund: the amount. extend: what is added, may be 0. settle: the total. limit: the new limit. */
  amount: number
  /** hold, extend: milliseconds from now; 0 for "leave the time alone". */
  ttlMs: number
  /** capture, settle: may the part that the hold does not cover come out of `available`? */
  beyond: boolean
  /** refund: seq and size of the charge it is for. */
  of: number
  charge: number
  facts: RefundFacts | null
  /** meter, tick, end: the terms of the session, which stand in `params` as well; otherwise null. */
  meter: Meter | null
  counter: string
  /** JSON text, opaque; empty for none. */
  metadata: string
}

export interface HoldState {
  /** All that was ever reserved for it, extensions included. */
  amount: number
  /** Charged so far, also beyond the hold. */
  captured: number
  /** Still reserved. */
  left: number
  expiresAt: number
  /** Refunded so far out of what was captured. */
  refunded: number
}

/**
 * `due` and `since` are lower bounds, not exact values: `due` may lie before the next expiry, `since` before the oldest open hold.
 * They move rarely on purpose, because Postgres indexes the one and loads holds from the other.
 */
export interface WalletState {
  epoch: number
  seq: number
  head: string
  at: number
  available: number
  reserved: number
  creditLimit: number
  status: WalletStatus
  due: number
  since: number
  holds: Map<string, HoldState>
  /** Seq from which on `refunds` is complete: where this state was loaded. */
  base: number
  /** Refunded so far by entry (`17`), and by closed hold (`hold_1`): only what was touched since `base`. */
  refundedByEntry: Map<number, number>
  closedHolds: Map<string, { charged: number; refunded: number }>
  /** Null: it is a wallet. Otherwise a part of a sale. */
  stock: Stock | null
}

/** One line of the journal: what happened, and the state after it. */
export interface Entry {
  epoch: number
  seq: number
  kind: EntryKind
  key: string
  at: number
  amount: number
  availableDelta: number
  reservedDelta: number
  available: number
  reserved: number
  /** Empty for entries that are about no hold; the five numbers after it are then 0. */
  hold: string
  holdAmount: number
  holdCaptured: number
  holdLeft: number
  holdExpiresAt: number
  holdRefunded: number
  /** refund: the seq of the charge, and what was refunded of it in all, this refund included; otherwise 0. */
  of: number
  ofRefunded: number
  counter: string
  params: string
  metadata: string
  prev: string
  hash: string
  /** The bounds after this entry. Not hashed: they are hints for finding work, not part of what happened. */
  due: number
  since: number
}

export type RejectionCode =
  | 'invalid_amount'
  | 'insufficient_funds'
  | 'hold_unknown'
  | 'hold_exceeded'
  | 'refund_exceeded'
  | 'wallet_frozen'
  | 'wallet_closed'
  | 'wallet_not_empty'
  | 'sale_not_active'
  | 'duplicate_item'
  | 'too_large'
  | 'user_limit'
  | 'sold_out'

export interface Rejection {
  code: RejectionCode
  facts: Record<string, number>
}

/**
 * `entries` are the expiries met on the way, then the command's own entry if it was accepted.
 * `more`: too many holds were due at once; `facts`: a refund needs facts read from the journal of this epoch. Both mean: come again.
 */
export interface Decision {
  entries: Entry[]
  outcome: { type: 'accepted' } | { type: 'rejected'; rejection: Rejection } | { type: 'more' } | { type: 'facts' }
}
