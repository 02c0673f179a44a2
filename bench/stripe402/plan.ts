import type { Size } from '../harness/command.js'

export interface Plan {
  /** Over which `spread` is spread. */
  readonly clients: number
  readonly rounds: number
  readonly callers: readonly number[]
  readonly warmUpMs: number
  readonly measureMs: number
}

export const PLANS: Readonly<Record<Size, Plan>> = {
  full: { clients: 10_000, rounds: 7, callers: [1, 64, 256], warmUpMs: 200, measureMs: 2_000 },
  quick: { clients: 1_000, rounds: 3, callers: [1, 64, 256], warmUpMs: 100, measureMs: 600 },
  smoke: { clients: 20, rounds: 1, callers: [1, 8], warmUpMs: 20, measureMs: 100 },
}

/** Enough that nobody is refused: what is measured is work, not refusals. */
export const FUNDS = 1_000_000_000_000
export const AMOUNT = 100
