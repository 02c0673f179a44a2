import type { Measured } from '../harness/statistics.js'
import type { Cell, SalesData } from './suite.js'

export function render({ plan, cells, machine, commandLine }: SalesData): string {
  const sales = cells.filter(({ way }) => way === 'sale')
  return `# Sales

Purchases: \`${commandLine}\`. ${plan.callers.toLocaleString('en')} callers in a closed loop, each checks out one item picked at random and buys it, as a user who has ten of
them at most. Median of ${plan.rounds} rounds of ${plan.measureMs / 1_000} s, in turn, and their range; ratios are taken round by round. Postgres: the sale's row is locked
with \`SELECT … FOR UPDATE\`, total, item and user are checked and taken, and what was bought is recorded; a pool of 32 connections. One transaction a
purchase has no checkout before it; one a step does what Holdfast does, reserve and then buy.

| | purchases/s | to one transaction a purchase | to one a step | to the first sale | p99 of a step, ms | CPU, µs a purchase: Node + Redis + Postgres |
|---|---|---|---|---|---|---|
${cells.map(row).join('\n')}

Opening the sales, and loading them into an empty Redis after all that: from the journal, and again from what was noted by then.

| | opened in, ms | entries | loaded in, ms | again, ms | longest call in Redis, ms | items taken | bytes of Redis |
|---|---|---|---|---|---|---|---|
${sales.map(loading).join('\n')}

${machine.cpu}, ${machine.cores} cores, ${machine.system}, Node ${machine.node}; an fsync takes ${machine.temporaryFolder.fsyncMs.toFixed(2)} ms.
`
}

function row({ title, purchasesPerSecond, ratio, ratioToSteps, growth, p99Ms, cpuUs, way }: Cell): string {
  const { node, redis, postgres } = cpuUs
  const cpu = [node, redis, postgres].map(({ median }) => whole(median)).join(' + ')
  const grown = way === 'sale' ? figure(growth, 2) : ''
  return `| ${title} | ${figure(purchasesPerSecond, 0)} | ${figure(ratio, 1)} | ${figure(ratioToSteps, 1)} | ${grown} | ${figure(p99Ms, 1)} | ${cpu} |`
}

function loading({ title, openMs, loading }: Cell): string {
  if (!loading) return ''
  const { entries, firstMs, againMs, slowestCallMs, takenItems, redisBytes } = loading
  return `| ${title} | ${[openMs, entries, firstMs, againMs, slowestCallMs, takenItems, redisBytes].map(whole).join(' | ')} |`
}

const whole = (value: number): string => Math.round(value).toLocaleString('en')

function figure({ median, min, max }: Measured, digits: number): string {
  const text = (value: number) =>
    value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
  return `${text(median)} (${text(min)} to ${text(max)})`
}
