import type { OperationOptions, Wallet } from '../../api/index.js'
import { HoldfastError } from '../../errors/index.js'
import type { LedgerStore, TransactionRecord, TransactionType } from '../types.js'
import { stopIfAborted } from '../walking.js'
import { OPENING_KEY, transactionFacts, transactionKey } from '../wallets/format.js'
import { LeftOut } from './findings.js'
import { patiently } from './patience.js'
import { CLOSING_KEY, type ImportPlan } from './plan.js'
import { transactionPages } from './survey.js'

/** Of one client: what is asked for at once is decided in order, in few calls. */
const STEPS_AT_ONCE = 64
const TIMEOUT_MS = 30_000

interface Step {
  readonly type: TransactionType
  readonly amount: number
  readonly key: string
  readonly metadata?: unknown
}

interface Filing {
  readonly wallet: Wallet
  /** Some of it may be there already: then the journal is asked first, which is cheaper than to find out later. */
  readonly resumed: boolean
  readonly signal: AbortSignal | undefined
}

/** The last step is taken when all others are there: so it tells that they are. */
export async function fileAll(plan: ImportPlan, store: LedgerStore, filing: Filing): Promise<void> {
  let steps: Step[] = []
  for await (const step of stepsOf(plan, store)) {
    if (steps.length === STEPS_AT_ONCE) {
      stopIfAborted(filing.signal)
      await take(filing, steps)
      steps = []
    }
    steps.push(step)
  }
  const last = steps.pop()
  await take(filing, steps)
  if (last) await take(filing, [last])
}

async function* stepsOf({ client, survey, opening, closing }: ImportPlan, store: LedgerStore): AsyncGenerator<Step> {
  const metadata = { import: 'what its transactions do not account for' }
  if (opening > 0) yield { type: 'topup', amount: opening, key: OPENING_KEY, metadata }
  if (survey.all) yield* survey.all.map(stepOf)
  else for await (const page of transactionPages(store, client.clientId)) yield* page.map(stepOf)
  if (closing > 0) yield { type: 'deduction', amount: closing, key: CLOSING_KEY, metadata }
}

function stepOf(transaction: TransactionRecord): Step {
  const { id, type, amount } = transaction
  const metadata = transactionFacts(transaction, amount === 0 ? 'note' : 'movement')
  return { type, amount, key: transactionKey(id), metadata }
}

/** They are decided in the order they were asked for in, unless one had to be tried again: then others may have come up short. */
async function take({ wallet, resumed, signal }: Filing, steps: readonly Step[]): Promise<void> {
  const file = (step: Step) => patiently((retry) => perform(wallet, step, retry || resumed), signal)
  const outcomes = await Promise.allSettled(steps.map(file))
  for (const [at, outcome] of outcomes.entries()) {
    if (outcome.status === 'fulfilled') continue
    if (!HoldfastError.is(outcome.reason, 'insufficient_funds')) throw explained(outcome.reason)
    await file(steps[at] as Step).catch((error) => {
      throw explained(error)
    })
  }
}

function perform(wallet: Wallet, { type, amount, key, metadata }: Step, retry: boolean): Promise<unknown> {
  const options: OperationOptions = {
    key,
    durability: 'ledger',
    timeout: TIMEOUT_MS,
    retry,
    ...(metadata !== undefined && { metadata }),
  }
  if (amount === 0) return wallet.note(options)
  return type === 'topup' ? wallet.credit(amount, options) : wallet.debit(amount, options)
}

function explained(error: unknown): unknown {
  if (HoldfastError.is(error, 'insufficient_funds') || HoldfastError.is(error, 'wallet_closed')) {
    return new LeftOut('changed', 'its wallet was used while it was being imported')
  }
  if (HoldfastError.is(error, 'wallet_frozen')) return new LeftOut('changed', 'its wallet is frozen')
  if (HoldfastError.is(error, 'idempotency_conflict')) {
    return new LeftOut('exists', 'its wallet has other entries under the same ids')
  }
  return error
}
