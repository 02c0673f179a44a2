import type { ImportData, Row } from './suite.js'

export function render({ plan, rows, machine, commandLine }: ImportData): string {
  const number = (value: number) => value.toLocaleString('en')
  return `# Import

How long it takes to take a stripe402 store into wallets: \`${commandLine}\`. ${number(plan.clients)} clients with ${plan.transactions} transactions each, written as
stripe402 writes them; the commands as an operator runs them, on the same machine as Redis and Postgres. The import reads everything again
at the end and compares.

| command | from | s | transactions/s | most memory of the command, MB | its CPU, s | CPU of Redis and Postgres, s |
|---|---|---:|---:|---:|---:|---:|
${rows.map(row).join('\n')}

${machine.cpu}, ${machine.cores} cores, ${machine.system}, Node ${machine.node}; an fsync takes ${machine.temporaryFolder.fsyncMs.toFixed(2)} ms.
`
}

function row({ command, source, seconds, transactions, peakMb, cpuSeconds, serversCpuSeconds }: Row): string {
  const figures = [
    seconds.toFixed(1),
    Math.round(transactions / seconds).toLocaleString('en'),
    Math.round(peakMb),
    cpuSeconds.toFixed(1),
    serversCpuSeconds.toFixed(1),
  ]
  return `| \`${command.replace(', again', '')}\`${command.endsWith('again') ? ', again' : ''} | ${source} | ${figures.join(' | ')} |`
}
