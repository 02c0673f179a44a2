/** What buyers do and tell: shared by the process that they live in, and the test that judges it. */

/**
 * Buys one item after the other until all are gone, as users whose numbers are `first`, `first + step`, …, below `users`. Every other one of them
 * goes on until the limit stops it.
 */
export interface Stampede {
  readonly type: 'stampede'
  readonly sale: string
  readonly users: number
  readonly first: number
  readonly step: number
  /** Numbers of items, in the order in which they are asked for. */
  readonly items: readonly number[]
  /** Callers at a time. */
  readonly callers: number
}

/** Everybody at once: each user checks out the same item, and buys it if that worked. */
export interface Rush {
  readonly type: 'rush'
  readonly sale: string
  readonly users: readonly string[]
  readonly item: string
}

export interface CheckOut {
  readonly type: 'checkout'
  readonly sale: string
  readonly user: string
  readonly item: string
  readonly key: string
}

export type Order = Stampede | Rush | CheckOut | { readonly type: 'close' }

/** What was bought, as its buyer was told. */
export interface Bought {
  readonly user: string
  readonly item: string
  readonly code: string
}

export type Told =
  | { readonly type: 'ready' | 'closed' }
  | { readonly type: 'done'; readonly bought: readonly Bought[]; readonly refused: Readonly<Record<string, number>> }
