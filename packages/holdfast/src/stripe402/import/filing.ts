import type { OperationOptions, Wallet } from '../../api/index.js'
import { HoldfastError } from '../../errors/index.js'
import type { LedgerStore, TransactionRecord, TransactionType } from '../types.js'
import { stopIfAborted } from '../walking.js'
import { OPENING_KEY, transactionFacts, transactionKey } from '../wallets/format.js'
import { LeftOut } from './findings.js'
import { CLOSING_KEY, type ImportPlan } from './plan.js'
import { transactionPages } from './survey.js'

/** Of one client: what is asked for at once is decided in order, in few calls. */
const STEPS_AT_ONCE = 64
/** Servers may restart meanwhile: for so long it is tried again. */
const PATIENCE_MS = 60_000
const PAUSE_MS = 250
const TIMEOUT_MS = 30_000

interface Step {
  readonly type: TransactionType
  readonly amount: number
  readonly key: string
  readonly metadata?: unknown
}

/** The last step is taken when all others are there: so it tells that they are. */
export async function fileAll(
  plan: ImportPlan,
  wallet: Wallet,
  store: LedgerStore,
  signal: AbortSignal | undefined,
): Promise<void> {
  let steps: Step[] = []
  for await (const step of stepsOf(plan, store)) {
    if (steps.length === STEPS_AT_ONCE) {
      stopIfAborted(signal)
      await take(wallet, steps)
      steps = []
    }
    steps.push(step)
  }
  const last = steps.pop()
  await take(wallet, steps)
  if (last) await take(wallet, [last])
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
async function take(wallet: Wallet, steps: readonly Step[]): Promise<void> {
  const outcomes = await Promise.allSettled(steps.map((step) => patiently((retry) => perform(wallet, step, retry))))
  for (const [at, outcome] of outcomes.entries()) {
    if (outcome.status === 'fulfilled') continue
    if (!HoldfastError.is(outcome.reason, 'insufficient_funds')) throw explained(outcome.reason)
    await patiently((retry) => perform(wallet, steps[at] as Step, retry)).catch((error) => {
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

/** The same key is safe to try again, whatever became of it. */
async function patiently<T>(work: (retry: boolean) => Promise<T>): Promise<T> {
  const giveUpAt = performance.now() + PATIENCE_MS
  for (let tries = 1; ; tries += 1) {
    try {
      return await work(tries > 1)
    } catch (error) {
      if (!HoldfastError.is(error) || !error.retryable || performance.now() > giveUpAt) throw error
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    }
  }
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
