import type { Measured } from '../harness/statistics.js'
import type { FallbackData, Half, ScenarioResult } from './suite.js'

export function render({ scenarios, plan, machine, commandLine, checks }: FallbackData): string {
  const wallets = plan.wallets.toLocaleString('en')
  return `# Without Redis

Pairs of a hold and a settle, durable before they are acknowledged: with Redis, and while Redis is away and everything goes through
Postgres. \`${commandLine}\`. *spread*: wallets picked at random out of ${wallets}; *hot*: one wallet for all. Callers are refused when
too much waits for Postgres, holds before settles, and ask again 5 ms later, then 10,
up to a second. Median of ${plan.rounds} rounds, and their range.

| callers | with Redis, pairs/s | without, pairs/s | without / with | p50, ms | p99, ms | holds refused | settles refused |
|---|---:|---:|---:|---:|---:|---:|---:|
${scenarios.map(row).join('\n')}

Processor time of one operation, µs, Node + Redis + Postgres:

| callers | with Redis | without |
|---|---:|---:|
${scenarios.map((one) => `| ${name(one)} | ${cpu(one.normal)} | ${cpu(one.fallback)} |`).join('\n')}

${checks.map(({ contender, acknowledged, entries, money }) => `- ${contender}: ${acknowledged.toLocaleString('en')} operations acknowledged, ${entries.toLocaleString('en')} entries in the journal, money ${money}`).join('\n')}

${machine.cores} cores of ${machine.cpu}, ${machine.system}, Node ${machine.node}; an fsync takes ${machine.temporaryFolder.fsyncMs.toFixed(2)} ms. Everything
on this one machine.
`
}

function name({ callers, spread, processes }: ScenarioResult): string {
  const where = spread === 'hot' ? 'one hot wallet' : 'spread'
  return `${callers.toLocaleString('en')}, ${where}${processes > 1 ? `, ${processes} processes` : ''}`
}

function row(one: ScenarioResult): string {
  const { normal, fallback, ratio } = one
  const cells = [
    name(one),
    figure(normal.pairsPerSecond, 0),
    figure(fallback.pairsPerSecond, 0),
    figure(ratio, 2),
    figure(fallback.p50Ms, 1),
    figure(fallback.p99Ms, 1),
    percent(fallback.refusedHolds),
    percent(fallback.refusedSettles),
  ]
  return `| ${cells.join(' | ')} |`
}

const percent = (part: number) => `${(part * 100).toFixed(part > 0 && part < 0.1 ? 1 : 0)} %`

const cpu = ({ cpuUsPerOperation: { node, redis, postgres } }: Half) =>
  [node, redis, postgres].map((us) => us.toFixed(0)).join(' + ')

function figure({ median, min, max }: Measured, digits: number): string {
  const text = (value: number) =>
    value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
  return `${text(median)} (${text(min)} to ${text(max)})`
}
