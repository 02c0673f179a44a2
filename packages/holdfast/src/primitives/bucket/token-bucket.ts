import { integer, namesOf, options as optionsOf } from '../../input/index.js'
import { bucketConsume, bucketPeek, bucketRefund } from '../../redis/scripts.generated.js'
import { type Context, tell } from '../context.js'
import { KeySpace } from '../keys.js'
import { type LimitAnswer, LimitCalls, type LimitState, type Standing } from '../limits/limit-calls.js'
import { bucketTerms } from '../limits/terms.js'
import type { Primitives } from '../primitives.js'
import { instantArg } from '../time.js'

export interface TokenBucketOptions {
  /** How many tokens a full bucket has: the most that can come at once. */
  readonly capacity: number
  /** In how long a time `refill` tokens come back: evenly, not all at once. */
  readonly refillMs: number
  /** Default `capacity`. */
  readonly refill?: number
  /** For how long a bucket is remembered after it is full again: for clocks that go back. Default one minute. */
  readonly bufferMs?: number
}

const OPTION_NAMES = namesOf<TokenBucketOptions>({ capacity: true, refillMs: true, refill: true, bufferMs: true })

export interface BucketCall {
  /** How many tokens. Default 1. */
  readonly cost?: number
  /** When it happens. Default now, by the clock of Redis. */
  readonly at?: Date
}

const CALL_NAMES = namesOf<BucketCall>({ cost: true, at: true })

const SCRIPTS = { consume: bucketConsume, peek: bucketPeek, refund: bucketRefund }

/**
 * Lets bursts up to a capacity through, and on the whole no more than comes back: each scope has a bucket of tokens that calls take from
 * and that fills up evenly. A full one takes no room.
 */
export class TokenBucket {
  readonly capacity: number
  readonly #context: Context
  readonly #space: KeySpace
  readonly #calls: LimitCalls

  constructor({ context }: Primitives, operation: string, options: TokenBucketOptions) {
    const terms = bucketTerms(optionsOf('options', options, OPTION_NAMES))
    this.capacity = terms.max
    this.#context = context
    this.#space = new KeySpace(context, 'bucket', operation)
    this.#calls = new LimitCalls(context, 'bucket', SCRIPTS, [terms])
  }

  /** Takes tokens if there are enough. Otherwise nothing changes. */
  async consume(scope: string | readonly string[], call: BucketCall = {}): Promise<LimitAnswer> {
    const answer = await this.#ask('consume', scope, call, this.capacity)
    tell(this.#context, 'bucket', answer.allowed ? 'allowed' : 'refused')
    return answer
  }

  /** What `consume` would say. */
  peek(scope: string | readonly string[], call: BucketCall = {}): Promise<LimitAnswer> {
    return this.#ask('peek', scope, call, this.capacity)
  }

  /** Gives back what was not needed after all. A full bucket stays full. */
  async refund(scope: string | readonly string[], call: BucketCall = {}): Promise<LimitState> {
    const { left, resetAfterMs } = await this.#ask('refund', scope, call, Number.MAX_SAFE_INTEGER)
    tell(this.#context, 'bucket', 'refunded')
    return { left, resetAfterMs }
  }

  /** Fills the bucket. True: it was not full, or not for long. */
  async reset(scope: string | readonly string[]): Promise<boolean> {
    const of = this.#space.scope(scope)
    const forgotten = await this.#calls.reset(of, [of.base])
    tell(this.#context, 'bucket', 'reset')
    return forgotten
  }

  async #ask(
    what: 'consume' | 'peek' | 'refund',
    scope: string | readonly string[],
    call: BucketCall,
    costMax: number,
  ): Promise<LimitAnswer> {
    const { cost = 1, at } = optionsOf('options', call, CALL_NAMES)
    const costs = [integer('cost', cost, 1, costMax)]
    const atMs = instantArg('at', at)
    const of = this.#space.scope(scope)
    const [standing] = await this.#calls[what](of, [of.base], costs, atMs)
    const { used: _, ...answer } = standing as Standing
    return answer
  }
}
