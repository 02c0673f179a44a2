import type { Measured } from '../harness/statistics.js'
import type { Alone, AuditData, Beside, SaleAlone } from './suite.js'

const TITLES: Record<Beside['company'], string> = {
  none: 'no audits',
  usual: 'every shard each five minutes (default)',
  constant: 'one audit after the other',
}

export function render({ plan, first, second, sale, beside, machine, commandLine }: AuditData): string {
  return `# Audits

What audits cost: \`${commandLine}\`. ${number(plan.wallets)} wallets with an entry each that nobody uses,
and ${number(plan.hotWallets)} that are in Redis.

By itself, on demand (which works for half of the time):

| audit | wallets | entries read | s | Node, µs a wallet | Redis | Postgres |
|---|---|---|---|---|---|---|
${alone('of wallets that were never audited: journals are read', first)}
${alone('of wallets that were: what was verified is compared', second)}

A sale in Redis with ${number(plan.saleItems)} items, half of them sold, by a process that has not read its journal before, with \`full\`:

| fields | s | Node, µs a field | Redis | Postgres |
|---|---|---|---|---|
${stock(sale)}

Beside ${plan.callers} callers who hold and settle on the ${number(plan.hotWallets)} wallets, in a process of their own; the audits run in another, and all
of it on the same ${machine.cores} cores. Median of ${plan.rounds} rounds of ${plan.measureMs / 1_000} s, in turn, and their range; the ratio is taken round by round.

| audits meanwhile | pairs/s | to none | CPU of everybody, µs an operation | to none | p99 of an operation, ms | wallets audited/s |
|---|---|---|---|---|---|---|
${beside.map(row).join('\n')}

${machine.cpu}, ${machine.system}, Node ${machine.node}; an fsync takes ${machine.temporaryFolder.fsyncMs.toFixed(2)} ms.
`
}

function alone(title: string, { wallets, entries, seconds, cpuUs }: Alone): string {
  const cells = [
    title,
    number(wallets),
    number(entries),
    seconds.toFixed(1),
    cpuUs.node.toFixed(1),
    cpuUs.redis.toFixed(1),
  ]
  return `| ${[...cells, cpuUs.postgres.toFixed(1)].join(' | ')} |`
}

function stock({ fields, seconds, cpuUs }: SaleAlone): string {
  const { node, redis, postgres } = cpuUs
  const figures = [seconds.toFixed(1), node.toFixed(1), redis.toFixed(1), postgres.toFixed(1)]
  return `| ${[number(fields), ...figures].join(' | ')} |`
}

function row({ company, pairsPerSecond, ratio, cpuUs, cpuRatio, p99Ms, auditedPerSecond }: Beside): string {
  const figures = [
    figure(pairsPerSecond, 0),
    figure(ratio, 2),
    figure(cpuUs, 0),
    figure(cpuRatio, 2),
    figure(p99Ms, 1),
    figure(auditedPerSecond, 0),
  ]
  return `| ${TITLES[company]} | ${figures.join(' | ')} |`
}

const number = (value: number): string => value.toLocaleString('en')

function figure({ median, min, max }: Measured, digits: number): string {
  const text = (value: number) =>
    value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
  return `${text(median)} (${text(min)} to ${text(max)})`
}
