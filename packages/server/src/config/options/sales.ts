import type { ItemOptions } from 'holdfast'
import { OF_A_CHECKOUT, OF_A_SALE } from '../command-names.js'
import { option } from '../option.js'
import { amount, durationMs, instant, integer, nonEmpty, oneOf, plainText, UNIT_MS } from '../parsers.js'

const ID = '1 to 255 characters, none of them control characters'
const ITEMS =
  'ids separated by commas, each with =quantity where there are several, such as poster=500,guitar; or a JSON array'
const TIME = 'now, a time from now such as +1h, or one with its zone such as 2026-11-20T18:00:00Z'
const RESERVE = ['checkout', 'purchase'] as const
const TAKE = ['all', 'left'] as const

const isId = plainText(255)
const isQuantity = integer(1, 1_000_000_000)

/** `guitar`, or `poster=500`: a quantity stands behind the last of the equals signs, since an id may have some. */
export function oneItem(text: string): ItemOptions | undefined {
  const [, id = text, digits] = /^(.*)=(\d+)$/s.exec(text) ?? []
  const quantity = digits === undefined ? 1 : isQuantity(digits)
  return isId(id) === undefined || quantity === undefined ? undefined : { id, quantity }
}

/** The server says what is wrong with an item; here it only has to be a list. */
export function itemList(text: string): readonly ItemOptions[] | undefined {
  if (!text.startsWith('[')) return all(text.split(',').map((one) => oneItem(one.trim())))
  try {
    return JSON.parse(text) as ItemOptions[]
  } catch {
    return undefined
  }
}

const all = (items: readonly (ItemOptions | undefined)[]): readonly ItemOptions[] | undefined =>
  items.includes(undefined) ? undefined : (items as ItemOptions[])

/** Sales, by asking a server that runs. What stands at a place on the command line comes first. */
export const SALE_OPTIONS = {
  saleId: option<string>({
    flag: 'sale',
    hint: 'sale',
    argument: true,
    text: 'The sale, by its id',
    commands: OF_A_SALE,
    required: OF_A_SALE,
    expected: ID,
    parse: isId,
  }),
  checkoutCode: option<string>({
    flag: 'code',
    hint: 'code',
    argument: true,
    text: 'The code of the checkout',
    commands: OF_A_CHECKOUT,
    required: OF_A_CHECKOUT,
    secret: true,
    expected: 'the code that checkout gave',
    parse: (text) => (/^[\w-]{1,255}$/.test(text) ? text : undefined),
  }),
  saleItems: option<readonly ItemOptions[]>({
    flag: 'items',
    hint: 'list',
    text: 'Which: poster=500,guitar, or a JSON array',
    commands: ['sale open', 'sale checkout'],
    required: ['sale checkout'],
    expected: ITEMS,
    parse: itemList,
  }),
  saleItemsFile: option<string>({
    flag: 'items-file',
    hint: 'file',
    text: 'In place of --items: a file with one item a line, or with a JSON array',
    commands: ['sale open'],
    expected: 'a file',
    parse: nonEmpty,
  }),
  saleUser: option<string>({
    flag: 'user',
    hint: 'id',
    text: 'Who buys, by an id of yours',
    commands: ['sale checkout', 'sale running'],
    required: ['sale checkout', 'sale running'],
    expected: ID,
    parse: isId,
  }),
  perUser: option<number>({
    flag: 'per-user',
    hint: 'number',
    text: 'How many a user can buy',
    commands: ['sale open'],
    required: ['sale open'],
    expected: 'a whole number from 1 to 1000000000',
    parse: isQuantity,
  }),
  startsAt: option<number>({
    flag: 'starts',
    hint: 'time',
    text: 'From when on checkouts are taken',
    commands: ['sale open'],
    required: ['sale open'],
    expected: TIME,
    parse: instant,
  }),
  endsAt: option<number>({
    flag: 'ends',
    hint: 'time',
    text: 'When it ends',
    commands: ['sale open'],
    required: ['sale open'],
    expected: TIME,
    parse: instant,
  }),
  saleLimit: option<number>({
    flag: 'limit',
    hint: 'number',
    text: 'How many can be bought in all. Without it: all there are',
    commands: ['sale open'],
    expected: 'a whole number from 1 on',
    parse: amount(1),
  }),
  checkoutTtlMs: option<number>({
    flag: 'checkout-ttl',
    hint: 'duration',
    text: 'For how long a checkout is kept. Without it: until the sale ends',
    commands: ['sale open'],
    expected: 'a number with ms, s, m, h or d, such as 10m, up to 400d',
    parse: durationMs(400 * UNIT_MS.d),
  }),
  reserve: option<(typeof RESERVE)[number]>({
    flag: 'reserve',
    hint: 'when',
    text: 'When stock is set aside: with the checkout, or only when it is bought. Without it: with the checkout',
    commands: ['sale open'],
    values: RESERVE,
    expected: `one of ${RESERVE.join(', ')}`,
    parse: oneOf(RESERVE),
  }),
  buckets: option<number>({
    flag: 'buckets',
    hint: 'number',
    text: 'Over how many shards a hot sale is spread. Without it: one',
    commands: ['sale open'],
    expected: 'a whole number from 1 to 64',
    parse: integer(1, 64),
  }),
  take: option<(typeof TAKE)[number]>({
    flag: 'take',
    hint: 'what',
    text: 'Where stock is set aside only when it is bought: all or nothing, or what is left. Without it: all',
    commands: ['sale purchase'],
    values: TAKE,
    expected: `one of ${TAKE.join(', ')}`,
    parse: oneOf(TAKE),
  }),
  afterItem: option<number>({
    flag: 'after',
    hint: 'number',
    text: 'Items that come after the one with this number',
    commands: ['sale items'],
    expected: 'the number of an item, or 0',
    parse: amount(0),
  }),
} as const
