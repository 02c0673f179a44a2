import { type Change, giveBack, invalidAmount, move, reject, spend, UNTOUCHED, type Verdict } from './change.js'
import { hashEntry } from './entry.js'
import { meterEnd, meterTick } from './meter.js'
import { apply } from './replay.js'
import { judgeStock } from './stock-decide.js'
import {
  type Command,
  type CommandKind,
  type Decision,
  type Entry,
  EXPIRE_MAX,
  type HoldState,
  MAX_AMOUNT,
  type Meter,
  type Rejection,
  type WalletState,
} from './types.js'

/**
 * The machine: one bounded step of one wallet. The same state, command and time give the same entries, here and in
 * `lua/wallet/decide.lua`; whoever changes one side changes both, and the property test of the two says so. No I/O, no clock, no
 * randomness. The state is the caller's and is moved forward in place: after the call it is the state that the entries lead to.
 *
 * Not decided here, because it is not about the wallet: whether the key was seen before, the deadline, whom to trust.
 */
export function decide(state: WalletState, command: Command, clock: number): Decision {
  if (state.status === 'closed') return { entries: [], outcome: rejected(reject('wallet_closed')) }
  const now = Math.max(clock, state.at)
  const entries: Entry[] = []
  if (!expireDue(state, now, entries)) return { entries, outcome: { type: 'more' } }
  if (command.kind === 'touch') return { entries, outcome: { type: 'accepted' } }

  const verdict = judge(state, command, now)
  if (verdict === 'facts') return { entries, outcome: { type: 'facts' } }
  if ('code' in verdict) return { entries, outcome: rejected(verdict) }
  file(state, now, command, verdict, entries)
  return { entries, outcome: { type: 'accepted' } }
}

/** Files what is due, earliest first, as entries of their own; then `due` is exact again. False: there is more than one step may do. */
function expireDue(state: WalletState, now: number, entries: Entry[]): boolean {
  if (state.due === 0 || now < state.due) return true
  const byExpiry = first(state.holds, EXPIRE_MAX + 1, compareExpiry)
  for (const [index, [id, hold]] of byExpiry.entries()) {
    state.due = hold.expiresAt
    if (hold.expiresAt > now) return true
    if (index === EXPIRE_MAX) return false
    state.due = byExpiry[index + 1]?.[1].expiresAt ?? 0
    const command = { key: `~expire:${id}`, hold: id, of: 0, counter: 'revenue', params: 'expire', metadata: '' }
    file(state, now, command, giveBack('expire', hold), entries)
  }
  state.due = 0
  return true
}

/** Those that run out in the same moment, as all checkouts of a sale do, in the order of their bytes. */
function compareExpiry([idA, a]: [string, HoldState], [idB, b]: [string, HoldState]): number {
  return a.expiresAt - b.expiresAt || Buffer.compare(Buffer.from(idA), Buffer.from(idB))
}

/** The first `most`, in their order. There may be thousands, and a step files few: all of them are not sorted for each step. */
function first<T>(items: Iterable<T>, most: number, compare: (a: T, b: T) => number): T[] {
  const found: T[] = []
  let last: T | undefined
  for (const item of items) {
    if (last !== undefined && compare(item, last) >= 0) continue
    found.push(item)
    if (found.length < 2 * most) continue
    found.sort(compare).length = most
    last = found[most - 1]
  }
  return found.sort(compare).slice(0, most)
}

/** The least that may be asked for, where nothing is too little. A hold may be of nothing: so is paid for what costs nothing. */
const AMOUNT_MIN: Partial<Record<CommandKind, number>> = { credit: 1, debit: 1, capture: 1, refund: 1 }
const TTL_MIN_MS: Partial<Record<CommandKind, number>> = { hold: 1, extend: 0 }

/** Whoever makes a command has checked its numbers. One that gets by all the same, in whatever way, gets no further than this. */
function hasNumbers({ kind, amount, ttlMs }: Command, now: number): boolean {
  if (!Number.isSafeInteger(amount) || amount < (AMOUNT_MIN[kind] ?? 0)) return false
  const ttlMinMs = TTL_MIN_MS[kind]
  return ttlMinMs === undefined || (Number.isInteger(ttlMs) && ttlMs >= ttlMinMs && now + ttlMs <= MAX_AMOUNT)
}

/** The rules of every command; checks stand in the order of precedence. */
function judge(state: WalletState, command: Command, now: number): Verdict {
  const { kind, amount } = command
  if (!hasNumbers(command, now)) return invalidAmount(state)
  switch (kind) {
    case 'credit':
      return move(state, { ...UNTOUCHED, kind, amount, available: amount })
    case 'debit':
      return spend(state, { ...UNTOUCHED, kind, amount, available: -amount })
    case 'hold': {
      const hold = { amount, captured: 0, left: amount, expiresAt: now + command.ttlMs, refunded: 0 }
      return spend(state, { ...UNTOUCHED, kind, amount, available: 0 - amount, reserved: amount, hold })
    }
    case 'capture':
    case 'settle':
    case 'extend':
    case 'release':
    case 'tick':
    case 'end': {
      const hold = state.holds.get(command.hold)
      return hold ? judgeHold(state, command, hold, now) : reject('hold_unknown')
    }
    case 'meter':
      return startSession(state, command.meter as Meter, now)
    case 'refund':
      return refund(state, command)
    case 'freeze':
    case 'unfreeze':
    case 'void':
      return { ...UNTOUCHED, kind }
    case 'limit':
      if (state.available < -amount) return reject('insufficient_funds', { available: state.available })
      return { ...UNTOUCHED, kind, amount }
    case 'close':
      if (state.available !== 0 || state.reserved !== 0 || state.holds.size > 0) {
        return reject('wallet_not_empty', { available: state.available, reserved: state.reserved })
      }
      return { ...UNTOUCHED, kind }
    case 'checkout':
    case 'purchase':
    case 'cancel':
    case 'give':
    case 'take':
      return judgeStock(state, command, now)
    case 'touch':
      throw new Error('A touch is judged by nothing but the clock')
  }
}

function judgeHold(state: WalletState, command: Command, hold: HoldState, now: number): Verdict {
  const { kind, amount } = command
  if (kind === 'capture') return charge(state, command, hold, 'capture', amount)
  if (kind === 'settle') {
    if (amount < hold.refunded) return reject('refund_exceeded', { left: hold.captured - hold.refunded })
    return charge(state, command, hold, 'settle', amount - hold.captured)
  }
  if (kind === 'release') return move(state, giveBack('release', hold))
  if (kind === 'tick') return tick(state, command.meter as Meter, hold, now)
  if (kind === 'end') return end(state, command.meter as Meter, hold, now)
  const expiresAt = command.ttlMs > 0 ? Math.max(hold.expiresAt, now + command.ttlMs) : hold.expiresAt
  const after = { ...hold, amount: hold.amount + amount, left: hold.left + amount, expiresAt }
  if (amount === 0) return { ...UNTOUCHED, kind: 'extend', hold: after }
  return spend(state, { ...UNTOUCHED, kind: 'extend', amount, available: -amount, reserved: amount, hold: after })
}

/** Takes `due` out of the hold. A settle also gives the rest back; its `due` is negative where too much was captured before. */
function charge(
  state: WalletState,
  command: Command,
  hold: HoldState,
  kind: 'capture' | 'settle',
  due: number,
): Verdict {
  const outside = Math.max(0, due - hold.left)
  if (outside > 0 && !command.beyond) return reject('hold_exceeded', { left: hold.left })
  const inside = due - outside
  const left = kind === 'settle' ? 0 : hold.left - inside
  const change = {
    ...UNTOUCHED,
    kind,
    amount: command.amount,
    available: hold.left - inside - left - outside,
    reserved: left - hold.left,
    hold: { ...hold, captured: hold.captured + due, left },
  }
  return outside > 0 ? spend(state, change) : move(state, change)
}

/** Reserves the first stretch, or what there is, if that is the least that is asked for. */
function startSession(state: WalletState, { stretch, measure, heartbeatMs }: Meter, now: number): Verdict {
  if (state.status === 'frozen') return reject('wallet_frozen')
  const amount = Math.min(stretch, spendable(state))
  if (amount < 1 || state.available + state.creditLimit < measure) {
    return reject('insufficient_funds', { available: state.available })
  }
  const hold = { amount, captured: 0, left: amount, expiresAt: now + heartbeatMs, refunded: 0 }
  return move(state, { ...UNTOUCHED, kind: 'hold', amount, available: -amount, reserved: amount, hold })
}

function tick(state: WalletState, meter: Meter, hold: HoldState, now: number): Verdict {
  const { more, charge } = meterTick(meter, hold, spendable(state), now)
  const after = {
    amount: hold.amount + more,
    captured: hold.captured + charge,
    left: hold.left + more - charge,
    expiresAt: Math.max(hold.expiresAt, now + meter.heartbeatMs),
    refunded: hold.refunded,
  }
  const change = { kind: 'tick' as const, amount: charge, available: 0 - more, reserved: more - charge, hold: after }
  return move(state, { ...UNTOUCHED, ...change })
}

function end(state: WalletState, meter: Meter, hold: HoldState, now: number): Verdict {
  const { more, charge } = meterEnd(meter, hold, spendable(state), now)
  const captured = hold.captured + charge
  const after = { ...hold, amount: hold.amount + more, captured, left: 0 }
  const moved = { available: hold.left - charge, reserved: 0 - hold.left }
  return move(state, { ...UNTOUCHED, kind: 'settle', amount: captured, ...moved, hold: after })
}

/** What a session may add to its hold. Nothing is an answer too: it goes on with what it has. */
function spendable({ status, available, creditLimit, reserved }: WalletState): number {
  return status === 'frozen' ? 0 : Math.max(0, Math.min(available + creditLimit, MAX_AMOUNT - reserved))
}

/** Never more than the charge; and out of a hold never more than the hold was charged in all. */
function refund(state: WalletState, command: Command): Verdict {
  // Who read no facts did not find the charge in the journal: how much it was is not known, whatever the state knows of its refunds.
  if (!command.facts) return 'facts'
  const facts = command.facts.epoch === state.epoch && command.facts.seq >= state.base ? command.facts : null
  const refunded = state.refundedByEntry.get(command.of) ?? facts?.refunded
  if (refunded === undefined) return 'facts'
  let left = command.charge - refunded
  let hold: HoldState | null = null
  if (command.hold !== '') {
    const before = holdForRefund(state, command.hold, facts)
    if (!before) return 'facts'
    left = Math.min(left, before.captured - before.refunded)
    hold = { ...before, refunded: before.refunded + command.amount }
  }
  if (command.amount > left) return reject('refund_exceeded', { left: Math.max(0, left) })
  return move(state, {
    ...UNTOUCHED,
    kind: 'refund',
    amount: command.amount,
    available: command.amount,
    hold,
    ofRefunded: refunded + command.amount,
  })
}

function holdForRefund(state: WalletState, id: string, facts: Command['facts']): HoldState | null {
  const open = state.holds.get(id)
  if (open) return open
  const closed = state.closedHolds.get(id) ?? (facts?.holdClosed ? facts.hold : undefined)
  return closed ? { amount: 0, captured: closed.charged, left: 0, expiresAt: 0, refunded: closed.refunded } : null
}

function rejected(rejection: Rejection): Decision['outcome'] {
  return { type: 'rejected', rejection }
}

/** A closed wallet has no holds: left as it is, the bound would bring every sweeper to it for ever, for nothing. */
function dueAfter({ due }: WalletState, { kind, hold }: Change): number {
  if (kind === 'close') return 0
  return kind === 'hold' && hold && (due === 0 || hold.expiresAt < due) ? hold.expiresAt : due
}

/** Makes the entry, links it to the chain, and takes it into the state. */
function file(
  state: WalletState,
  now: number,
  command: Pick<Command, 'key' | 'hold' | 'of' | 'counter' | 'params' | 'metadata'>,
  change: Change,
  entries: Entry[],
): void {
  const { hold } = change
  const seq = state.seq + 1
  const opens = change.kind === 'hold'
  const closes = change.kind === 'settle' || change.kind === 'release' || change.kind === 'expire'
  const openAfter = state.holds.size + (opens ? 1 : 0) - (closes ? 1 : 0)
  const entry: Entry = {
    epoch: state.epoch,
    seq,
    kind: change.kind,
    key: command.key,
    at: now,
    amount: change.amount,
    availableDelta: change.available,
    reservedDelta: change.reserved,
    available: state.available + change.available,
    reserved: state.reserved + change.reserved,
    hold: change.holdId ?? command.hold,
    holdAmount: hold?.amount ?? 0,
    holdCaptured: hold?.captured ?? 0,
    holdLeft: hold?.left ?? 0,
    holdExpiresAt: hold?.expiresAt ?? 0,
    holdRefunded: hold?.refunded ?? 0,
    of: command.of,
    ofRefunded: change.ofRefunded,
    counter: command.counter,
    params: command.params,
    metadata: change.metadata ?? command.metadata,
    prev: state.head,
    hash: '',
    due: dueAfter(state, change),
    since: openAfter === 0 ? 0 : state.holds.size === 0 ? seq : state.since,
  }
  entry.hash = hashEntry(entry)
  entries.push(entry)
  apply(state, entry)
}
