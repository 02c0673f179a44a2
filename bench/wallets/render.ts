/** The report of a run: what was measured, on what, and how far to believe it. */
import { figure } from '../plot/svg.js'
import { CONTENDERS, type ContenderName } from './contenders/index.js'
import { drawPlots } from './plots.js'
import type { ScenarioResult, WalletsData } from './suite.js'

export function render(data: WalletsData): { markdown: string; plots: ReadonlyMap<string, string> } {
  const plots = drawPlots(data)
  const sections = [
    opening(data),
    ratios(data),
    ...[...plots].map(([file, { title }]) => `![${title}](${file})`),
    ...data.scenarios.map(scenario),
    loneCaller(data),
    sizes(data),
    checks(data),
    circumstances(data),
  ]
  return {
    markdown: `${sections.filter((section) => section !== '').join('\n\n')}\n`,
    plots: new Map([...plots].map(([file, { svg }]) => [file, svg])),
  }
}

const title = (name: ContenderName) => CONTENDERS[name].title

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const rule = head.map((_, column) => (column === 0 ? '---' : '---:'))
  return [head, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

const percent = (part: number) => (Number.isFinite(part) ? `${Math.round(part * 100)} %` : 'unknown')
const times = (value: number) => (value >= 10 ? value.toFixed(0) : value.toFixed(2))

function opening({ plan, startedAt, tookSeconds, commandLine }: WalletsData): string {
  return `# Wallets

Callers in a closed loop: each holds, settles, and begins again with another key. A pair is both, so two operations; latency is
of one operation. Everybody took turns in the same run, ${plan.rounds} ${plan.rounds === 1 ? 'round' : 'rounds'} of ${plan.measureMs} ms after ${plan.warmUpMs} ms of warming up; figures are medians
of the rounds, with the slowest and fastest round in brackets. Ratios are taken round by round.

\`${commandLine}\`, ${startedAt}, ${tookSeconds} s`
}

function ratios({ scenarios }: WalletsData): string {
  const pairs = scenarios[0]?.ratios.map(({ of, to }) => ({ of, to })) ?? []
  const rows = scenarios.map((one) => [
    one.name,
    ...pairs.map(({ of, to }) => {
      const found = one.ratios.find((ratio) => ratio.of === of && ratio.to === to)?.pairsPerSecond
      return found ? `${times(found.median)} (${times(found.min)}–${times(found.max)})` : '–'
    }),
  ])
  const letter = (name: ContenderName) => title(name).slice(0, 3)
  const head = pairs.map(({ of, to }) => `\`${of}\` : ${letter(to)}`)
  return `## How many times the pairs a second

(a) one Postgres transaction an operation, \`SELECT … FOR UPDATE\`, pool of 32 · (b) Redis alone: \`SET NX\` lock, script, unlock; nothing
reaches a disk · (c) Holdfast itself with one script call an operation instead of batches, in the same durability.

${table(['', ...head], rows)}`
}

function scenario({ name, wallets, results }: ScenarioResult): string {
  const rows = results.map((result) => {
    const { pairsPerSecond: pairs, cpuUsPerOperation: cpu } = result
    return [
      title(result.contender),
      `${figure(pairs.median)} (${figure(pairs.min)}–${figure(pairs.max)})`,
      figure(result.p50Ms.median),
      figure(result.p99Ms.median),
      `${figure(cpu.node)} + ${figure(cpu.redis)} + ${figure(cpu.postgres)}`,
      figure(result.logBytesPerOperation),
      figure(result.drainMs),
      String(result.refusals),
    ]
  })
  const head = ['pairs/s', 'p50 ms', 'p99 ms', 'µs CPU an operation: Node + Redis + Postgres', 'WAL bytes an operation']
  return `## ${name} (${wallets === 1 ? '1 wallet' : `${wallets.toLocaleString('en')} wallets`})

${table(['', ...head, 'drained after ms', 'refused, tried again'], rows)}`
}

function loneCaller({ loneCallers }: WalletsData): string {
  if (loneCallers.length === 0) return ''
  const rows = loneCallers.map(({ scenario, p50Ms, roundTripP50Ms, ratio }) => [
    scenario,
    p50Ms.toFixed(2),
    roundTripP50Ms.toFixed(2),
    `${times(ratio.median)} (${times(ratio.min)}–${times(ratio.max)})`,
  ])
  return `## A lone caller

One operation in \`ledger\`, against one Redis round trip and one Postgres commit, one after the other: p50, and how many times.

${table(['', '`ledger` ms', 'round trip and commit ms', 'ratio'], rows)}`
}

function sizes({ tableBytesPerOperation, memory, seedMs, plan }: WalletsData): string {
  const rows = Object.entries(tableBytesPerOperation)
    .filter(([, bytes]) => Number.isFinite(bytes))
    .map(([name, bytes]) => [title(name as ContenderName), figure(bytes)])
  const redis = memory
    ? `Redis: ${figure(memory.bytesPerWallet)} bytes a wallet in use, recent results included; ${figure(memory.bytesPerOpenHold)} more for each open hold.`
    : ''
  const filled = seedMs.ledger === undefined ? Number.NaN : (plan.wallets + 1) / (seedMs.ledger / 1_000)
  return `## Room

${redis}
Opening a wallet, loading it into Redis and its first credit: ${figure(filled)} wallets/s.

${table(['Postgres', 'bytes an operation, tables and indexes'], rows)}`
}

function checks({ checks }: WalletsData): string {
  const rows = checks.map(({ contender, acknowledged, entries, money }) => [
    title(contender),
    acknowledged.toLocaleString('en'),
    entries.toLocaleString('en'),
    money,
  ])
  return `## Was the work done?

${table(['', 'operations acknowledged', 'entries kept', 'money'], rows)}`
}

function circumstances({ machine, servers, noise }: WalletsData): string {
  const list = (facts: Readonly<Record<string, string>>) =>
    Object.entries(facts)
      .map(([name, value]) => `${name} ${value}`)
      .join(', ')
  const { fileSystem, fsyncMs } = machine.temporaryFolder
  return `## Circumstances

- Machine: ${machine.cores} × ${machine.cpu}, ${machine.memoryGb} GB, ${machine.system}; everything on it: callers, engine, Redis, Postgres, and the
  other contenders, connected and idle (those of Holdfast look after their wallets: a few percent of Redis's time)
- Disk: ${fileSystem}, one fsync of a page takes ${fsyncMs.toFixed(2)} ms
- Node ${machine.node}
- Redis: ${list(servers.redis)}
- Postgres: ${list(servers.postgres)}
- Noise: others used ${percent(noise.foreignMedian)} of the machine (median over the turns, at most ${percent(noise.foreignMax)}); the rounds of a cell lie ${percent(noise.spreadMedian)} apart (median over the cells, at most ${percent(noise.spreadMax)})`
}
