import type { Entry, HoldExplanation, HoldState, WalletState } from 'holdfast'
import type { Config } from '../../config/index.js'
import { EXIT, type Run, type Terminal } from '../command.js'
import { ServerClient } from './server-client.js'
import { entryTable, holdTable, walletTable } from './texts.js'
import { walletPath, withAnswer } from './with-answer.js'

interface Page<Item> {
  readonly data: readonly Item[]
  readonly next: string | number | null
}

/** Asks once, and shows what came. */
const showing =
  <Answer>(
    request: (config: Config) => { method?: 'GET' | 'PUT'; path: string; body?: object },
    text: (answer: Answer) => string,
  ): Run =>
  ({ config }, terminal) =>
    withAnswer(config, terminal, async () => {
      const answer = await new ServerClient(config, terminal).ask<Answer>({ method: 'GET', ...request(config) })
      terminal.print(config.json ? JSON.stringify(answer) : text(answer))
      return EXIT.ok
    })

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

/** Nothing of what was not given. */
function query(parameters: Readonly<Record<string, string | number | boolean | undefined>>): string {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== false)
  const text = new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)])).toString()
  return text === '' ? '' : `?${text}`
}

const pageQuery = ({ after, limit, pending }: Config): string => query({ after, limit, pending })

function pageText<Item>(
  { data, next }: Page<Item>,
  table: (items: readonly Item[]) => string,
  nothing: string,
): string {
  if (data.length === 0) return nothing
  return next === null ? table(data) : `${table(data)}\n\nThere are more: --after '${next}'`
}

/** How a wallet stands, for those who go on from there. */
export const readWallet = (config: Config, terminal: Terminal): Promise<WalletState> =>
  new ServerClient(config, terminal).ask<WalletState>({ method: 'GET', path: walletPath(config) })
