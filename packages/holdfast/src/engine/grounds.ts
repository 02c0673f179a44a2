import type { Confirmation } from '../journal/index.js'
import type { Rest } from '../sequencer/index.js'
import type { Attempt } from './attempt.js'
import { jitteredMs, sleep } from './clock.js'
import type { Context } from './context.js'
import type { Lane } from './lane.js'
import { type Doubt, refusalError } from './refusal.js'

/** Sales asked about in one statement. */
const BATCH_MAX = 500
/** So many refusals at once are a crowd: those who come next wait until so long after the last question, and are answered together. */
const CROWD = 16
const PACE_MS = 10
/** Where somebody keeps the row locked, the next question comes so long after. */
const LOCKED_MS = 50

/** Refusals in one bucket of a sale, of one life of its state: what the latest of them rests on is what all of them rest on. */
interface Ground {
  readonly lane: Lane
  rest: Rest
  doubts: Doubt[]
}

/**
 * Refused checkouts. The state in Redis knows every key that there was a checkout under, so that one which it does not know is not in the
 * journal either, if that state is the current one. Then nothing has to be looked for that is this caller's own: one question, "does it
 * stand?", serves all refusals in a bucket that were decided before it was sent, however many they are.
 *
 * And a sale of which everything is sold stays so, with all the keys that there will ever be in its state: known once, nobody is asked again.
 */
export class Grounds {
  readonly #context: Context
  readonly #grounds = new Map<Lane, Ground>()
  #busy = false

  constructor(context: Context) {
    this.#context = context
  }

  get waiting(): number {
    let waiting = 0
    for (const { doubts } of this.#grounds.values()) waiting += doubts.length
    return waiting
  }

  add(doubt: Doubt): void {
    const { attempt, refusal } = doubt
    const { lane } = attempt
    const { epoch, seq } = refusal.rest
    if (lane.soldOut?.epoch === epoch && seq >= lane.soldOut.seq) return this.#tell(doubt)
    const ground = this.#grounds.get(lane)
    if (!ground || ground.rest.epoch < epoch) {
      this.#grounds.set(lane, { lane, rest: refusal.rest, doubts: [doubt] })
      // Of a life that is over: what was decided in it is asked again.
      for (const { attempt } of ground?.doubts ?? []) this.#context.again(attempt)
    } else if (ground.rest.epoch > epoch) {
      return this.#context.again(attempt)
    } else {
      if (seq > ground.rest.seq) ground.rest = refusal.rest
      ground.doubts.push(doubt)
    }
    if (!this.#busy) void this.#work()
  }

  async #work(): Promise<void> {
    const { clock, options, postgres, telemetry } = this.#context
    this.#busy = true
    await new Promise<void>((resolve) => queueMicrotask(resolve))
    for (let failures = 0; this.#grounds.size > 0; ) {
      const asked = this.#take()
      const askedAt = clock.now()
      try {
        const confirmations = await postgres.watch(options.postgresPatienceMs, this.#ask(asked))
        postgres.worked()
        failures = 0
        let told = 0
        for (const [index, ground] of asked.entries()) {
          const confirmation = confirmations[index] as Confirmation | 'locked'
          if (confirmation === 'locked') {
            clock.after(LOCKED_MS, () => this.#putBack([ground]))
            continue
          }
          told += ground.doubts.length
          this.#conclude(ground, confirmation)
        }
        const waitMs = askedAt + PACE_MS - clock.now()
        if (told >= CROWD && waitMs > 0) await sleep(clock, waitMs)
      } catch (error) {
        postgres.failedWith(error)
        if (this.#context.ended()) break
        telemetry.log?.('warn', 'journal_read_failed', { reason: String(error) })
        this.#putBack(asked)
        await sleep(clock, 20 + jitteredMs(clock, failures, 20, 1_000))
        failures += 1
      }
    }
    this.#busy = false
  }

  #take(): Ground[] {
    const taken: Ground[] = []
    for (const [lane, ground] of this.#grounds) {
      if (taken.length === BATCH_MAX) break
      this.#grounds.delete(lane)
      taken.push(ground)
    }
    return taken
  }

  /** Those whose caller has gone are not kept: Postgres may be away for long. */
  #putBack(grounds: readonly Ground[]): void {
    const { stop } = this.#context.postgres
    for (const { doubts } of grounds) {
      for (const doubt of doubts) {
        if (stop) this.#context.refuse(doubt.attempt, stop)
        else if (!doubt.attempt.settled) this.add(doubt)
      }
    }
  }

  #ask(grounds: readonly Ground[]): Promise<(Confirmation | 'locked')[]> {
    return this.#context.journal.confirm(
      grounds.map(({ lane, rest }) => ({ ref: lane.place.ref, ...rest, key: '', hold: '' })),
    )
  }

  #conclude({ lane, rest, doubts }: Ground, { stands, epoch, owner }: Confirmation): void {
    if (stands) {
      for (const doubt of doubts) {
        if (isFinal(doubt)) lane.soldOut = { epoch: rest.epoch, seq: doubt.refusal.rest.seq }
        this.#tell(doubt)
      }
      return
    }
    lane.distrust(epoch > rest.epoch ? epoch : rest.epoch + 1)
    if (owner) this.#context.follow(lane, owner, epoch)
    this.#context.telemetry.count?.('holdfast_recoveries_total', { what: 'unfounded' }, doubts.length)
    for (const { attempt } of doubts) this.#context.again(attempt)
  }

  #tell({ attempt, refusal }: Doubt): void {
    this.#context.refuse(attempt, refusalError(refusal.code, refusal.facts))
  }
}

/** Nothing is left, and nothing lies in a checkout that could come back. Only where the sale has no other part that could give some. */
function isFinal({ attempt, refusal: { code, facts } }: Doubt): boolean {
  return attempt.alone && code === 'sold_out' && facts.stock === 0 && facts.reserved === 0
}

/** Whether a refusal that Redis has decided needs no look for the key. */
export const isGrounded = ({ command }: Attempt): boolean => command.kind === 'checkout'
