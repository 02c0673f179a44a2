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
  // They were found in no order: of two runs this is the same, and what belongs together stands together.
  const inOrder = [...findings].sort(
    (one, other) => one.kind.localeCompare(other.kind) || one.client.localeCompare(other.client),
  )
  const rows = inOrder.map(({ kind, client, text }) => [kind, plain(client), plain(text)])
  const more = Object.values(counts).reduce((all, count) => all + count, 0) - findings.length
  return [tableOf(['WHAT', 'CLIENT', 'WHY'], rows), ...(more > 0 ? [`… and ${number(more)} more`] : []), '']
}

/** An address with a slip in it is more likely than a stripe402 without clients. */
export const NO_CLIENTS =
  'There are no clients of stripe402 here. Is it the right server, database number and user? Keys with a prefix are not looked for.'
