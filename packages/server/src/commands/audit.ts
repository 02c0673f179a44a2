import { styleText } from 'node:util'
import { type AuditReport, CAUSES, type Finding } from 'holdfast'
import { EXIT, type Run } from './command.js'
import { number, withHoldfast } from './tool.js'

export const audit: Run = async (given, terminal) => {
  const { config } = given
  const report = await withHoldfast(given, terminal, ({ hf, signal, progress }) =>
    hf.audit({
      ...(config.shard !== undefined && { shards: [config.shard] }),
      repair: !config.noRepair,
      full: config.full ?? false,
      signal,
      onProgress: ({ done, of, wallets, found }) =>
        progress(() => `${done} of ${of} shards, ${number(wallets)} wallets, ${number(found)} findings so far`),
    }),
  )
  terminal.print(config.json ? JSON.stringify(report) : asText(report))
  const whole = report.busy.length === 0 && report.blind.length === 0
  return report.counts.unrepaired === 0 && whole ? EXIT.ok : EXIT.failed
}

const COLUMNS: [string, (finding: Finding) => string][] = [
  ['CAUSE', ({ cause }) => cause],
  ['SHARD', ({ shard }) => String(shard)],
  ['TENANT', ({ tenant }) => tenant],
  ['WALLET', ({ ref }) => ref],
  ['WHAT', ({ field, seq }) => [field, seq === undefined ? '' : `entry ${seq}`].filter(Boolean).join(' of ')],
  ['EXPECTED', ({ expected }) => String(expected)],
  ['FOUND', ({ found }) => String(found)],
  ['DONE', ({ action }) => action],
]

function asText(report: AuditReport): string {
  const { shards, busy, blind, wallets, entries, hot, findings, counts, durationMs } = report
  const lines: string[] = []
  if (findings.length > 0) lines.push(...tableOf(findings), '', ...meaningsOf(findings), '')
  if (counts.found > findings.length) lines.push(`… and ${number(counts.found - findings.length)} more`, '')
  if (busy.length > 0) lines.push(`Not audited, because another process is at it: shard ${busy.join(', ')}`)
  if (blind.length > 0) lines.push(`Redis did not answer; only journals were audited: shard ${blind.join(', ')}`)
  lines.push(
    `${number(shards.length)} shards, ${number(wallets)} wallets, ${number(entries)} entries read, ${number(hot)} wallets in Redis, ` +
      `in ${(durationMs / 1000).toFixed(1)} s`,
  )
  if (counts.found === 0) lines.push(styleText('green', 'Nothing found.'))
  else
    lines.push(`${number(counts.found)} found, ${number(counts.repaired)} repaired, ${number(counts.unrepaired)} not.`)
  return lines.join('\n')
}

function tableOf(findings: readonly Finding[]): string[] {
  const rows = [COLUMNS.map(([name]) => name), ...findings.map((finding) => COLUMNS.map(([, read]) => read(finding)))]
  const widths = COLUMNS.map((_, column) => Math.max(...rows.map((row) => (row[column] as string).length)))
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] as number))
      .join('  ')
      .trimEnd(),
  )
}

function meaningsOf(findings: readonly Finding[]): string[] {
  const causes = [...new Set(findings.map(({ cause }) => cause))]
  return causes.map((cause) => `${cause}: ${CAUSES[cause].meaning}.`)
}
