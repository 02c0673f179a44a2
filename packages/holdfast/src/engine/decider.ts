import { HoldfastError } from '../errors/index.js'
import { isWhole } from '../machine/index.js'
import type { Answer, Batch, PendingRun } from '../sequencer/index.js'
import { crowdedOut, isLetIn } from './admission.js'
import type { Attempt } from './attempt.js'
import { jitteredMs } from './clock.js'
import type { Confirmer } from './confirmer.js'
import { CLOCK_SLACK_MS, type Context } from './context.js'
import type { Finder } from './finder.js'
import type { Item, Lane, Waiter } from './lane.js'
import { Line } from './line.js'
import type { Loader } from './loader.js'

interface Group {
  readonly queue: Line<Attempt>
  calls: number
  scheduled: boolean
  /** What a call takes to be answered: less is believed at once, and more only bit by bit, since a pause of this process looks the same. */
  roundTripMs: number
  /** The server that answered last (null: none yet), and how far its clock is ahead of the engine's: never more than it is. */
  life: string | null
  aheadMs: number
}

const DECIDE = { stage: 'decide' }

/**
 * Beyond the first two, a call may be under way for every so many ms that one takes. Redis needs half a millisecond for a full one: what its own
 * calls add to a round trip lets a tenth of them out again, so a Redis that is at its limit is not pressed further, and one that is far away
 * is kept at work.
 */
const CALL_EVERY_MS = 5
/** So much of what a round trip took longer than before is believed. */
const SLOWER_BY = 1 / 8

/**
 * Has commands decided in Redis: those of one turn of the event loop go as one script call for each group of wallets that can share
 * one (a shard on a Cluster, all of them on a single node). While two calls are under way the next one gathers; where answers take long more
 * are let out, once they are full.
 */
export class Decider {
  readonly #context: Context
  readonly #loader: Loader
  readonly #finder: Finder
  readonly #confirmer: Confirmer
  readonly #groupOf: (lane: Lane) => number
  readonly #groups = new Map<number, Group>()

  constructor(
    context: Context,
    parts: { loader: Loader; finder: Finder; confirmer: Confirmer },
    groupOf: (lane: Lane) => number,
  ) {
    this.#context = context
    this.#loader = parts.loader
    this.#finder = parts.finder
    this.#confirmer = parts.confirmer
    this.#groupOf = groupOf
  }

  add(attempt: Attempt): void {
    const name = this.#groupOf(attempt.lane)
    let group = this.#groups.get(name)
    if (!group) {
      const queue = new Line<Attempt>(this.#context.options.attemptsMax, (attempt) => attempt)
      group = { queue, calls: 0, scheduled: false, roundTripMs: 0, life: null, aheadMs: 0 }
      this.#groups.set(name, group)
    }
    group.queue.push(attempt, this.#context.clock.now())
    this.#schedule(group)
  }

  #schedule(group: Group): void {
    if (group.scheduled || group.queue.length === 0 || group.calls >= this.#callsMax(group)) return
    group.scheduled = true
    this.#context.clock.soon(() => {
      group.scheduled = false
      const attempts = this.#take(group)
      if (attempts.length > 0) void this.#call(group, attempts)
      this.#schedule(group)
    })
  }

  #callsMax({ queue, roundTripMs }: Group): number {
    const { decideBatchMax, decideCallsMin, decideCallsMax } = this.#context.options
    // On a machine that has too much to do round trips are long as well, and many small calls would make that worse.
    if (queue.length < decideBatchMax) return Math.min(decideCallsMin, decideCallsMax)
    return Math.min(decideCallsMax, Math.max(decideCallsMin, Math.floor(roundTripMs / CALL_EVERY_MS)))
  }

  /** The next batch; those whose caller has gone are not decided any more, and nothing is that Postgres could not remember, or not in time. */
  #take(group: Group): Attempt[] {
    const attempts: Attempt[] = []
    for (const attempt of this.#next(group)) {
      const refusal = this.#context.turnedAway(attempt.byMemory) ?? this.#crowdedOut(attempt)
      // Known to be away since it was put here: it need not find out by itself.
      if (this.#context.redisAt(attempt.lane.place).open) this.#context.route(attempt)
      else if (refusal) this.#context.refuse(attempt, refusal)
      else attempts.push(attempt)
    }
    return attempts
  }

  #crowdedOut(attempt: Attempt): HoldfastError | null {
    if (attempt.byMemory || isLetIn(attempt)) return null
    const { lane, deadline, command } = attempt
    return crowdedOut(command.kind, this.#context.appendWaitMs(lane.place), deadline - this.#context.clock.now())
  }

  #next(group: Group): Attempt[] {
    const { options, clock, telemetry } = this.#context
    const now = clock.now()
    const next = group.queue.take(options.decideBatchMax, now)
    const [first] = next
    if (first) telemetry.observe?.('holdfast_queue_wait_seconds', (now - first.waitsSince) / 1_000, DECIDE)
    return next
  }

  async #call(group: Group, attempts: Attempt[]): Promise<void> {
    group.calls += 1
    const lanes: Lane[] = []
    const indexes = new Map<Lane, number>()
    for (const { lane } of attempts) {
      if (!indexes.has(lane)) indexes.set(lane, lanes.push(lane) - 1)
    }
    const circuit = this.#context.redisAt((lanes[0] as Lane).place)
    const begunAt = this.#context.clock.now()
    this.#context.telemetry.observe?.('holdfast_batch_size', attempts.length, DECIDE)
    // By the deadlines that go with it: a call that failed after 2 s can't be decided any more, and a "no" need not wait for it.
    const endsAt = attempts.map((attempt) => this.#callEnds(attempt))
    try {
      for (const attempt of attempts) attempt.askedAt = begunAt
      const commands = this.#sequenced(group, attempts, endsAt, indexes)
      const reply = await this.#context.sequencer.decide({ life: group.life, wallets: lanes, commands })
      const { runs, answers } = reply
      circuit.worked()
      learnRoundTrip(group, this.#context.clock.now() - begunAt)
      group.life = reply.life
      group.aheadMs = reply.clock - this.#context.clock.now()
      this.#receive(lanes, runs, attempts, answers, indexes)
    } catch (error) {
      if (error instanceof RangeError) return void this.#sift(lanes, attempts)
      circuit.failedWith(error, begunAt)
      this.#context.telemetry.log?.('warn', 'decide_failed', { commands: attempts.length, reason: String(error) })
      const ran = !(error instanceof HoldfastError) || error.outcome !== 'not_executed'
      for (const [index, attempt] of attempts.entries()) {
        const ends = (endsAt[index] as number) + CLOCK_SLACK_MS
        if (ran) {
          attempt.unansweredUntil = Math.max(attempt.unansweredUntil, ends)
          attempt.perhapsDecided = true
        }
        this.#context.again(attempt)
      }
    } finally {
      group.calls -= 1
      this.#schedule(group)
    }
  }

  /**
   * Redis decided, and what it says can't be read: somebody has damaged an entry of one of these wallets. Which of them is found by looking
   * at each; that one is loaded anew, and the others are told by their keys what was decided.
   */
  async #sift(lanes: readonly Lane[], attempts: readonly Attempt[]): Promise<void> {
    const { sequencer, telemetry } = this.#context
    const states = await sequencer.inspect(lanes.map(({ place }) => place)).catch(() => [])
    const damaged = states.flatMap(({ why }, index) => (why === 'unreadable' ? [index] : []))
    telemetry.log?.('error', 'decide_unreadable', { wallets: lanes.length, damaged: damaged.length })
    // If none of them looks so, it may be any.
    for (const index of damaged.length > 0 ? damaged : states.keys()) {
      ;(lanes[index] as Lane).distrust((states[index]?.core?.epoch ?? 0) + 1)
    }
    for (const attempt of attempts) {
      attempt.perhapsDecided = true
      this.#context.again(attempt)
    }
  }

  #sequenced(
    { aheadMs }: Group,
    attempts: readonly Attempt[],
    endsAt: readonly number[],
    indexes: ReadonlyMap<Lane, number>,
  ): Batch['commands'] {
    return attempts.map((attempt, index) => ({
      wallet: indexes.get(attempt.lane) as number,
      command: attempt.command,
      deadline: Math.floor((endsAt[index] as number) + aheadMs),
      memory: attempt.byMemory,
    }))
  }

  /** After this (the engine's clock) a call made now is not decided any more. */
  #callEnds({ deadline }: Attempt): number {
    return Math.min(deadline, this.#context.clock.now() + this.#context.options.decideWithinMs)
  }

  #receive(
    lanes: readonly Lane[],
    runs: readonly (PendingRun | Answer)[],
    attempts: readonly Attempt[],
    answers: readonly Answer[],
    indexes: ReadonlyMap<Lane, number>,
  ): void {
    const fresh: Item[] = []
    const found = lanes.map((lane, index) => {
      const run = runs[index] as PendingRun | Answer
      if ('type' in run) return null
      const items = lane.learn(run)
      fresh.push(...items)
      return { run, items }
    })
    for (const [index, attempt] of attempts.entries()) {
      const at = found[indexes.get(attempt.lane) as number]
      this.#conclude(attempt, answers[index] as Answer, at ?? null)
    }
    // Only now: whoever waits for an entry stands beside it before it leaves.
    if (fresh.length > 0) this.#context.file(fresh)
  }

  #conclude(attempt: Attempt, answer: Answer, at: { run: PendingRun; items: Item[] } | null): void {
    const { telemetry } = this.#context
    telemetry.count?.('holdfast_decisions_total', { answer: answer.type })
    switch (answer.type) {
      case 'accepted': {
        if (!at) break
        const entry = at.run.entries.find(({ seq }) => seq === answer.seq)
        if (entry?.key !== attempt.command.key) {
          // One before it is gone, though it was pending: nothing behind that hole can ever be appended. Or it is somebody else's.
          attempt.perhapsDecided = true
          attempt.lane.distrust(at.run.epoch + 1)
          break
        }
        // Another reply may have brought it here before, and it may be in the journal already.
        if (isAcked(attempt.lane, entry)) {
          this.#context.witnesses.noteFound(attempt.lane.place.ref, entry)
          return attempt.accept(entry, false, 'ledger')
        }
        if (attempt.byMemory) return attempt.accept(entry, false, 'memory')
        return this.#wait(attempt, itemOf(attempt.lane, at, entry.seq), {
          attempt,
          next: { type: 'accept', replayed: false },
        })
      }
      case 'replay': {
        if (!at) break
        telemetry.count?.('holdfast_recoveries_total', { what: 'replay' })
        const { entry } = answer
        if (!isWhole(entry)) {
          // What Redis remembers of the first time is not what it was. The journal is asked, and the wallet loaded anew.
          attempt.perhapsDecided = true
          attempt.lane.distrust(at.run.epoch + 1)
          break
        }
        if (entry.seq <= at.run.acked || isAcked(attempt.lane, entry)) {
          this.#context.witnesses.noteFound(attempt.lane.place.ref, entry)
          return attempt.accept(entry, true, 'ledger')
        }
        if (attempt.memory && answer.memory) return attempt.accept(entry, true, 'memory')
        return this.#wait(attempt, itemOf(attempt.lane, at, entry.seq), {
          attempt,
          next: { type: 'accept', replayed: true },
        })
      }
      case 'rejected':
      case 'conflict': {
        if (!at) break
        const { seq } = answer.rest
        if (seq <= at.run.acked || isAcked(attempt.lane, answer.rest)) return this.#confirmer.add(attempt, answer)
        return this.#wait(attempt, itemOf(attempt.lane, at, seq), {
          attempt,
          next: { type: 'confirm', refusal: answer },
        })
      }
      case 'touched': {
        const last = at?.items.at(-1)
        if (!last) return attempt.accept(null, false, 'ledger', answer.touch)
        return this.#wait(attempt, last, { attempt, next: { type: 'accept', replayed: false, touch: answer.touch } })
      }
      case 'untrusted':
        telemetry.count?.('holdfast_recoveries_total', { what: `untrusted_${answer.why}` })
        if (answer.why === 'error') attempt.lane.distrust(answer.epoch + 1)
        return this.#loader.park(attempt)
      case 'unmarked':
        attempt.lane.memoryWanted = true
        return this.#loader.park(attempt)
      case 'late':
        return this.#context.again(attempt)
      case 'seen':
        attempt.perhapsDecided = true
        return this.#finder.add(attempt, () => this.#context.again(attempt))
      case 'more':
        return this.#context.route(attempt)
      case 'facts':
        if (!at) break
        return this.#readCharge(attempt, at.run.epoch)
      case 'full': {
        // Perhaps nobody has told Redis yet that they are in the journal. Once they are, it is told with the next try.
        const last = attempt.lane.items.get(attempt.lane.known)
        if (last && !this.#context.postgres.open) return void last.waiters.push({ attempt, next: { type: 'decide' } })
        if (isAcked(attempt.lane, { epoch: attempt.lane.epoch, seq: attempt.lane.known }))
          return this.#context.again(attempt)
        return this.#context.refuse(
          attempt,
          new HoldfastError('unavailable', 'Too many entries of this wallet wait for Postgres', {
            limit: this.#context.sequencer.pendingMax,
          }),
        )
      }
      case 'error':
        telemetry.log?.('error', 'decide_error', { kind: attempt.command.kind, reason: answer.message })
        attempt.lane.distrust(answer.epoch + 1)
        return this.#context.again(attempt)
    }
    this.#context.again(attempt)
  }

  /** What the refund rests on may be pending, and the journal know of it only when that is appended: asked again after a pause. */
  #readCharge(attempt: Attempt, epoch: number): void {
    const { clock } = this.#context
    attempt.chargeReads += 1
    const waitMs = attempt.chargeReads > 1 ? jitteredMs(clock, attempt.chargeReads, 1, 200) : 0
    if (waitMs === 0) this.#context.readCharge(attempt, epoch)
    else clock.after(waitMs, () => this.#context.readCharge(attempt, epoch))
  }

  /** No item: the entry is not on its way from here (any more), so what it rests on is asked again. */
  #wait(attempt: Attempt, item: Item | undefined, waiter: Waiter): void {
    if (!item) return this.#context.again(attempt)
    const { next } = waiter
    const isItsOwn = next.type === 'accept' && !next.replayed
    // Who came for anything else comes again: they would be more and more, the longer Postgres is away.
    const away = isItsOwn ? null : this.#context.turnedAway(false)
    if (away) this.#context.refuse(attempt, away)
    else item.waiters.push(waiter)
  }
}

function learnRoundTrip(group: Group, tookMs: number): void {
  const longerMs = tookMs - group.roundTripMs
  group.roundTripMs += longerMs > 0 ? longerMs * SLOWER_BY : longerMs
}

function isAcked(lane: Lane, { epoch, seq }: { epoch: number; seq: number }): boolean {
  return lane.epoch === epoch && seq <= lane.acked
}

function itemOf(
  lane: Lane,
  { run, items }: { run: PendingRun; items: readonly Item[] },
  seq: number,
): Item | undefined {
  if (lane.epoch === run.epoch) return lane.items.get(seq)
  return items.find(({ entry }) => entry.seq === seq)
}
