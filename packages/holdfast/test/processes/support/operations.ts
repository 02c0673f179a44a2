/** What workers do and tell: shared by the worker, which is a process of its own, and the test that judges it. */
import type { UnitTerms as MeterByUnits } from '../../../src/index.js'

export type UnitTerms = Omit<MeterByUnits, 'key'>

export type Kind = 'credit' | 'debit' | 'hold' | 'capture' | 'extend' | 'settle' | 'release' | 'refund'

export interface Operation {
  readonly wallet: string
  readonly kind: Kind
  readonly key: string
  readonly amount: number
  readonly hold: string
  readonly ttl: number
  readonly beyond: 'reject' | 'available'
  /** refund: the seq of the charge. */
  readonly of: number
}

export type Outcome =
  | {
      readonly type: 'yes'
      readonly seq: number
      readonly hash: string
      readonly available: number
      readonly reserved: number
      readonly replayed: boolean
    }
  | { readonly type: 'no'; readonly code: string }
  | { readonly type: 'unknown'; readonly code: string }

export interface AskedTransfer {
  readonly from: string
  readonly to: string
  readonly amount: number
  readonly fee: number
  readonly key: string
}

export interface AskedPurchase {
  readonly sale: string
  readonly code: string
  readonly take: 'all' | 'left'
  readonly wallet: string
  readonly price: number
}

export type Told =
  | { readonly type: 'ready' | 'done' | 'closed' }
  | { readonly type: 'begin'; readonly operation: Operation }
  | { readonly type: 'end'; readonly operation: Operation; readonly outcome: Outcome }
  /** A session: as many units are about to be delivered, or told of. */
  | { readonly type: 'units'; readonly total: number }

export type Order =
  | {
      readonly type: 'random'
      readonly name: string
      readonly seed: number
      readonly count: number
      readonly callers: number
      readonly wallets: readonly string[]
      readonly others: readonly string[]
    }
  | { readonly type: 'one'; readonly operation: Operation; readonly durability?: 'memory' }
  /** Begins a metered session and delivers a unit a millisecond. */
  | { readonly type: 'stream'; readonly wallet: string; readonly key: string; readonly terms: UnitTerms }
  /** Tells a metered session of these totals, one after the other. */
  | { readonly type: 'ticks'; readonly wallet: string; readonly session: string; readonly totals: readonly number[] }
  | { readonly type: 'transfer'; readonly transfer: AskedTransfer }
  | { readonly type: 'purchase'; readonly purchase: AskedPurchase }
  | { readonly type: 'close' }

export function operation(given: Pick<Operation, 'wallet' | 'kind' | 'key'> & Partial<Operation>): Operation {
  return { amount: 0, hold: '', ttl: 0, beyond: 'reject', of: 0, ...given }
}

/** The same numbers for the same seed, so that a failed run can be looked at again. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}
