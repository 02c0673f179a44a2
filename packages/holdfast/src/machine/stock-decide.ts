import { type Change, giveBack, move, reject, spend, UNTOUCHED, type Verdict } from './change.js'
import {
  buyerOf,
  type Checkout,
  LINES_MAX,
  type Line,
  linesText,
  type Payment,
  priceOf,
  readCheckout,
  readMove,
  readPurchase,
  type Stock,
  takenOf,
  total,
} from './stock.js'
import type { Command, HoldState, Rejection, WalletState } from './types.js'

/** The rules of stock; checks stand in the order of precedence. The twin of `lua/wallet/stock.lua`. */
export function judgeStock(state: WalletState, command: Command, now: number): Verdict {
  const { stock } = state
  if (!stock) throw new Error(`A wallet has no stock for ${command.kind}`)
  if (command.kind === 'checkout') return checkOut(state, stock, command, now)
  if (command.kind === 'give' || command.kind === 'take') return pass(state, stock, command)
  const hold = state.holds.get(command.hold)
  const checkout = stock.checkouts.get(command.hold)
  if (!hold || !checkout) return reject('hold_unknown')
  if (command.kind === 'cancel') return move(state, giveBack('release', hold))
  return purchase(state, stock, command, hold, checkout)
}

/** Into the buyer's running checkout, or into a new one. All of it or nothing. */
function checkOut(state: WalletState, stock: Stock, command: Command, now: number): Verdict {
  const order = readCheckout(command.params)
  if (now < order.from || now >= order.until || state.status === 'frozen') {
    return reject('sale_not_active', { startsAt: order.from, endsAt: order.until })
  }
  const buyer = buyerOf(stock, order.buyer)
  const running = buyer.running === '' ? undefined : state.holds.get(buyer.running)
  const before = stock.checkouts.get(buyer.running)?.lines ?? []
  const there = new Set(before.map(({ item }) => item))
  for (const { item } of order.lines) {
    if (there.has(item)) return reject('duplicate_item', { item })
    there.add(item)
  }
  if (there.size > LINES_MAX) return reject('too_large', { max: LINES_MAX })
  const quantity = total(order.lines)
  // What is only noted is not taken, and counts all the same: a checkout that could never be bought helps nobody.
  const noted = order.reserves ? 0 : total(before)
  const left = order.perBuyer - buyer.taken - noted
  if (quantity > left) return reject('user_limit', { left: Math.max(0, left) })
  const short = order.lines.find((line) => leftOf(stock, line) < line.quantity)
  if (short) return soldOut(state, leftOf(stock, short), short.item)
  if (quantity > state.available) return soldOut(state, state.available)

  const amount = order.reserves ? quantity : 0
  const expiresAt = Math.min(order.until, now + order.ttlMs)
  const hold = running
    ? {
        ...running,
        amount: running.amount + amount,
        left: running.left + amount,
        expiresAt: Math.max(running.expiresAt, expiresAt),
      }
    : { amount, captured: 0, left: amount, expiresAt, refunded: 0 }
  const kind = running ? 'extend' : 'hold'
  const holdId = running ? buyer.running : command.hold
  const metadata = linesText([...before, ...order.lines])
  return move(state, { ...UNTOUCHED, kind, amount, available: 0 - amount, reserved: amount, hold, holdId, metadata })
}

/** What was reserved is sold. What was only noted is taken now: all of it, or what is left of it. */
function purchase(
  state: WalletState,
  stock: Stock,
  command: Command,
  hold: HoldState,
  { buyer, reserves, lines }: Checkout,
): Verdict {
  const { all, perBuyer, payment } = readPurchase(command.params)
  if (payment && !paysFor(payment, lines)) return reject('hold_exceeded')
  if (reserves) {
    const sold = { hold: { ...hold, captured: hold.amount, left: 0 }, metadata: linesText(lines) }
    return move(state, { ...UNTOUCHED, kind: 'settle', amount: hold.amount, reserved: 0 - hold.left, ...sold })
  }
  let room = perBuyer - buyerOf(stock, buyer).taken
  let available = state.available
  const sold: Line[] = []
  for (const line of lines) {
    const refusal =
      line.quantity > room
        ? reject('user_limit', { left: Math.max(0, room) })
        : line.quantity > leftOf(stock, line)
          ? soldOut(state, leftOf(stock, line), line.item)
          : line.quantity > available
            ? soldOut(state, available)
            : null
    if (refusal === null) {
      sold.push(line)
      room -= line.quantity
      available -= line.quantity
    } else if (all || (line === lines.at(-1) && sold.length === 0)) return refusal
  }
  const amount = total(sold)
  const change: Change = {
    ...UNTOUCHED,
    kind: 'settle',
    amount,
    available: 0 - amount,
    hold: { ...hold, captured: amount, left: 0 },
    metadata: linesText(sold),
  }
  return spend(state, change)
}

/**
 * Is it for these lines that the money is held, each of them and no other? What came into a checkout since is not paid for; nor is what the
 * price was asked of and what Redis forgot, with something else in its place.
 */
const paysFor = ({ amount, prices }: Payment, lines: readonly Line[]): boolean =>
  prices.size === lines.length && priceOf(lines, prices) === amount

/** From one part of a sale to another: all of it or nothing. */
function pass(state: WalletState, stock: Stock, command: Command): Verdict {
  const { total: amount, lines } = readMove(command.params)
  if (command.kind === 'take') return move(state, { ...UNTOUCHED, kind: 'credit', amount, available: amount })
  const short = lines.find((line) => leftOf(stock, line) < line.quantity)
  if (short) return soldOut(state, leftOf(stock, short), short.item)
  if (amount > state.available) return soldOut(state, state.available)
  return move(state, { ...UNTOUCHED, kind: 'debit', amount, available: 0 - amount })
}

/** Why nothing of it can be had, and of all: what there is, and what lies in checkouts and may come back. */
function soldOut({ available, reserved }: WalletState, left: number, item?: number): Rejection {
  const facts = { left: Math.max(0, left), stock: Math.max(0, available), reserved }
  return reject('sold_out', item === undefined ? facts : { item, ...facts })
}

const leftOf = (stock: Stock, { item, share }: Line): number => share - takenOf(stock, item)
