import type { Measured } from '../harness/statistics.js'
import { barPlot } from '../plot/bars.js'
import { linePlot, type Series } from '../plot/lines.js'
import { COLOURS } from '../plot/svg.js'
import { CONTENDERS, type ContenderName } from './contenders/index.js'
import type { Result, ScenarioResult, WalletsData } from './suite.js'

interface Plot {
  readonly title: string
  readonly svg: string
}

const NAMES = Object.keys(CONTENDERS) as ContenderName[]
const plain = (name: ContenderName) => CONTENDERS[name].title.replaceAll('`', '')
const colour = (name: ContenderName) => COLOURS[NAMES.indexOf(name)] as string

/** By file name. Only what there is something to draw of. */
export function drawPlots({ scenarios, plan }: WalletsData): Map<string, Plot> {
  const plots = new Map<string, Plot>()
  const one = scenarios.filter(({ processes }) => processes === 1)
  const places = [
    { spread: 'many', where: `${plan.wallets.toLocaleString('en')} wallets` },
    { spread: 'hot', where: 'one hot wallet' },
  ] as const
  for (const { spread, where } of places) {
    const found = one.filter((scenario) => scenario.spread === spread)
    if (found.length > 1) {
      const title = `Hold + settle pairs a second, ${where}`
      const drawn = series(found, ({ pairsPerSecond }) => pairsPerSecond)
      const svg = linePlot({
        title,
        xLabel: 'callers',
        yLabel: 'pairs/s, median and range of the rounds',
        series: drawn,
      })
      plots.set(`wallets-throughput-${spread}.svg`, { title, svg })
      const latency = `Latency of one operation, ${where}`
      plots.set(`wallets-latency-${spread}.svg`, { title: latency, svg: latencyPlot(latency, found) })
    }
    const busiest = found.find(({ callers }) => callers === 256)
    if (busiest) {
      const title = `Processor time of one operation, 256 callers, ${where}`
      plots.set(`wallets-cpu-${spread}.svg`, { title, svg: cpuPlot(title, busiest) })
    }
  }
  return plots
}

function series(
  scenarios: readonly ScenarioResult[],
  read: (result: Result) => Measured,
  names: readonly ContenderName[] = NAMES,
): Series[] {
  return names.flatMap((name) => {
    const points = scenarios.flatMap(({ callers, results }) => {
      const result = results.find(({ contender }) => contender === name)
      if (!result) return []
      const { median, min, max } = read(result)
      return [{ x: callers, y: median, low: min, high: max }]
    })
    return points.length > 0 ? [{ name: plain(name), colour: colour(name), points }] : []
  })
}

/** Those that differ in kind; (c) lies beside what it is a variant of, and would only hide it. */
const IN_LATENCY: readonly ContenderName[] = ['ledger', 'memory', 'rowlock', 'redislock']

function latencyPlot(title: string, scenarios: readonly ScenarioResult[]): string {
  const p50 = series(scenarios, ({ p50Ms }) => p50Ms, IN_LATENCY)
  const p99 = series(scenarios, ({ p99Ms }) => p99Ms, IN_LATENCY).map((one) => ({
    ...one,
    name: 'the same, p99',
    dashed: true,
  }))
  const both = p50.flatMap((one, index) => [{ ...one, name: `${one.name}, p50` }, p99[index] as Series])
  return linePlot({ title, xLabel: 'callers', yLabel: 'ms', series: both })
}

function cpuPlot(title: string, { results }: ScenarioResult): string {
  return barPlot({
    title,
    unit: 'µs an operation',
    parts: [
      { name: 'Node', colour: '#009e73' },
      { name: 'Redis', colour: '#d55e00' },
      { name: 'Postgres', colour: '#0072b2' },
    ],
    bars: results.map(({ contender, cpuUsPerOperation: { node, redis, postgres } }) => ({
      name: plain(contender),
      values: [node, redis, postgres],
    })),
  })
}
