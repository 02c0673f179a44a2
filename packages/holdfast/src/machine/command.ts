import type { Command, CommandKind } from './types.js'

type Given = Pick<Command, 'kind'> & Partial<Omit<Command, 'kind' | 'params'>>

/** A command with all its fields. `params` is made here and nowhere else: what decides, in a fixed order and no more. */
export function command(given: Given): Command {
  const { kind, key = '' } = given
  const full = {
    key,
    hold: kind === 'hold' ? key : '',
    amount: 0,
    ttlMs: 0,
    beyond: false,
    of: 0,
    charge: 0,
    facts: null,
    counter: defaultCounter(kind),
    metadata: '',
    ...given,
  }
  return { ...full, params: params(full) }
}

function params({ kind, amount, ttlMs, beyond, of }: Omit<Command, 'params'>): string {
  switch (kind) {
    case 'credit':
    case 'debit':
    case 'limit':
      return `${kind} ${amount}`
    case 'hold':
    case 'extend':
      return `${kind} ${amount} ${ttlMs}`
    case 'capture':
    case 'settle':
      return `${kind} ${amount} ${beyond ? 'available' : 'reject'}`
    case 'refund':
      return `${kind} ${of} ${amount}`
    default:
      return kind
  }
}

function defaultCounter(kind: CommandKind): string {
  return kind === 'credit' ? 'funding' : 'revenue'
}
