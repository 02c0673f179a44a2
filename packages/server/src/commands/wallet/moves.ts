/** What moves something: one request each, with a key. */
import { randomUUID } from 'node:crypto'
import type { HoldFacts, HoldReceipt, Receipt } from 'holdfast'
import { type Config, ConfigError } from '../../config/index.js'
import { EXIT, type Run } from '../command.js'
import { ServerClient } from '../server-client.js'
import { withAnswer } from '../with-answer.js'
import { entryTable, holdTable } from './texts.js'
import { walletPath } from './wallet-path.js'

type NewHold = HoldFacts & { readonly receipt: Receipt }
type Answer = Receipt | HoldReceipt | NewHold

interface Move {
  /** Below the wallet's own. */
  path(config: Config): string
  body(config: Config): object
}

const holdPath =
  (last: string): Move['path'] =>
  ({ holdId }) =>
    `/holds/${encodeURIComponent(holdId as string)}/${last}`

const withoutBody = () => ({})
const withAmount = ({ amount }: Config) => ({ amount })

const MOVES = {
  credit: { path: () => '/credits', body: withAmount },
  debit: { path: () => '/debits', body: withAmount },
  refund: { path: () => '/refunds', body: ({ entrySeq: seq, amount }) => ({ seq, amount }) },
  hold: { path: () => '/holds', body: ({ amount, ttlMs: ttl }) => ({ amount, ttl }) },
  capture: { path: holdPath('captures'), body: ({ amount, beyond }) => ({ amount, beyond }) },
  extend: { path: holdPath('extend'), body: extension },
  settle: { path: holdPath('settle'), body: ({ total, beyond }) => ({ total, beyond }) },
  release: { path: holdPath('release'), body: withoutBody },
  freeze: { path: () => '/freeze', body: withoutBody },
  unfreeze: { path: () => '/unfreeze', body: withoutBody },
  creditLimit: { path: () => '/credit-limit', body: ({ newLimit: amount }) => ({ amount }) },
  close: { path: () => '/close', body: withoutBody },
} as const satisfies Record<string, Move>

export const move =
  (name: keyof typeof MOVES): Run =>
  ({ config }, terminal) =>
    withAnswer(config, terminal, async () => {
      const { path, body }: Move = MOVES[name]
      const { counter, metadata } = config
      const key = config.key ?? randomUUID()
      const answer = await new ServerClient(config, terminal).ask<Answer>({
        method: 'POST',
        path: walletPath(config) + path(config),
        body: {
          ...body(config),
          ...(counter !== undefined && { counter }),
          ...(metadata !== undefined && { metadata: JSON.parse(metadata) }),
        },
        key,
      })
      terminal.print(config.json ? JSON.stringify(answer) : textOf(answer))
      return EXIT.ok
    })

function extension({ more: amount, ttlMs: ttl }: Config): object {
  if (amount === undefined && ttl === undefined) {
    throw new ConfigError('Expected --amount, --ttl or both, got neither')
  }
  return { ...(amount !== undefined && { amount }), ...(ttl !== undefined && { ttl }) }
}

function textOf(answer: Answer): string {
  const receipt = 'receipt' in answer ? answer.receipt : answer
  const hold = 'receipt' in answer ? answer : 'hold' in answer ? answer.hold : null
  const lines = [entryTable([receipt.entry])]
  if (hold) lines.push('', holdTable([hold]))
  if (receipt.replayed)
    lines.push('', 'This key was used before: that is the first answer again, and nothing was done.')
  return lines.join('\n')
}
