import { meterParams } from './meter.js'
import type { Command, CommandKind } from './types.js'

type Given = Pick<Command, 'kind'> & {
  readonly [Field in Exclude<keyof Command, 'kind' | 'params'>]?: Command[Field] | undefined
} & {
  /** What else decides, in words: of what stock, or where the command is a step of something larger. */
  readonly also?: string | undefined
}

/** A command with all its fields. `params` is made here and nowhere else: what decides, in a fixed order and no more. */
export function command(given: Given): Command {
  const { kind, key = '', amount = 0, ttlMs = 0, beyond = false, of = 0, meter = null } = given
  const words = meter ? `${kind} ${meterParams(meter)}` : params(kind, amount, ttlMs, beyond, of)
  // Field by field: on the hot path, and an object that is spread together costs several times as much.
  return {
    kind,
    key,
    params: given.also === undefined ? words : `${words} ${given.also}`,
    hold: given.hold ?? (kind === 'hold' || kind === 'meter' || kind === 'checkout' ? key : ''),
    amount,
    ttlMs,
    beyond,
    of,
    charge: given.charge ?? 0,
    facts: given.facts ?? null,
    meter,
    counter: given.counter ?? (kind === 'credit' ? 'funding' : 'revenue'),
    metadata: given.metadata ?? '',
  }
}

function params(kind: CommandKind, amount: number, ttlMs: number, beyond: boolean, of: number): string {
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
