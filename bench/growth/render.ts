import type { Measured } from '../harness/statistics.js'
import type { Cell, Filling, GrowthData } from './suite.js'

export function render({ plan, fillings, cells, machine, commandLine }: GrowthData): string {
  const table = (
    axis: Cell['axis'],
    what: string,
  ) => `| ${what} | pairs/s | to the first | CPU, µs an operation | to the first | p99 of an operation, ms |
|---|---|---|---|---|---|
${cells
  .filter((cell) => cell.axis === axis)
  .map(row)
  .join('\n')}`
  return `# Growth

What more of everything costs: \`${commandLine}\`. ${plan.callers} callers in a closed loop, each on a wallet picked at random, hold and
settle in \`ledger\`. Median of ${plan.rounds} rounds of ${plan.measureMs / 1_000} s, in turn, and their range; ratios are taken round by round. CPU is that of callers
and engine, Redis and Postgres together.

Installations with more wallets, all of them in Redis:

${table('wallets', 'wallets')}

One wallet that all callers share, with more holds open in it all the while:

${table('holds', 'open holds')}

Before that, \`hf.rebuild({ all: true })\` brought every wallet into Redis, each opened and credited once:

| wallets | loaded/s | bytes of Redis a wallet |
|---|---|---|
${fillings.map(filling).join('\n')}

${machine.cpu}, ${machine.cores} cores, ${machine.system}, Node ${machine.node}; an fsync takes ${machine.temporaryFolder.fsyncMs.toFixed(2)} ms.
`
}

function row({ title, pairsPerSecond, ratio, cpuUs, cpuRatio, p99Ms }: Cell): string {
  const figures = [figure(pairsPerSecond, 0), figure(ratio, 2), figure(cpuUs, 0), figure(cpuRatio, 2), figure(p99Ms, 1)]
  return `| ${title} | ${figures.join(' | ')} |`
}

function filling({ wallets, loadedPerSecond, redisBytesPerWallet }: Filling): string {
  const whole = (value: number) => Math.round(value).toLocaleString('en')
  return `| ${whole(wallets)} | ${whole(loadedPerSecond)} | ${whole(redisBytesPerWallet)} |`
}

function figure({ median, min, max }: Measured, digits: number): string {
  const text = (value: number) =>
    value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
  return `${text(median)} (${text(min)} to ${text(max)})`
}
