import type { Measured } from '../harness/statistics.js'
import { TITLES } from './contenders.js'
import type { Cell, Stripe402Data } from './suite.js'

export function render({ cells, plan, machine, commandLine, checks }: Stripe402Data): string {
  const told = checks.reduce((sum, check) => sum + check.told, 0)
  return `# stripe402: deductions

\`deductBalance\` of the store against the published way, on the same Redis and from one process: \`${commandLine}\`.
*spread*: clients picked at random out of ${plan.clients.toLocaleString('en')}; *hot*: always the same one. Each caller asks again when it is
answered. Median of ${plan.rounds} rounds; the ratios are taken round by round, with their range.

| clients | callers | | deductions/s | p50 / p99, ms | Node + Redis, µs | times faster | times cheaper |
|---|---:|---|---:|---:|---:|---:|---:|
${cells.map(row).join('\n')}

${told.toLocaleString('en')} deductions were told to callers, and the clients lack exactly these. *Cheaper* compares processor time of Node and Redis
together. ${machine.cores} cores of ${machine.cpu}, ${machine.system}, Node ${machine.node}.
`
}

function row(cell: Cell): string {
  const { place, callers, contender, perSecond, p50Ms, p99Ms, nodeUs, redisUs, timesFaster, timesCheaper } = cell
  const cost = `${nodeUs.median.toFixed(1)} + ${redisUs.median.toFixed(1)}`
  const latency = `${p50Ms.median.toFixed(2)} / ${p99Ms.median.toFixed(2)}`
  const rate = Math.round(perSecond.median).toLocaleString('en')
  const times = contender === 'published' ? ['', ''] : [range(timesFaster), range(timesCheaper)]
  return `| ${place} | ${callers} | ${TITLES[contender]} | ${rate} | ${latency} | ${cost} | ${times.join(' | ')} |`
}

const range = ({ median, min, max }: Measured): string =>
  `${median.toFixed(2)} (${min.toFixed(2)} to ${max.toFixed(2)})`
