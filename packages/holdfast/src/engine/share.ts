import { HoldfastError } from '../errors/index.js'
import type { Filed, Verdict } from '../journal/index.js'
import { decide, type Entry, type Rejection } from '../machine/index.js'
import type { Rest, Touch } from '../sequencer/index.js'
import { type Attempt, notStorable } from './attempt.js'
import type { Confirmer } from './confirmer.js'
import type { Context } from './context.js'
import type { Lane, Owned } from './lane.js'

interface Decided {
  readonly attempt: Attempt
  /** Index of its own entry in what is appended; -1 for none. */
  readonly own: number
  readonly rejection: { rest: Rest; rejection: Rejection } | null
  readonly touch: Touch
}

export interface ShareParts {
  readonly context: Context
  readonly confirmer: Confirmer
  /** Has it decided with the next batch; `first`: before the others of its wallet. */
  later(attempt: Attempt, first?: boolean): void
  /** Does the wallet still run on the Postgres path? */
  belongsHere(lane: Lane): boolean
}

/** One wallet's part of a batch of the Postgres path: decided by the machine, and told when the batch was appended. */
export class Share {
  readonly lane: Lane
  readonly group: readonly Attempt[]
  /** The state is read now, and not left from the last time. */
  readonly fresh: boolean
  owned: Owned | null
  /** What is to be appended. */
  readonly filed: Filed[] = []
  readonly #decided: Decided[] = []
  readonly #parts: ShareParts

  constructor(parts: ShareParts, lane: Lane, group: readonly Attempt[]) {
    this.#parts = parts
    this.lane = lane
    this.group = group
    this.fresh = lane.owned === null
    this.owned = lane.owned
  }

  async decide(): Promise<void> {
    const keys = new Set<string>()
    for (const attempt of this.group) {
      if (attempt.settled) continue
      // A second one with the same key waits for the first.
      if (attempt.command.key !== '' && keys.has(attempt.command.key)) this.#parts.later(attempt)
      else await this.#decide(attempt)
      keys.add(attempt.command.key)
    }
  }

  async #decide(attempt: Attempt): Promise<void> {
    const { lane, filed } = this
    const { context, later } = this.#parts
    const { clock, journal } = context
    const { state, aheadMs } = this.owned as Owned
    if (clock.now() > attempt.deadline) return context.again(attempt)
    const { ref } = lane.place
    if (attempt.command.kind === 'refund') {
      const charge = await journal.charge(ref, attempt.command.of)
      // More is known of the charge than this state knows of anything: by the two together nothing can be refused.
      if (charge?.facts.epoch === state.epoch && charge.facts.seq > state.seq) {
        this.#lose()
        return later(attempt)
      }
      attempt.chargeMissing = !charge
      attempt.command = { ...attempt.command, ...(charge ?? { facts: null }) }
    }
    const serverNow = Math.floor(clock.now() + aheadMs)
    const now = Math.floor(Math.min(serverNow, clock.timeOfDay() + context.options.aheadMaxMs))
    const { entries, outcome } = decide(state, attempt.command, now)
    const within = Math.min(attempt.deadline - clock.now(), context.options.decideWithinMs)
    const deadline = Math.floor(serverNow + within)
    for (const entry of entries) filed.push({ ref, entry, deadline })
    if (outcome.type === 'more') return later(attempt, true)
    if (outcome.type === 'facts') {
      if (attempt.chargeMissing) return context.refuse(attempt, new HoldfastError('entry_not_found'))
      // Refunds in this very group are not in the journal yet: the next group will know.
      lane.owned = null
      return later(attempt)
    }
    const rest = { epoch: state.epoch, seq: state.seq, head: state.head }
    const rejection = outcome.type === 'rejected' ? { rest, rejection: outcome.rejection } : null
    const own = rejection || attempt.command.kind === 'touch' ? -1 : filed.length - 1
    this.#decided.push({ attempt, own, rejection, touch: { due: state.due, epoch: state.epoch, seq: state.seq } })
  }

  /** Others have decided since its state was read. */
  #lose(): void {
    const { lane } = this
    lane.owned = null
    lane.meetRivals(this.#parts.context.clock.now())
    lane.losses += 1
  }

  /**
   * Tells what came of it; `verdicts` are those of what it filed.
   *
   * The state of the last time may have been overtaken by another process on this path, which shares the epoch. An append shows that
   * it was not. Without one a refusal would rest on the past: it is decided again, on a state read now. What is there already shows
   * nothing: the other one may have let the same hold expire, and gone on.
   */
  conclude(verdicts: readonly Verdict[]): void {
    if (!verdicts.every(({ type }) => type === 'appended' || type === 'there')) return this.#startAgain(verdicts)
    const { lane, fresh, filed } = this
    const { context, confirmer, later } = this.#parts
    if (filed.length > 0) lane.losses = 0
    for (const { ref, entry } of filed) context.checkpoints.appended(ref, entry)
    const proven = fresh || verdicts.at(-1)?.type === 'appended'
    if (!proven) lane.owned = null
    for (const { attempt, own, rejection, touch } of this.#decided) {
      if (!proven) {
        later(attempt)
      } else if (rejection) {
        const { code, facts } = rejection.rejection
        confirmer.look(attempt, { type: 'rejected', rest: rejection.rest, code, facts })
      } else if (attempt.command.kind === 'touch') {
        attempt.accept(null, false, 'ledger', touch)
      } else {
        attempt.accept((filed[own] as { entry: Entry }).entry, false, 'ledger')
      }
    }
  }

  /** Not all of it got into the journal, so nothing that was decided stands. */
  #startAgain(verdicts: readonly Verdict[]): void {
    const { context, later, belongsHere } = this.#parts
    this.#lose()
    const raised = verdicts.find((verdict) => verdict.type === 'epoch')
    if (raised) context.follow(this.lane, raised.owner, raised.epoch)
    context.telemetry.count?.('holdfast_recoveries_total', { what: 'stale' })
    for (const { attempt, own } of this.#decided) {
      // Come again, it would fail again, and everybody who is decided with it.
      if (verdicts[own]?.type === 'bad') attempt.refuse(notStorable())
      else if (raised || !belongsHere(this.lane)) context.again(attempt)
      // The next batch reads the state anew, and looks for the keys first.
      else later(attempt)
    }
  }
}
