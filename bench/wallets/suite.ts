import type { Suite } from '../harness/command.js'
import type { MemoryUse } from '../harness/contender.js'
import { describeMachine, type Machine } from '../harness/machine.js'
import { type ServerFacts, Servers } from '../harness/servers.js'
import { type Measured, measured, median, ratio, spread } from '../harness/statistics.js'
import { Arena, type Check, type Sample } from './arena.js'
import { CONTENDERS, type ContenderName } from './contenders/index.js'
import { PLANS, type Plan, type Scenario } from './plan.js'
import { render } from './render.js'

export interface Result {
  readonly contender: ContenderName
  readonly pairsPerSecond: Measured
  /** Of one operation: a hold, or a settle. */
  readonly p50Ms: Measured
  readonly p99Ms: Measured
  readonly cpuUsPerOperation: { readonly node: number; readonly redis: number; readonly postgres: number }
  readonly logBytesPerOperation: number
  readonly refusals: number
  readonly drainMs: number
}

export interface Ratio {
  readonly of: ContenderName
  readonly to: ContenderName
  /** Above 1: as many times the pairs a second. */
  readonly pairsPerSecond: Measured
}

export interface ScenarioResult extends Omit<Scenario, 'contenders'> {
  readonly wallets: number
  readonly results: readonly Result[]
  readonly ratios: readonly Ratio[]
}

/** One caller in `ledger`, against one Redis round trip and one Postgres commit: p50 of an operation. */
export interface LoneCaller {
  readonly scenario: string
  readonly p50Ms: number
  readonly roundTripP50Ms: number
  readonly ratio: Measured
}

export interface WalletsData {
  readonly suite: 'wallets'
  readonly commandLine: string
  readonly startedAt: string
  readonly tookSeconds: number
  readonly machine: Machine
  readonly servers: ServerFacts
  readonly plan: Omit<Plan, 'scenarios'>
  readonly noise: {
    /** The part of the machine that worked for others, over all turns. */
    readonly foreignMedian: number
    readonly foreignMax: number
    /** (slowest to fastest round) / median, of pairs/s, over all cells. */
    readonly spreadMedian: number
    readonly spreadMax: number
  }
  readonly scenarios: readonly ScenarioResult[]
  readonly loneCallers: readonly LoneCaller[]
  readonly tableBytesPerOperation: Partial<Record<ContenderName, number>>
  readonly seedMs: Partial<Record<ContenderName, number>>
  readonly memory: MemoryUse | null
  readonly checks: readonly Check[]
}

/** What is set against what: like with like, by when they say yes. */
const COMPARED: readonly (readonly [of: ContenderName, to: ContenderName])[] = [
  ['ledger', 'rowlock'],
  ['ledger', 'redislock'],
  ['ledger', 'singleledger'],
  ['memory', 'rowlock'],
  ['memory', 'redislock'],
  ['memory', 'singlememory'],
]

export const runWallets: Suite = async ({ size, commandLine, profileFolder, say, commitDelayMs }) => {
  const plan = PLANS[size]
  const startedAt = new Date()
  const machine = describeMachine()
  say('wallets: starting Redis and Postgres')
  const servers = await Servers.start({ commitDelayMs })
  const arenas = new Map<ContenderName, Arena>()
  const seedMs: Partial<Record<ContenderName, number>> = {}
  try {
    const facts = await servers.facts()
    for (const name of new Set(plan.scenarios.flatMap(({ contenders }) => contenders))) {
      say(`wallets: filling ${plan.wallets + 1} wallets: ${CONTENDERS[name].title}`)
      const made = await Arena.make(name, servers, { wallets: plan.wallets + 1, profileFolder })
      arenas.set(name, made.arena)
      seedMs[name] = made.seedMs
    }
    await prelude(plan, arenas)

    const scenarios: ScenarioResult[] = []
    const foreign: number[] = []
    for (const scenario of plan.scenarios) {
      const samples = await play(plan, scenario, arenas, say)
      foreign.push(...[...samples.values()].flat().map((sample) => sample.foreign))
      scenarios.push(summarise(plan, scenario, samples))
    }

    const tableBytesPerOperation: Partial<Record<ContenderName, number>> = {}
    const checks: Check[] = []
    for (const [name, arena] of arenas) {
      tableBytesPerOperation[name] = await arena.tableBytesPerOperation()
      checks.push(await arena.check())
    }
    const spreads = scenarios.flatMap(({ results }) => results.map(({ pairsPerSecond }) => spread(pairsPerSecond)))
    const { scenarios: _, ...sizes } = plan
    const data: WalletsData = {
      suite: 'wallets',
      commandLine,
      startedAt: startedAt.toISOString(),
      tookSeconds: Math.round((Date.now() - startedAt.getTime()) / 1_000),
      machine,
      servers: facts,
      plan: sizes,
      noise: {
        foreignMedian: median(foreign),
        foreignMax: Math.max(...foreign),
        spreadMedian: median(spreads),
        spreadMax: Math.max(...spreads),
      },
      scenarios,
      loneCallers: scenarios.flatMap(loneCaller),
      tableBytesPerOperation,
      seedMs,
      memory: (await arenas.get('ledger')?.memoryUse()) ?? null,
      checks,
    }
    return { suite: 'wallets', failures: failuresOf(checks), ...render(data), data }
  } finally {
    await Promise.all([...arenas.values()].map((arena) => arena.close()))
    await servers.stop()
  }
}

async function prelude(plan: Plan, arenas: ReadonlyMap<ContenderName, Arena>): Promise<void> {
  const { wallets, preludeMs, scenarios } = plan
  for (const [name, arena] of arenas) {
    const most = Math.max(...scenarios.filter(({ contenders }) => contenders.includes(name)).map((one) => one.callers))
    await arena.turn(1, { callers: Math.min(most, 64), first: 0, wallets, warmUpMs: preludeMs, measureMs: 1 })
  }
}

/** Round by round, everybody once a round, each round beginning with another: what disturbs one disturbs all alike. */
async function play(
  { rounds, wallets, warmUpMs, measureMs }: Plan,
  { name, contenders, callers, processes, spread }: Scenario,
  arenas: ReadonlyMap<ContenderName, Arena>,
  say: (line: string) => void,
): Promise<Map<ContenderName, Sample[]>> {
  const samples = new Map<ContenderName, Sample[]>(contenders.map((contender) => [contender, []]))
  const place = spread === 'hot' ? { first: wallets, wallets: 1 } : { first: 0, wallets }
  for (let round = 0; round < rounds; round += 1) {
    const line: string[] = []
    for (let i = 0; i < contenders.length; i += 1) {
      const contender = contenders[(i + round) % contenders.length] as ContenderName
      const arena = arenas.get(contender) as Arena
      const sample = await arena.turn(processes, { callers, ...place, warmUpMs, measureMs })
      samples.get(contender)?.push(sample)
      line.push(`${contender} ${Math.round(sample.pairsPerSecond)}`)
    }
    say(`wallets: ${name}, round ${round + 1} of ${rounds}, pairs/s: ${line.sort().join(', ')}`)
  }
  return samples
}

function summarise(plan: Plan, scenario: Scenario, samples: ReadonlyMap<ContenderName, Sample[]>): ScenarioResult {
  const { name, spread, callers, processes } = scenario
  const results = [...samples].map(([contender, rounds]) => resultOf(contender, rounds))
  const by = new Map(results.map((result) => [result.contender, result]))
  const ratios = COMPARED.flatMap(([of, to]) => {
    const [one, other] = [by.get(of), by.get(to)]
    return one && other ? [{ of, to, pairsPerSecond: ratio(one.pairsPerSecond, other.pairsPerSecond) }] : []
  })
  return { name, spread, callers, processes, wallets: spread === 'hot' ? 1 : plan.wallets, results, ratios }
}

function resultOf(contender: ContenderName, rounds: readonly Sample[]): Result {
  const each = (read: (sample: Sample) => number) => rounds.map(read)
  return {
    contender,
    pairsPerSecond: measured(each((sample) => sample.pairsPerSecond)),
    p50Ms: measured(each((sample) => sample.p50Ms)),
    p99Ms: measured(each((sample) => sample.p99Ms)),
    cpuUsPerOperation: {
      node: median(each(({ cpuUs }) => cpuUs.node)),
      redis: median(each(({ cpuUs }) => cpuUs.redis)),
      postgres: median(each(({ cpuUs }) => cpuUs.postgres)),
    },
    logBytesPerOperation: median(each(({ logBytes }) => logBytes)),
    refusals: each(({ refusals }) => refusals).reduce((sum, one) => sum + one, 0),
    drainMs: median(each(({ drainMs }) => drainMs)),
  }
}

function loneCaller({ name, results }: ScenarioResult): LoneCaller[] {
  const ledger = results.find(({ contender }) => contender === 'ledger')
  const roundTrip = results.find(({ contender }) => contender === 'roundtrip')
  if (!ledger || !roundTrip) return []
  const p50Ms = ledger.p50Ms.median
  const roundTripP50Ms = roundTrip.p50Ms.median
  return [{ scenario: name, p50Ms, roundTripP50Ms, ratio: ratio(ledger.p50Ms, roundTrip.p50Ms) }]
}

/** A benchmark that does nothing, or not what it says, fails. */
export function failuresOf(checks: readonly Check[]): string[] {
  return checks.flatMap(({ contender, acknowledged, entries, money }) => [
    ...(acknowledged === 0 ? [`${contender} did nothing`] : []),
    ...(acknowledged === entries
      ? []
      : [`${contender}: ${acknowledged} operations acknowledged, ${entries} entries kept`]),
    ...(money === 'conserved' || money === 'not kept' ? [] : [`${contender}: ${money}`]),
  ])
}
