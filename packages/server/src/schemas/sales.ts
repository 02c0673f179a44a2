import type { ItemOptions, ItemTemplate, Paid, PayOptions, SoldItem } from 'holdfast'
import { Type } from 'typebox'
import { AmountOrZero, Balance, Count, Id, Metadata, oneOf, orNull, pageOf, refTo, Time, TtlMs } from './parts.js'

const LINES_MAX = 100
const ITEMS_MAX = 1_000_000
const QUANTITY_MAX = 1_000_000_000
const BUCKETS_MAX = 64
const LISTED_MAX = 100_000
const EVERY_MAX_MS = 400 * 24 * 60 * 60 * 1_000

/** Long enough for any code there is, and for a text that is none. */
export const Code = Type.String({
  minLength: 1,
  maxLength: 255,
  description: 'The code of a checkout. Who has it, and a key that may buy, can buy or cancel: keep it out of logs',
})

const Quantity = Type.Integer({ minimum: 1, maximum: QUANTITY_MAX })
const AskedItem = Type.Object(
  { id: Id, quantity: Type.Optional(Type.Integer({ ...Quantity, default: 1 })) },
  { additionalProperties: false },
)

/** What sales are opened with, but for items and times. */
const TERMS = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'How many can be bought in all. Without it: all there are',
    }),
  ),
  perUser: Type.Integer({ ...Quantity, description: 'How many a user can buy' }),
  checkoutTtl: Type.Optional(
    Type.Integer({ ...TtlMs, description: 'Milliseconds that a checkout is kept. Without it: until the sale ends' }),
  ),
  reserve: Type.Optional(
    oneOf(['checkout', 'purchase'], 'When stock is set aside: with the checkout (default), or only when it is bought'),
  ),
  buckets: Type.Optional(
    Type.Integer({ minimum: 1, maximum: BUCKETS_MAX, description: 'Over how many shards a hot sale is spread' }),
  ),
}

/** What a sale is opened with. */
export const SaleOpening = Type.Object(
  {
    items: Type.Array(AskedItem, {
      minItems: 1,
      maxItems: ITEMS_MAX,
      description: 'What there is. Without a quantity it is unique',
    }),
    ...TERMS,
    startsAt: Type.Integer({ ...Time, minimum: 0 }),
    endsAt: Type.Integer({ ...Time, minimum: 0 }),
  },
  { additionalProperties: false },
)

/** What the sales of a schedule are made from. */
export const ScheduleTerms = Type.Object(
  {
    every: Type.Integer({
      minimum: 1_000,
      maximum: EVERY_MAX_MS,
      description: 'How long a slot is, milliseconds: 3600000 is every hour',
    }),
    offset: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: EVERY_MAX_MS,
        description:
          'Where slots begin: so many milliseconds after each multiple of `every` since 1970, UTC. Without it: 0',
      }),
    ),
    ahead: Type.Optional(
      Type.Integer({
        minimum: 100,
        description:
          'How many milliseconds ahead of its slot a sale is opened: up to 100 slots, and 1,000,000 items in all. Without it: one slot, at most five minutes',
      }),
    ),
    // A list, or one item that stands for many: told apart by what they are, so that what is wrong is named where it is.
    items: Type.Unsafe<readonly ItemOptions[] | ItemTemplate>({
      ...Type.Array(AskedItem, { minItems: 1, maxItems: LISTED_MAX }),
      ...Type.Object(
        {
          id: Type.String({
            ...Id,
            description:
              "The id of each: `{n}` becomes its number from 1 on, `{sale}` the id of the slot's sale, `{startsAt}` when that begins",
          }),
          count: Type.Integer({ minimum: 1, maximum: LISTED_MAX, description: 'How many different ones' }),
          quantity: Type.Optional(Type.Integer({ ...Quantity, description: 'How many of each. Without it: 1' })),
        },
        { additionalProperties: false },
      ),
      type: ['array', 'object'],
      description:
        'What each sale has: a list, or a template that makes them anew for each slot. Up to 1,000 for each second of `every`',
    }),
    ...TERMS,
  },
  { additionalProperties: false },
)

/** Out of which wallet a purchase is paid. */
export const Pay = Type.Object(
  {
    wallet: Id,
    // One for all, or one for each id.
    price: Type.Unsafe<PayOptions['price']>({
      ...AmountOrZero,
      type: ['integer', 'object'],
      additionalProperties: AmountOrZero,
      description: "What one costs, in the wallet's smallest unit: of whichever item, or by its id",
    }),
    counter: Type.Optional(Type.String({ ...Id, description: 'The account that gets the money. Without it: revenue' })),
    metadata: Type.Optional({
      ...Metadata,
      description: "Kept with the wallet's entries. Without it: the id of the sale",
    }),
  },
  {
    additionalProperties: false,
    description:
      'Take the price out of a wallet: stock and money move together, or not at all. Needs a key with `spend` too',
  },
)

/** What a checkout asks for. */
export const CheckoutLines = Type.Array(AskedItem, { minItems: 1, maxItems: LINES_MAX })

export const Sale = Type.Object(
  {
    id: Id,
    stock: Type.Integer({ description: 'What can be checked out' }),
    reserved: Type.Integer({ description: 'What lies in open checkouts' }),
    sold: Type.Integer({ description: 'What was bought' }),
    open: Type.Boolean({ description: 'False: it was closed' }),
    soldOut: Type.Boolean({ description: 'Everything is bought, for good' }),
    limit: Count,
    perUser: Count,
    startsAt: Time,
    endsAt: Time,
    checkoutTtlMs: Count,
    reserve: oneOf(['checkout', 'purchase']),
    buckets: Count,
    items: Type.Integer({ description: 'How many different ones there are' }),
  },
  { $id: 'Sale' },
)

export const SaleItem = Type.Object(
  {
    number: Type.Integer({ description: 'Its place in the list that the sale was opened with, from 1' }),
    id: Id,
    quantity: Type.Integer({ description: 'How many there are' }),
    left: Type.Integer({ description: 'How many nobody has, as of some seconds ago' }),
  },
  { $id: 'SaleItem' },
)

const soldItems = (description: string) =>
  Type.Unsafe<readonly SoldItem[]>(Type.Array(Type.Object({ id: Id, quantity: Count }), { description }))
const replayed = Type.Boolean({ description: 'It was done before: this is the answer of the first time' })
const RUNNING = { code: Code, items: soldItems('All that is in it, also of calls before'), expiresAt: Time }

export const RunningCheckout = Type.Object(RUNNING, { $id: 'RunningCheckout' })
export const Checkout = Type.Object({ ...RUNNING, replayed }, { $id: 'Checkout' })
export const CheckoutState = Type.Object(
  {
    code: Code,
    sale: Id,
    status: oneOf(['open', 'purchased', 'cancelled', 'expired']),
    items: soldItems('What is in it, or was bought. What was given back is in it no more'),
    expiresAt: Time,
    closedAt: Type.Optional(Type.Integer({ ...Time, description: 'When it was bought, cancelled or ran out' })),
  },
  { $id: 'CheckoutState' },
)
export const Purchase = Type.Object(
  {
    code: Code,
    items: soldItems('What was bought'),
    at: Time,
    paid: Type.Unsafe<Paid | null>({
      ...Type.Object({ wallet: Id, hold: Id, amount: Balance }),
      type: ['object', 'null'],
      description: 'Out of which hold of which wallet. Null: not paid out of a wallet',
    }),
    replayed,
  },
  { $id: 'Purchase' },
)
export const Cancellation = Type.Object({ replayed }, { $id: 'Cancellation' })

/** Without codes, which buy: what stands for one is what events have. */
export const SaleAttempt = Type.Object(
  {
    position: Type.String({ description: 'Its place in the record' }),
    at: Time,
    kind: oneOf(['checkout', 'purchase', 'cancel']),
    outcome: oneOf(
      ['accepted', 'replayed', 'refused', 'failed'],
      '`replayed`: it had its answer before. `failed`: no answer was known then',
    ),
    code: Type.Optional(Type.String({ description: 'Why not: the code of the error' })),
    checkout: Type.Optional(
      Type.String({ description: 'Which checkout: the first 32 hexadecimal digits of the SHA-256 of its code' }),
    ),
    items: Type.Optional(soldItems('What was asked for')),
  },
  { $id: 'SaleAttempt' },
)

export const Schedule = Type.Object(
  {
    id: Id,
    every: Count,
    offset: Count,
    ahead: Count,
    items: orNull(
      Type.Integer({ description: 'How many each sale has. Null: a program makes them, and opens the sales' }),
    ),
    perUser: Count,
    limit: orNull(Type.Integer({ description: 'How many can be bought in all, in each sale. Null: all there are' })),
    checkoutTtl: orNull(Type.Integer({ description: 'Milliseconds. Null: until the slot ends' })),
    reserve: oneOf(['checkout', 'purchase']),
    buckets: Count,
    version: Type.Integer({ description: 'Another one with each change' }),
    paused: Type.Boolean({ description: 'Nobody opens a sale' }),
    openedUntil: orNull(Type.Integer({ description: 'Where the last slot ends that was opened. Null: none was' })),
  },
  { $id: 'Schedule' },
)

export const SaleSlot = Type.Object(
  {
    startsAt: Time,
    endsAt: Time,
    sale: Type.String({ ...Id, description: 'The id of its sale' }),
    openedAt: Time,
    version: Type.Integer({ description: 'Of the schedule, when it was opened' }),
    ready: Type.Boolean({ description: 'False: its sale has not all of its stock yet' }),
  },
  { $id: 'SaleSlot' },
)

export const SalePage = pageOf(refTo(Sale), Id)
export const SaleItemPage = pageOf(refTo(SaleItem), Type.Integer())
export const SaleAttemptPage = pageOf(refTo(SaleAttempt), Type.String())
export const SchedulePage = pageOf(refTo(Schedule), Id)
export const SaleSlotPage = pageOf(refTo(SaleSlot), Type.Integer())

export const SALE_SCHEMAS = [
  Sale,
  SaleItem,
  RunningCheckout,
  Checkout,
  CheckoutState,
  Purchase,
  Cancellation,
  SaleAttempt,
  Schedule,
  SaleSlot,
]
