import { type Static, type TSchema, Type } from 'typebox'

/** 2^53 − 1. */
const AMOUNT_MAX = Number.MAX_SAFE_INTEGER
const TTL_MAX_MS = 400 * 24 * 60 * 60 * 1_000

/** What is wrong with an amount has a code of its own: see `validationError`. */
const AMOUNT = { maximum: AMOUNT_MAX, 'x-code': 'invalid_amount' } as const

export const Amount = Type.Integer({
  minimum: 1,
  ...AMOUNT,
  description: "In the wallet's smallest unit: cents, tokens, seconds",
})
export const AmountOrZero = Type.Integer({ minimum: 0, ...AMOUNT })
export const Id = Type.String({ minLength: 1, maxLength: 255, description: 'No control characters' })
export const TtlMs = Type.Integer({ minimum: 1, maximum: TTL_MAX_MS, description: 'Milliseconds' })
export const Seq = Type.Integer({ minimum: 1, maximum: AMOUNT_MAX, description: 'The number of an entry' })
export const Metadata = Type.Unknown({ description: 'Up to 4 kB of JSON, kept as it is' })
export const Balance = Type.Integer({ minimum: -AMOUNT_MAX, maximum: AMOUNT_MAX })
export const Time = Type.Integer({ description: 'Milliseconds since 1970' })
export const Count = Type.Integer({ minimum: 0 })

export const Beyond = Type.Unsafe<'reject' | 'available'>({
  type: 'string',
  enum: ['reject', 'available'],
  default: 'reject',
  description: 'What the hold does not cover: reject the charge, or take the rest from `available`',
})

export const oneOf = <const Values extends readonly string[]>(values: Values, description?: string) =>
  Type.Unsafe<Values[number]>({ type: 'string', enum: [...values], ...(description && { description }) })

export const orNull = <T extends TSchema & { type: string }>({ type, ...schema }: T) =>
  Type.Unsafe<Static<T> | null>({ ...schema, type: [type, 'null'] })

/** A schema that stands in the description once, by its name. */
export const refTo = <T extends TSchema>(schema: T & { $id?: string }) =>
  Type.Unsafe<Static<T>>({ $ref: `${schema.$id}#` })

/** A page of a list, and where the next one begins. */
export const pageOf = <Item extends TSchema, Cursor extends TSchema & { type: string }>(item: Item, cursor: Cursor) =>
  Type.Object({
    data: Type.Array(item),
    next: orNull({ ...cursor, description: 'Give this as `after` to read on. Null: this was the last page' }),
  })

export const PAGE_MAX = 1_000
export const PageLimit = Type.Integer({ minimum: 1, maximum: PAGE_MAX, default: 100 })
export const AfterSeq = Type.Integer({ minimum: 0, maximum: AMOUNT_MAX - 1, default: 0 })
export const Pending = Type.Boolean({
  default: false,
  description: 'What is decided, also where it is not committed yet',
})
