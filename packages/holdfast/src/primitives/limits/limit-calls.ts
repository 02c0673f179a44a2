import type { Script } from '../../redis/index.js'
import { limitsReset } from '../../redis/scripts.generated.js'
import { Calls } from '../calls.js'
import type { Context } from '../context.js'
import type { Purpose, Scope } from '../keys.js'
import type { Terms } from './terms.js'

/** How a limit stands. */
export interface LimitState {
  /** How much more it would let pass now. */
  readonly left: number
  /** When nothing of it is used any more, if nobody else comes. */
  readonly resetAfterMs: number
}

/** What a limit says to a call. */
export interface LimitAnswer extends LimitState {
  /** False: it would be too much, and nothing was taken. */
  readonly allowed: boolean
  /** When the same call would be allowed, if nobody else comes before; 0: it is. */
  readonly retryAfterMs: number
}

/** As the scripts tell it: `left` is what `max` has more than `used`. */
export interface Standing extends LimitAnswer {
  readonly used: number
}

/** Of the kinds that a primitive needs and no others: a script is built up anew at each call of it. */
interface LimitScripts {
  readonly consume: Script
  readonly peek: Script
  readonly refund: Script
}

/** Calls of limits that are decided together: one, or several of one scope. Each has a key. */
export class LimitCalls {
  readonly #terms: readonly Terms[]
  readonly #text: string
  readonly #consume: Calls
  readonly #peek: Calls
  readonly #refund: Calls
  readonly #reset: Calls

  constructor(context: Context, purpose: Purpose, scripts: LimitScripts, terms: readonly Terms[]) {
    this.#terms = terms
    this.#text = terms.map(({ text }) => text).join(';')
    this.#consume = new Calls(context, purpose, scripts.consume)
    this.#peek = new Calls(context, purpose, scripts.peek)
    this.#refund = new Calls(context, purpose, scripts.refund)
    this.#reset = new Calls(context, purpose, limitsReset)
  }

  async consume(scope: Scope, keys: readonly string[], costs: readonly number[], at: number | ''): Promise<Standing[]> {
    return this.#read(await this.#consume.add(scope, keys, [at, this.#text, ...costs]))
  }

  async peek(scope: Scope, keys: readonly string[], costs: readonly number[], at: number | ''): Promise<Standing[]> {
    return this.#read(await this.#peek.add(scope, keys, [at, this.#text, ...costs]))
  }

  async refund(scope: Scope, keys: readonly string[], costs: readonly number[], at: number | ''): Promise<Standing[]> {
    return this.#read(await this.#refund.add(scope, keys, [at, this.#text, ...costs]))
  }

  /** True: there was something to forget. */
  async reset(scope: Scope, keys: readonly string[]): Promise<boolean> {
    return (await this.#reset.add(scope, keys, [])) !== 0
  }

  #read(answer: unknown): Standing[] {
    const numbers = String(answer).split(' ').map(Number)
    return this.#terms.map(({ max }, i): Standing => {
      const [used, retryAfterMs, resetAfterMs] = numbers.slice(3 * i, 3 * i + 3) as [number, number, number]
      return { allowed: retryAfterMs === 0, used, left: Math.max(0, max - used), retryAfterMs, resetAfterMs }
    })
  }
}
