import { HoldfastError } from '../../errors/index.js'
import { flag, integer, namesOf, options as optionsOf } from '../../input/index.js'
import { slidingConsume, slidingPeek, slidingRefund } from '../../redis/scripts.generated.js'
import { type Context, tell } from '../context.js'
import { KeySpace } from '../keys.js'
import { LimitCalls, type Standing } from '../limits/limit-calls.js'
import { countingTerms, logTerms, type Terms } from '../limits/terms.js'
import type { Primitives } from '../primitives.js'
import { instantArg } from '../time.js'

export interface SlidingWindowOptions {
  /** How far it looks back. Default one minute. */
  readonly windowMs?: number
  /** The most that is let through within the window. Default none: everything is counted, and what is too much is for you to say. */
  readonly limit?: number
  /** Remember each call rather than two counts: no error, for memory that grows with the limit (which must be given, up to 10,000). */
  readonly exact?: boolean
  /** For how long it is remembered after nothing counts any more: for clocks that go back. Default one minute. */
  readonly bufferMs?: number
}

const OPTION_NAMES = namesOf<SlidingWindowOptions>({ windowMs: true, limit: true, exact: true, bufferMs: true })

export interface SlidingCall {
  /** How much. Default 1. */
  readonly by?: number
  /** When it happens. Default now, by the clock of Redis. */
  readonly at?: Date
}

const CALL_NAMES = namesOf<SlidingCall>({ by: true, at: true })

export interface SlidingState {
  /** Within the window up to now, this call included if it was allowed. */
  readonly count: number
  /** How much more would be let through now; null: there is no limit. */
  readonly left: number | null
  /** When nothing counts any more, if nobody else comes. */
  readonly resetAfterMs: number
}

export interface SlidingCount extends SlidingState {
  /** False: it would be too much, and nothing was counted. Without a limit always true. */
  readonly allowed: boolean
  /** When as much would be allowed, if nobody else comes before; 0: it is. */
  readonly retryAfterMs: number
}

const MINUTE_MS = 60_000
const SCRIPTS = { consume: slidingConsume, peek: slidingPeek, refund: slidingRefund }

/**
 * Counts what happened within the last so many ms, whenever one asks: there is no boundary at which everything is forgotten. From the counts
 * of the window that is and the one before it, or exactly from a log of calls.
 */
export class SlidingWindow {
  readonly limit: number | null
  readonly #context: Context
  readonly #space: KeySpace
  readonly #terms: Terms
  readonly #calls: LimitCalls

  constructor({ context }: Primitives, operation: string, options: SlidingWindowOptions = {}) {
    const asked = optionsOf('options', options, OPTION_NAMES)
    const given = { ...asked, windowMs: asked.windowMs ?? MINUTE_MS }
    this.#terms = flag('exact', asked.exact) ? logTerms(given) : countingTerms(given)
    this.limit = asked.limit === undefined ? null : this.#terms.max
    this.#context = context
    this.#space = new KeySpace(context, 'sliding', operation)
    this.#calls = new LimitCalls(context, 'sliding', SCRIPTS, [this.#terms])
  }

  /** With a limit: counts if that does not pass it, otherwise nothing changes. Without: past 2^53 − 1 it is `counter_overflow`. */
  async add(scope: string | readonly string[], call: SlidingCall = {}): Promise<SlidingCount> {
    const count = await this.#ask('consume', scope, call, this.#terms.max)
    if (!count.allowed && this.limit === null) {
      tell(this.#context, 'sliding', 'overflow')
      throw new HoldfastError('counter_overflow', undefined, { by: call.by ?? 1 })
    }
    tell(this.#context, 'sliding', count.allowed ? 'allowed' : 'refused')
    return count
  }

  /** What `add` would say, without counting: so `count` is what there is. */
  peek(scope: string | readonly string[], call: SlidingCall = {}): Promise<SlidingCount> {
    return this.#ask('peek', scope, call, this.#terms.max)
  }

  /** Takes back what did not happen after all, the newest first; never below nothing. */
  async refund(scope: string | readonly string[], call: SlidingCall = {}): Promise<SlidingState> {
    const { count, left, resetAfterMs } = await this.#ask('refund', scope, call, Number.MAX_SAFE_INTEGER)
    tell(this.#context, 'sliding', 'refunded')
    return { count, left, resetAfterMs }
  }

  /** Forgets what was counted. True: there was something to forget. */
  async reset(scope: string | readonly string[]): Promise<boolean> {
    const of = this.#space.scope(scope)
    const forgotten = await this.#calls.reset(of, [of.key(this.#terms.part)])
    tell(this.#context, 'sliding', 'reset')
    return forgotten
  }

  async #ask(
    what: 'consume' | 'peek' | 'refund',
    scope: string | readonly string[],
    call: SlidingCall,
    byMax: number,
  ): Promise<SlidingCount> {
    const { by = 1, at } = optionsOf('options', call, CALL_NAMES)
    const costs = [integer('by', by, 1, byMax)]
    const atMs = instantArg('at', at)
    const of = this.#space.scope(scope)
    const [standing] = await this.#calls[what](of, [of.key(this.#terms.part)], costs, atMs)
    const { used, left, ...rest } = standing as Standing
    return { count: used, left: this.limit === null ? null : left, ...rest }
  }
}
