import type { Confirmation } from '../journal/index.js'
import type { Attempt } from './attempt.js'
import { Batcher } from './batcher.js'
import type { Context } from './context.js'
import type { Finder } from './finder.js'
import { Grounds, isGrounded } from './grounds.js'
import type { RefusalAnswer } from './lane.js'
import { type Doubt, refusalError } from './refusal.js'

/**
 * A "no" is an answer too: it is told only when one read of the primary shows that what it rests on stands, and that the key is
 * not in the journal. One read serves all refusals that were decided before it was sent.
 */
export class Confirmer {
  readonly #context: Context
  readonly #finder: Finder
  readonly #batcher: Batcher<Doubt>
  /** Of wallets whose row somebody keeps locked: by themselves, so that nobody else waits for that again and again. */
  readonly #apart: Batcher<Doubt>
  readonly #grounds: Grounds

  constructor(context: Context, finder: Finder) {
    this.#context = context
    this.#finder = finder
    this.#batcher = new Batcher(context, async (doubts) => {
      for (const doubt of await this.#confirm(doubts)) this.#apart.add(doubt)
      return []
    })
    this.#apart = new Batcher(context, (doubts) => this.#confirm(doubts))
    this.#grounds = new Grounds(context)
  }

  /** Refusals that wait to be told. */
  get waiting(): number {
    return this.#batcher.length + this.#apart.length + this.#grounds.waiting
  }

  /** One that Redis has decided. */
  add(attempt: Attempt, refusal: RefusalAnswer): void {
    if (refusal.type === 'rejected' && isGrounded(attempt)) this.#grounds.add({ attempt, refusal })
    else this.look(attempt, refusal)
  }

  /** Looks for the key as well: a refusal of the Postgres path, or one whose state may have forgotten the key. */
  look(attempt: Attempt, refusal: RefusalAnswer): void {
    // What conflicts is an entry: the journal has it and shows what it was made with, or it is not there and nothing conflicts.
    if (refusal.type === 'conflict') this.#finder.add(attempt, () => this.#context.again(attempt))
    else (attempt.lane.rowLocked ? this.#apart : this.#batcher).add({ attempt, refusal })
  }

  /** Returns those of which nothing is known now. They rest on what they did: nothing has to be decided anew. */
  async #confirm(doubts: readonly Doubt[]): Promise<Doubt[]> {
    const confirmations = await this.#context.journal.confirm(
      doubts.map(({ attempt: { lane, command }, refusal: { rest, code } }) => ({
        ref: lane.place.ref,
        ...rest,
        key: command.key,
        hold: code === 'hold_unknown' ? command.hold : '',
      })),
    )
    const locked: Doubt[] = []
    for (const [index, doubt] of doubts.entries()) {
      const confirmation = confirmations[index] as Confirmation | 'locked'
      doubt.attempt.lane.rowLocked = confirmation === 'locked'
      if (confirmation === 'locked') locked.push(doubt)
      else this.#conclude(doubt, confirmation)
    }
    return locked
  }

  #conclude({ attempt, refusal }: Doubt, confirmation: Confirmation): void {
    if (confirmation.seen) return this.#finder.add(attempt, () => this.#context.again(attempt))
    if (confirmation.stands)
      return this.#context.refuse(attempt, refusalError(refusal.code, refusal.facts, confirmation.hold))
    const { epoch } = refusal.rest
    attempt.lane.distrust(confirmation.epoch > epoch ? confirmation.epoch : epoch + 1)
    if (confirmation.owner) this.#context.follow(attempt.lane, confirmation.owner, confirmation.epoch)
    this.#context.telemetry.count?.('holdfast_recoveries_total', { what: 'unfounded' })
    this.#context.again(attempt)
  }
}
