import { HoldfastError } from '../errors/index.js'
import type { Begun, Intent, Intents, OpenIntent } from '../journal/index.js'
import type { Outcome } from './attempt.js'
import type { Context } from './context.js'
import { Intended, type IntendedParts, type Patience, type Plan } from './intended.js'
import type { Recoverable } from './recovery.js'
import * as step from './transfer-commands.js'

export interface TransferOutcome {
  /** What was taken from the source in the end, and what arrived. */
  readonly from: Outcome
  readonly to: Outcome
  /** The source's key was used before, by this transfer. */
  readonly replayed: boolean
}

/** How it ended: done, or undone for a refusal of the target's. */
type Ending = { type: 'done'; from: Outcome; to: Outcome } | { type: 'undone'; refusal: HoldfastError }

/** Money from one wallet to another: a hold on the source, and a credit of the target as the commit point. */
export class Transfers implements Recoverable {
  readonly name = 'transfer'
  readonly intents: Intents
  readonly #intended: Intended<Intent, Begun>

  constructor(context: Context, intents: Intents, parts: IntendedParts) {
    this.intents = intents
    this.#intended = new Intended(context, intents, parts, PLAN)
  }

  perform(intent: Intent, timeoutMs: number, signal: AbortSignal | undefined): Promise<TransferOutcome> {
    return this.#intended.within(timeoutMs, signal, async (patience) => {
      const { held } = await this.#intended.hold(intent, patience)
      const ending = await this.#complete(intent, patience)
      if (ending.type === 'undone') throw ending.refusal
      return { from: ending.from, to: ending.to, replayed: held.replayed }
    })
  }

  drain(): Promise<void> {
    return this.#intended.drain()
  }

  async recover(intent: OpenIntent, patience: Patience): Promise<string> {
    if (await this.#intended.isHeld(intent, patience)) {
      const { type } = await this.#complete(intent, patience)
      return type === 'done' ? 'transfer_finished' : 'transfer_undone'
    }
    void this.#intended.end(intent)
    return 'transfer_dropped'
  }

  /** Written down, so that whoever lives can finish it: also for moves of stock, which stand in the same place. */
  async begin(intent: Intent, patience: Patience): Promise<Begun> {
    const written = await this.#intended.begin(intent, patience)
    PLAN.begun(intent, written)
    return written
  }

  end(ended: OpenIntent): void {
    void this.#intended.end(ended)
  }

  ask<T>(patience: Patience, question: () => Promise<T>): Promise<T> {
    return this.#intended.ask(patience, question)
  }

  /** From the hold to the end, forward or back. */
  async #complete(intent: Intent, patience: Patience): Promise<Ending> {
    const to = await this.#intended.commit(intent, patience)
    if (to instanceof HoldfastError) {
      await this.#intended.release(intent, patience)
      void this.#intended.end({ ...intent, attempt: 0 })
      return { type: 'undone', refusal: to }
    }
    if (intent.fee > 0) await this.#intended.must(intent, step.feeOf(intent), patience)
    const from = await this.#intended.must(intent, step.settleOf(intent), patience)
    void this.#intended.end({ ...intent, attempt: 0 })
    return { type: 'done', from, to }
  }
}

const PLAN: Plan<Intent, Begun> = {
  name: 'transfer',
  sourceOf: ({ source }) => source,
  targetOf: ({ target }) => target,
  begun(intent, { attempt, sourceCurrency, targetCurrency }) {
    if (sourceCurrency === null) throw missing('from')
    if (targetCurrency === null) throw missing('to')
    if (attempt > 0) return intent
    throw new HoldfastError(
      'invalid_argument',
      `to: expected a wallet in the currency of the first, ${sourceCurrency}, got one in ${targetCurrency}`,
      { argument: 'to', expected: sourceCurrency, got: targetCurrency },
    )
  },
  holdOf: step.holdOf,
  probeOf: step.probeOf,
  commitOf: step.creditOf,
  voidOf: step.voidOf,
  releaseOf: step.releaseOf,
  // A closed wallet stays closed.
  isFinal: ({ code }) => code === 'wallet_closed',
  told: ({ code, message, facts }, side) =>
    new HoldfastError(code, message, { ...facts, side: side === 'source' ? 'from' : 'to' }),
}

function missing(side: 'from' | 'to'): HoldfastError {
  return new HoldfastError('wallet_not_found', `${side}: there is no wallet with this id in this tenant`, { side })
}
