import { HoldfastError } from '../errors/index.js'
import type { Intents, Open, Written } from '../journal/index.js'
import type { Command, Entry } from '../machine/index.js'
import type { Place } from '../redis/index.js'
import type { Outcome } from './attempt.js'
import { jitteredMs, sleep } from './clock.js'
import { CLOCK_SLACK_MS, type Context } from './context.js'
import type { SubmitOptions } from './engine.js'
import { Gathering } from './gathering.js'
import { onAbort } from './on-abort.js'

/** Until when, and whether anybody still waits. */
export interface Patience {
  /** The engine's clock, ms. */
  readonly deadline: number
  readonly signal?: AbortSignal | undefined
}

export interface IntendedParts {
  placeOf(tenant: string, ref: string): Place
  submit(place: Place, command: Command, options: SubmitOptions): Promise<Outcome>
  /** Counts as an operation that is under way until it is over: also while it takes no step, and when its caller has gone. */
  count(work: Promise<unknown>): void
}

/** What one kind of intent consists of. Every command follows from the intent alone, so that whoever takes a step takes the same one. */
export interface Plan<I, B> {
  /** In metrics: `transfer_voided`. */
  readonly name: string
  /** The wallet that pays, and where the commit point is: refs. */
  sourceOf(intent: I): string
  targetOf(intent: I): string
  /** What was written down: the intent that counts. Throws where nothing was. */
  begun(asked: I, written: B): I
  holdOf(intent: I): Command
  /** Changes nothing; is there a hold? A "no" to it is a "no" to that. */
  probeOf(intent: I): Command
  commitOf(intent: I): Command
  /** Under the key of the commit. Why is kept with it: who meets it tells the same. */
  voidOf(intent: I, why: string): Command
  releaseOf(intent: I): Command
  /** A "no" of the target's that nobody can overcome any more. */
  isFinal(refusal: HoldfastError): boolean
  /** Whose refusal it is can't be seen from the code alone. */
  told(refusal: HoldfastError, side: 'source' | 'target'): HoldfastError
}

/**
 * What moves two aggregates, exactly once or not at all, though nothing spans the two:
 *
 *     intent ─▶ hold on the source ─▶ commit on the target ─▶ settle on the source ─▶ intent removed
 *                  │ refused               │ refused, or nobody is at work on it any more
 *                  ▼                       ▼
 *             intent removed       void of the target's key ─▶ release on the source ─▶ intent removed
 *
 * Each step is an operation with a key of its own, in the journal before the next one begins, and the same whoever takes it. What the
 * journal of the target has under its key decides: the commit, and the source is settled; a void, and it is released. It has one of them
 * for good, so no two who are at work on the same intent can disagree. What one of them leaves unfinished, `Recovery` finishes.
 */
export class Intended<I extends { readonly tenant: string }, B extends Written> {
  readonly #context: Context
  readonly #parts: IntendedParts
  readonly #plan: Plan<I, B>
  readonly #begins: Gathering<I, B>
  readonly #ends: Gathering<Open<I>, undefined>
  readonly #underWay = new Set<Promise<unknown>>()

  constructor(context: Context, intents: Intents<I, B>, parts: IntendedParts, plan: Plan<I, B>) {
    this.#context = context
    this.#parts = parts
    this.#plan = plan
    this.#begins = new Gathering((asked) => this.#watch(intents.begin(asked)))
    this.#ends = new Gathering(async (ended) => {
      await this.#watch(intents.end(ended))
      return ended.map(() => undefined)
    })
  }

  /** `timeoutMs` and `signal` end the waiting. What is under way then goes on for a moment, or is finished by whoever finds it. */
  within<T>(
    timeoutMs: number,
    signal: AbortSignal | undefined,
    perform: (patience: Patience) => Promise<T>,
  ): Promise<T> {
    const { clock } = this.#context
    return new Promise((resolve, reject) => {
      const cancel = clock.after(timeoutMs, () => reject(new HoldfastError('timeout', undefined, { timeoutMs })))
      const stopListening = signal && onAbort(signal, () => reject(new HoldfastError('aborted')))
      const work = perform({ deadline: clock.now() + timeoutMs, signal }).finally(() => {
        cancel()
        stopListening?.()
      })
      this.#parts.count(work)
      this.#track(work)
      work.then(resolve, reject)
    })
  }

  /** Resolves when nothing is under way any more. */
  async drain(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay)
  }

  #track(work: Promise<unknown>): void {
    this.#underWay.add(work)
    const forget = (): void => void this.#underWay.delete(work)
    work.then(forget, forget)
  }

  /**
   * Who finds an intent without a hold long after, removes it: so a hold must come soon after its intent or not at all, however long this
   * process sleeps in between. Where there is time left, both are made again.
   */
  async hold(asked: I, patience: Patience): Promise<{ intent: I; held: Outcome }> {
    const { clock, options } = this.#context
    for (let tries = 0; ; tries += 1) {
      const began = clock.now()
      const written = await this.begin(asked, patience)
      const intent = this.#plan.begun(asked, written)
      const deadline = Math.min(patience.deadline, began + options.transferHoldWithinMs)
      const hold = this.#plan.holdOf(intent)
      try {
        return { intent, held: await this.take(intent, 'source', hold, { ...patience, deadline }, tries > 0) }
      } catch (error) {
        if (isRefusal(error)) {
          // Others may have begun it before, and their hold still come: then it is left to who finds it.
          if (written.fresh) void this.end({ ...intent, attempt: written.attempt })
          throw this.#plan.told(error, 'source')
        }
        const timedOut = HoldfastError.is(error, 'timeout') && clock.now() + CLOCK_SLACK_MS < patience.deadline
        if (!timedOut) throw error
        // What was sent may still be decided, by a clock that was set back: then a "no" told now would be wrong.
        await sleep(clock, CLOCK_SLACK_MS)
      }
    }
  }

  async begin(intent: I, patience: Patience): Promise<B> {
    const question = () => this.#begins.add(intent, () => this.#over(patience))
    return this.#askUntilAnswered(patience, question).catch((error) => {
      throw error.outcome === 'data' ? unstorable() : error
    })
  }

  /**
   * Returns the refusal only when nobody can be accepted any more. Most might be overcome by somebody who is at work on the same intent: so
   * first the key is used up.
   */
  async commit(intent: I, patience: Patience): Promise<Outcome | HoldfastError> {
    try {
      return await this.take(intent, 'target', this.#plan.commitOf(intent), patience)
    } catch (error) {
      if (!isRefusal(error)) throw error
      if (error.code === 'idempotency_conflict') return this.#meet(intent, patience)
      if (this.#plan.isFinal(error)) return this.#plan.told(error, 'target')
      return this.void(intent, error, patience)
    }
  }

  /** From now on nobody can commit it. Returns why not, or what was committed before. */
  async void(intent: I, { code, facts }: HoldfastError, patience: Patience): Promise<Outcome | HoldfastError> {
    try {
      const why = JSON.stringify({ refused: code, ...facts })
      const { entry, replayed } = await this.take(intent, 'target', this.#plan.voidOf(intent, why), patience)
      const what = `${this.#plan.name}_voided`
      if (!replayed) this.#context.telemetry.count?.('holdfast_recoveries_total', { what })
      return this.#refusalIn(entry as Entry)
    } catch (error) {
      if (!isRefusal(error)) throw error
      if (error.code === 'idempotency_conflict') return this.#meet(intent, patience)
      if (error.code === 'wallet_closed') return this.#plan.told(error, 'target')
      throw this.#broken(error)
    }
  }

  /** Somebody else was there before: with the commit, or with its end. */
  async #meet(intent: I, patience: Patience): Promise<Outcome | HoldfastError> {
    const wanted = { ref: this.#plan.targetOf(intent), key: this.#plan.commitOf(intent).key }
    const [entry] = await this.ask(patience, () => this.#context.journal.find([wanted]))
    if (!entry) throw new HoldfastError('unavailable', 'The journal does not show what it knew a moment ago')
    this.#context.witnesses.noteFound(wanted.ref, entry)
    return entry.kind === 'void' ? this.#refusalIn(entry) : { entry, replayed: true, durability: 'ledger' }
  }

  #refusalIn({ metadata }: Entry): HoldfastError {
    const { refused, ...facts } = JSON.parse(metadata)
    return this.#plan.told(new HoldfastError(refused, undefined, facts), 'target')
  }

  /** Is there a hold, or will there never be one? For those who know that nobody makes it any more. */
  async isHeld(intent: I, patience: Patience): Promise<boolean> {
    const { key, params } = this.#plan.holdOf(intent)
    const ref = this.#plan.sourceOf(intent)
    const [entry] = await this.ask(patience, () => this.#context.journal.find([{ ref, key }]))
    if (entry) return entry.params === params
    try {
      await this.take(intent, 'source', this.#plan.probeOf(intent), patience)
      return true
    } catch (error) {
      if (isRefusal(error)) return false
      throw error
    }
  }

  /** Nobody needs to wait for it: what is left over is found and removed later. */
  async end(ended: Open<I>): Promise<void> {
    const work = this.#ends
      .add(ended, () => this.#context.turnedAway(false))
      .catch((error) => {
        this.#context.telemetry.log?.('debug', `${this.#plan.name}_left_open`, { reason: String(error) })
      })
    this.#track(work)
    await work
  }

  release(intent: I, patience: Patience): Promise<Outcome> {
    return this.must(intent, this.#plan.releaseOf(intent), patience)
  }

  /** The hold is there and nobody else's: what is left to do on the source can't be refused. */
  async must(intent: I, command: Command, patience: Patience): Promise<Outcome> {
    try {
      return await this.take(intent, 'source', command, patience)
    } catch (error) {
      throw isRefusal(error) ? this.#broken(error) : error
    }
  }

  take(
    intent: I,
    side: 'source' | 'target',
    command: Command,
    { deadline, signal }: Patience,
    retry = false,
  ): Promise<Outcome> {
    const ref = side === 'source' ? this.#plan.sourceOf(intent) : this.#plan.targetOf(intent)
    const timeoutMs = deadline - this.#context.clock.now()
    if (timeoutMs <= 0) return Promise.reject(new HoldfastError('timeout'))
    const place = this.#parts.placeOf(intent.tenant, ref)
    return this.#parts.submit(place, command, { memory: false, timeoutMs, signal, retry, begun: true })
  }

  /** Asks Postgres until it answers. */
  ask<T>(patience: Patience, question: () => Promise<T>): Promise<T> {
    return this.#askUntilAnswered(patience, () => this.#watch(question()))
  }

  /** From when it is asked: what waits for its turn says nothing of Postgres. */
  #watch<T>(answer: Promise<T>): Promise<T> {
    const { postgres, options } = this.#context
    return postgres.watch(options.postgresPatienceMs, answer)
  }

  async #askUntilAnswered<T>(patience: Patience, question: () => Promise<T>): Promise<T> {
    const { clock, postgres, telemetry } = this.#context
    for (let failures = 0; ; failures += 1) {
      const over = this.#over(patience)
      if (over) throw over
      try {
        const answer = await question()
        postgres.worked()
        return answer
      } catch (error) {
        // With an outcome it is Postgres that failed.
        if (!(error instanceof HoldfastError) || !error.retryable || error.outcome === undefined) throw error
        postgres.failedWith(error)
        telemetry.log?.('warn', `${this.#plan.name}_question_failed`, { reason: String(error) })
        const waitMs = 20 + jitteredMs(clock, failures, 20, 1_000)
        if (clock.now() + waitMs >= patience.deadline) throw new HoldfastError('timeout')
        await sleep(clock, waitMs)
      }
    }
  }

  /** Why nothing more is asked: nobody waits for it, or Postgres is away. */
  #over({ deadline, signal }: Patience): HoldfastError | null {
    if (signal?.aborted) return new HoldfastError('aborted')
    if (this.#context.clock.now() >= deadline) return new HoldfastError('timeout')
    return this.#context.turnedAway(false)
  }

  /** Never told as a "no": the other side may have moved. */
  #broken(cause: HoldfastError): HoldfastError {
    const text = `A step of a ${this.#plan.name} was refused that can not be: ${cause.code}`
    return new HoldfastError('internal_error', text, {}, { cause })
  }
}

/** A "no" of the wallet's: not an unknown outcome, and not something that broke. */
function isRefusal(error: unknown): error is HoldfastError {
  return error instanceof HoldfastError && !error.retryable && error.status < 500
}

function unstorable(): HoldfastError {
  return new HoldfastError('invalid_argument', 'Postgres can not store the data of this operation')
}
