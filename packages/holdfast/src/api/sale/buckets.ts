import type { Buckets, Wanted } from '../../engine/index.js'
import type { SaleItem } from '../../journal/index.js'
import { type Place, readCode } from '../../redis/index.js'
import { shareOf } from './terms.js'

/** The buckets of a sale, and which of them a buyer is in. Always the same one: that is what keeps the limit exact. */
export function bucketsOf(places: readonly Place[], buyer: string): Buckets {
  return { places, target: Number.parseInt(buyer.slice(0, 8), 16) % places.length }
}

/** Those that a code leads to; null: it is no code of this sale. */
export function bucketsOfCode(places: readonly Place[], code: string): Buckets | null {
  const ref = readCode(code)
  if (ref === null) return null
  const target = places.findIndex((place) => place.ref === ref)
  return target < 0 ? null : { places, target }
}

/** What a bucket must have for lines to be checked out or bought: each item, and as many in all. */
export function wantedFor(items: readonly SaleItem[], quantities: readonly number[], buckets: number): Wanted[] {
  const wanted = items.map(({ item, quantity }, at) => ({
    item,
    quantity: quantities[at] as number,
    shares: Array.from({ length: buckets }, (_, bucket) => shareOf(quantity, item, bucket, buckets)),
  }))
  return [...wanted, { item: 0, quantity: quantities.reduce((sum, one) => sum + one, 0), shares: [] }]
}
