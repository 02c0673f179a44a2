import type { PaymentIntent } from '../journal/index.js'
import {
  type Command,
  command,
  type Entry,
  type Payment,
  priceOf,
  purchaseWords,
  readLinesText,
  readPurchase,
} from '../machine/index.js'

/**
 * The steps of a purchase that is paid out of a wallet, as commands. Every key follows from the payment's own id:
 *
 *     wallet   ~purchase-hold:<id>       hold       the price of all that is in the checkout
 *     sale     ~paid:<id>                purchase   the commit point: names wallet, payment and prices; or void, and then it will never be
 *     wallet   ~purchase-settle:<id>     settle     the price of what was sold
 *     wallet   ~purchase-release:<id>    release    where the sale's key says void, or the checkout is over
 *
 * The hold has a name of the engine's own: nobody else can spend or release it.
 */

/** A hundred years: it ends when the purchase does. Running out before that would give back the price of what is sold. */
const HOLD_TTL_MS = 100 * 365 * 24 * 60 * 60 * 1_000
/** What the books of a sale have on the other side. */
const STOCK = 'stock'

export function holdOf({ id, amount, counter, metadata }: PaymentIntent): Command {
  return command({ kind: 'hold', key: holdKey(id), amount, ttlMs: HOLD_TTL_MS, counter, metadata })
}

/** Changes nothing; is there a hold? A "no" to it is a "no" to that. */
export function probeOf({ id, counter }: PaymentIntent): Command {
  return command({ kind: 'extend', key: `~purchase-probe:${id}`, hold: holdKey(id), ttlMs: 1, counter })
}

export function purchaseOf(intent: PaymentIntent): Command {
  const { id, code, take, perBuyer } = intent
  const also = purchaseWords({ all: take === 'all', perBuyer, payment: paymentOf(intent) })
  return command({ kind: 'purchase', key: commitKey(id), hold: code, counter: STOCK, also })
}

/** Why is kept with it: who is at work on the same payment is told the same. */
export function voidOf({ id }: PaymentIntent, why: string): Command {
  return command({ kind: 'void', key: commitKey(id), counter: STOCK, metadata: why })
}

/** For what was sold, as the sale's entry has it. The rest goes back. */
export function settleOf({ id, counter, metadata }: PaymentIntent, sold: Pick<Entry, 'params' | 'metadata'>): Command {
  return command({
    kind: 'settle',
    key: `~purchase-settle:${id}`,
    hold: holdKey(id),
    amount: paidBy(sold)?.amount ?? 0,
    counter,
    metadata,
  })
}

export function releaseOf({ id, counter }: PaymentIntent): Command {
  return command({ kind: 'release', key: `~purchase-release:${id}`, hold: holdKey(id), counter })
}

/** Who paid for a purchase, with which hold and how much; null: nobody, out of a wallet. */
export function paidBy(
  sold: Pick<Entry, 'params' | 'metadata'>,
): { wallet: string; hold: string; amount: number } | null {
  const { payment } = readPurchase(sold.params)
  if (!payment) return null
  const amount = priceOf(readLinesText(sold.metadata), payment.prices)
  return { wallet: payment.wallet, hold: holdKey(payment.id), amount }
}

export function holdKey(id: string): string {
  return `~purchase-hold:${id}`
}

export function commitKey(id: string): string {
  return `~paid:${id}`
}

function paymentOf({ wallet, id, amount, prices }: PaymentIntent): Payment {
  return {
    wallet,
    id,
    amount,
    prices: new Map(prices.split(' ').map((word) => word.split(':').map(Number) as [number, number])),
  }
}
