import type { Measured } from '../harness/statistics.js'
import type { SaleResult, SoldData, WayResult } from './suite.js'

export function render({ sales, plan, machine, commandLine }: SoldData): string {
  return `# Refusing what is sold

Checkouts of items that are sold, from ${plan.callers} callers in one process, each under a key and by a user of its own. \`${commandLine}\`. *none*: the
engine is asked, which asks Redis and Postgres; *bitmap*: one exact bit for each item, in the process; *bloom*: a Bloom filter in Redis, at 1 %, with a
copy in the process, and every hit verified by the former. Half of the items are sold. Median of ${plan.rounds} rounds, and their range.

| items | way | refusals/s | to none | µs of CPU each: Node + Redis + Postgres |
|---:|---|---:|---:|---:|
${sales.flatMap(({ items, ways }) => ways.map((way) => row(items, way))).join('\n')}

| items | bitmap, bytes | codes, bytes | Bloom filter, bytes (and in Redis) | false hits of fresh items | journal read, ms | again, ms | Bloom filter made, ms |
|---:|---:|---:|---:|---:|---:|---:|---:|
${sales.map(weight).join('\n')}

${machine.cores} cores of ${machine.cpu}, ${machine.system}, Node ${machine.node}. Everything on this one machine.
`
}

const row = (items: number, { way, refusalsPerSecond, ratio, cpuUs: { node, redis, postgres } }: WayResult): string =>
  `| ${text(items)} | ${way} | ${figure(refusalsPerSecond, 0)} | ${figure(ratio, 1)} | ${[node, redis, postgres].map((us) => us.toFixed(1)).join(' + ')} |`

function weight({ items, filters }: SaleResult): string {
  const { bitmapBytes, codesBytes, bloomBytes, bloomRedisBytes, fresh, falseHits } = filters
  const cells = [
    text(items),
    text(bitmapBytes),
    text(codesBytes),
    `${text(bloomBytes)} (${text(bloomRedisBytes)})`,
    `${text(falseHits)} of ${text(fresh)}`,
    text(filters.readMs),
    text(filters.againMs, 1),
    text(filters.bloomMs),
  ]
  return `| ${cells.join(' | ')} |`
}

const text = (value: number, digits = 0): string =>
  value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })

const figure = ({ median, min, max }: Measured, digits: number): string =>
  `${text(median, digits)} (${text(min, digits)} to ${text(max, digits)})`
