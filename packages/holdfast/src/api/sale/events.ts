import { createHash } from 'node:crypto'
import type { FeedItem, FeedSale } from '../../journal/index.js'
import { type Entry as MachineEntry, readCheckout, readLinesText } from '../../machine/index.js'

/** What can be told of sales. Not told to who did not ask for them by name. */
export const SALE_EVENT_NAMES = [
  'sale.opened',
  'sale.checkout',
  'sale.purchased',
  'sale.cancelled',
  'sale.expired',
  'sale.sold_out',
  'sale.closed',
] as const

export type SaleEventName = (typeof SALE_EVENT_NAMES)[number]

type Facts = Readonly<Record<string, unknown>>

/** What happened in a sale, as its entry has it: which events that comes to, each with its facts. */
export function saleFacts(sale: FeedSale, entry: MachineEntry): [SaleEventName, Facts][] {
  const told: [SaleEventName, Facts][] = []
  const own = factsOf(sale, entry)
  if (own) told.push(own)
  // With several buckets each knows its own alone, and what one lacks another may have.
  if (sale.buckets === 1 && entry.available === 0 && entry.availableDelta < 0) {
    told.push(['sale.sold_out', { reserved: entry.reserved }])
  }
  return told
}

function factsOf(sale: FeedSale, entry: MachineEntry): [SaleEventName, Facts] | null {
  const { kind, hold, params, metadata, amount, availableDelta, holdExpiresAt: expiresAt } = entry
  const checkout = checkoutDigest(hold)
  if (params.startsWith('checkout ')) {
    const added = named(sale, readCheckout(params).lines)
    const items = named(sale, readLinesText(metadata))
    return ['sale.checkout', { checkout, items, added, expiresAt }]
  }
  switch (kind) {
    case 'settle':
      return ['sale.purchased', { checkout, items: named(sale, readLinesText(metadata)), quantity: amount }]
    case 'release':
      return ['sale.cancelled', { checkout, quantity: availableDelta }]
    case 'expire':
      return ['sale.expired', { checkout, quantity: availableDelta }]
    case 'freeze':
      return isLast(metadata) ? ['sale.closed', {}] : null
    default:
      // Stock that comes in, or goes from one bucket to another.
      return null
  }
}

/** Of a notice, which is none of the journal's: the one there is tells that a sale was opened. */
export function saleNotice(sale: FeedSale, notice: NonNullable<FeedItem['notice']>): { id: string; facts: Facts } {
  const id = createHash('sha1')
    .update(JSON.stringify([notice.event, sale.id]))
    .digest('hex')
  return { id, facts: { terms: notice.terms } }
}

/**
 * What stands for a code, which buys and so is told to nobody but its buyer. Whoever has the code knows by this that it is the one.
 */
export const checkoutDigest = (code: string): string => createHash('sha256').update(code).digest('hex').slice(0, 32)

const named = ({ itemIds }: FeedSale, lines: readonly { item: number; quantity: number }[]) =>
  lines.map(({ item, quantity }) => ({ id: itemIds.get(item) ?? '', quantity }))

/** Buckets are closed in their order. */
function isLast(metadata: string): boolean {
  if (metadata === '') return true
  const { bucket, buckets } = JSON.parse(metadata) as { bucket: number; buckets: number }
  return bucket === buckets - 1
}
