import { createHash } from 'node:crypto'
import { types } from 'node:util'
import { given, integer, invalid, namesOf, oneOf, options as optionsOf, show, text } from '../../input/index.js'
import type { SaleTerms } from '../../journal/index.js'

export interface ItemOptions {
  readonly id: string
  /** How many there are. Default 1: it is unique. */
  readonly quantity?: number
}

export interface SaleOptions {
  readonly items: readonly ItemOptions[]
  /** How many can be bought in all. Default: all there are. */
  readonly limit?: number
  /** How many a user can buy. */
  readonly perUser: number
  /** Milliseconds since 1970, or a Date. */
  readonly startsAt: number | Date
  readonly endsAt: number | Date
  /** For how long a checkout is kept. Default: until the sale ends. */
  readonly checkoutTtl?: number
  /** When stock is set aside: with the checkout (default), or only when it is bought. */
  readonly reserve?: 'checkout' | 'purchase'
  /** Over how many shards a hot sale is spread. Default 1. */
  readonly buckets?: number
}

export const SALE_NAMES = namesOf<SaleOptions>({
  items: true,
  limit: true,
  perUser: true,
  startsAt: true,
  endsAt: true,
  checkoutTtl: true,
  reserve: true,
  buckets: true,
})
const ITEM_NAMES = namesOf<ItemOptions>({ id: true, quantity: true })

export interface CheckedItem {
  readonly id: string
  readonly quantity: number
}

const ITEMS_MAX = 1_000_000
const QUANTITY_MAX = 1_000_000_000
const BUCKETS_MAX = 64
/** A checkout that lasts longer than any sale. */
const TTL_MAX_MS = 400 * 24 * 60 * 60 * 1_000
const INSTANT_MAX_MS = Date.parse('9999-12-31T23:59:59.999Z')

/** What costs next to nothing comes first: of items there may be a million. */
export function checkTerms(value: unknown): { terms: SaleTerms; items: CheckedItem[] } {
  const asked = optionsOf('options', value)
  given('perUser', asked.perUser, 'how many a user can buy')
  const startsAt = instant('startsAt', asked.startsAt)
  const endsAt = instant('endsAt', asked.endsAt)
  if (endsAt <= startsAt) throw invalid('endsAt', 'a time after startsAt', 'one before it, or the same')
  const { checkoutTtl = TTL_MAX_MS, reserve = 'checkout', buckets = 1 } = asked
  const cheap = {
    perUser: integer('perUser', asked.perUser, 1, QUANTITY_MAX),
    startsAt,
    endsAt,
    checkoutTtlMs: integer('checkoutTtl', checkoutTtl, 1, TTL_MAX_MS),
    reserve: oneOf('reserve', reserve, ['checkout', 'purchase'] as const),
    buckets: integer('buckets', buckets, 1, BUCKETS_MAX),
  }
  if (asked.limit !== undefined) integer('limit', asked.limit, 1, Number.MAX_SAFE_INTEGER)
  const items = checkItems(asked.items)
  const total = items.reduce((sum, { quantity }) => sum + quantity, 0)
  if (!Number.isSafeInteger(total)) throw invalid('items', `at most ${Number.MAX_SAFE_INTEGER} in all`, 'more')
  const limit = integer('limit', asked.limit ?? total, 1, total)
  const hash = createHash('sha256')
  for (const item of items) hash.update(hashedText(item))
  return { terms: { limit, ...cheap, items: items.length, itemsHash: hash.digest('hex') }, items }
}

/** What stands for an item in the hash over all of them. */
export const hashedText = ({ id, quantity }: CheckedItem): string => `${Buffer.byteLength(id)}:${id}${quantity};`

function checkItems(value: unknown): CheckedItem[] {
  if (!Array.isArray(value)) throw invalid('items', 'an array', show(value))
  if (value.length < 1 || value.length > ITEMS_MAX)
    throw invalid('items', `1 to ${ITEMS_MAX} of them`, `${value.length}`)
  const items = value.map((one, at) => checkItem(one, `items[${at}]`, QUANTITY_MAX))
  if (new Set(items.map(({ id }) => id)).size < items.length)
    throw invalid('items', 'each id once', 'one more than once')
  return items
}

export function checkItem(value: unknown, name: string, quantityMax: number): CheckedItem {
  const { id, quantity = 1 } = optionsOf(name, value ?? null, ITEM_NAMES)
  return { id: text(`${name}.id`, id), quantity: integer(`${name}.quantity`, quantity, 1, quantityMax) }
}

function instant(name: string, value: unknown): number {
  // Not `instanceof`: a date of another realm (a test runner's) is a date too.
  const ms = types.isDate(value) ? value.getTime() : value
  return integer(name, ms, 0, INSTANT_MAX_MS)
}

/** How many of an item a bucket begins with. What does not divide evenly goes to one bucket more for each, in turn. */
export function shareOf(quantity: number, item: number, bucket: number, buckets: number): number {
  const extra = (bucket + buckets - (item % buckets)) % buckets < quantity % buckets ? 1 : 0
  return Math.floor(quantity / buckets) + extra
}

/** How many can be checked out of a bucket in all. */
export function limitOf({ limit, buckets }: SaleTerms, items: readonly CheckedItem[], bucket: number): number {
  const total = items.reduce((sum, { quantity }) => sum + quantity, 0)
  if (limit < total) return shareOf(limit, 0, bucket, buckets)
  return items.reduce((sum, { quantity }, at) => sum + shareOf(quantity, at + 1, bucket, buckets), 0)
}
