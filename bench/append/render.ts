import type { Measured } from '../harness/statistics.js'
import { LANES } from './plan.js'
import type { AppendData, Cell } from './suite.js'

export function render({ cells, plan, machine, commandLine, sent, kept }: AppendData): string {
  const wallets = plan.wallets.toLocaleString('en')
  return `# Append

What one entry costs on its way into the journal, by how many come in one statement: \`${commandLine}\`.
Holds and settles in turn, keys of 36 characters, ${LANES} appends under way at once. *spread*: wallets picked at random out of
${wallets}; *hot*: one wallet for each append under way. Median of ${plan.rounds} rounds, and their range.

| wallets | entries a statement | Node, µs an entry | Postgres, µs an entry | WAL, bytes an entry | entries/s |
|---|---|---|---|---|---|
${cells.map(row).join('\n')}

${sent.toLocaleString('en')} entries were sent, and ${kept.toLocaleString('en')} are in the journal. Full page images are part of the WAL, so
it depends on when the last checkpoint was. ${machine.cores} cores of ${machine.cpu}, ${machine.system}, Node ${machine.node};
an fsync takes ${machine.temporaryFolder.fsyncMs.toFixed(2)} ms.
`
}

function row({ place, entriesPerStatement, nodeUs, postgresUs, walBytes, entriesPerSecond }: Cell): string {
  const each = entriesPerStatement.toLocaleString('en')
  const figures = [figure(nodeUs, 1), figure(postgresUs, 1), figure(walBytes, 0), figure(entriesPerSecond, 0)]
  return `| ${place} | ${each} | ${figures.join(' | ')} |`
}

function figure({ median, min, max }: Measured, digits: number): string {
  const text = (value: number) =>
    value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
  return `${text(median)} (${text(min)} to ${text(max)})`
}
