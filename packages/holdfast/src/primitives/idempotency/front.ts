import { HoldfastError } from '../../errors/index.js'
import { idempotencyClaim, idempotencyHide, idempotencyShow } from '../../redis/scripts.generated.js'
import { Calls } from '../calls.js'
import { type Context, tell } from '../context.js'
import type { Scope } from '../keys.js'
import { NONE } from './in-redis.js'

/** A key that is completed, as Postgres has it. */
export interface Completed {
  readonly token: string
  readonly request: string | null
  readonly attempt: number
  readonly tookOver: boolean
  readonly createdMs: number
  readonly updatedMs: number
  readonly keepMs: number
  readonly response: string
}

/** What Redis shows of a key. `ask`: only Postgres can tell. */
export type Shown =
  | { readonly result: 'ask' }
  | { readonly result: 'processing'; readonly leftMs: number }
  | { readonly result: 'completed'; readonly request: string | null; readonly response: string }

/**
 * For so long one claim of a key at most gets through to Postgres, and the others hear that it is being processed. So it is also the most by
 * which Redis is late when the owner has committed and died.
 */
const FRONT_MS = 1_000
/** For so long it is not asked after it did not answer: who waits for its timeout with each call is of no use to anybody. */
const AWAY_MS = 1_000

/**
 * Redis in front of Postgres: answers what is completed, and lets few through to what is not. It never decides anything: whatever it has
 * forgotten, and however long it is away, Postgres is asked instead.
 */
export class Front {
  readonly #context: Context
  readonly #claim: Calls
  readonly #show: Calls
  readonly #hide: Calls
  #awayUntil = 0

  constructor(context: Context) {
    this.#context = context
    this.#claim = new Calls(context, 'idempotency', idempotencyClaim)
    this.#show = new Calls(context, 'idempotency', idempotencyShow)
    this.#hide = new Calls(context, 'idempotency', idempotencyHide)
  }

  async ask(scope: Scope, token: string): Promise<Shown> {
    // Without its request: only Postgres knows whose request it is as long as it is not completed.
    const answer = await this.#unlessAway(() => this.#claim.add(scope, [scope.base], [token, NONE, FRONT_MS, FRONT_MS]))
    if (answer === undefined) return { result: 'ask' }
    const [state, ...facts] = answer as [Buffer, ...unknown[]]
    if (String(state) === 'processing') return { result: 'processing', leftMs: Number(facts[0]) }
    if (String(state) !== 'completed') return { result: 'ask' }
    const request = String(facts[0])
    return { result: 'completed', request: request === NONE ? null : request, response: String(facts[1]) }
  }

  async show(scope: Scope, of: Completed): Promise<void> {
    const { token, request, attempt, tookOver, createdMs, updatedMs, keepMs, response } = of
    const args = [token, request ?? NONE, attempt, tookOver ? 1 : 0, createdMs, updatedMs, keepMs, response]
    await this.#unlessAway(() => this.#show.add(scope, [scope.base], args))
  }

  /** So that the next who asks gets through. */
  async hide(scope: Scope): Promise<void> {
    await this.#unlessAway(() => this.#hide.add(scope, [scope.base], []))
  }

  async #unlessAway(call: () => Promise<unknown>): Promise<unknown> {
    try {
      if (performance.now() >= this.#awayUntil) return await call()
    } catch (error) {
      if (!HoldfastError.is(error, 'unavailable')) throw error
      this.#awayUntil = performance.now() + AWAY_MS
    }
    tell(this.#context, 'idempotency', 'front_away')
    return undefined
  }
}
