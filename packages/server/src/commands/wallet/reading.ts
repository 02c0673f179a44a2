import type { Entry, HoldExplanation, HoldState, WalletState } from 'holdfast'
import type { Config } from '../../config/index.js'
import type { Run, Terminal } from '../command.js'
import { ServerClient } from '../server-client.js'
import { type Page, pageText, query, showing } from '../showing.js'
import { entryTable, holdTable, walletTable } from './texts.js'
import { walletPath } from './wallet-path.js'

export const open: Run = showing<WalletState>(
  (config) => {
    const { currency, creditLimit, metadata } = config
    const body = { currency, creditLimit, ...(metadata !== undefined && { metadata: JSON.parse(metadata) }) }
    return { method: 'PUT', path: walletPath(config), body }
  },
  (wallet) => walletTable([wallet]),
)

export const show: Run = showing<WalletState>(
  (config) => ({ path: walletPath(config) + query({ pending: config.pending }) }),
  (wallet) =>
    [
      walletTable([wallet]),
      ...(wallet.metadata === undefined ? [] : ['', `metadata  ${JSON.stringify(wallet.metadata)}`]),
    ].join('\n'),
)

export const list: Run = showing<Page<WalletState>>(
  ({ afterId: after, limit }) => ({ path: `/wallets${query({ after, limit })}` }),
  (page) => pageText(page, walletTable, 'There are no wallets.'),
)

export const holds: Run = showing<Page<HoldState>>(
  (config) => ({ path: `${walletPath(config)}/holds${pageQuery(config)}` }),
  (page) => pageText(page, holdTable, 'There are no open holds.'),
)

export const entries: Run = showing<Page<Entry>>(
  (config) => ({ path: `${walletPath(config)}/entries${pageQuery(config)}` }),
  (page) => pageText(page, entryTable, 'There are no entries.'),
)

export const explain: Run = showing<HoldExplanation>(
  (config) => ({ path: `${walletPath(config)}/holds/${encodeURIComponent(config.holdId as string)}/explain` }),
  ({ text }) => text,
)

const pageQuery = ({ after, limit, pending }: Config): string => query({ after, limit, pending })

/** How a wallet stands, for those who go on from there. */
export const readWallet = (config: Config, terminal: Terminal): Promise<WalletState> =>
  new ServerClient(config, terminal).ask<WalletState>({ method: 'GET', path: walletPath(config) })
