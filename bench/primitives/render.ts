import type { Measured } from '../harness/statistics.js'
import type { Cell, PrimitivesData } from './suite.js'

export function render({ works, cells, plan, machine, commandLine, checks }: PrimitivesData): string {
  const parts = works.map(({ name, title, remarks }) =>
    part(
      title,
      remarks,
      cells.filter(({ work }) => work === name),
    ),
  )
  const wrong = checks.filter((check) => check.wrong !== null)
  return `# Primitives

Against the libraries that people take for the same, on the same Redis and from one process: \`${commandLine}\`. Each caller asks again when it
is answered, about one of ${plan.scopes.toLocaleString('en')} users at random. Median of ${plan.rounds} rounds; *times faster* and *times cheaper* are those of
Holdfast against the row, round by round, with their range. *Cheaper* compares processor time of Node and Redis together.

${parts.join('\n\n')}

${wrong.length === 0 ? 'Afterwards all of them had made what callers were told, and no Bloom filter had forgotten anything.' : 'NOT ALL WAS AS TOLD.'}
${machine.cores} cores of ${machine.cpu}, ${machine.system}, Node ${machine.node}.
`
}

function part(title: string, remarks: string, cells: readonly Cell[]): string {
  return `## ${title}

${remarks}

| callers | | calls/s | p50 / p99, ms | Node + Redis, µs | times faster | times cheaper |
|---:|---|---:|---:|---:|---:|---:|
${cells.map(row).join('\n')}`
}

function row({ callers, title, perSecond, p50Ms, p99Ms, nodeUs, redisUs, holdfast }: Cell): string {
  const rate = Math.round(perSecond.median).toLocaleString('en')
  const latency = `${p50Ms.median.toPrecision(3)} / ${p99Ms.median.toPrecision(3)}`
  const cost = `${nodeUs.median.toFixed(1)} + ${redisUs.median.toFixed(1)}`
  const times = holdfast ? [range(holdfast.timesFaster), range(holdfast.timesCheaper)] : ['', '']
  return `| ${callers} | ${title} | ${rate} | ${latency} | ${cost} | ${times.join(' | ')} |`
}

const range = ({ median, min, max }: Measured): string =>
  `${median.toFixed(2)} (${min.toFixed(2)} to ${max.toFixed(2)})`
