import type { Size } from '../harness/command.js'

export interface Plan {
  readonly wallets: number
  readonly rounds: number
  /** Of the engine, before each turn. */
  readonly warmUpMs: number
  /** Requests before the first that counts: what answers is compiled while it runs, and a few thousand are not enough for that. */
  readonly warmUpRequests: number
  /** Autocannon counts in whole seconds. */
  readonly measureSeconds: number
  /** Connections, each with one request at a time; as many callers for the engine itself. */
  readonly connections: readonly number[]
}

export const PLANS: Readonly<Record<Size, Plan>> = {
  full: {
    wallets: 5_000,
    rounds: 5,
    warmUpMs: 500,
    warmUpRequests: 50_000,
    measureSeconds: 5,
    connections: [1, 16, 64, 256],
  },
  quick: { wallets: 1_000, rounds: 3, warmUpMs: 200, warmUpRequests: 20_000, measureSeconds: 3, connections: [64] },
  smoke: { wallets: 20, rounds: 1, warmUpMs: 50, warmUpRequests: 100, measureSeconds: 1, connections: [4] },
}
