import type { SoldItem } from 'holdfast'
import { Type } from 'typebox'
import { Count, Id, oneOf, pageOf, refTo, Time, TtlMs } from './parts.js'

const LINES_MAX = 100
const ITEMS_MAX = 1_000_000
const QUANTITY_MAX = 1_000_000_000
const BUCKETS_MAX = 64

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

/** What a sale is opened with. */
export const SaleOpening = Type.Object(
  {
    items: Type.Array(AskedItem, {
      minItems: 1,
      maxItems: ITEMS_MAX,
      description: 'What there is. Without a quantity it is unique',
    }),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: Number.MAX_SAFE_INTEGER,
        description: 'How many can be bought in all. Without it: all there are',
      }),
    ),
    perUser: Type.Integer({ ...Quantity, description: 'How many a user can buy' }),
    startsAt: Type.Integer({ ...Time, minimum: 0 }),
    endsAt: Type.Integer({ ...Time, minimum: 0 }),
    checkoutTtl: Type.Optional(
      Type.Integer({ ...TtlMs, description: 'Milliseconds that a checkout is kept. Without it: until the sale ends' }),
    ),
    reserve: Type.Optional(
      oneOf(
        ['checkout', 'purchase'],
        'When stock is set aside: with the checkout (default), or only when it is bought',
      ),
    ),
    buckets: Type.Optional(
      Type.Integer({ minimum: 1, maximum: BUCKETS_MAX, description: 'Over how many shards a hot sale is spread' }),
    ),
  },
  { additionalProperties: false },
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
  { code: Code, items: soldItems('What was bought'), at: Time, replayed },
  { $id: 'Purchase' },
)
export const Cancellation = Type.Object({ replayed }, { $id: 'Cancellation' })

export const SalePage = pageOf(refTo(Sale), Id)
export const SaleItemPage = pageOf(refTo(SaleItem), Type.Integer())

export const SALE_SCHEMAS = [Sale, SaleItem, RunningCheckout, Checkout, CheckoutState, Purchase, Cancellation]
