/** What is left of the speed while Redis is away, and what happens when more is asked than Postgres can do. */
import type { Suite } from '../harness/command.js'
import { describeMachine, type Machine } from '../harness/machine.js'
import { Servers } from '../harness/servers.js'
import { type Measured, measured, median, ratio } from '../harness/statistics.js'
import { Arena, type Check, type Sample } from '../wallets/arena.js'
import { failuresOf } from '../wallets/suite.js'
import { PLANS, type Plan, type Scenario } from './plan.js'
import { render } from './render.js'

export interface Half {
  readonly pairsPerSecond: Measured
  readonly p50Ms: Measured
  readonly p99Ms: Measured
  readonly cpuUsPerOperation: { readonly node: number; readonly redis: number; readonly postgres: number }
  /** Refused for the moment, as a part of all that was asked. */
  readonly refusedHolds: number
  readonly refusedSettles: number
}

export interface ScenarioResult extends Scenario {
  readonly normal: Half
  readonly fallback: Half
  /** Pairs a second while Redis is away, as a part of what it is otherwise. */
  readonly ratio: Measured
}

export interface FallbackData {
  readonly suite: 'fallback'
  readonly commandLine: string
  readonly machine: Machine
  readonly plan: Omit<Plan, 'scenarios'>
  readonly scenarios: readonly ScenarioResult[]
  readonly checks: readonly Check[]
}

export const runFallback: Suite = async ({ size, commandLine, profileFolder, say, commitDelayMs }) => {
  const plan = PLANS[size]
  say('fallback: starting Redis and Postgres')
  const servers = await Servers.start({ commitDelayMs })
  const arenas: Arena[] = []
  try {
    for (const name of ['ledger', 'fallback'] as const) {
      say(`fallback: filling ${plan.wallets + 1} wallets: ${name}`)
      arenas.push((await Arena.make(name, servers, { wallets: plan.wallets + 1, profileFolder })).arena)
    }
    const scenarios: ScenarioResult[] = []
    for (const scenario of plan.scenarios) scenarios.push(await play(plan, scenario, arenas, say))
    const checks: Check[] = []
    for (const arena of arenas) checks.push(await arena.check())
    const { scenarios: _, ...sizes } = plan
    const data: FallbackData = {
      suite: 'fallback',
      commandLine,
      machine: describeMachine(),
      plan: sizes,
      scenarios,
      checks,
    }
    return { suite: 'fallback', failures: failuresOf(checks), markdown: render(data), plots: new Map(), data }
  } finally {
    await Promise.all(arenas.map((arena) => arena.close()))
    await servers.stop()
  }
}

/** One after the other, round by round: what disturbs one disturbs both. */
async function play(
  plan: Plan,
  scenario: Scenario,
  arenas: readonly Arena[],
  say: (line: string) => void,
): Promise<ScenarioResult> {
  const { rounds, wallets } = plan
  const { spread, callers, processes, overload } = scenario
  const warmUpMs = overload ? plan.overloadWarmUpMs : plan.warmUpMs
  const measureMs = overload ? plan.overloadMeasureMs : plan.measureMs
  const place = spread === 'hot' ? { first: wallets, wallets: 1 } : { first: 0, wallets }
  const samples = new Map<string, Sample[]>(arenas.map(({ name }) => [name, []]))
  for (let round = 0; round < rounds; round += 1) {
    const line: string[] = []
    for (const arena of round % 2 === 0 ? arenas : [...arenas].reverse()) {
      const sample = await arena.turn(processes, { callers, ...place, warmUpMs, measureMs, backOff: true })
      samples.get(arena.name)?.push(sample)
      line.push(`${arena.name} ${Math.round(sample.pairsPerSecond)}`)
    }
    const what = `${callers} callers, ${spread}, ${processes} processes`
    say(`fallback: ${what}, round ${round + 1} of ${rounds}, pairs/s: ${line.sort().join(', ')}`)
  }
  const [normal, fallback] = arenas.map(({ name }) => halfOf(samples.get(name) as Sample[])) as [Half, Half]
  return { ...scenario, normal, fallback, ratio: ratio(fallback.pairsPerSecond, normal.pairsPerSecond) }
}

function halfOf(rounds: readonly Sample[]): Half {
  const each = (read: (sample: Sample) => number) => rounds.map(read)
  const sum = (read: (sample: Sample) => number) => each(read).reduce((total, one) => total + one, 0)
  const asked = sum(({ operations }) => operations / 2)
  const part = (refused: number) => refused / (refused + asked)
  return {
    pairsPerSecond: measured(each(({ pairsPerSecond }) => pairsPerSecond)),
    p50Ms: measured(each(({ p50Ms }) => p50Ms)),
    p99Ms: measured(each(({ p99Ms }) => p99Ms)),
    cpuUsPerOperation: {
      node: median(each(({ cpuUs }) => cpuUs.node)),
      redis: median(each(({ cpuUs }) => cpuUs.redis)),
      postgres: median(each(({ cpuUs }) => cpuUs.postgres)),
    },
    refusedHolds: part(sum(({ refusals, settleRefusals }) => refusals - settleRefusals)),
    refusedSettles: part(sum(({ settleRefusals }) => settleRefusals)),
  }
}
