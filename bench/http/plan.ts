import type { Size } from '../harness/command.js'

export interface Plan {
  readonly wallets: number
  readonly rounds: number
  readonly warmUpMs: number
  /** Autocannon counts in whole seconds. */
  readonly measureSeconds: number
  /** Connections, each with one request at a time; as many callers for the engine itself. */
  readonly connections: readonly number[]
}

export const PLANS: Readonly<Record<Size, Plan>> = {
  full: { wallets: 5_000, rounds: 5, warmUpMs: 2_000, measureSeconds: 5, connections: [1, 16, 64, 256] },
  quick: { wallets: 1_000, rounds: 3, warmUpMs: 1_000, measureSeconds: 2, connections: [16, 64] },
  smoke: { wallets: 20, rounds: 1, warmUpMs: 100, measureSeconds: 1, connections: [4] },
}
