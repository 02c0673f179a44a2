import { applyStock } from './stock.js'
import type { Entry, WalletState } from './types.js'

const CLOSES_HOLD = new Set(['settle', 'release', 'expire'])

/** Takes an entry into the state. Replaying a journal is nothing but this, one entry after the other. */
export function apply(state: WalletState, entry: Entry): void {
  if (state.stock) applyStock(state.stock, entry)
  state.epoch = entry.epoch
  state.seq = entry.seq
  state.head = entry.hash
  state.at = entry.at
  state.available = entry.available
  state.reserved = entry.reserved
  state.due = entry.due
  state.since = entry.since
  if (entry.kind === 'limit') state.creditLimit = entry.amount
  if (entry.kind === 'freeze') state.status = 'frozen'
  if (entry.kind === 'unfreeze') state.status = 'active'
  if (entry.kind === 'close') state.status = 'closed'
  if (entry.kind === 'refund') state.refundedByEntry.set(entry.of, entry.ofRefunded)
  if (entry.hold !== '') applyHold(state, entry)
}

function applyHold(state: WalletState, entry: Entry): void {
  const staysOpen = entry.kind === 'refund' ? state.holds.has(entry.hold) : !CLOSES_HOLD.has(entry.kind)
  if (staysOpen) {
    state.holds.set(entry.hold, {
      amount: entry.holdAmount,
      captured: entry.holdCaptured,
      left: entry.holdLeft,
      expiresAt: entry.holdExpiresAt,
      refunded: entry.holdRefunded,
    })
    return
  }
  state.holds.delete(entry.hold)
  if (entry.holdRefunded > 0) {
    state.closedHolds.set(entry.hold, { charged: entry.holdCaptured, refunded: entry.holdRefunded })
  }
}
