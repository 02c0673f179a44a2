import { type VerifyReport, verifyStore } from 'holdfast/stripe402'
import { untilSignal } from '../../lifecycle/index.js'
import { EXIT, type Run } from '../command.js'
import { counted, number } from '../table.js'
import { progressOf } from '../tool.js'
import { withStore } from './source.js'
import { asJson, findingLines, NO_CLIENTS, sum } from './texts.js'

export const verify: Run = async (given, terminal) => {
  const stop = new AbortController()
  void untilSignal().then(() => stop.abort())
  const progress = progressOf(terminal)
  const report = await withStore(given, (store) =>
    verifyStore(store, {
      signal: stop.signal,
      onProgress: ({ clients, transactions }) =>
        progress(() => `${number(clients)} clients, ${number(transactions)} transactions so far`),
    }),
  )
  terminal.print(given.config.json ? asJson(report) : asText(report))
  return report.counts.unequal + report.counts.damaged === 0 ? EXIT.ok : EXIT.failed
}

function asText({ clients, transactions, balances, topups, deductions, counts, findings }: VerifyReport): string {
  if (clients + counts.damaged === 0) return NO_CLIENTS
  return [
    ...findingLines(findings, counts),
    `${counted(clients, 'client')} with ${counted(transactions, 'transaction')}: ${sum(topups)} in, ${sum(deductions)} out, ` +
      `${sum(balances)} in balances.`,
    counts.unequal + counts.damaged === 0
      ? 'Every balance is what its transactions come to.'
      : `Balances that are not what their transactions come to: ${number(counts.unequal)}. Clients that can't be read: ${number(counts.damaged)}.`,
  ].join('\n')
}
