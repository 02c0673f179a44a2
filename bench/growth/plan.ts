import type { Size } from '../harness/command.js'

export interface Plan {
  /** Installations that differ in how many wallets they have: the first is what the others are compared with. */
  readonly wallets: readonly number[]
  /** Wallets that callers use where not all are used. */
  readonly inUse: number
  /** Wallets that differ in how many holds are open in them; the first is what the others are compared with. */
  readonly openHolds: readonly number[]
  readonly callers: number
  /** Before anything is noted. Postgres logs every page as a whole when it is first changed: with many wallets that takes a while. */
  readonly preludeMs: number
  readonly rounds: number
  readonly warmUpMs: number
  readonly measureMs: number
}

export const PLANS: Readonly<Record<Size, Plan>> = {
  full: {
    wallets: [1_000, 1_000_000],
    inUse: 1_000,
    openHolds: [1, 10_000],
    callers: 256,
    preludeMs: 20_000,
    rounds: 7,
    warmUpMs: 500,
    measureMs: 2_000,
  },
  quick: {
    wallets: [1_000, 20_000],
    inUse: 1_000,
    openHolds: [1, 10_000],
    callers: 256,
    preludeMs: 3_000,
    rounds: 3,
    warmUpMs: 300,
    measureMs: 1_000,
  },
  smoke: {
    wallets: [20, 60],
    inUse: 20,
    openHolds: [1, 30],
    callers: 8,
    preludeMs: 50,
    rounds: 1,
    warmUpMs: 50,
    measureMs: 200,
  },
}
