import { HoldfastError } from '../errors/index.js'
import type { Begun, Intent, Intents, OpenIntent } from '../journal/index.js'
import type { Command, Entry } from '../machine/index.js'
import type { Place } from '../redis/index.js'
import type { Outcome } from './attempt.js'
import { jitteredMs, sleep } from './clock.js'
import { CLOCK_SLACK_MS, type Context } from './context.js'
import type { SubmitOptions } from './engine.js'
import { Gathering } from './gathering.js'
import * as step from './transfer-commands.js'

export interface TransferOutcome {
  /** What was taken from the source in the end, and what arrived. */
  readonly from: Outcome
  readonly to: Outcome
  /** The source's key was used before, by this transfer. */
  readonly replayed: boolean
}

/** How it ended: done, or undone for a refusal of the target's. */
export type Ending = { type: 'done'; from: Outcome; to: Outcome } | { type: 'undone'; refusal: HoldfastError }

/** Until when, and whether anybody still waits. */
export interface Patience {
  /** The engine's clock, ms. */
  readonly deadline: number
  readonly signal?: AbortSignal | undefined
}

interface Parts {
  placeOf(tenant: string, ref: string): Place
  submit(place: Place, command: Command, options: SubmitOptions): Promise<Outcome>
}

/**
 * Money from one wallet to another, exactly once, though nothing spans the two:
 *
 *     intent ─▶ hold on the source ─▶ credit of the target ─▶ fee and settle on the source ─▶ intent removed
 *                  │ refused               │ refused
 *                  ▼                       ▼
 *             intent removed       void of the target's key ─▶ release on the source ─▶ intent removed
 *
 * Each step is an operation with a key of its own, in the journal before the next one begins, and the same whoever takes it. What the
 * journal of the target has under its key decides: a credit, and the source is settled; a void, and it is released. It has one of them for
 * good, so no two who are at work on the same transfer can disagree. What one of them leaves unfinished, `TransferRecovery` finishes.
 */
export class Transfers {
  readonly #context: Context
  readonly #intents: Intents
  readonly #parts: Parts
  readonly #begins: Gathering<Intent, Begun>
  readonly #ends: Gathering<OpenIntent, undefined>
  readonly #underWay = new Set<Promise<unknown>>()

  constructor(context: Context, intents: Intents, parts: Parts) {
    this.#context = context
    this.#intents = intents
    this.#parts = parts
    this.#begins = new Gathering((asked) => this.#intents.begin(asked))
    this.#ends = new Gathering(async (ended) => {
      await this.#intents.end(ended)
      return ended.map(() => undefined)
    })
  }

  /** `timeoutMs` and `signal` end the waiting. What is under way then goes on for a moment, or is finished by whoever finds it. */
  perform(intent: Intent, timeoutMs: number, signal: AbortSignal | undefined): Promise<TransferOutcome> {
    const { clock } = this.#context
    return new Promise((resolve, reject) => {
      const abort = (): void => reject(new HoldfastError('aborted'))
      const cancel = clock.after(timeoutMs, () => reject(new HoldfastError('timeout', undefined, { timeoutMs })))
      signal?.addEventListener('abort', abort, { once: true })
      const work = this.#perform(intent, { deadline: clock.now() + timeoutMs, signal }).finally(() => {
        cancel()
        signal?.removeEventListener('abort', abort)
      })
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

  async #perform(intent: Intent, patience: Patience): Promise<TransferOutcome> {
    const { replayed } = await this.#hold(intent, patience)
    const ending = await this.complete(intent, patience)
    if (ending.type === 'undone') throw ending.refusal
    return { from: ending.from, to: ending.to, replayed }
  }

  /**
   * Who finds an intent without a hold long after, removes it: so a hold must come soon after its intent or not at all, however long this
   * process sleeps in between. Where there is time left, both are made again.
   */
  async #hold(intent: Intent, patience: Patience): Promise<Outcome> {
    const { clock, options } = this.#context
    for (let tries = 0; ; tries += 1) {
      const began = clock.now()
      const { attempt } = await this.#begin(intent, patience)
      const deadline = Math.min(patience.deadline, began + options.transferHoldWithinMs)
      try {
        return await this.#take(intent, 'source', step.holdOf(intent), { ...patience, deadline }, tries > 0)
      } catch (error) {
        if (isRefusal(error)) {
          this.end({ ...intent, attempt })
          throw ofSide(error, 'from')
        }
        const timedOut = HoldfastError.is(error, 'timeout') && clock.now() + CLOCK_SLACK_MS < patience.deadline
        if (!timedOut) throw error
        // What was sent may still be decided, by a clock that was set back: then a "no" told now would be wrong.
        await sleep(clock, CLOCK_SLACK_MS)
      }
    }
  }

  /** Written down, so that whoever lives can finish it. */
  begin(intent: Intent, patience: Patience): Promise<Begun> {
    return this.#begin(intent, patience)
  }

  async #begin(intent: Intent, patience: Patience): Promise<Begun> {
    const begun = await this.ask(patience, () => this.#begins.add(intent)).catch((error) => {
      throw error.outcome === 'data' ? unstorable() : error
    })
    if (begun.sourceCurrency === null) throw missing('from')
    if (begun.targetCurrency === null) throw missing('to')
    if (begun.attempt > 0) return begun
    throw new HoldfastError(
      'invalid_argument',
      `to: expected a wallet in the currency of the first, ${begun.sourceCurrency}, got one in ${begun.targetCurrency}`,
      { expected: begun.sourceCurrency, got: begun.targetCurrency },
    )
  }

  /** From the hold to the end, forward or back. */
  async complete(intent: Intent, patience: Patience): Promise<Ending> {
    const to = await this.#credit(intent, patience)
    if (to instanceof HoldfastError) {
      await this.#must(intent, step.releaseOf(intent), patience)
      this.end({ ...intent, attempt: 0 })
      return { type: 'undone', refusal: to }
    }
    if (intent.fee > 0) await this.#must(intent, step.feeOf(intent), patience)
    const from = await this.#must(intent, step.settleOf(intent), patience)
    this.end({ ...intent, attempt: 0 })
    return { type: 'done', from, to }
  }

  /**
   * Returns the refusal only when nobody can be accepted any more. A closed wallet stays closed. Any other might be overcome by somebody
   * who is at work on the same transfer: so first the key is used up.
   */
  async #credit(intent: Intent, patience: Patience): Promise<Outcome | HoldfastError> {
    try {
      return await this.#take(intent, 'target', step.creditOf(intent), patience)
    } catch (error) {
      if (!isRefusal(error)) throw error
      if (error.code === 'idempotency_conflict') return this.#meet(intent, patience)
      if (error.code === 'wallet_closed') return ofSide(error, 'to')
      return this.#void(intent, error, patience)
    }
  }

  async #void(intent: Intent, { code, facts }: HoldfastError, patience: Patience): Promise<Outcome | HoldfastError> {
    try {
      const why = JSON.stringify({ refused: code, ...facts })
      const { entry, replayed } = await this.#take(intent, 'target', step.voidOf(intent, why), patience)
      if (!replayed) this.#context.telemetry.count?.('holdfast_recoveries_total', { what: 'transfer_voided' })
      return refusalIn(entry as Entry)
    } catch (error) {
      if (!isRefusal(error)) throw error
      if (error.code === 'idempotency_conflict') return this.#meet(intent, patience)
      if (error.code === 'wallet_closed') return ofSide(error, 'to')
      throw broken(error)
    }
  }

  /** Somebody else was there before: with the credit, or with its end. */
  async #meet(intent: Intent, patience: Patience): Promise<Outcome | HoldfastError> {
    const { source, target, key } = intent
    const wanted = { ref: target, key: step.targetKey(source, key) }
    const [entry] = await this.ask(patience, () => this.#context.journal.find([wanted]))
    if (!entry) throw new HoldfastError('unavailable', 'The journal does not show what it knew a moment ago')
    return entry.kind === 'void' ? refusalIn(entry) : { entry, replayed: true, durability: 'ledger' }
  }

  /** Is there a hold, or will there never be one? For those who know that nobody makes it any more. */
  async isHeld(intent: Intent, patience: Patience): Promise<boolean> {
    const { source, key } = intent
    const [entry] = await this.ask(patience, () =>
      this.#context.journal.find([{ ref: source, key: step.holdKey(key) }]),
    )
    if (entry) return entry.params === step.holdOf(intent).params
    try {
      await this.#take(intent, 'source', step.probeOf(intent), patience)
      return true
    } catch (error) {
      if (isRefusal(error)) return false
      throw error
    }
  }

  /** Nobody waits for it: what is left over is found and removed later. */
  end(ended: OpenIntent): void {
    const work = this.#ends.add(ended).catch((error) => {
      this.#context.telemetry.log?.('debug', 'transfer_left_open', { reason: String(error) })
    })
    this.#track(work)
  }

  /** The hold is there and nobody else's: what is left to do on the source can't be refused. */
  async #must(intent: Intent, command: Command, patience: Patience): Promise<Outcome> {
    try {
      return await this.#take(intent, 'source', command, patience)
    } catch (error) {
      throw isRefusal(error) ? broken(error) : error
    }
  }

  #take(
    { tenant, source, target }: Intent,
    side: 'source' | 'target',
    command: Command,
    { deadline, signal }: Patience,
    retry = false,
  ): Promise<Outcome> {
    const place = this.#parts.placeOf(tenant, side === 'source' ? source : target)
    const timeoutMs = deadline - this.#context.clock.now()
    if (timeoutMs <= 0) return Promise.reject(new HoldfastError('timeout'))
    return this.#parts.submit(place, command, { memory: false, timeoutMs, signal, retry, begun: true })
  }

  /** Asks Postgres until it answers. */
  async ask<T>({ deadline, signal }: Patience, question: () => Promise<T>): Promise<T> {
    const { clock, postgres, telemetry } = this.#context
    for (let failures = 0; ; failures += 1) {
      if (signal?.aborted) throw new HoldfastError('aborted')
      const away = this.#context.turnedAway(false)
      if (away) throw away
      try {
        const answer = await question()
        postgres.worked()
        return answer
      } catch (error) {
        if (!(error instanceof HoldfastError) || !error.retryable) throw error
        postgres.failedWith(error)
        telemetry.log?.('warn', 'transfer_question_failed', { reason: String(error) })
        const waitMs = 20 + jitteredMs(clock, failures, 20, 1_000)
        if (clock.now() + waitMs >= deadline) throw new HoldfastError('timeout')
        await sleep(clock, waitMs)
      }
    }
  }
}

/** A "no" of the wallet's: not an unknown outcome, and not something that broke. */
function isRefusal(error: unknown): error is HoldfastError {
  return error instanceof HoldfastError && !error.retryable && error.status < 500
}

function missing(side: 'from' | 'to'): HoldfastError {
  return new HoldfastError('wallet_not_found', `${side}: there is no wallet with this id in this tenant`, { side })
}

function unstorable(): HoldfastError {
  return new HoldfastError('invalid_argument', 'Postgres can not store the data of this operation')
}

/** Never told as a "no": the other wallet may have moved. */
function broken(cause: HoldfastError): HoldfastError {
  const text = `A step of a transfer was refused that can not be: ${cause.code}`
  return new HoldfastError('internal_error', text, {}, { cause })
}

/** Whose refusal it is can't be seen from the code alone. */
function ofSide({ code, message, facts }: HoldfastError, side: 'from' | 'to'): HoldfastError {
  return new HoldfastError(code, message, { ...facts, side })
}

function refusalIn({ metadata }: Entry): HoldfastError {
  const { refused, ...facts } = JSON.parse(metadata)
  return new HoldfastError(refused, undefined, { ...facts, side: 'to' })
}
