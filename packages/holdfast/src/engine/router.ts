import { HoldfastError } from '../errors/index.js'
import type { Owner } from '../journal/index.js'
import type { Attempt } from './attempt.js'
import { jitteredMs } from './clock.js'
import type { Context } from './context.js'
import type { Decider } from './decider.js'
import type { Fallback } from './fallback.js'
import type { Finder } from './finder.js'
import type { Lane } from './lane.js'

export interface Ways {
  readonly decider: Decider
  readonly fallback: Fallback
  readonly finder: Finder
}

/** Which way an attempt goes: at first, when it has to go again, and when it is told "no". */
export class Router {
  readonly #context: Context
  readonly #ways: Ways

  constructor(context: Context, ways: Ways) {
    this.#context = context
    this.#ways = ways
  }

  route(attempt: Attempt): void {
    if (attempt.settled) return
    const { postgres, turnedAway } = this.#context
    if (postgres.stop) return this.refuse(attempt, turnedAway(attempt.memory) as HoldfastError)
    const { lane, command } = attempt
    if (command.kind === 'refund' && command.facts === null && !attempt.chargeMissing) {
      return void this.readCharge(attempt, 0)
    }
    const { decider, fallback } = this.#ways
    if (!this.isByPostgres(lane)) return decider.add(attempt)
    const refusal = fallback.refusalOf(command.kind) ?? fallback.crowdedOut(attempt)
    if (refusal) this.refuse(attempt, refusal)
    else fallback.add(attempt)
  }

  /** Does the Postgres path decide for it now: because Redis is away, or because others would undo what Redis decides? */
  isByPostgres({ place, memory, postgresUntil }: Lane): boolean {
    const { redisAt, clock } = this.#context
    return redisAt(place).open || (!memory && postgresUntil > clock.now())
  }

  /** The journal is asked first: what is not known may have happened. */
  again(attempt: Attempt): void {
    if (attempt.settled) return
    const { clock } = this.#context
    if (clock.now() >= attempt.deadline) return attempt.refuse(new HoldfastError('timeout'))
    attempt.tries += 1
    const { lane } = attempt
    // Two who load it, each into a Redis of his own, would starve each other.
    if (lane.stales >= 2) this.#leaveRedis(lane, false)
    const waitMs = attempt.tries > 1 ? jitteredMs(clock, attempt.tries, 1, 200) : 0
    const look = (): void => this.#ways.finder.add(attempt, () => this.route(attempt))
    if (waitMs === 0) look()
    else clock.after(waitMs, look)
  }

  /**
   * Something was lost to this epoch of the wallet, which another process decides for, on this path: everybody follows. Each on a way of his own,
   * they would undo each other's work, and those who can't see Redis have no other. After a while somebody tries whether Redis is there for all.
   */
  follow(lane: Lane, owner: Owner, epoch: number): void {
    lane.meetRivals(this.#context.clock.now())
    // Of before this process took it over or loaded it itself.
    if (epoch < lane.epochMin) return
    if (owner === 'postgres') this.#leaveRedis(lane, true)
    else if (lane.joinsOnly) lane.postgresUntil = 0
  }

  #leaveRedis(lane: Lane, joinsOnly: boolean): void {
    const { clock, options } = this.#context
    lane.stales = 0
    if (lane.postgresUntil > clock.now()) return
    lane.postgresUntil = clock.now() + options.postgresSpellMs
    lane.joinsOnly = joinsOnly
  }

  /**
   * A "no": only what was asked when no earlier call could be decided any more. That it has become old meanwhile (it waited for an
   * append) does not help: the call that was late may have been decided behind it. "Come again" rests on nothing that was asked: for that it
   * is enough that the time is over.
   */
  refuse(attempt: Attempt, error: HoldfastError): void {
    const { clock } = this.#context
    const askedAt = error.retryable ? clock.now() : attempt.askedAt
    if (askedAt >= attempt.unansweredUntil) return attempt.refuse(error)
    const waitMs = Math.max(0, attempt.unansweredUntil - clock.now())
    clock.after(waitMs + 1, () => this.route(attempt))
  }

  /**
   * What a refund is measured against. Not in the journal may mean that there is no such wallet, that it is closed, or that the
   * charge was acknowledged from memory and is still on its way: the decision tells which, and brings what is pending.
   * `epoch`: of the state that knows nothing of it either; 0: none was asked yet.
   */
  async readCharge(attempt: Attempt, epoch: number): Promise<void> {
    const { lane, command } = attempt
    const pending = lane.items.has(command.of)
    try {
      const charge = await this.#context.journal.charge(lane.place.ref, command.of)
      if (charge) attempt.command = { ...command, ...charge }
      else if (pending) return this.again(attempt)
      else if (attempt.chargeMissing) return this.#tellMissing(attempt, epoch)
      attempt.chargeMissing = !charge
      // By the two together nothing can ever be decided.
      const leftBehind = epoch > 0 && charge !== null && charge.facts.epoch !== epoch
      if (leftBehind && !(await this.#isCurrent(lane, epoch))) this.again(attempt)
      else this.route(attempt)
    } catch (error) {
      this.#context.postgres.failedWith(error)
      this.again(attempt)
    }
  }

  /**
   * There is nothing to refund. But the key may have been used for something else, which Redis has forgotten; and the state of this epoch may be
   * the past: what others have acknowledged from memory since is not in the journal yet.
   */
  #tellMissing(attempt: Attempt, epoch: number): void {
    this.#ways.finder.add(attempt, () => void this.#tellIfCurrent(attempt, epoch))
  }

  async #tellIfCurrent(attempt: Attempt, epoch: number): Promise<void> {
    try {
      if (await this.#isCurrent(attempt.lane, epoch)) return this.refuse(attempt, new HoldfastError('entry_not_found'))
    } catch (error) {
      this.#context.postgres.failedWith(error)
    }
    this.again(attempt)
  }

  /** Does the journal go on from the state of this epoch? If not, nobody believes it any more, and whoever decides now is followed. */
  async #isCurrent(lane: Lane, epoch: number): Promise<boolean> {
    const [row] = await this.#context.journal.read([lane.place.ref])
    if (row?.epoch === epoch) return true
    lane.distrust(Math.max(row?.epoch ?? 0, epoch + 1))
    if (row) this.follow(lane, row.owner, row.epoch)
    return false
  }
}
