import { HoldfastError } from 'holdfast'
import { type ImportReport, importStore } from 'holdfast/stripe402'
import { StartError } from '../../lifecycle/start-error.js'
import { EXIT, type Run } from '../command.js'
import { counted, number } from '../table.js'
import { withHoldfast } from '../tool.js'
import { withStore } from './source.js'
import { asJson, findingLines, NO_CLIENTS, sum } from './texts.js'

/** Each wallet is opened by a commit of its own: so many share what a commit costs. */
const DATABASE_CONNECTIONS = 16

export const importClients: Run = async (given, terminal) => {
  const { config } = given
  const report = await withStore(given, (store) =>
    withHoldfast(
      given,
      terminal,
      ({ hf, signal, progress }) =>
        importStore(store, hf.forTenant(config.tenant as string), {
          dryRun: config.dryRun ?? false,
          prefix: config.clientPrefix as string,
          signal,
          onProgress: ({ clients, transactions, comparing }) =>
            progress(() =>
              comparing
                ? `${number(clients)} clients compared so far`
                : `${number(clients)} clients, ${number(transactions)} transactions so far`,
            ),
        }).catch((error: unknown) => {
          if (config.dryRun || !HoldfastError.is(error, 'aborted')) throw error
          throw new StartError('Stopped before it was done. Start it again, and it goes on where it was')
        }),
      DATABASE_CONNECTIONS,
    ),
  )
  terminal.print(config.json ? asJson(report) : asText(report))
  return report.leftOut === 0 && report.counts.differs === 0 ? EXIT.ok : EXIT.failed
}

function asText(report: ImportReport): string {
  const { dryRun, clients, imported, before, leftOut, transactions, counts, findings } = report
  if (clients === 0) return NO_CLIENTS
  return [
    ...findingLines(findings, counts),
    `${counted(clients, 'client')}: ${number(imported)} ${dryRun ? 'can be imported' : 'imported'}, ${number(before)} were imported before, ` +
      `${number(leftOut)} left out. ${counted(transactions, 'transaction')}.`,
    ...adjustedLine(report),
    ...balancesLine(report),
    ...(dryRun ? ['Nothing was changed.'] : []),
  ].join('\n')
}

function adjustedLine({ adjusted, adjustedAbove, adjustedBelow }: ImportReport): string[] {
  if (adjusted === 0) return []
  return [
    `Transactions of ${counted(adjusted, 'client')} do not come to the balance: ${sum(adjustedAbove)} are missing, ` +
      `${sum(adjustedBelow)} too many. An entry of its own makes up for it in each wallet.`,
  ]
}

function balancesLine({ balances, counts: { differs } }: ImportReport): string[] {
  if (!balances) return []
  const both = `${sum(balances.store)} in the store, ${sum(balances.wallets)} in wallets`
  return [differs === 0 ? `Compared at the end: ${both}.` : `At the end ${number(differs)} of them differ: ${both}.`]
}
