import type { SaleTerms } from '../../journal/index.js'
import { command, genesisHash } from '../../machine/index.js'
import type { Place } from '../../redis/index.js'
import type { SaleTenant } from './tenant.js'
import { type CheckedItem, limitOf } from './terms.js'

/** What stock is counted in. */
export const CURRENCY = 'stock'

/** Gives every bucket of a sale that is on record its stock. Done again it changes nothing, and finishes what was begun. */
export async function fillSale(
  tenant: SaleTenant,
  id: string,
  terms: SaleTerms,
  items: readonly CheckedItem[],
): Promise<void> {
  const { keys, journal, sales } = tenant
  for (let bucket = 0; bucket < terms.buckets; bucket += 1) {
    const place = keys.ofSale(id, bucket)
    const { ref } = place
    const head = genesisHash(ref, CURRENCY)
    await journal.open({ ref, tenant: place.tenant, id, currency: CURRENCY, creditLimit: 0, metadata: '', head })
    await fill(tenant, place, limitOf(terms, items, bucket))
  }
  await sales.ready(keys.tenant, id, keys.ofSale(id, 0).ref)
}

/** The key is the engine's own: whoever opens the sale again fills nothing twice. */
async function fill({ engine }: SaleTenant, place: Place, amount: number): Promise<void> {
  if (amount === 0) return
  const credit = command({ kind: 'credit', key: '~stock', amount, counter: CURRENCY })
  await engine.submit(place, credit, { memory: false })
}
