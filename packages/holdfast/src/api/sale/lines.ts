import { HoldfastError } from '../../errors/index.js'
import { LINES_MAX } from '../../machine/index.js'
import * as check from '../validate.js'
import type { SaleMemory } from './memory.js'
import { checkItem } from './terms.js'

/** So many of an item, by its id. */
export interface SoldItem {
  readonly id: string
  readonly quantity: number
}

/** What somebody wants. The same item twice is not bad input but refused, and on record as such. */
export function checkLines(value: unknown): SoldItem[] {
  if (!Array.isArray(value) || value.length < 1 || value.length > LINES_MAX) {
    throw check.invalid(
      'items',
      `1 to ${LINES_MAX} of them`,
      Array.isArray(value) ? `${value.length}` : check.show(value),
    )
  }
  return value.map((one, at) => checkItem(one, `items[${at}]`, Number.MAX_SAFE_INTEGER))
}

export function refuseTwice(lines: readonly SoldItem[]): void {
  const seen = new Set<string>()
  for (const { id } of lines) {
    if (seen.has(id)) throw new HoldfastError('duplicate_item', undefined, { item: id })
    seen.add(id)
  }
}

/** As callers know them: the machine has items by their numbers. */
export async function named(
  memory: SaleMemory,
  lines: readonly { readonly item: number; readonly quantity: number }[],
): Promise<SoldItem[]> {
  const items = await memory.byNumber(lines.map(({ item }) => item))
  return lines.map(({ quantity }, at) => ({ id: items[at]?.id ?? '', quantity }))
}
