import type { Size } from '../harness/command.js'
import type { ContenderName } from './contenders/index.js'

export interface Scenario {
  readonly name: string
  readonly spread: 'many' | 'hot'
  readonly callers: number
  /** Engine processes that share the callers. */
  readonly processes: number
  readonly contenders: readonly ContenderName[]
}

export interface Plan {
  /** Beside these there is one more, the hot one. */
  readonly wallets: number
  readonly rounds: number
  readonly warmUpMs: number
  readonly measureMs: number
  /** Before anything is noted: the code of every contender gets compiled, caches fill. */
  readonly preludeMs: number
  readonly scenarios: readonly Scenario[]
}

const WAYS: readonly ContenderName[] = ['ledger', 'memory', 'rowlock', 'redislock', 'singleledger', 'singlememory']

function scenario(spread: Scenario['spread'], callers: number, processes = 1): Scenario {
  const who = callers === 1 ? '1 caller' : `${callers.toLocaleString('en')} callers`
  const where = spread === 'hot' ? 'one hot wallet' : 'spread'
  return {
    name: `${who}, ${where}${processes > 1 ? `, ${processes} processes` : ''}`,
    spread,
    callers,
    processes,
    // Alone, a caller is held up by nobody: then the round trips themselves are what to compare with.
    contenders: callers === 1 ? [...WAYS, 'roundtrip'] : WAYS,
  }
}

export const PLANS: Readonly<Record<Size, Plan>> = {
  full: {
    wallets: 10_000,
    rounds: 5,
    warmUpMs: 300,
    measureMs: 1_200,
    preludeMs: 2_000,
    scenarios: [
      ...[1, 64, 256, 1_024].map((callers) => scenario('many', callers)),
      ...[1, 64, 256, 1_024].map((callers) => scenario('hot', callers)),
      scenario('many', 256, 2),
      scenario('hot', 256, 2),
    ],
  },
  quick: {
    wallets: 1_000,
    rounds: 2,
    warmUpMs: 100,
    measureMs: 300,
    preludeMs: 300,
    scenarios: [scenario('many', 1), scenario('many', 64), scenario('many', 256), scenario('hot', 256)],
  },
  smoke: {
    wallets: 20,
    rounds: 1,
    warmUpMs: 20,
    measureMs: 100,
    preludeMs: 20,
    scenarios: [scenario('many', 1), scenario('hot', 8, 2)],
  },
}
