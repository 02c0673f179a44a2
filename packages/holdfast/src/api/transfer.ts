import { MAX_AMOUNT } from '../machine/index.js'
import { type Receipt, receiptOf } from './receipt.js'
import { OPERATION_NAMES, type OperationOptions, type Tenant } from './tenant.js'
import * as check from './validate.js'

export interface TransferOptions extends Omit<OperationOptions, 'durability' | 'retry'> {
  /** What the source pays on top of the amount. Default 0. */
  readonly fee?: number
  /** The account that gets the fee. Default `revenue`. */
  readonly counter?: string
}

const TRANSFER_NAMES = new Set([...OPERATION_NAMES, ...check.namesOf<Pick<TransferOptions, 'fee'>>({ fee: true })])

/** Money that has left one wallet and arrived at another. */
export interface Transfer {
  /** What left, the fee included: the entry that settled it, and the source after it. */
  readonly from: Receipt
  /** What arrived. */
  readonly to: Receipt
  readonly amount: number
  readonly fee: number
  /** The key was used before: this is the answer of the first time. */
  readonly replayed: boolean
}

export async function transfer(
  { keys, engine }: Tenant,
  from: unknown,
  to: unknown,
  amount: unknown,
  given: unknown,
): Promise<Transfer> {
  const options = check.options('options', given, TRANSFER_NAMES)
  const source = keys.ref(check.text('from', from))
  const target = keys.ref(check.text('to', to))
  if (source === target) throw check.invalid('to', 'another wallet than from', 'the same')
  const { fee = 0, counter = 'revenue', durability = 'ledger' } = options
  const arrives = check.amount('amount', amount, 1)
  const costs = check.amount('fee', fee, 0)
  if (costs > MAX_AMOUNT - arrives) throw check.tooMuch('amount and fee', 'fee')
  check.oneOf('durability', durability, ['ledger'] as const)
  const intent = {
    tenant: keys.tenant,
    source,
    target,
    key: check.key(options.key),
    amount: arrives,
    fee: costs,
    counter: check.account('counter', counter),
    metadata: check.metadata(options.metadata),
  }
  const outcome = await engine.transfer(intent, {
    timeoutMs: check.timeoutMs(options.timeout),
    signal: check.signal(options.signal),
  })
  return {
    from: receiptOf(outcome.from),
    to: receiptOf(outcome.to),
    amount: arrives,
    fee: costs,
    replayed: outcome.replayed,
  }
}
