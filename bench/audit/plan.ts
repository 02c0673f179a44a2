import type { Size } from '../harness/command.js'

export interface Plan {
  /** Cold ones, in Postgres alone, with an entry each: in all, and those of them that were never audited. */
  readonly wallets: number
  readonly fresh: number
  /** Those that callers use, beside them. */
  readonly hotWallets: number
  /** Items of a sale in Redis, half of them sold. */
  readonly saleItems: number
  readonly callers: number
  readonly rounds: number
  readonly warmUpMs: number
  readonly measureMs: number
}

export const PLANS: Readonly<Record<Size, Plan>> = {
  full: {
    wallets: 1_000_000,
    fresh: 100_000,
    hotWallets: 1_000,
    saleItems: 200_000,
    callers: 128,
    rounds: 9,
    warmUpMs: 300,
    measureMs: 2_500,
  },
  quick: {
    wallets: 100_000,
    fresh: 20_000,
    hotWallets: 1_000,
    saleItems: 40_000,
    callers: 128,
    rounds: 3,
    warmUpMs: 500,
    measureMs: 3_000,
  },
  smoke: {
    wallets: 500,
    fresh: 200,
    hotWallets: 10,
    saleItems: 400,
    callers: 8,
    rounds: 1,
    warmUpMs: 50,
    measureMs: 300,
  },
}
