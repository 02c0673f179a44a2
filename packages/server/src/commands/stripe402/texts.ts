import type { Finding, FindingKind } from 'holdfast/stripe402'
import { number, tableOf } from '../table.js'

/** Sums of money may be more than a number can hold, and more than JSON should. */
export const asJson = (report: object): string =>
  JSON.stringify(report, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))

export const sum = (value: bigint): string => value.toLocaleString('en-US')

/** An id of somebody else's making is no command to a terminal. */
const plain = (text: string): string => text.replace(/\p{Cc}/gu, '�')

/** What was found, as far as it was kept. */
export function findingLines(
  findings: readonly Finding[],
  counts: Readonly<Record<FindingKind, number>>,
): readonly string[] {
  if (findings.length === 0) return []
  const rows = findings.map(({ kind, client, text }) => [kind, plain(client), plain(text)])
  const more = Object.values(counts).reduce((all, count) => all + count, 0) - findings.length
  return [tableOf(['WHAT', 'CLIENT', 'WHY'], rows), ...(more > 0 ? [`… and ${number(more)} more`] : []), '']
}
