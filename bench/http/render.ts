import type { Measured } from '../harness/statistics.js'
import type { HttpData, ScenarioResult } from './suite.js'

const TITLES = { server: 'over HTTP', bare: 'a bare Fastify route', engine: 'the engine, called directly' } as const

export function render({ scenarios, plan, machine, commandLine, acknowledged, entries }: HttpData): string {
  return `# Over HTTP

Holds and their settles, durable before they are acknowledged, by \`POST …/holds\` and \`…/settle\` of \`holdfast serve\` as it comes; by a Fastify
server with the same two routes that does nothing and answers as many bytes; and by the engine called directly, with as many callers as
there are connections. \`${commandLine}\`. Each in a process of its own; one at a time, in turns. Wallets out of
${plan.wallets.toLocaleString('en')}. Median of ${plan.rounds} rounds, and their range.

| connections | | operations/s | p50, ms | p99, ms | processor time, µs |
|---|---|---:|---:|---:|---:|
${scenarios.flatMap(rows).join('\n')}

| connections | processor time: HTTP / (bare route + engine) | operations/s: HTTP / engine | HTTP / bare route |
|---|---:|---:|---:|
${scenarios.map((one) => `| ${one.connections} | ${figure(one.cpuRatio, 2)} | ${figure(one.speedToEngine, 2)} | ${figure(one.speedToBare, 2)} |`).join('\n')}

Processor time is that of the one process that answers; Redis, Postgres and who asks (autocannon) work beside it on the same machine, so that
operations a second tell less.

${acknowledged.toLocaleString('en')} operations were acknowledged over HTTP; the journal has ${entries.toLocaleString('en')} entries. (A request that is cut when its turn
ends may have been done.)

${machine.cores} cores of ${machine.cpu}, ${machine.system}, Node ${machine.node}; an fsync takes ${machine.temporaryFolder.fsyncMs.toFixed(2)} ms.
`
}

function rows({ connections, ways }: ScenarioResult): string[] {
  return (['server', 'bare', 'engine'] as const).map((way) => {
    const { perSecond, p50Ms, p99Ms, cpuUs } = ways[way]
    const cells = [figure(perSecond, 0), figure(p50Ms, 2), figure(p99Ms, 2), figure(cpuUs, 1)]
    return `| ${connections} | ${TITLES[way]} | ${cells.join(' | ')} |`
  })
}

function figure({ median, min, max }: Measured, digits: number): string {
  const text = (value: number) =>
    value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
  return `${text(median)} (${text(min)} to ${text(max)})`
}
