import type { Size } from '../harness/command.js'

export interface Plan {
  readonly clients: number
  /** Of each: a top-up, and then deductions. */
  readonly transactions: number
}

export const PLANS: Readonly<Record<Size, Plan>> = {
  full: { clients: 100_000, transactions: 10 },
  quick: { clients: 1_000, transactions: 10 },
  smoke: { clients: 60, transactions: 4 },
}
