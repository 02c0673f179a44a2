import type { HoldfastError } from '../../errors/index.js'

/** What became of a call. `result` is the word by which it is counted too. */

export interface Written {
  readonly result: 'written'
}

export interface WrittenOver<Value> extends Written {
  /** What it was before; null: nothing. */
  readonly previous: Value | null
}

/** Nothing was written. */
export interface Refused<Value> {
  readonly result: 'refused'
  /** What is there instead; null: nothing, and it was to be written only over something. */
  readonly current: Value | null
}

export interface Swapped {
  readonly result: 'swapped'
}

export interface Deleted {
  readonly result: 'deleted'
}

/** Something else is there than was expected; nothing was changed. */
export interface Differs<Value> {
  readonly result: 'differs'
  readonly current: Value
}

/** Nothing is there: it never was, or has expired; nothing was changed. */
export interface Missing {
  readonly result: 'missing'
}

export interface Found<Value> {
  readonly result: 'found'
  readonly value: Value
}

/** One of many could not be done, or it is not known whether it was: see the error's `outcome`. */
export interface Failed {
  readonly result: 'failed'
  readonly error: HoldfastError
}

/** For how long something is still there. */
export type CellTime = Missing | { readonly result: 'no_end' } | { readonly result: 'ends'; readonly leftMs: number }

export type CellSet<Value> = Written | Refused<Value>
export type CellSetOver<Value> = WrittenOver<Value> | Refused<Value>
export type CellSwap<Value> = Swapped | Differs<Value> | Missing
export type CellDelete<Value> = Deleted | Differs<Value> | Missing
export type CellRead<Value> = Found<Value> | Missing

/** Of a batch. */
export type OneOfMany<Result> = Result | Failed
