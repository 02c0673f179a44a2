/** How sales and checkouts look to people. */
import type {
  CheckoutState,
  OpenedSlot,
  Paid,
  SaleAttempt,
  SaleItemState,
  SaleState,
  ScheduleState,
  SoldItem,
} from 'holdfast'
import { UNIT_MS } from '../../config/parsers.js'
import { momentOf, number, tableOf } from '../table.js'

/** In one word. What is in checkouts of a sale that is over comes back within seconds. */
export function stateOf({ startsAt, endsAt, open, soldOut }: SaleState, now: number): string {
  if (soldOut) return 'sold out'
  if (now >= endsAt) return 'over'
  if (!open) return 'closed'
  return now < startsAt ? 'upcoming' : 'running'
}

export const saleTable = (sales: readonly SaleState[]): string =>
  tableOf(
    ['SALE', 'STATE', 'LEFT', 'IN CHECKOUTS', 'SOLD', 'PER USER', 'STARTS (UTC)', 'ENDS (UTC)'],
    sales.map((sale) => [
      sale.id,
      stateOf(sale, Date.now()),
      number(sale.stock),
      number(sale.reserved),
      number(sale.sold),
      number(sale.perUser),
      momentOf(sale.startsAt),
      momentOf(sale.endsAt),
    ]),
  )

export const itemTable = (items: readonly SaleItemState[]): string =>
  tableOf(
    ['NUMBER', 'ITEM', 'QUANTITY', 'LEFT'],
    items.map((item) => [number(item.number), item.id, number(item.quantity), number(item.left)]),
  )

/** 1h, 90m, 1500ms: as it can be given. */
function lengthOf(ms: number): string {
  const unit = (['d', 'h', 'm', 's'] as const).find((one) => ms % UNIT_MS[one] === 0) ?? 'ms'
  return `${ms / UNIT_MS[unit]}${unit}`
}

export const scheduleTable = (schedules: readonly ScheduleState[]): string =>
  tableOf(
    ['SCHEDULE', 'STATE', 'EVERY', 'ITEMS', 'PER USER', 'OPEN UNTIL (UTC)', 'VERSION'],
    schedules.map(({ id, paused, every, items, perUser, openedUntil, version }) => [
      id,
      paused ? 'paused' : 'running',
      lengthOf(every),
      items === null ? 'made by a program' : number(items),
      number(perUser),
      openedUntil === null ? '' : momentOf(openedUntil),
      number(version),
    ]),
  )

export const slotTable = (slots: readonly OpenedSlot[]): string =>
  tableOf(
    ['SALE', 'STARTS (UTC)', 'ENDS (UTC)', 'OPENED (UTC)', 'READY'],
    slots.map(({ sale, startsAt, endsAt, openedAt, ready }) => [
      sale,
      ...[startsAt, endsAt, openedAt].map(momentOf),
      ready ? 'yes' : 'not yet',
    ]),
  )

export const attemptTable = (attempts: readonly SaleAttempt[]): string =>
  tableOf(
    ['TIME (UTC)', 'WHAT', 'OUTCOME', 'WHY', 'CHECKOUT', 'ITEMS'],
    attempts.map(({ at, kind, outcome, code = '', checkout = '', items = [] }) => [
      momentOf(at),
      kind,
      outcome,
      code,
      checkout,
      items.map(({ id, quantity }) => (quantity === 1 ? id : `${id}=${quantity}`)).join(','),
    ]),
  )

type Shown = Pick<CheckoutState, 'code'> &
  Partial<Pick<CheckoutState, 'status' | 'expiresAt'>> & {
    readonly items: readonly SoldItem[]
    readonly paid?: Paid | null
  }

export function checkoutText({ code, status, expiresAt, items, paid }: Shown): string {
  const lines = [`code     ${code}`]
  if (status !== undefined) lines.push(`status   ${status}`)
  if (expiresAt !== undefined && (status === undefined || status === 'open')) {
    lines.push(`expires  ${momentOf(expiresAt)} UTC`)
  }
  if (paid) lines.push(`paid     ${number(paid.amount)} out of ${paid.wallet}, hold ${paid.hold}`)
  if (items.length === 0) return lines.join('\n')
  const table = tableOf(
    ['ITEM', 'QUANTITY'],
    items.map(({ id, quantity }) => [id, number(quantity)]),
  )
  return [...lines, '', table].join('\n')
}
