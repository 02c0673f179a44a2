/** How wallets, holds and entries look to people. */
import type { Entry, HoldFacts, HoldState, WalletState } from 'holdfast'
import { momentOf, number, tableOf } from '../table.js'

export const walletTable = (wallets: readonly WalletState[]): string =>
  tableOf(
    ['WALLET', 'CURRENCY', 'AVAILABLE', 'RESERVED', 'CREDIT LIMIT', 'STATUS', 'ENTRIES', 'UPDATED (UTC)'],
    wallets.map((one) => [
      one.id,
      one.currency,
      number(one.available),
      number(one.reserved),
      number(one.creditLimit),
      one.status,
      number(one.seq),
      momentOf(one.updatedAt),
    ]),
  )

const ENTRY_COLUMNS: readonly [name: string, width: number, read: (entry: Entry) => string][] = [
  ['SEQ', 6, ({ seq }) => String(seq)],
  ['TIME (UTC)', 19, ({ at }) => momentOf(at)],
  ['KIND', 8, ({ kind }) => kind],
  ['AMOUNT', 12, ({ amount }) => number(amount)],
  ['AVAILABLE', 14, ({ available }) => number(available)],
  ['RESERVED', 14, ({ reserved }) => number(reserved)],
  ['KEY', 0, ({ key }) => key],
]

export const entryTable = (entries: readonly Entry[]): string =>
  tableOf(
    ENTRY_COLUMNS.map(([name]) => name),
    entries.map((entry) => ENTRY_COLUMNS.map(([, , read]) => read(entry))),
  )

/** For entries that come one by one: nobody knows yet how wide the next one is. */
export const entryHeading = (): string => ENTRY_COLUMNS.map(([name, width]) => name.padEnd(width)).join('  ')
export const entryLine = (entry: Entry): string =>
  ENTRY_COLUMNS.map(([, width, read]) => read(entry).padEnd(width)).join('  ')

export const holdTable = (holds: readonly (HoldFacts & Partial<Pick<HoldState, 'status'>>)[]): string =>
  tableOf(
    ['HOLD', 'AMOUNT', 'CAPTURED', 'LEFT', 'EXPIRES (UTC)', ...(holds.some(({ status }) => status) ? ['STATUS'] : [])],
    holds.map(({ id, amount, captured, left, expiresAt, status }) => [
      id,
      number(amount),
      number(captured),
      number(left),
      momentOf(expiresAt),
      ...(status ? [status] : []),
    ]),
  )
