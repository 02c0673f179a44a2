import type { ItemTemplateRow, ListedItem, ScheduleTemplate } from '../../journal/index.js'
import * as check from '../validate.js'
import { WAIT_NAMES } from '../waiting.js'
import { checkItemTemplate, type ItemTemplate } from './item-template.js'
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

const SCHEDULE_NAMES = new Set([
  ...check.namesOf<ScheduleOptions>({
    every: true,
    offset: true,
    ahead: true,
    items: true,
    limit: true,
    perUser: true,
    checkoutTtl: true,
    reserve: true,
    buckets: true,
  }),
  ...WAIT_NAMES,
])

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
/** What few bytes ask for must not become more than a server and its disk can do: a hundredth of what one server fills, for each schedule. */
const PACE_MAX_PER_SECOND = 1_000
const AHEAD_ITEMS_MAX = 1_000_000

export function checkSchedule(id: string, value: unknown): CheckedSchedule {
  const asked = check.options('options', value, SCHEDULE_NAMES)
  const { every, offset = 0, ahead, items, timeout: _, signal: __, ...rest } = asked
  const everyMs = check.integer('every', every, EVERY_MIN_MS, EVERY_MAX_MS)
  const offsetMs = check.integer('offset', offset, 0, everyMs - 1)
  const aheadMax = everyMs * AHEAD_SLOTS_MAX
  const aheadMs = check.integer('ahead', ahead ?? Math.min(everyMs, AHEAD_MS), AHEAD_MIN_MS, aheadMax)
  const template = { everyMs, offsetMs, aheadMs, options: rest }
  if (typeof items === 'function') {
    // Whether the limit is one of what there is then shows when the items are made.
    checkRest(rest, everyMs, Number.MAX_SAFE_INTEGER)
    return { template, items: null, make: items as ItemsOf }
  }
  if (Array.isArray(items) && items.length > LISTED_MAX) {
    throw check.invalid('items', `up to ${LISTED_MAX} of them, or a function that makes them`, `${items.length}`)
  }
  if (typeof items === 'object' && items !== null && !Array.isArray(items)) {
    const made = checkItemTemplate(id, items)
    checkPace(template, made.count)
    checkRest(rest, everyMs, made.count * made.quantity)
    return { template, items: made, make: null }
  }
  if (Array.isArray(items)) checkPace(template, items.length)
  const { items: listed } = checkTerms({ ...rest, startsAt: 0, endsAt: everyMs, items })
  return { template, items: listed.map(({ id, quantity }) => [id, quantity] as const), make: null }
}

/** All but the items: `total` is how many units those are. */
function checkRest(rest: Record<string, unknown>, everyMs: number, total: number): void {
  checkTerms({ ...rest, limit: 1, startsAt: 0, endsAt: everyMs, items: [{ id: 'any' }] })
  if (rest.limit !== undefined) check.integer('limit', rest.limit, 1, total)
}

function checkPace({ everyMs, aheadMs }: ScheduleTemplate, count: number): void {
  const most = Math.floor((everyMs / 1_000) * PACE_MAX_PER_SECOND)
  if (count > most) throw check.invalid('items', `at most ${most} where \`every\` is ${everyMs}`, `${count}`)
  if (count * Math.ceil(aheadMs / everyMs) <= AHEAD_ITEMS_MAX) return
  const aheadMax = Math.floor(AHEAD_ITEMS_MAX / count) * everyMs
  throw check.invalid('ahead', `at most ${aheadMax} where each sale has ${count} items`, `${aheadMs}`)
}
