import type { Entry as MachineEntry } from '../machine/index.js'
import type { HoldExplanation, HoldMoney } from './explain.js'

/** What happened to a hold, in words for people who answer questions about it. Nothing is computed here but sums of two. */

interface Told extends HoldMoney {
  readonly left: number
  readonly captured: number
  /** The new expiry, where it changed. */
  readonly later: number
}

export function tellStep(entry: MachineEntry, money: Told, currency: string): string {
  const { left, captured, returned, charged, reserved } = money
  const amount = amountIn(currency)
  switch (entry.kind) {
    case 'hold':
      return `Reserved ${amount(reserved)} out of the available balance, until ${moment(money.later)}.`
    case 'extend':
      return `${tellExtension(money, amount)} ${amount(left)} left in the hold.`
    case 'capture':
      return `Charged ${amount(charged)}${tellBeyond(money, amount)}. ${amount(left)} left in the hold.`
    case 'settle':
      return `Settled at ${amount(captured)} in all: ${tellCharge(money, amount)}, returned ${amount(returned)} to the available balance.`
    case 'release':
      return `Released: returned ${amount(returned)} to the available balance.`
    case 'expire':
      return `Expired: returned ${amount(returned)} to the available balance.`
    case 'refund':
      return `Refunded ${amount(money.refunded)} of what entry ${entry.of} charged, to the available balance.`
    default:
      return `${tellAll(entry.kind, money, amount)}. ${amount(left)} left in the hold.`
  }
}

type Amount = (value: number) => string

/** An entry that does several things at once: those that it did. */
function tellAll(kind: string, money: Told, amount: Amount): string {
  const { charged, reserved, returned, later } = money
  const parts = [
    ...(charged !== 0 ? [tellCharge(money, amount)] : []),
    ...(reserved > 0 ? [`reserved ${amount(reserved)} more out of the available balance`] : []),
    ...(returned > 0 ? [`returned ${amount(returned)} to the available balance`] : []),
    ...(later > 0 ? [`now until ${moment(later)}`] : []),
  ]
  return `${kind.slice(0, 1).toUpperCase()}${kind.slice(1)}: ${parts.length > 0 ? parts.join(', ') : 'no change'}`
}

function tellExtension({ reserved, later }: Told, amount: Amount): string {
  const more = reserved > 0 ? `Reserved ${amount(reserved)} more out of the available balance` : 'Reserved no more'
  return later > 0 ? `${more}, now until ${moment(later)}.` : `${more}.`
}

function tellCharge(money: Told, amount: Amount): string {
  if (money.charged < 0) return `took back ${amount(-money.charged)} that had been charged before`
  return `charged ${amount(money.charged)}${tellBeyond(money, amount)}`
}

function tellBeyond({ charged, beyond }: Told, amount: Amount): string {
  if (beyond === 0) return ' out of the hold'
  return `: ${amount(charged - beyond)} out of the hold, ${amount(beyond)} out of the available balance`
}

export function tellHold(walletId: string, told: Omit<HoldExplanation, 'text'>): string {
  const { hold, money, currency, steps, more } = told
  const until =
    hold.closedAt === undefined
      ? `open until ${moment(hold.expiresAt)}`
      : `${hold.status} since ${moment(hold.closedAt)}`
  const amount = amountIn(currency)
  const beyond = money.beyond > 0 ? ` and ${amount(money.beyond)} taken beyond it` : ''
  return [
    `Hold ${hold.id} of wallet ${walletId}, ${until}.`,
    ...steps.map(
      ({ entry, text, pending }) =>
        `  entry ${entry.seq}, ${moment(entry.at)}${pending ? ', not committed yet' : ''}: ${text}`,
    ),
    ...(more ? ['  … and more entries after these.'] : []),
    `Of ${amount(money.reserved)} reserved${beyond}: ${amount(money.charged)} charged, ${amount(money.returned)} returned, ${amount(money.left)} still reserved.`,
    `Of the charges ${amount(money.refunded)} were refunded: ${amount(money.spent)} are spent, and ${amount(money.back)} are back in the available balance.`,
  ].join('\n')
}

/** Says in each place what it counts: a line gets copied by itself, and 1,700 cents are no 1,700 dollars. */
const amountIn =
  (currency: string): Amount =>
  (value) =>
    `${count(value)} minor units of ${currency}`

/** 1234567 → 1,234,567: the same everywhere, whatever the locale of the process. */
const count = (value: number) => value.toLocaleString('en-US')

/** 2026-11-15 10:15:00.123 UTC */
const moment = (timeMs: number) => new Date(timeMs).toISOString().replace('T', ' ').replace('Z', ' UTC')
