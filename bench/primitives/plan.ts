import type { Size } from '../harness/command.js'

export interface Plan {
  /** Users, or whatever else is counted or leased, out of which each call takes one at random. */
  readonly scopes: number
  /** Items of the Bloom filters. */
  readonly items: number
  readonly rounds: number
  readonly callers: readonly number[]
  readonly warmUpMs: number
  readonly measureMs: number
}

export const PLANS: Readonly<Record<Size, Plan>> = {
  full: { scopes: 10_000, items: 100_000, rounds: 7, callers: [1, 64, 256], warmUpMs: 200, measureMs: 1_500 },
  quick: { scopes: 10_000, items: 100_000, rounds: 3, callers: [1, 64, 256], warmUpMs: 100, measureMs: 500 },
  smoke: { scopes: 20, items: 1_000, rounds: 1, callers: [1, 8], warmUpMs: 20, measureMs: 100 },
}
