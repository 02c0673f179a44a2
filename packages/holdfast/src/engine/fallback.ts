import { HoldfastError } from '../errors/index.js'
import type { Filed } from '../journal/index.js'
import { decide, type Entry, type Rejection } from '../machine/index.js'
import type { Rest, Touch } from '../sequencer/index.js'
import { type Attempt, notStorable } from './attempt.js'
import { jitteredMs, sleep } from './clock.js'
import type { Confirmer } from './confirmer.js'
import { CLOCK_SLACK_MS, type Context } from './context.js'
import type { Lane, Owned } from './lane.js'

const GROUP_MAX = 256

interface Decided {
  readonly attempt: Attempt
  /** Index of its own entry in what is appended; -1 for none. */
  readonly own: number
  readonly rejection: { rest: Rest; rejection: Rejection } | null
  readonly touch: Touch
}

/**
 * The Postgres path: the same machine, in TypeScript, on the state that Postgres has, through the same compare-and-append. For
 * wallets whose Redis is away, and for a moment for those that two paths fight over. The wallet is taken over first (its epoch is
 * raised, and stays raised whatever is decided), and no row is locked across round trips: who appends first wins, the other one
 * starts again.
 */
export class Fallback {
  readonly #context: Context
  readonly #confirmer: Confirmer

  constructor(context: Context, confirmer: Confirmer) {
    this.#context = context
    this.#confirmer = confirmer
  }

  add(attempt: Attempt): void {
    const { lane } = attempt
    lane.fallback.push(attempt)
    if (lane.fallingBack) return
    lane.fallingBack = true
    void this.#work(lane)
  }

  async #work(lane: Lane): Promise<void> {
    await new Promise<void>((resolve) => queueMicrotask(resolve))
    for (let failures = 0; lane.fallback.length > 0; ) {
      const group = lane.fallback.splice(0, GROUP_MAX).filter(({ settled }) => !settled)
      if (group.length === 0) continue
      try {
        await this.#step(lane, group)
        this.#context.postgres.worked()
        failures = 0
      } catch (error) {
        // Appended or not, it is safe to come again: the keys will tell.
        lane.owned = null
        this.#context.postgres.failed()
        this.#context.telemetry.log?.('warn', 'postgres_path_failed', { reason: String(error) })
        await sleep(this.#context.clock, 20 + jitteredMs(this.#context.clock, failures, 20, 1_000))
        failures += 1
        for (const attempt of group) {
          const ends = Math.min(attempt.deadline, this.#context.clock.now() + this.#context.options.decideWithinMs)
          attempt.unansweredUntil = Math.max(attempt.unansweredUntil, ends + CLOCK_SLACK_MS)
          this.#context.again(attempt)
        }
      }
    }
    // In the same turn as the last look into the queue: who comes a moment later must find that nobody works on it.
    lane.fallingBack = false
  }

  async #step(lane: Lane, group: readonly Attempt[]): Promise<void> {
    const { clock, journal, telemetry } = this.#context
    const { ref } = lane.place
    const askedAt = clock.now()
    for (const attempt of group) attempt.askedAt = askedAt
    const fresh = lane.owned === null
    const owned = lane.owned ?? (await this.#takeOver(lane, group))
    if (!owned) return
    telemetry.count?.('holdfast_recoveries_total', { what: 'fallback' }, group.length)
    const keyed = group.filter(({ command }) => command.key !== '')
    const known = await journal.find(keyed.map(({ command: { key } }) => ({ ref, key })))
    for (const [index, attempt] of keyed.entries()) {
      const entry = known[index]
      if (entry) attempt.recall(entry)
    }
    const filed: Filed[] = []
    const decided: Decided[] = []
    const keys = new Set<string>()
    for (const attempt of group) {
      if (attempt.settled) continue
      // A second one with the same key waits for the first.
      if (attempt.command.key !== '' && keys.has(attempt.command.key)) lane.fallback.push(attempt)
      else await this.#decide(lane, owned, attempt, filed, decided)
      keys.add(attempt.command.key)
    }
    await this.#append(lane, owned, fresh, filed, decided)
  }

  async #takeOver(lane: Lane, group: readonly Attempt[]): Promise<Owned | null> {
    const snapshot = await this.#context.journal.takeOver(lane.place.ref)
    if (snapshot === null || snapshot === 'memory') {
      lane.memory = snapshot === 'memory'
      for (const attempt of group) this.#turnAway(attempt)
      return null
    }
    this.#context.telemetry.count?.('holdfast_recoveries_total', { what: 'take_over' })
    this.#context.learnPostgresClock(snapshot.clock)
    lane.distrust(snapshot.state.epoch + 1)
    lane.owned = { state: snapshot.state, aheadMs: snapshot.clock - this.#context.clock.now() }
    return lane.owned
  }

  /** There is no such wallet; or only Redis knows what it acknowledged from memory, and then only Redis may decide. */
  #turnAway(attempt: Attempt): void {
    if (!attempt.lane.memory) return this.#context.refuse(attempt, new HoldfastError('wallet_not_found'))
    if (!this.#context.redisAt(attempt.lane.place).open) return this.#context.again(attempt)
    this.#context.refuse(
      attempt,
      new HoldfastError('unavailable', 'Redis is away, and only Redis knows what it acknowledged from memory'),
    )
  }

  async #decide(lane: Lane, owned: Owned, attempt: Attempt, filed: Filed[], decided: Decided[]): Promise<void> {
    const { clock, journal } = this.#context
    const { state } = owned
    if (clock.now() > attempt.deadline) return this.#context.again(attempt)
    const { ref } = lane.place
    if (attempt.command.kind === 'refund') {
      const charge = await journal.charge(ref, attempt.command.of)
      if (!charge) return this.#context.refuse(attempt, new HoldfastError('entry_not_found'))
      attempt.command = { ...attempt.command, ...charge }
    }
    const serverNow = Math.floor(clock.now() + owned.aheadMs)
    const now = Math.floor(Math.min(serverNow, clock.now() + this.#context.options.aheadMaxMs))
    const { entries, outcome } = decide(state, attempt.command, now)
    const within = Math.min(attempt.deadline - clock.now(), this.#context.options.decideWithinMs)
    const deadline = Math.floor(serverNow + within)
    for (const entry of entries) filed.push({ ref, entry, deadline })
    if (outcome.type === 'more') return void lane.fallback.unshift(attempt)
    if (outcome.type === 'facts') {
      // Refunds in this very group are not in the journal yet: the next group will know.
      lane.owned = null
      return void lane.fallback.push(attempt)
    }
    if (outcome.type === 'accepted') {
      const own = attempt.command.kind === 'touch' ? -1 : filed.length - 1
      decided.push({ attempt, own, rejection: null, touch: { due: state.due, epoch: state.epoch, seq: state.seq } })
      return
    }
    const rest = { epoch: state.epoch, seq: state.seq, head: state.head }
    decided.push({
      attempt,
      own: -1,
      rejection: { rest, rejection: outcome.rejection },
      touch: { due: state.due, ...rest },
    })
  }

  /**
   * The state of the last time may have been overtaken by another process on this path, which shares the epoch. An append shows that
   * it was not. Without one a refusal would rest on the past: it is decided again, on a state read now.
   */
  async #append(
    lane: Lane,
    owned: Owned,
    fresh: boolean,
    filed: readonly Filed[],
    decided: readonly Decided[],
  ): Promise<void> {
    if (filed.length > 0) {
      const { verdicts, clock } = await this.#context.journal.append(filed)
      if (clock > 0) owned.aheadMs = clock - this.#context.clock.now()
      for (const { type } of verdicts) this.#context.telemetry.count?.('holdfast_entries_total', { verdict: type })
      if (!verdicts.every(({ type }) => type === 'appended' || type === 'there')) {
        lane.owned = null
        lane.stales += 1
        this.#context.telemetry.count?.('holdfast_recoveries_total', { what: 'stale' })
        for (const { attempt, own } of decided) {
          // Come again, it would fail again, and everybody who is decided with it.
          if (verdicts[own]?.type === 'bad') attempt.refuse(notStorable())
          else this.#context.again(attempt)
        }
        return
      }
    }
    const proven = fresh || filed.length > 0
    if (!proven) lane.owned = null
    for (const { attempt, own, rejection, touch } of decided) {
      if (!proven) {
        lane.fallback.push(attempt)
      } else if (rejection) {
        const { code, facts } = rejection.rejection
        this.#confirmer.add(attempt, { type: 'rejected', rest: rejection.rest, code, facts })
      } else if (attempt.command.kind === 'touch') {
        attempt.accept(null, false, 'ledger', touch)
      } else {
        attempt.accept((filed[own] as { entry: Entry }).entry, false, 'ledger')
      }
    }
  }
}
