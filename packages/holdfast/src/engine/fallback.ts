import { HoldfastError } from '../errors/index.js'
import type { Verdict } from '../journal/index.js'
import type { CommandKind, Stock } from '../machine/index.js'
import { crowdedOut, isBeginning, isLetIn, learnFull } from './admission.js'
import type { Attempt } from './attempt.js'
import { tookTooLong } from './checkpoints.js'
import { jitteredMs, sleep } from './clock.js'
import type { Confirmer } from './confirmer.js'
import { CLOCK_SLACK_MS, type Context } from './context.js'
import { hasCommitted } from './has-committed.js'
import type { Lane, Owned } from './lane.js'
import { Share, type ShareParts } from './share.js'
import { Slots } from './slots.js'

/** Attempts that are decided together, and how many of them may be one wallet's. */
const BATCH_MAX = 512
const SHARE_MAX = 256
/** Wallets that are taken over, or charges that are read, at once: there are other uses for connections. */
const AT_ONCE_MAX = 6
/**
 * Wallets that are decided for apart from the others: those whose row somebody else has, and those that take long to read. Neither keep the
 * others waiting, nor each other: a row is waited for for a moment at a time, and then it is the next one's turn.
 */
const LOCKED_MAX = 4
const SLOW_MAX = 2
/**
 * Where others decide for the same wallet, each rests so long at most between his batches. Who appends last needs two round trips for the next
 * batch, and who lost to him four: without a rest a process that is further away from Postgres than others never had its turn.
 */
const TURN_MS = 20
/**
 * Who always wins does not know that he has rivals, and does not rest. After so many lost batches in a row somebody raises the epoch, which
 * nobody can overlook; again after a second at the earliest.
 */
const LOSSES_MAX = 2
const ANNOUNCE_EVERY_MS = 1_000

/**
 * The Postgres path: the same machine, in TypeScript, on the state that Postgres has, through the same compare-and-append. For
 * wallets whose Redis is away, and for a moment for those that two paths fight over. A wallet is taken over first (its epoch is
 * raised, and stays raised whatever is decided), and no row is locked across round trips: who appends first wins, the other one
 * starts again. Wallets share statements, as on the other path: one at a time, 64 callers on 1,000 wallets got a sixth of the pairs a
 * second that Redis gives, at ten times the processor time.
 */
export class Fallback {
  readonly #context: Context
  readonly #shareParts: ShareParts
  /** Wallets with attempts that wait, in the order in which they came. */
  readonly #lanes = new Set<Lane>()
  readonly #locked = new Slots(LOCKED_MAX)
  readonly #slow = new Slots(SLOW_MAX)
  /** Wallets that are set aside: nobody else waits for what waits there. */
  readonly #apart = new Set<Lane>()
  #waiting = 0
  #waitingApart = 0
  #batches = 0
  /** What a batch takes when there is no more room in it, for others or for more of one wallet; 0: there was none yet. */
  #fullMs = 0

  constructor(context: Context, confirmer: Confirmer) {
    this.#context = context
    this.#shareParts = {
      context,
      confirmer,
      later: (attempt, first) => this.#queue(attempt, first),
      belongsHere: (lane) => this.#belongsHere(lane),
    }
  }

  /** Attempts that wait to be decided here. */
  get waiting(): number {
    return this.#waiting
  }

  /** What others wait for. */
  get #ahead(): number {
    return this.#waiting - this.#waitingApart
  }

  /** Postgres alone does less: what would only wait is refused, beginnings first. */
  refusalOf(kind: CommandKind): HoldfastError | null {
    const { postgresPathMax } = this.#context.options
    const limit = isBeginning(kind) ? postgresPathMax / 2 : postgresPathMax
    if (this.#ahead < limit) return null
    return new HoldfastError('unavailable', 'Too many operations wait for Postgres', { limit })
  }

  /** The same, if it would wait for longer than its caller does: in their order all would be answered too late, for as long as that lasts. */
  crowdedOut(attempt: Attempt): HoldfastError | null {
    if (isLetIn(attempt)) return null
    const { lane, deadline, command } = attempt
    return crowdedOut(command.kind, this.waitMs(lane), deadline - this.#context.clock.now())
  }

  /** About how long one more operation of this wallet would wait, ms; 0 if it goes with the next batch. */
  waitMs({ fallback }: Lane): number {
    const ofAll = this.#ahead / (BATCH_MAX * this.#context.options.postgresPathBatchesMax)
    const fullBefore = Math.floor(Math.max(ofAll, fallback.length / SHARE_MAX))
    // The one that is under way, those before its own, and that.
    return fullBefore === 0 ? 0 : (fullBefore + 2) * this.#fullMs
  }

  add(attempt: Attempt): void {
    this.#queue(attempt)
    const { lane } = attempt
    if (!lane.fallingBack) {
      lane.fallingBack = true
      this.#lanes.add(lane)
    }
    this.#start()
  }

  #start(): void {
    if (this.#lanes.size === 0 || this.#batches >= this.#context.options.postgresPathBatchesMax) return
    this.#batches += 1
    void this.#work()
  }

  #queue(attempt: Attempt, first = false): void {
    const { lane } = attempt
    if (first) lane.fallback.unshift(attempt)
    else lane.fallback.push(attempt)
    this.#waiting += 1
    if (this.#apart.has(lane)) this.#waitingApart += 1
  }

  async #work(): Promise<void> {
    await new Promise<void>((resolve) => queueMicrotask(resolve))
    for (let failures = 0; this.#lanes.size > 0; ) {
      failures = (await this.#perform(this.#take(), failures)) ? 0 : failures + 1
    }
    // In the same turn as the last look at who waits: who comes a moment later must find that nobody works on it.
    this.#batches -= 1
  }

  /** Those that are set aside leave the batch. `patient`: this is one of them. */
  async #perform(batch: Set<Share>, failures: number, patient = false): Promise<boolean> {
    const { clock } = this.#context
    let done = true
    try {
      await this.#step(batch, patient)
    } catch (error) {
      done = false
      // Now, and once: told of it again after the pause, the circuit would take one lost connection for two failures.
      this.#context.postgres.failedWith(error)
      await sleep(clock, 20 + jitteredMs(clock, failures, 20, 1_000))
      for (const share of batch) if (share.owned) this.#fail(share, error)
    }
    for (const { lane } of batch) this.#rest(lane)
    return done
  }

  /** Nobody else waits for it any more. */
  #setAside(share: Share, slots: Slots): void {
    const { lane } = share
    if (!this.#apart.has(lane)) this.#waitingApart += lane.fallback.length
    this.#apart.add(lane)
    this.#forgetGone(lane)
    slots.add(async () => {
      if (share.group.every(({ settled }) => settled)) this.#letGo(lane)
      else await this.#perform(new Set([share]), 0, true)
      this.#start()
    })
  }

  /** A wallet is in one batch at a time. */
  #take(): Set<Share> {
    const batch = new Set<Share>()
    let room = BATCH_MAX
    for (const lane of this.#lanes) {
      if (room <= 0) break
      this.#lanes.delete(lane)
      this.#forgetGone(lane)
      const group = lane.fallback.splice(0, Math.min(room, SHARE_MAX))
      this.#waiting -= group.length
      if (group.length === 0) {
        this.#letGo(lane)
        continue
      }
      room -= group.length
      batch.add(new Share(this.#shareParts, lane, group))
    }
    return batch
  }

  /** Callers come and go: what waits is what is still waited for. */
  #forgetGone(lane: Lane): void {
    const waited = lane.fallback.length
    lane.fallback = lane.fallback.filter(({ settled }) => !settled)
    const gone = waited - lane.fallback.length
    this.#waiting -= gone
    if (this.#apart.has(lane)) this.#waitingApart -= gone
  }

  #rest(lane: Lane): void {
    const { clock } = this.#context
    if (lane.rivalsUntil <= clock.now()) return this.#letGo(lane)
    clock.after(clock.random() * TURN_MS, () => {
      this.#letGo(lane)
      this.#start()
    })
  }

  #letGo(lane: Lane): void {
    if (this.#apart.delete(lane)) this.#waitingApart -= lane.fallback.length
    if (lane.fallback.length > 0) {
      this.#lanes.add(lane)
      return
    }
    lane.fallingBack = false
    // Its state may be large, and is not asked for here any more.
    if (!this.#belongsHere(lane)) lane.owned = null
  }

  /** Appended or not, it is safe to come again: the keys will tell. */
  #fail({ lane, group }: Share, error: unknown): void {
    const { clock, options, postgres, telemetry } = this.#context
    lane.owned = null
    if (!postgres.open) telemetry.log?.('warn', 'postgres_path_failed', { reason: String(error) })
    const queued = new Set(lane.fallback)
    for (const attempt of group) {
      // It waits for the next batch already.
      if (queued.has(attempt)) continue
      const ends = Math.min(attempt.deadline, clock.now() + options.decideWithinMs)
      attempt.unansweredUntil = Math.max(attempt.unansweredUntil, ends + CLOCK_SLACK_MS)
      attempt.perhapsDecided = true
      this.#context.again(attempt)
    }
  }

  async #step(batch: Set<Share>, patient: boolean): Promise<void> {
    const { clock, telemetry, postgres } = this.#context
    const askedAt = clock.now()
    for (const { group } of batch) for (const attempt of group) attempt.askedAt = askedAt
    await this.#takeOverAll(batch, patient)
    const owned = [...batch].filter((share) => share.owned !== null)
    if (owned.length === 0) return
    const ownedAt = clock.now()
    for (const { group } of owned) telemetry.count?.('holdfast_recoveries_total', { what: 'fallback' }, group.length)
    await this.#recallKnown(owned)
    await this.#readCharges(owned)
    const decidable = owned.filter(({ owned }) => owned !== null)
    if (decidable.length === 0) return
    for (const share of decidable) share.decide()
    await this.#append(decidable)
    postgres.worked()
    if (isFullBatch(decidable)) this.#fullMs = learnFull(this.#fullMs, clock.now() - ownedAt)
  }

  async #recallKnown(batch: readonly Share[]): Promise<void> {
    const keyed = batch.flatMap(({ group }) => group.filter(({ command }) => command.key !== ''))
    const wanted = keyed.map(({ lane, command }) => ({ ref: lane.place.ref, key: command.key }))
    const known = await this.#context.journal.find(wanted)
    for (const [index, attempt] of keyed.entries()) {
      const entry = known[index]
      if (!entry) continue
      this.#context.witnesses.noteFound(attempt.lane.place.ref, entry)
      attempt.recall(entry)
    }
  }

  /** A charge that can't be read fails with its own wallet. */
  async #readCharges(batch: readonly Share[]): Promise<void> {
    const { postgres } = this.#context
    const wanted = batch.flatMap((share) => share.refunds.map((attempt) => ({ share, attempt })))
    let told = false
    const reader = async (): Promise<void> => {
      for (let next = wanted.pop(); next; next = wanted.pop()) {
        const { share, attempt } = next
        if (!share.owned) continue
        try {
          await share.readCharge(attempt)
        } catch (error) {
          // Once: the circuit would take one lost connection for several failures.
          if (!told && !tookTooLong(error)) postgres.failedWith(error)
          told = true
          if (share.owned) this.#fail(share, error)
          share.owned = null
        }
      }
    }
    await Promise.all(Array.from({ length: Math.min(AT_ONCE_MAX, wanted.length) }, reader))
  }

  /** What can't be taken over fails alone, and what can't be at once is set aside: a batch waits for neither. */
  async #takeOverAll(batch: Set<Share>, patient: boolean): Promise<void> {
    const shares = [...batch].filter(({ fresh }) => fresh)
    const taker = async (): Promise<void> => {
      for (let share = shares.pop(); share; share = shares.pop()) {
        try {
          const apart = await this.#takeOver(share, patient)
          if (apart && batch.delete(share)) this.#setAside(share, apart)
        } catch (error) {
          if (!tookTooLong(error)) this.#context.postgres.failedToWrite(error)
          this.#context.checkpoints.loadFailed(share.lane.place.ref, error)
          this.#fail(share, error)
        }
      }
    }
    await Promise.all(Array.from({ length: Math.min(AT_ONCE_MAX, shares.length) }, taker))
  }

  /** Returns where it has to wait by itself, if it has to. */
  async #takeOver(share: Share, patient: boolean): Promise<Slots | null> {
    const { lane, group } = share
    // Their callers have gone while it waited for its turn: nothing has to be raised, nor read.
    if (group.every(({ settled }) => settled)) return null
    // Once it is known to be away the rest of the batch need not find out one by one.
    const away = this.#context.turnedAway(false)
    if (away) throw away
    // All that was sold is read with it.
    if (lane.place.isSale && !patient) return this.#slow
    const joinOnly = lane.joinsOnly && !this.#isRedisAway(lane)
    const announce = this.#announces(lane)
    const snapshot = await this.#context.journal.takeOver(lane.place.ref, { joinOnly, announce, patient })
    if (snapshot === 'locked') return this.#locked
    if (snapshot === 'slow') return this.#slow
    if (announce) {
      lane.losses = 0
      lane.announceFrom = this.#context.clock.now() + ANNOUNCE_EVERY_MS
    }
    if (snapshot === 'loaded') {
      lane.postgresUntil = 0
      for (const attempt of group) this.#context.again(attempt)
      return null
    }
    if (snapshot === null || snapshot === 'memory') {
      lane.memory = snapshot === 'memory'
      for (const attempt of group) this.#turnAway(attempt)
      return null
    }
    this.#context.telemetry.count?.('holdfast_recoveries_total', { what: 'take_over' })
    this.#context.postgres.wrote()
    this.#context.learnPostgresClock(snapshot.clock)
    lane.joinsOnly = true
    lane.distrust(snapshot.state.epoch + 1)
    const { state } = snapshot
    if (lane.place.isSale) state.stock = await this.#readStock(lane, state.seq)
    lane.owned = { state, aheadMs: snapshot.clock - this.#context.clock.now() }
    share.owned = lane.owned
    return null
  }

  /** That may take longer than this path was given. Others would load it into Redis meanwhile, and each undo the other's work. */
  async #readStock(lane: Lane, seq: number): Promise<Stock> {
    const { clock, journal, options } = this.#context
    const contended = lane.postgresUntil > clock.now()
    if (contended) lane.postgresUntil = Number.POSITIVE_INFINITY
    try {
      return await journal.stock(lane.place.ref, seq)
    } finally {
      if (lane.postgresUntil === Number.POSITIVE_INFINITY) lane.postgresUntil = clock.now() + options.postgresSpellMs
    }
  }

  #belongsHere(lane: Lane): boolean {
    return this.#isRedisAway(lane) || lane.postgresUntil > this.#context.clock.now()
  }

  /** Until that has come to pass. */
  #announces({ losses, announceFrom }: Lane): boolean {
    return losses >= LOSSES_MAX && this.#context.clock.now() >= announceFrom
  }

  #isRedisAway({ place }: Lane): boolean {
    return this.#context.redisAt(place).open
  }

  /** There is no such wallet; or only Redis knows what it acknowledged from memory, and then only Redis may decide. */
  #turnAway(attempt: Attempt): void {
    if (!attempt.lane.memory) return this.#context.refuse(attempt, new HoldfastError('wallet_not_found'))
    if (!this.#isRedisAway(attempt.lane)) return this.#context.again(attempt)
    this.#context.refuse(
      attempt,
      new HoldfastError('unavailable', 'Redis is away, and only Redis knows what it acknowledged from memory'),
    )
  }

  async #append(batch: readonly Share[]): Promise<void> {
    const filed = batch.flatMap((share) => share.filed)
    let verdicts: Verdict[] = []
    if (filed.length > 0) {
      const { journal, postgres, options } = this.#context
      const answer = await postgres.watchWrite(options.postgresPatienceMs, journal.append(filed), hasCommitted)
      verdicts = answer.verdicts
      this.#context.witnesses.noteAppend(filed, verdicts)
      const aheadMs = answer.clock - this.#context.clock.now()
      for (const share of batch) {
        if (answer.clock > 0 && share.filed.length > 0) (share.owned as Owned).aheadMs = aheadMs
      }
    }
    for (const { type } of verdicts) this.#context.telemetry.count?.('holdfast_entries_total', { verdict: type })
    let from = 0
    for (const share of batch) {
      share.conclude(verdicts.slice(from, from + share.filed.length))
      from += share.filed.length
    }
  }
}

function isFullBatch(batch: readonly Share[]): boolean {
  let attempts = 0
  for (const { group } of batch) {
    if (group.length === SHARE_MAX) return true
    attempts += group.length
  }
  return attempts >= BATCH_MAX
}
