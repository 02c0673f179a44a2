import { HoldfastError } from '../../errors/index.js'
import { amount, integer, namesOf, options as optionsOf } from '../../input/index.js'
import { sequenceNext, sequenceRaise } from '../../redis/scripts.generated.js'
import { Calls } from '../calls.js'
import { type Context, tell } from '../context.js'
import { KeySpace, type Purpose } from '../keys.js'
import { type Lifetime, lifetime, purposeFor } from '../lifetime.js'
import type { Primitives } from '../primitives.js'

export interface FastSequenceOptions {
  /** How long a sequence stays from its first number on; then it begins anew. `none`: it stays; that has to be said. */
  readonly ttlMs: Lifetime
}

const OPTION_NAMES = namesOf<FastSequenceOptions>({ ttlMs: true })

/** Numbers in a row, both ends included. */
export interface NumberRange {
  readonly first: number
  readonly last: number
}

type Of = string | readonly string[]

/** Most numbers that one call gives. */
export const MANY_MAX = 1_000_000

export const overflow = (by: number): HoldfastError => new HoldfastError('counter_overflow', undefined, { by })

/**
 * Numbers from Redis: fast, growing, and as durable as Redis. There are gaps, and after Redis has lost writes (a failover, a crash) numbers
 * come twice. Where that must not be, there is `StrictSequence`.
 */
export class FastSequence {
  readonly #ttlMs: Lifetime
  readonly #context: Context
  readonly #purpose: Purpose
  readonly #space: KeySpace
  readonly #next: Calls
  readonly #raise: Calls

  constructor({ context }: Primitives, operation: string, options: FastSequenceOptions) {
    this.#ttlMs = lifetime('ttlMs', optionsOf('options', options, OPTION_NAMES).ttlMs)
    this.#context = context
    this.#purpose = purposeFor('sequence', this.#ttlMs)
    this.#space = new KeySpace(context, this.#purpose, operation)
    this.#next = new Calls(context, this.#purpose, sequenceNext)
    this.#raise = new Calls(context, this.#purpose, sequenceRaise)
  }

  /** From 1 on. Past 2^53 − 1 it is `counter_overflow`. */
  async next(of: Of): Promise<number> {
    return (await this.nextMany(of, 1)).last
  }

  /** So many in a row, which nobody else gets. */
  async nextMany(of: Of, count: number): Promise<NumberRange> {
    integer('count', count, 1, MANY_MAX)
    const scope = this.#space.scope(of)
    const answer = String(await this.#next.add(scope, [scope.base], [count, this.#ttlMs]))
    const isOver = answer === 'over'
    tell(this.#context, this.#purpose, isOver ? 'overflow' : 'given')
    if (isOver) throw overflow(count)
    return { first: Number(answer) - count + 1, last: Number(answer) }
  }

  /** After a loss: it goes on after this number, unless it is beyond already. Resolves with the number after which it goes on. */
  async raise(of: Of, number: number): Promise<number> {
    const least = amount('number', number, 1)
    const scope = this.#space.scope(of)
    const last = Number(await this.#raise.add(scope, [scope.base], [least, this.#ttlMs]))
    tell(this.#context, this.#purpose, 'raised')
    return last
  }
}
