import {
  type EntryKind,
  type HoldState,
  MAX_AMOUNT,
  type Rejection,
  type RejectionCode,
  type WalletState,
} from './types.js'

/** What a command changes: an entry without what every entry has. `hold` is the hold after it. */
export interface Change {
  kind: EntryKind
  amount: number
  available: number
  reserved: number
  hold: HoldState | null
  ofRefunded: number
  /** Where it is not the command's own: the hold that it is about, and what the machine has to say of it. */
  holdId?: string
  metadata?: string
}

export type Verdict = Change | Rejection | 'facts'

export const UNTOUCHED = { amount: 0, available: 0, reserved: 0, hold: null, ofRefunded: 0 }

export function giveBack(kind: 'release' | 'expire', hold: HoldState): Change {
  const { left } = hold
  return { ...UNTOUCHED, kind, amount: left, available: left, reserved: 0 - left, hold: { ...hold, left: 0 } }
}

export function spend(state: WalletState, change: Change): Verdict {
  if (state.status === 'frozen') return reject('wallet_frozen')
  if (state.available + change.available < -state.creditLimit) {
    return reject('insufficient_funds', { available: state.available })
  }
  return move(state, change)
}

/**
 * The sum is bounded, not only its parts: so what is reserved always fits when it comes back, and no expiry can overflow. So is the
 * change itself: a settle that gives back both what is left and what was captured beyond the hold can pass 2^53, and be rounded.
 */
export function move(state: WalletState, change: Change): Verdict {
  const reserved = state.reserved + change.reserved
  const fits =
    change.available <= MAX_AMOUNT &&
    state.available + change.available + reserved <= MAX_AMOUNT &&
    reserved <= MAX_AMOUNT &&
    (!change.hold || (change.hold.amount <= MAX_AMOUNT && change.hold.captured <= MAX_AMOUNT))
  return fits ? change : invalidAmount(state)
}

export function invalidAmount({ available, reserved }: WalletState): Rejection {
  return reject('invalid_amount', { available, reserved })
}

export function reject(code: RejectionCode, facts: Record<string, number> = {}): Rejection {
  return { code, facts }
}
