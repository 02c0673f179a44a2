import type { Size } from '../harness/command.js'

export interface Plan {
  /** Over which `spread` is spread. */
  readonly wallets: number
  readonly rounds: number
  readonly entriesPerStatement: readonly number[]
  /** A round of a cell lasts for so many entries, but no more than so many statements. */
  readonly entries: number
  readonly statementsMax: number
}

/** Appends under way at once, each with wallets of its own: as many as the engine has. */
export const LANES = 2

export const PLANS: Readonly<Record<Size, Plan>> = {
  full: { wallets: 10_000, rounds: 5, entriesPerStatement: [1, 20, 100, 1_000], entries: 40_000, statementsMax: 2_000 },
  quick: { wallets: 1_000, rounds: 3, entriesPerStatement: [1, 20, 100, 1_000], entries: 20_000, statementsMax: 1_000 },
  smoke: { wallets: 20, rounds: 1, entriesPerStatement: [1, 20], entries: 100, statementsMax: 20 },
}
