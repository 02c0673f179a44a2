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
  /** A refund of what is nowhere to be found: that rests on no state. */
  readonly missing: boolean
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
  /** Nothing more is decided by this state now: others have overtaken it, or more has run out than one step may file. */
  #stopped = false

  constructor(parts: ShareParts, lane: Lane, group: readonly Attempt[]) {
    this.#parts = parts
    this.lane = lane
    this.group = group
    this.fresh = lane.owned === null
    this.owned = lane.owned
  }

  get refunds(): Attempt[] {
    return this.group.filter(({ settled, command }) => !settled && command.kind === 'refund')
  }

  /** What one of its refunds is measured against. Before anything is decided: from then on the time in which it may be appended runs. */
  async readCharge(attempt: Attempt): Promise<void> {
    const { command, lane } = attempt
    const { state } = this.owned as Owned
    const charge = await this.#parts.context.journal.charge(lane.place.ref, command.of)
    // More is known of the charge than this state knows of anything: by the two together nothing can be refused.
    if (charge?.facts.epoch === state.epoch && charge.facts.seq > state.seq && !this.#stopped) {
      this.#stopped = true
      this.#lose()
    }
    attempt.chargeMissing = !charge
    attempt.command = { ...command, ...(charge ?? { facts: null }) }
  }

  decide(): void {
    const keys = new Set<string>()
    for (const attempt of this.group) {
      if (attempt.settled) continue
      // A second one with the same key waits for the first.
      if (this.#stopped || (attempt.command.key !== '' && keys.has(attempt.command.key))) this.#parts.later(attempt)
      else this.#decide(attempt)
      keys.add(attempt.command.key)
    }
  }

  #decide(attempt: Attempt): void {
    const { lane, filed } = this
    const { context, later } = this.#parts
    const { clock } = context
    const { state, aheadMs } = this.owned as Owned
    if (clock.now() > attempt.deadline) return context.again(attempt)
    const { ref } = lane.place
    const serverNow = Math.floor(clock.now() + aheadMs)
    const now = Math.floor(Math.min(serverNow, clock.timeOfDay() + context.options.aheadMaxMs))
    const { entries, outcome } = decide(state, attempt.command, now)
    const within = Math.min(attempt.deadline - clock.now(), context.options.decideWithinMs)
    const deadline = Math.floor(serverNow + within)
    for (const entry of entries) filed.push({ ref, entry, deadline })
    if (outcome.type === 'more') {
      // Sorting thousands of holds that are due for each of those behind it would keep the whole process from everything else.
      this.#stopped = true
      return later(attempt, true)
    }
    if (outcome.type === 'facts' && !attempt.chargeMissing) {
      // Refunds in this very group are not in the journal yet: the next group will know.
      lane.owned = null
      return later(attempt)
    }
    const rest = { epoch: state.epoch, seq: state.seq, head: state.head }
    const rejection = outcome.type === 'rejected' ? { rest, rejection: outcome.rejection } : null
    const own = outcome.type === 'accepted' && attempt.command.kind !== 'touch' ? filed.length - 1 : -1
    const touch = { due: state.due, epoch: state.epoch, seq: state.seq }
    this.#decided.push({ attempt, own, rejection, missing: outcome.type === 'facts', touch })
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
    for (const { attempt, own, rejection, missing, touch } of this.#decided) {
      if (!proven) {
        later(attempt)
      } else if (missing) {
        context.refuse(attempt, new HoldfastError('entry_not_found'))
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
