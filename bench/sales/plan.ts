import type { Size } from '../harness/command.js'

export interface Plan {
  readonly callers: number
  /** Sales that differ in how many items they have: the first is what the others are compared with. */
  readonly items: readonly number[]
  /** Sales that differ in how many buckets they have, with as many items as the first; 1 is what the others are compared with. */
  readonly buckets: readonly number[]
  /** Before anything is noted. */
  readonly preludeMs: number
  readonly rounds: number
  readonly warmUpMs: number
  readonly measureMs: number
}

export const PLANS: Readonly<Record<Size, Plan>> = {
  full: {
    callers: 1_000,
    items: [10_000, 100_000, 1_000_000],
    buckets: [1, 4, 16],
    preludeMs: 3_000,
    rounds: 7,
    warmUpMs: 500,
    measureMs: 2_000,
  },
  quick: {
    callers: 1_000,
    items: [10_000, 100_000],
    buckets: [1, 4],
    preludeMs: 1_000,
    rounds: 3,
    warmUpMs: 300,
    measureMs: 1_000,
  },
  smoke: { callers: 8, items: [20, 60], buckets: [1, 3], preludeMs: 50, rounds: 1, warmUpMs: 50, measureMs: 200 },
}
