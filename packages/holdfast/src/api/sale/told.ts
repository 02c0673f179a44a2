import { type Facts, HoldfastError } from '../../errors/index.js'
import type { SaleMemory } from './memory.js'

const CODES = {
  hold_not_found: 'checkout_not_found',
  hold_closed: 'checkout_closed',
  hold_expired: 'checkout_expired',
  // Closed: what was only noted can't be had any more.
  wallet_frozen: 'sale_not_active',
} as const

/** A refusal in the words of a sale: a checkout is a hold, and an item has an id. */
export async function told(error: HoldfastError, memory: SaleMemory, buckets: number): Promise<HoldfastError> {
  if (error.facts.side === 'wallet') return error
  const code = CODES[error.code as keyof typeof CODES]
  if (code) return new HoldfastError(code)
  if (error.code !== 'sold_out' && error.code !== 'duplicate_item') return error
  const { item, stock, reserved, ...rest } = error.facts
  const named = typeof item === 'number' ? ((await memory.byNumber([item]))[0]?.id ?? '') : item
  const facts: Facts = { ...(named !== undefined && { item: named }), ...rest }
  // What one bucket of several has says nothing of the others.
  if (buckets === 1 && error.code === 'sold_out') Object.assign(facts, { stock, reserved })
  return new HoldfastError(error.code, undefined, facts)
}
