import { HoldfastError } from '../errors/index.js'
import type { BegunPayment, Open, PaymentIntent, PaymentIntents } from '../journal/index.js'
import type { Entry } from '../machine/index.js'
import type { Outcome } from './attempt.js'
import type { Context } from './context.js'
import { Intended, type IntendedParts, type Patience, type Plan } from './intended.js'
import * as step from './purchase-commands.js'
import type { Recoverable } from './recovery.js'

/**
 * `again`: what was to be paid for is not what is in the checkout any more, or the payment was called off because nobody seemed to be at work
 * on it. The money is back, the checkout as it was: whoever still wants it begins anew.
 */
export type PurchaseOutcome = { type: 'done'; sale: Outcome; wallet: Outcome } | { type: 'again' }

/** How it ended: paid, or undone for a refusal of the sale's. */
type Ending = Extract<PurchaseOutcome, { type: 'done' }> | { type: 'undone'; refusal: HoldfastError }

/** Nobody was at work on it any more. As one who comes back to it hears it: to be tried again. */
const CALLED_OFF = new HoldfastError('timeout')

/**
 * Stock of a sale for money of a wallet: a hold on the wallet, and the purchase in the sale as the commit point. What nobody is at work on
 * any more goes back rather than on: the buyer may have gone elsewhere. First it is made sure that it can never be bought with this hold,
 * then that is released; or settled, if it was bought after all. The checkout stays as it was, for as long as it lasts.
 */
export class Purchases implements Recoverable {
  readonly name = 'purchase'
  readonly intents: PaymentIntents
  readonly #intended: Intended<PaymentIntent, BegunPayment>

  constructor(context: Context, intents: PaymentIntents, parts: IntendedParts) {
    this.intents = intents
    this.#intended = new Intended(context, intents, parts, PLAN)
  }

  perform(asked: PaymentIntent, timeoutMs: number, signal: AbortSignal | undefined): Promise<PurchaseOutcome> {
    return this.#intended.within(timeoutMs, signal, async (patience) => {
      const { intent } = await this.#intended.hold(asked, patience)
      const ending = await this.#finish(intent, await this.#intended.commit(intent, patience), patience)
      if (ending.type === 'done') return ending
      if (isAgain(ending.refusal)) return { type: 'again' }
      throw ending.refusal
    })
  }

  drain(): Promise<void> {
    return this.#intended.drain()
  }

  async recover(intent: Open<PaymentIntent>, patience: Patience): Promise<string> {
    if (!(await this.#intended.isHeld(intent, patience))) {
      void this.#intended.end(intent)
      return 'purchase_dropped'
    }
    const bought = await this.#intended.void(intent, CALLED_OFF, patience)
    const { type } = await this.#finish(intent, bought, patience)
    return type === 'done' ? 'purchase_settled' : 'purchase_released'
  }

  /** The sale has decided: the money follows. */
  async #finish(intent: PaymentIntent, bought: Outcome | HoldfastError, patience: Patience): Promise<Ending> {
    if (bought instanceof HoldfastError) {
      await this.#intended.release(intent, patience)
      // Waited for: who begins anew must not find the one that is over.
      await this.#intended.end({ ...intent, attempt: 0 })
      return { type: 'undone', refusal: bought }
    }
    const wallet = await this.#intended.must(intent, step.settleOf(intent, bought.entry as Entry), patience)
    void this.#intended.end({ ...intent, attempt: 0 })
    return { type: 'done', sale: bought, wallet }
  }
}

const isAgain = ({ code }: HoldfastError): boolean => code === 'hold_exceeded' || code === CALLED_OFF.code

/** A checkout that is over stays so; and so does a sale that is closed for good. */
const FINAL: readonly string[] = ['hold_closed', 'hold_expired', 'wallet_closed']

const PLAN: Plan<PaymentIntent, BegunPayment> = {
  name: 'purchase',
  sourceOf: ({ wallet }) => wallet,
  targetOf: ({ bucket }) => bucket,
  begun(asked, { id, currency }) {
    if (currency !== null) return { ...asked, id }
    throw new HoldfastError('wallet_not_found', 'pay.wallet: there is no wallet with this id in this tenant', {
      side: 'wallet',
    })
  },
  holdOf: step.holdOf,
  probeOf: step.probeOf,
  commitOf: step.purchaseOf,
  voidOf: step.voidOf,
  releaseOf: step.releaseOf,
  isFinal: ({ code }) => FINAL.includes(code),
  told: (refusal, side) => {
    if (side === 'target') return refusal
    const { code, message, facts } = refusal
    return new HoldfastError(code, message, { ...facts, side: 'wallet' })
  },
}
