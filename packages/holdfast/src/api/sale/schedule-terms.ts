import type { ItemTemplateRow, ListedItem, ScheduleTemplate } from '../../journal/index.js'
import * as check from '../validate.js'
import { checkItemTemplate, type ItemTemplate, itemsFrom } from './item-template.js'
import type { Slot } from './slots.js'
import { checkTerms, type ItemOptions, type SaleOptions } from './terms.js'

/** The same items for the same slot, whichever process asks. Should they differ, those of the first are on record, and stay. */
export type ItemsOf = (slot: Slot) => readonly ItemOptions[] | Promise<readonly ItemOptions[]>

export interface ScheduleOptions extends Omit<SaleOptions, 'items' | 'startsAt' | 'endsAt'> {
  /** How long a slot is, ms: 3,600,000 is every hour. */
  readonly every: number
  /** Where slots begin: so many ms after each multiple of `every` since 1970, UTC. Default 0: every hour on the hour. */
  readonly offset?: number
  /** How far ahead of its slot a sale is opened, ms. Default: one slot, and not more than five minutes. */
  readonly ahead?: number
  /** What every sale has, up to 100,000 of them: listed, or by a template. Or what makes them. */
  readonly items: readonly ItemOptions[] | ItemTemplate | ItemsOf
}

export interface CheckedSchedule {
  readonly template: ScheduleTemplate
  readonly items: readonly ListedItem[] | ItemTemplateRow | null
  readonly make: ItemsOf | null
}

const EVERY_MIN_MS = 1_000
const EVERY_MAX_MS = 400 * 24 * 60 * 60 * 1_000
const AHEAD_MS = 300_000
const AHEAD_MIN_MS = 100
/** Slots that are opened ahead of theirs, at most. */
const AHEAD_SLOTS_MAX = 100
const LISTED_MAX = 100_000

export function checkSchedule(id: string, value: unknown): CheckedSchedule {
  const { every, offset = 0, ahead, items, ...rest } = check.options('options', value)
  for (const name of ['startsAt', 'endsAt', 'timeout', 'signal']) delete rest[name]
  const everyMs = check.integer('every', every, EVERY_MIN_MS, EVERY_MAX_MS)
  const offsetMs = check.integer('offset', offset, 0, everyMs - 1)
  const aheadMax = everyMs * AHEAD_SLOTS_MAX
  const aheadMs = check.integer('ahead', ahead ?? Math.min(everyMs, AHEAD_MS), AHEAD_MIN_MS, aheadMax)
  const times = { startsAt: 0, endsAt: everyMs }
  const template = { everyMs, offsetMs, aheadMs, options: rest }
  if (typeof items === 'function') {
    // Whether the limit is one of what there is then shows when the items are made.
    checkTerms({ ...rest, ...times, items: [{ id: 'any', quantity: rest.limit ?? 1 }] })
    return { template, items: null, make: items as ItemsOf }
  }
  if (Array.isArray(items) && items.length > LISTED_MAX) {
    throw check.invalid('items', `up to ${LISTED_MAX} of them, or a function that makes them`, `${items.length}`)
  }
  if (typeof items === 'object' && items !== null && !Array.isArray(items)) {
    const made = checkItemTemplate(id, items)
    checkTerms({ ...rest, ...times, items: itemsFrom(made, { ...times, sale: id }) })
    return { template, items: made, make: null }
  }
  const { items: listed } = checkTerms({ ...rest, ...times, items })
  return { template, items: listed.map(({ id, quantity }) => [id, quantity] as const), make: null }
}
