/** How sales and checkouts look to people. */
import type { CheckoutState, SaleItemState, SaleState, SoldItem } from 'holdfast'
import { momentOf, number, tableOf } from '../table.js'

/** In one word. What is in checkouts of a sale that is over comes back within seconds. */
export function stateOf({ startsAt, endsAt, open, stock, reserved }: SaleState, now: number): string {
  if (stock === 0 && reserved === 0) return 'sold out'
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

type Shown = Pick<CheckoutState, 'code'> &
  Partial<Pick<CheckoutState, 'status' | 'expiresAt'>> & { readonly items: readonly SoldItem[] }

export function checkoutText({ code, status, expiresAt, items }: Shown): string {
  const lines = [`code     ${code}`]
  if (status !== undefined) lines.push(`status   ${status}`)
  if (expiresAt !== undefined && (status === undefined || status === 'open')) {
    lines.push(`expires  ${momentOf(expiresAt)} UTC`)
  }
  if (items.length === 0) return lines.join('\n')
  const table = tableOf(
    ['ITEM', 'QUANTITY'],
    items.map(({ id, quantity }) => [id, number(quantity)]),
  )
  return [...lines, '', table].join('\n')
}
