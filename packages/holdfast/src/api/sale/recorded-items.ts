import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import type { ItemTemplateRow, ListedItem, SaleTerms } from '../../journal/index.js'
import { itemFrom } from './item-template.js'
import type { Slot } from './slots.js'
import { type CheckedItem, checkTerms, hashedText } from './terms.js'

/** Then others have the thread for a moment: 100,000 at once took it for half a second. */
const PORTION = 5_000

/**
 * What the sale of a slot is opened with, from a schedule that was checked when it was put on record. The same as `checkTerms` makes of the same
 * items, in portions.
 */
export async function termsFromRecord(
  options: Readonly<Record<string, unknown>>,
  recorded: readonly ListedItem[] | ItemTemplateRow,
  slot: Slot,
): Promise<{ terms: SaleTerms; items: CheckedItem[] }> {
  const hash = createHash('sha256')
  const items: CheckedItem[] = []
  let total = 0
  const count = 'count' in recorded ? recorded.count : recorded.length
  while (items.length < count) {
    let text = ''
    for (const until = Math.min(count, items.length + PORTION); items.length < until; ) {
      const item = 'count' in recorded ? itemFrom(recorded, slot, items.length + 1) : listed(recorded[items.length])
      items.push(item)
      text += hashedText(item)
      total += item.quantity
    }
    hash.update(text)
    await setImmediate()
  }
  const { startsAt, endsAt } = slot
  const { terms } = checkTerms({ ...options, limit: 1, startsAt, endsAt, items: [{ id: 'any' }] })
  const limit = (options.limit as number | undefined) ?? total
  return { terms: { ...terms, limit, items: count, itemsHash: hash.digest('hex') }, items }
}

const listed = (item: ListedItem | undefined): CheckedItem => {
  const [id, quantity] = item as ListedItem
  return { id, quantity }
}
