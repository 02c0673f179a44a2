import { HoldfastError } from '../errors/index.js'
import type { Confirmation } from '../journal/index.js'
import type { RejectionCode } from '../machine/index.js'
import type { Attempt } from './attempt.js'
import { Batcher } from './batcher.js'
import type { Context } from './context.js'
import type { Finder } from './finder.js'
import type { RefusalAnswer } from './lane.js'

interface Doubt {
  readonly attempt: Attempt
  readonly refusal: Extract<RefusalAnswer, { type: 'rejected' }>
}

/**
 * A "no" is an answer too: it is told only when one read of the primary shows that what it rests on stands, and that the key is
 * not in the journal. One read serves all refusals that were decided before it was sent.
 */
export class Confirmer {
  readonly #context: Context
  readonly #finder: Finder
  readonly #batcher: Batcher<Doubt>

  constructor(context: Context, finder: Finder) {
    this.#context = context
    this.#finder = finder
    this.#batcher = new Batcher(context, (doubts) => this.#confirm(doubts))
  }

  /** Refusals that wait to be told. */
  get waiting(): number {
    return this.#batcher.length
  }

  add(attempt: Attempt, refusal: RefusalAnswer): void {
    // What conflicts is an entry: the journal has it and shows what it was made with, or it is not there and nothing conflicts.
    if (refusal.type === 'conflict') this.#finder.add(attempt, () => this.#context.again(attempt))
    else this.#batcher.add({ attempt, refusal })
  }

  async #confirm(doubts: readonly Doubt[]): Promise<void> {
    const confirmations = await this.#context.journal.confirm(
      doubts.map(({ attempt: { lane, command }, refusal: { rest, code } }) => ({
        ref: lane.place.ref,
        ...rest,
        key: command.key,
        hold: code === 'hold_unknown' ? command.hold : '',
      })),
    )
    for (const [index, doubt] of doubts.entries()) this.#conclude(doubt, confirmations[index] as Confirmation)
  }

  #conclude({ attempt, refusal }: Doubt, confirmation: Confirmation): void {
    if (confirmation.seen) return this.#finder.add(attempt, () => this.#context.again(attempt))
    if (confirmation.stands)
      return this.#context.refuse(attempt, refusalError(refusal.code, refusal.facts, confirmation))
    const { epoch } = refusal.rest
    attempt.lane.distrust(confirmation.epoch > epoch ? confirmation.epoch : epoch + 1)
    this.#context.telemetry.count?.('holdfast_recoveries_total', { what: 'unfounded' })
    this.#context.again(attempt)
  }
}

/** A hold that the state does not know may be closed, expired, or never have been: the journal tells which. */
function refusalError(code: RejectionCode, facts: Record<string, number>, { hold }: Confirmation): HoldfastError {
  if (code !== 'hold_unknown') return new HoldfastError(code, undefined, facts)
  if (hold === 'expired') return new HoldfastError('hold_expired')
  return new HoldfastError(hold === 'closed' ? 'hold_closed' : 'hold_not_found')
}
