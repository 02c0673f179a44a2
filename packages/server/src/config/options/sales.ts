import type { ItemOptions, PayOptions } from 'holdfast'
import { OF_A_CHECKOUT, OF_A_SALE, OF_A_SCHEDULE, OPENINGS } from '../command-names.js'
import { option } from '../option.js'
import { amount, durationMs, instant, integer, nonEmpty, oneOf, plainText, UNIT_MS } from '../parsers.js'

const ID = '1 to 255 characters, none of them control characters'
const ITEMS =
  'ids separated by commas, each with =quantity where there are several, such as poster=500,guitar; or a JSON array'
const DURATION = 'a number with ms, s, m, h or d, such as 10m, up to 400d'
const TIME = 'now, a time from now such as +1h, or one with its zone such as 2026-11-20T18:00:00Z'
const RESERVE = ['checkout', 'purchase'] as const
const TAKE = ['all', 'left'] as const

const isId = plainText(255)
const isQuantity = integer(1, 1_000_000_000)
const isPrice = amount(0)

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

/** `1500`, or one for each id: `poster=1500,guitar=8000`, or a JSON object. What is wrong with that one the server says. */
function prices(text: string): PayOptions['price'] | undefined {
  if (text.startsWith('{')) {
    try {
      return JSON.parse(text) as Record<string, number>
    } catch {
      return undefined
    }
  }
  const one = isPrice(text)
  if (one !== undefined) return one
  const pairs = text.split(',').map((pair): [string, number | undefined] => {
    const [, id = '', digits = ''] = /^(.+)=(\d+)$/s.exec(pair.trim()) ?? []
    return [id, isPrice(digits)]
  })
  return pairs.every(([, price]) => price !== undefined) ? Object.fromEntries(pairs as [string, number][]) : undefined
}

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
  scheduleId: option<string>({
    flag: 'schedule',
    hint: 'schedule',
    argument: true,
    text: 'The schedule, by its id',
    commands: OF_A_SCHEDULE,
    required: OF_A_SCHEDULE,
    expected: '1 to 230 characters, none of them control characters',
    parse: plainText(230),
  }),
  everyMs: option<number>({
    flag: 'every',
    hint: 'duration',
    text: 'How often there is a sale, and how long each lasts',
    commands: ['sale repeat'],
    required: ['sale repeat'],
    expected: DURATION,
    parse: durationMs(400 * UNIT_MS.d),
  }),
  offsetMs: option<number>({
    flag: 'offset',
    hint: 'duration',
    text: 'How long after each multiple of --every since 1970, UTC, they begin. Without it: on the hour where that is 1h',
    commands: ['sale repeat'],
    expected: DURATION,
    parse: durationMs(400 * UNIT_MS.d),
  }),
  aheadMs: option<number>({
    flag: 'ahead',
    hint: 'duration',
    text: 'How long before it begins each is opened. Without it: one slot, at most five minutes',
    commands: ['sale repeat'],
    expected: DURATION,
    parse: durationMs(400 * UNIT_MS.d),
  }),
  saleItems: option<readonly ItemOptions[]>({
    flag: 'items',
    hint: 'list',
    text: 'Which: poster=500,guitar, or a JSON array',
    commands: [...OPENINGS, 'sale checkout'],
    required: ['sale checkout'],
    expected: ITEMS,
    parse: itemList,
  }),
  saleItemsFile: option<string>({
    flag: 'items-file',
    hint: 'file',
    text: 'In place of --items: a file with one item a line, or with a JSON array',
    commands: OPENINGS,
    expected: 'a file',
    parse: nonEmpty,
  }),
  itemTemplate: option<string>({
    flag: 'item-template',
    hint: 'id',
    text: 'In place of --items: what the ids of --count items are made from. {n} becomes the number of each, {sale} the id of its sale, {startsAt} when that begins',
    commands: ['sale repeat'],
    needs: 'itemCount',
    expected: ID,
    parse: isId,
  }),
  itemCount: option<number>({
    flag: 'count',
    hint: 'number',
    text: 'How many items are made by --item-template',
    commands: ['sale repeat'],
    needs: 'itemTemplate',
    expected: 'a whole number from 1 to 100000',
    parse: integer(1, 100_000),
  }),
  itemQuantity: option<number>({
    flag: 'quantity',
    hint: 'number',
    text: 'How many there are of each of those. Without it: 1',
    commands: ['sale repeat'],
    needs: 'itemTemplate',
    expected: 'a whole number from 1 to 1000000000',
    parse: isQuantity,
  }),
  saleUser: option<string>({
    flag: 'user',
    hint: 'id',
    text: 'Who buys, by an id of yours',
    commands: ['sale checkout', 'sale running', 'sale attempts'],
    required: ['sale checkout', 'sale running'],
    expected: ID,
    parse: isId,
  }),
  perUser: option<number>({
    flag: 'per-user',
    hint: 'number',
    text: 'How many a user can buy',
    commands: OPENINGS,
    required: OPENINGS,
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
    commands: OPENINGS,
    expected: 'a whole number from 1 on',
    parse: amount(1),
  }),
  checkoutTtlMs: option<number>({
    flag: 'checkout-ttl',
    hint: 'duration',
    text: 'For how long a checkout is kept. Without it: until the sale ends',
    commands: OPENINGS,
    expected: DURATION,
    parse: durationMs(400 * UNIT_MS.d),
  }),
  reserve: option<(typeof RESERVE)[number]>({
    flag: 'reserve',
    hint: 'when',
    text: 'When stock is set aside: with the checkout, or only when it is bought. Without it: with the checkout',
    commands: OPENINGS,
    values: RESERVE,
    expected: `one of ${RESERVE.join(', ')}`,
    parse: oneOf(RESERVE),
  }),
  buckets: option<number>({
    flag: 'buckets',
    hint: 'number',
    text: 'Over how many shards a hot sale is spread. Without it: one',
    commands: OPENINGS,
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
  payWallet: option<string>({
    flag: 'pay-with',
    hint: 'wallet',
    text: 'Take the price out of this wallet: stock and money move together, or not at all. The key needs the scope spend as well',
    commands: ['sale purchase'],
    needs: 'price',
    expected: ID,
    parse: isId,
  }),
  price: option<PayOptions['price']>({
    flag: 'price',
    hint: 'price',
    text: "What one costs, in the wallet's smallest unit: 1500 for whichever item, or poster=1500,guitar=8000, or a JSON object",
    commands: ['sale purchase'],
    needs: 'payWallet',
    expected: 'a whole number from 0 on, or one for each item such as poster=1500,guitar=8000, or a JSON object',
    parse: prices,
  }),
  afterItem: option<number>({
    flag: 'after',
    hint: 'number',
    text: 'Items that come after the one with this number',
    commands: ['sale items'],
    expected: 'the number of an item, or 0',
    parse: amount(0),
  }),
  afterAttempt: option<string>({
    flag: 'after',
    hint: 'position',
    text: 'Attempts that come after the one at this position',
    commands: ['sale attempts'],
    expected: 'the position of an attempt',
    parse: (text) => (/^(\d{1,15}-){2}\d{1,15}$/.test(text) ? text : undefined),
  }),
  afterSlot: option<number>({
    flag: 'after',
    hint: 'ms',
    text: 'Slots that begin before this one, by the milliseconds since 1970 at which it begins',
    commands: ['sale slots'],
    expected: 'milliseconds since 1970',
    parse: amount(1),
  }),
} as const
