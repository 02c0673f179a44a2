import { HoldfastError } from '../errors/index.js'
import type { Verdict } from '../journal/index.js'
import { hasNumbers } from '../machine/index.js'
import type { Place } from '../redis/index.js'
import { learnFull } from './admission.js'
import { notStorable } from './attempt.js'
import { jitteredMs, sleep } from './clock.js'
import type { Confirmer } from './confirmer.js'
import type { Context } from './context.js'
import { hasCommitted } from './has-committed.js'
import type { Item, Lane, Waiter } from './lane.js'

const GAPS_MAX = 4
/** A row that somebody keeps locked is tried again within this time: then and in every statement it is left out at once. */
const LOCKED_PAUSE_MS = 100
const APPEND = { stage: 'append' }

interface Way {
  queue: Item[]
  /** In the statement under way. */
  sent: readonly Item[]
  busy: boolean
  /** Since when something waits here (the engine's clock). */
  sinceMs: number
  /** What a statement takes when it is full; 0: there was none yet. */
  fullMs: number
}

/**
 * Brings entries into the journal, many in one statement: while one commits the next gathers. A wallet always goes the same way,
 * so that its entries arrive in order. An append whose outcome is unknown is simply made again: what is there is there.
 */
export class Appender {
  readonly #context: Context
  readonly #confirmer: Confirmer
  readonly #ways: Way[]
  /** Wallets whose row somebody keeps locked, and what waits for that. */
  readonly #held = new Map<Lane, Item[]>()
  /** Those of which that was so the last time: what is on its way of them is in the same case. */
  readonly #locked = new Set<Lane>()
  #waiting = 0
  #drained: (() => void) | undefined

  constructor(context: Context, confirmer: Confirmer) {
    this.#context = context
    this.#confirmer = confirmer
    this.#ways = Array.from({ length: context.options.appendLanes }, () => ({
      queue: [],
      sent: [],
      busy: false,
      sinceMs: 0,
      fullMs: 0,
    }))
  }

  /** Entries that are not in the journal yet, and not given up. */
  get backlog(): number {
    return this.#waiting
  }

  /** Something is written with the next statement if anything can be. Not what waits for a row: that shows who has the row, and nothing else. */
  get owes(): boolean {
    const isFree = ({ lane }: Item): boolean => !this.#locked.has(lane)
    return this.#ways.some(({ sent, queue }) => sent.some(isFree) || queue.some(isFree))
  }

  /**
   * About how long an entry of this wallet that comes now would wait for its verdict, ms. 0 if it goes with the next statement, which nobody in
   * front of it holds up.
   */
  waitMs(place: Place): number {
    const { appendBatchMax } = this.#context.options
    if (this.#waiting < appendBatchMax) return 0
    const { queue, fullMs } = this.#wayOf(place)
    const fullBefore = Math.floor(queue.length / appendBatchMax)
    // The one that is under way, those before its own, and that.
    return fullBefore === 0 ? 0 : (fullBefore + 2) * fullMs
  }

  /** Resolves when nothing waits any more, or after `withinMs`: Postgres may be away for long. */
  async drain(withinMs: number): Promise<void> {
    if (this.#waiting === 0) return
    await new Promise<void>((resolve) => {
      const cancel = this.#context.clock.after(withinMs, resolve)
      this.#drained = () => {
        cancel()
        resolve()
      }
    })
  }

  add(items: readonly Item[]): void {
    this.#waiting += items.length
    this.#queue(items)
  }

  #queue(items: readonly Item[]): void {
    for (const item of items) {
      const held = this.#held.get(item.lane)
      if (held) {
        held.push(item)
        continue
      }
      const way = this.#wayOf(item.lane.place)
      if (way.queue.length === 0) way.sinceMs = this.#context.clock.now()
      way.queue.push(item)
      if (!way.busy) void this.#work(way)
    }
  }

  /** So many have their verdict, or are given up. */
  #leave(entries: number): void {
    this.#waiting -= entries
    if (this.#waiting === 0) this.#drained?.()
  }

  #wayOf({ ref }: Place): Way {
    const index = Number.parseInt(ref.slice(-4), 16) % this.#ways.length
    return this.#ways[index] as Way
  }

  async #work(way: Way): Promise<void> {
    way.busy = true
    // What else this turn brings goes along; a lone entry does not wait for company.
    await new Promise<void>((resolve) => queueMicrotask(resolve))
    const { clock, options } = this.#context
    for (let failures = 0; way.queue.length > 0; ) {
      const items = way.queue.splice(0, options.appendBatchMax)
      const begunAt = clock.now()
      this.#observe(way, items.length)
      way.sent = items
      try {
        await this.#append(items)
        failures = 0
        if (items.length === options.appendBatchMax) way.fullMs = learnFull(way.fullMs, clock.now() - begunAt)
      } catch (error) {
        if (this.#context.ended()) break
        this.#context.telemetry.log?.('warn', 'append_failed', { entries: items.length, reason: String(error) })
        way.queue.unshift(...items)
        way.sent = []
        if (this.#context.postgres.stop) this.#turnAway(way.queue)
        forgetGone(way.queue)
        await sleep(clock, 20 + jitteredMs(clock, failures, 20, 1_000))
        failures += 1
      }
    }
    way.sent = []
    way.busy = false
  }

  #observe(way: Way, entries: number): void {
    const { telemetry, clock } = this.#context
    const now = clock.now()
    telemetry.observe?.('holdfast_queue_wait_seconds', (now - way.sinceMs) / 1_000, APPEND)
    telemetry.observe?.('holdfast_batch_size', entries, APPEND)
    way.sinceMs = now
  }

  /** Nobody will be told yes before an operator has acted. The entries wait: perhaps they are in the journal after all. */
  #turnAway(items: readonly Item[]): void {
    for (const { waiters } of items) {
      for (const { attempt } of waiters.splice(0)) {
        this.#context.refuse(attempt, this.#context.turnedAway(attempt.memory) ?? new HoldfastError('unavailable'))
      }
    }
  }

  async #append(items: Item[]): Promise<void> {
    const { journal, postgres, options } = this.#context
    const filed = items.map(({ lane, entry }) => ({ ref: lane.place.ref, entry, deadline: 0 }))
    const { verdicts, clock } = await postgres.watchWrite(
      options.postgresPatienceMs,
      journal.append(filed),
      hasCommitted,
    )
    if (clock > 0) this.#context.learnPostgresClock(clock)
    const gaps = new Map<Lane, Item[]>()
    let concluded = 0
    const lost = new Set<Lane>()
    const refused = new Set<Lane>()
    const locked = new Set<Lane>()
    for (const [index, item] of items.entries()) {
      const verdict = verdicts[index] as Verdict
      this.#context.telemetry.count?.('holdfast_entries_total', { verdict: verdict.type })
      if (verdict.type === 'gap') {
        if (verdict.locked) locked.add(item.lane)
        const others = gaps.get(item.lane)
        if (others) others.push(item)
        else gaps.set(item.lane, [item])
      } else {
        const { lane } = item
        if (verdict.type === 'epoch' && lane.active > 0) this.#context.follow(lane, verdict.owner, verdict.epoch)
        if (isFight(verdict)) lost.add(lane)
        if (isAbandoned(verdict, lane) && !this.#isLeftToOthers(verdict, lane)) refused.add(lane)
        this.#conclude(item, verdict)
        concluded += 1
      }
    }
    if (locked.size > 0 || this.#locked.size > 0) this.#noteLocked(items, locked)
    this.#context.witnesses.noteAppend(filed, verdicts)
    for (const lane of lost) lane.stales += 1
    for (const { place } of refused) this.#context.reload(place)
    for (const [lane, waiting] of gaps) {
      if (this.#held.has(lane)) this.#queue(waiting)
      else void (locked.has(lane) ? this.#hold(lane, waiting) : this.#mend(waiting))
    }
    this.#leave(concluded)
  }

  #noteLocked(items: readonly Item[], locked: ReadonlySet<Lane>): void {
    for (const { lane } of items) {
      if (locked.has(lane)) this.#locked.add(lane)
      else this.#locked.delete(lane)
    }
  }

  /**
   * Somebody goes on with it who does not see Redis, and would have to take it over again each time. What is left in Redis harms nobody: now and
   * then is enough.
   */
  #isLeftToOthers(verdict: Verdict, lane: Lane): boolean {
    if (verdict.type !== 'epoch' || verdict.owner !== 'postgres') return false
    const { clock, options } = this.#context
    if (clock.now() < lane.leftToOthersUntil) return true
    lane.leftToOthersUntil = clock.now() + options.takeBackEveryMs
    return false
  }

  #conclude(item: Item, verdict: Verdict): void {
    const { lane, entry } = item
    switch (verdict.type) {
      case 'appended':
      case 'there':
        lane.acknowledge(entry)
        for (const waiter of item.waiters) this.#serve(waiter, item)
        this.#context.checkpoints.appended(lane.place.ref, entry)
        return
      case 'seen':
        lane.distrust(entry.epoch + 1)
        this.#context.telemetry.count?.('holdfast_recoveries_total', { what: 'seen' })
        return this.#retry(item)
      case 'epoch':
      case 'stale':
        lane.distrust(verdict.epoch > entry.epoch ? verdict.epoch : entry.epoch + 1)
        this.#context.telemetry.count?.('holdfast_recoveries_total', { what: 'stale' })
        return this.#retry(item)
      case 'bad':
        lane.distrust(entry.epoch + 1)
        this.#context.telemetry.log?.('error', 'entry_refused_by_postgres', { kind: entry.kind, seq: entry.seq })
        for (const { attempt, next } of item.waiters) {
          // What the caller gave was checked; numbers that are none come from a state that somebody has damaged, and are decided anew.
          if (next.type !== 'accept' || !hasNumbers(entry)) this.#context.again(attempt)
          else attempt.refuse(notStorable())
        }
        return
      case 'late':
      case 'gap':
        return this.#retry(item)
    }
  }

  #serve({ attempt, next }: Waiter, { entry }: Item): void {
    if (next.type === 'confirm') return this.#confirmer.add(attempt, next.refusal)
    if (next.type === 'decide') return this.#context.route(attempt)
    attempt.accept(next.touch ? null : entry, next.replayed, 'ledger', next.touch)
  }

  #retry(item: Item): void {
    for (const { attempt } of item.waiters) this.#context.again(attempt)
  }

  /** Nothing is missing, and nothing is given up: they wait for whoever has the row, together with what comes meanwhile. */
  async #hold(lane: Lane, items: Item[]): Promise<void> {
    const { clock } = this.#context
    this.#held.set(lane, items)
    await sleep(clock, 1 + clock.random() * LOCKED_PAUSE_MS)
    this.#held.delete(lane)
    if (this.#context.ended()) return this.#leave(items.length)
    forgetGone(items)
    this.#queue(items)
  }

  /**
   * Something before these is missing: on its way from another process, most often, so a moment's patience is enough. If not,
   * Redis has it; and if Redis has not, nobody has, and the wallet starts again from what the journal says.
   */
  async #mend(items: Item[]): Promise<void> {
    const { clock, sequencer, asker, telemetry } = this.#context
    const lane = (items[0] as Item).lane
    const gaps = Math.max(...items.map((item) => ++item.gaps))
    telemetry.count?.('holdfast_recoveries_total', { what: 'gap' })
    await sleep(clock, 1 + jitteredMs(clock, gaps, 2, 50))
    if (gaps >= GAPS_MAX) {
      const epoch = (items[0] as Item).entry.epoch
      lane.distrust(epoch + 1)
      for (const item of items) this.#retry(item)
      this.#context.reload(lane.place)
      this.#leave(items.length)
      return
    }
    if (gaps > 1) {
      const look = await sequencer.look(lane.place, 0, asker, 0).catch(() => null)
      const missing = look?.pending.map(({ entry }): Item => ({ lane, entry, waiters: [], gaps: 0 })) ?? []
      telemetry.count?.('holdfast_recoveries_total', { what: 'help' }, missing.length)
      this.add(missing)
    }
    this.#queue(items)
  }
}

/** Those whose caller has gone are not kept: Postgres may be away for long. */
function forgetGone(items: readonly Item[]): void {
  for (const item of items) {
    if (item.waiters.length > 0) item.waiters = item.waiters.filter(({ attempt }) => !attempt.settled)
  }
}

/** Lost to another who goes the same way, into another Redis or another life of it. Who goes the other way is followed. */
function isFight(verdict: Verdict): boolean {
  return verdict.type === 'stale' || (verdict.type === 'epoch' && verdict.owner === 'redis')
}

/**
 * Redis has it, the journal will never take it, and there is nobody for whose sake the wallet would be loaded anew. Where others have gone
 * on under another epoch, whoever is at work on the wallet here sees to that, or follows them.
 */
function isAbandoned({ type }: Verdict, lane: Lane): boolean {
  if (type === 'seen' || type === 'bad') return true
  return (type === 'epoch' || type === 'stale') && lane.active === 0
}
