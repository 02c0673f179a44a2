import type { Size } from '../harness/command.js'

export interface Scenario {
  readonly spread: 'many' | 'hot'
  readonly callers: number
  /** Engine processes that share the callers. */
  readonly processes: number
  /** More callers than may wait: it takes them seconds to find out how often to ask, so that it is measured after that, and for longer. */
  readonly overload: boolean
}

export interface Plan {
  /** Beside these there is one more, the hot one. */
  readonly wallets: number
  readonly rounds: number
  readonly warmUpMs: number
  readonly measureMs: number
  readonly overloadWarmUpMs: number
  readonly overloadMeasureMs: number
  readonly scenarios: readonly Scenario[]
}

const on = (spread: Scenario['spread'], callers: number, processes = 1): Scenario => ({
  spread,
  callers,
  processes,
  overload: callers > 10_000,
})

export const PLANS: Readonly<Record<Size, Plan>> = {
  full: {
    wallets: 5_000,
    rounds: 5,
    warmUpMs: 500,
    measureMs: 1_500,
    overloadWarmUpMs: 4_000,
    overloadMeasureMs: 4_000,
    scenarios: [
      ...[1, 64, 256, 1_024, 4_096, 16_384].map((callers) => on('many', callers)),
      ...[64, 1_024].map((callers) => on('hot', callers)),
      on('many', 256, 2),
      on('hot', 256, 2),
    ],
  },
  quick: {
    wallets: 1_000,
    rounds: 2,
    warmUpMs: 200,
    measureMs: 400,
    overloadWarmUpMs: 2_500,
    overloadMeasureMs: 1_500,
    scenarios: [on('many', 1), on('many', 64), on('many', 1_024), on('many', 16_384), on('hot', 64)],
  },
  smoke: {
    wallets: 20,
    rounds: 1,
    warmUpMs: 50,
    measureMs: 200,
    overloadWarmUpMs: 50,
    overloadMeasureMs: 200,
    scenarios: [on('many', 8), on('hot', 8, 2)],
  },
}
