import type { Size } from '../harness/command.js'

export interface Plan {
  /** Items of the sales, one after the other. */
  readonly items: readonly number[]
  readonly callers: number
  readonly rounds: number
  readonly warmUpMs: number
  readonly measureMs: number
}

export const PLANS: Readonly<Record<Size, Plan>> = {
  full: { items: [10_000, 100_000, 1_000_000], callers: 256, rounds: 3, warmUpMs: 500, measureMs: 1_500 },
  quick: { items: [10_000, 100_000], callers: 256, rounds: 2, warmUpMs: 200, measureMs: 400 },
  smoke: { items: [400], callers: 8, rounds: 1, warmUpMs: 50, measureMs: 100 },
}
