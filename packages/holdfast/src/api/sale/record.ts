import { HoldfastError } from '../../errors/index.js'
import type { AttemptKind, AttemptOutcome, AttemptPlace } from '../../journal/index.js'
import { readLinesText } from '../../machine/index.js'
import { readCode } from '../../redis/index.js'
import { PAGE_DEFAULT, PAGE_MAX } from '../reading.js'
import * as check from '../validate.js'
import type { SaleAttempt } from './attempts.js'
import type { SoldItem } from './lines.js'
import type { SaleMemory } from './memory.js'
import type { SaleTenant } from './tenant.js'

/** What is known of an attempt before it is answered. */
export interface AttemptSubject {
  readonly buyer?: string
  readonly checkout?: string
  readonly items?: readonly SoldItem[]
}

/** To be told the numbers of the items, in their order, once they are looked up. */
export type TellItems = (items: readonly { readonly item: number }[]) => void

const FAILED = { code: 'internal_error', retryable: false, status: 500 } as const

/** Does it, and puts on record what came of it. What was wrong with the input, or of no sale, is nobody's attempt. */
export async function recorded<T extends { readonly replayed: boolean; readonly code?: string }>(
  { keys, attempts }: SaleTenant,
  saleId: string,
  kind: AttemptKind,
  { buyer = '', checkout = '', items: lines }: AttemptSubject,
  work: (tell: TellItems) => Promise<T>,
): Promise<T> {
  // By their numbers: an id may have 255 characters. By their ids only where nobody could be asked what their numbers are.
  let kept: unknown = lines
  const tell: TellItems = (items) => {
    kept = lines?.map(({ quantity }, at) => [items[at]?.item, quantity])
  }
  const note = (outcome: AttemptOutcome, code: string, checkout: string): void =>
    attempts.note({
      sale: keys.ofSale(saleId, 0).ref,
      kind,
      outcome,
      code,
      buyer,
      checkout,
      items: kept ? JSON.stringify(kept) : '',
    })
  try {
    const done = await work(tell)
    note(done.replayed ? 'replayed' : 'accepted', '', done.code ?? checkout)
    return done
  } catch (error) {
    const { code, retryable, status } = error instanceof HoldfastError ? error : FAILED
    if (status !== 400 && code !== 'sale_not_found') {
      // What is no code at all is not worth keeping, whatever it is.
      note(retryable || status >= 500 ? 'failed' : 'refused', code, readCode(checkout) ? checkout : '')
    }
    throw error
  }
}

/** A page of what was tried in a sale. What this process has noted is written first. */
export async function readAttempts(tenant: SaleTenant, saleId: string, given: unknown): Promise<SaleAttempt[]> {
  const { keys, attempts } = tenant
  const { user, after, limit = PAGE_DEFAULT } = check.options('options', given)
  const buyer = user === undefined ? null : keys.buyer(saleId, check.text('user', user))
  const place = placeOf(after)
  const most = check.integer('limit', limit, 1, PAGE_MAX)
  await attempts.flush()
  const rows = await attempts.read(keys.ofSale(saleId, 0).ref, buyer, place, most)
  const itemsOf = await reader(
    () => tenant.memories.of(keys.tenant, saleId),
    rows.map(({ items }) => items),
  )
  return rows.map(({ at, writer, n, kind, outcome, code, checkout, items }) => ({
    position: `${at}-${writer}-${n}`,
    at,
    kind,
    outcome,
    ...(code !== '' && { code }),
    ...(checkout !== '' && { checkout }),
    ...(items !== '' && { items: itemsOf(items) }),
  }))
}

const hasNumbers = (text: string): boolean => text.startsWith('[[')

/** What of these texts was kept by number gets its id back: asked for once, however many attempts name it. */
async function reader(memory: () => SaleMemory, texts: readonly string[]): Promise<(text: string) => SoldItem[]> {
  const numbers = new Set(texts.filter(hasNumbers).flatMap((text) => readLinesText(text).map(({ item }) => item)))
  // Where nothing was tried there may be no sale, and nothing is to be remembered of it.
  const found = numbers.size === 0 ? [] : await memory().byNumber([...numbers])
  const items = new Map(found.map(({ item, id }) => [item, id]))
  return (text) =>
    hasNumbers(text)
      ? readLinesText(text).map(({ item, quantity }) => ({ id: items.get(item) ?? '', quantity }))
      : JSON.parse(text)
}

function placeOf(after: unknown): AttemptPlace {
  if (after === undefined) return { at: 0, writer: 0, n: 0 }
  const [, at, writer, n] = (typeof after === 'string' && /^(\d{1,15})-(\d{1,15})-(\d{1,15})$/.exec(after)) || []
  if (at === undefined) throw check.invalid('after', 'the position of an attempt', check.show(after))
  return { at: Number(at), writer: Number(writer), n: Number(n) }
}
