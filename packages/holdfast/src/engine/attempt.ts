import { HoldfastError } from '../errors/index.js'
import type { Command, Entry } from '../machine/index.js'
import type { Touch } from '../sequencer/index.js'
import type { Lane } from './lane.js'

export type Durability = 'ledger' | 'memory'

/** What a caller hears when it is a yes. `entry` is null for a touch that found nothing to do. */
export interface Outcome {
  readonly entry: Entry | null
  readonly replayed: boolean
  readonly durability: Durability
  readonly touch?: Touch
}

/** Who waits for an attempt: the two ends of a promise, and who is told first that it is over. */
export interface Caller {
  readonly answered: (attempt: Attempt) => void
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (error: HoldfastError) => void
}

/** One command of one caller, from the call to the answer. It may be decided several times; it is answered once. */
export class Attempt {
  readonly lane: Lane
  command: Command
  readonly memory: boolean
  /** The engine's clock, ms: then the caller stops waiting, and it must not be decided any more. */
  readonly deadline: number
  /** Decided so many times before: from the first repetition on, the journal is asked first whether the key is in it. */
  tries: number
  settled = false
  /** It was asked for before, by whoever, and nobody knows what came of it. */
  perhapsDecided: boolean
  /**
   * Until then (the engine's clock) a call of it that got no answer may still be decided. A "no" before that could be followed by a
   * yes that nobody hears.
   */
  unansweredUntil = 0
  /** Since when it waits to be asked (the engine's clock). */
  waitsSince = 0
  /** When it was last asked to be decided (the engine's clock): what is answered to that rests on nothing older. */
  askedAt = 0
  /** A refund: the journal did not have what it is for. */
  chargeMissing = false
  /** A refund: so many times what the journal knew of the charge was not enough. */
  chargeReads = 0
  /** Its neighbours in the line of those that wait as long as it does, or how to stop a timer of its own: see `Deadlines`. */
  earlier: Attempt | null = null
  later: Attempt | null = null
  stopTimer: (() => void) | null = null
  /** Takes the ear off the caller's signal, if there is one. */
  stopListening: (() => void) | null = null
  /** In a sale of one bucket: there is no other that could give it stock. */
  readonly alone: boolean
  /** A step of something that was let in before. */
  readonly begun: boolean
  readonly #caller: Caller

  constructor(
    lane: Lane,
    command: Command,
    options: { memory: boolean; deadline: number; retry: boolean; alone?: boolean; begun?: boolean },
    caller: Caller,
  ) {
    this.lane = lane
    this.command = command
    this.memory = options.memory
    this.deadline = options.deadline
    this.tries = options.retry ? 1 : 0
    this.perhapsDecided = options.retry
    this.alone = options.alone ?? false
    this.begun = options.begun ?? false
    this.#caller = caller
  }

  /**
   * May it be acknowledged as soon as Redis has decided? Not what may have been decided before: the journal was asked, but a call that was
   * under way then may be in it by now, and Redis have forgotten that. Told yes from memory for the second time, somebody would go on by
   * a hold that is over.
   */
  get byMemory(): boolean {
    return this.memory && !this.perhapsDecided
  }

  accept(entry: Entry | null, replayed: boolean, durability: Durability, touch?: Touch): void {
    if (this.settled) return
    this.settled = true
    this.#caller.answered(this)
    this.#caller.resolve(touch ? { entry, replayed, durability, touch } : { entry, replayed, durability })
  }

  refuse(error: HoldfastError): void {
    if (this.settled) return
    this.settled = true
    this.#caller.answered(this)
    this.#caller.reject(error)
  }

  /** An entry that the journal has under this attempt's key: the answer of the first time, or a conflict. */
  recall(entry: Entry): void {
    const { kind, params, hold } = this.command
    // A refund's hold follows from the charge that `params` name, and is not known before that is read. A checkout's may have been running.
    const sameHold = kind === 'refund' || kind === 'checkout' || entry.hold === hold
    const sameParams = entry.params === params
    if (sameParams && sameHold) return this.accept(entry, true, 'ledger')
    const facts = { expected: entry.params, got: params }
    // Which hold is not among the params: where nothing else differs, two equal facts would tell nobody why.
    const holds = sameParams ? { expectedHold: entry.hold, gotHold: hold } : {}
    this.refuse(new HoldfastError('idempotency_conflict', undefined, { ...facts, ...holds }))
  }
}

/** Input is checked before it comes here, so this is for what the check let through. */
export function notStorable(): HoldfastError {
  return new HoldfastError('invalid_argument', 'Postgres can not store the data of this operation')
}
