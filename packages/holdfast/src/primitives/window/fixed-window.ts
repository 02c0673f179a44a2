import { HoldfastError } from '../../errors/index.js'
import { amount, namesOf, options as optionsOf } from '../../input/index.js'
import { windowAdd, windowPeek, windowRefund, windowReset } from '../../redis/scripts.generated.js'
import { Calls } from '../calls.js'
import { type Context, tell } from '../context.js'
import { durationMs, KeySpace, type Scope } from '../keys.js'
import type { Primitives } from '../primitives.js'
import { instantMs } from '../time.js'
import { labelOf, windowPart } from './label.js'

export interface FixedWindowOptions {
  /** Windows begin at multiples of it, in UTC. Default one minute. */
  readonly windowMs?: number
  /** For how long a window stays readable after its end: for those who look back, and whose clocks are behind. Default one minute. */
  readonly bufferMs?: number
}

const OPTION_NAMES = namesOf<FixedWindowOptions>({ windowMs: true, bufferMs: true })

export interface WindowCall {
  /** How much. Default 1. */
  readonly by?: number
  /** When it happened. Default now. */
  readonly at?: Date
}

const CALL_NAMES = namesOf<WindowCall>({ by: true, at: true })

export interface WindowCount {
  /** Within the window, this call included. Whether that is too much is for you to say. */
  readonly count: number
  /** Its beginning in UTC, as in the key: `202607021430`. */
  readonly window: string
  readonly endsAt: Date
}

const MINUTE_MS = 60_000

interface Place {
  readonly scope: Scope
  readonly keys: readonly [string]
  readonly window: string
  readonly endsAt: Date
}

/**
 * Counts what happens within windows that lie side by side: each scope has one counter a window, which goes by itself. Cheap and easy to
 * explain; but as much again may come right after a boundary, so that twice the limit fits into one window's length across it.
 */
export class FixedWindow {
  readonly windowMs: number
  readonly bufferMs: number
  readonly #context: Context
  readonly #space: KeySpace
  readonly #add: Calls
  readonly #refund: Calls
  readonly #peek: Calls
  readonly #reset: Calls
  /** The window of the last call, which mostly is that of the next: to name it costs as much as to hash a scope. */
  #last = { beginsMs: -1, window: '', part: '' }

  constructor({ context }: Primitives, operation: string, options: FixedWindowOptions = {}) {
    const { windowMs = MINUTE_MS, bufferMs = MINUTE_MS } = optionsOf('options', options, OPTION_NAMES)
    this.windowMs = durationMs('windowMs', windowMs)
    this.bufferMs = durationMs('bufferMs', bufferMs, 0)
    this.#context = context
    this.#space = new KeySpace(context, 'window', operation)
    this.#add = new Calls(context, 'window', windowAdd)
    this.#refund = new Calls(context, 'window', windowRefund)
    this.#peek = new Calls(context, 'window', windowPeek)
    this.#reset = new Calls(context, 'window', windowReset)
  }

  /** Past 2^53 − 1 it is `counter_overflow`, and nothing was added. */
  async add(scope: string | readonly string[], call: WindowCall = {}): Promise<WindowCount> {
    const by = amount('by', optionsOf('options', call, CALL_NAMES).by ?? 1, 1)
    const place = this.#place(scope, call)
    const answer = String(await this.#add.add(place.scope, place.keys, [by, this.windowMs + this.bufferMs]))
    const isOver = answer === 'over'
    tell(this.#context, 'window', isOver ? 'overflow' : 'added')
    if (isOver) throw new HoldfastError('counter_overflow', undefined, { by })
    return countOf(place, answer)
  }

  /** Takes back what did not happen after all, in the window in which it was counted; never below nothing. */
  async refund(scope: string | readonly string[], call: WindowCall = {}): Promise<WindowCount> {
    const by = amount('by', optionsOf('options', call, CALL_NAMES).by ?? 1, 1)
    const place = this.#place(scope, call)
    const answer = await this.#refund.add(place.scope, place.keys, [by])
    tell(this.#context, 'window', 'refunded')
    return countOf(place, String(answer))
  }

  /** Without counting. */
  async peek(scope: string | readonly string[], call: Pick<WindowCall, 'at'> = {}): Promise<WindowCount> {
    const place = this.#place(scope, call)
    return countOf(place, String(await this.#peek.add(place.scope, place.keys, [])))
  }

  /** Begins the window anew. True: there was something to forget. */
  async reset(scope: string | readonly string[], call: Pick<WindowCall, 'at'> = {}): Promise<boolean> {
    const place = this.#place(scope, call)
    const forgotten = (await this.#reset.add(place.scope, place.keys, [])) === 1
    tell(this.#context, 'window', 'reset')
    return forgotten
  }

  #place(of: string | readonly string[], call: unknown): Place {
    const atMs = instantMs('at', optionsOf('options', call, CALL_NAMES).at, this.#context.now)
    const scope = this.#space.scope(of)
    const beginsMs = atMs - (atMs % this.windowMs)
    if (beginsMs !== this.#last.beginsMs) {
      const window = labelOf(beginsMs, this.windowMs)
      this.#last = { beginsMs, window, part: windowPart(beginsMs, this.windowMs) }
    }
    const { window, part } = this.#last
    return { scope, keys: [scope.key(part)], window, endsAt: new Date(beginsMs + this.windowMs) }
  }
}

const countOf = ({ window, endsAt }: Place, digits: string): WindowCount => ({ count: Number(digits), window, endsAt })
