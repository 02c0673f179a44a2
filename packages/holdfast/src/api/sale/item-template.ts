import type { ItemTemplateRow } from '../../journal/index.js'
import * as check from '../validate.js'
import { longestSaleOf, type Slot } from './slots.js'
import type { CheckedItem } from './terms.js'

/** Items that are made anew for each slot, by what can be written down: whoever opens a slot makes the same. */
export interface ItemTemplate {
  /**
   * The id of each. `{n}` becomes its number, from 1 on; `{sale}` the id of the slot's sale, and `{startsAt}` the milliseconds since 1970 at
   * which that begins.
   */
  readonly id: string
  /** How many items there are, up to 100,000. */
  readonly count: number
  /** How many there are of each. Default 1. */
  readonly quantity?: number
}

const TEMPLATE_NAMES = check.namesOf<ItemTemplate>({ id: true, count: true, quantity: true })
const COUNT_MAX = 100_000
const QUANTITY_MAX = 1_000_000_000
const PLACES = ['n', 'sale', 'startsAt'] as const
const PLACE = /\{(\w+)\}/g
/** As late as a sale can be. */
const LATEST_MS = Date.parse('9999-12-31T23:59:59.999Z')

/** `schedule`: an id must not turn out too long when its slot has come. */
export function checkItemTemplate(schedule: string, value: object): ItemTemplateRow {
  const { id, count, quantity = 1 } = check.options('items', value, TEMPLATE_NAMES)
  const template = {
    id: check.text('items.id', id),
    count: check.integer('items.count', count, 1, COUNT_MAX),
    quantity: check.integer('items.quantity', quantity, 1, QUANTITY_MAX),
  }
  const unknown = [...template.id.matchAll(PLACE)].some(
    ([, name]) => !(PLACES as readonly string[]).includes(name ?? ''),
  )
  if (unknown) throw check.invalid('items.id', 'no other places than {n}, {sale} and {startsAt}', 'another')
  if (template.count > 1 && !template.id.includes('{n}')) throw check.invalid('items.id', '{n} in it', 'none')
  const slot = { startsAt: LATEST_MS, endsAt: LATEST_MS, sale: longestSaleOf(schedule) }
  check.text('items.id of the last', idOf(template.id, slot, template.count))
  return template
}

/** The item of this number, from 1 on. */
export const itemFrom = ({ id, quantity }: ItemTemplateRow, slot: Slot, n: number): CheckedItem => ({
  id: idOf(id, slot, n),
  quantity,
})

/** In one pass: what comes in, such as the id of a sale, may have braces of its own. */
function idOf(template: string, { sale, startsAt }: Slot, n: number): string {
  const values: Record<string, string | number> = { n, sale, startsAt }
  return template.replaceAll(PLACE, (_, name: string) => String(values[name]))
}
