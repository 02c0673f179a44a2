import { idempotencyClaim, idempotencyEnd, idempotencyPeek, idempotencyRenew } from '../../redis/scripts.generated.js'
import { Calls } from '../calls.js'
import type { Context } from '../context.js'
import type { Scope } from '../keys.js'
import type { RecordLook, Records, Standing, Terms } from './records.js'

/** Of a request that was not given. */
export const NONE = '-'

/** Records that Redis alone knows of: as durable as it is. */
export class RecordsInRedis implements Records {
  readonly #terms: Terms
  readonly #claim: Calls
  readonly #end: Calls
  readonly #renew: Calls
  readonly #peek: Calls

  constructor(context: Context, terms: Terms) {
    this.#terms = terms
    this.#claim = new Calls(context, 'idempotency', idempotencyClaim)
    this.#end = new Calls(context, 'idempotency', idempotencyEnd)
    this.#renew = new Calls(context, 'idempotency', idempotencyRenew)
    this.#peek = new Calls(context, 'idempotency', idempotencyPeek)
  }

  async claim(scope: Scope, token: string, request: string | null): Promise<Standing> {
    const { leaseMs, retentionMs } = this.#terms
    return readStanding(await this.#claim.add(scope, [scope.base], [token, request ?? NONE, leaseMs, retentionMs]))
  }

  async complete(scope: Scope, token: string, response: string): Promise<string | null> {
    return this.#ended(scope, token, 'COMPLETED', response)
  }

  async fail(scope: Scope, token: string, reason: string): Promise<boolean> {
    return (await this.#ended(scope, token, 'FAILED_RETRYABLE', reason)) !== null
  }

  async #ended(scope: Scope, token: string, state: string, payload: string): Promise<string | null> {
    const args = [token, state, this.#terms.retentionMs, payload]
    const [answer, kept] = (await this.#end.add(scope, [scope.base], args)) as [Buffer, Buffer?]
    return String(answer) === 'ended' ? String(kept) : null
  }

  async renew(scope: Scope, token: string): Promise<boolean> {
    const { leaseMs, retentionMs } = this.#terms
    return (await this.#renew.add(scope, [scope.base], [token, leaseMs, retentionMs])) === 1
  }

  async peek(scope: Scope): Promise<RecordLook> {
    const [state, attempt, left, payload] = (await this.#peek.add(scope, [scope.base], [])) as unknown[]
    return readLook(String(state), Number(attempt), Number(left), String(payload))
  }
}

function readStanding(answer: unknown): Standing {
  const [state, ...facts] = answer as [Buffer, ...unknown[]]
  switch (String(state)) {
    case 'claimed':
      return { result: 'claimed', attempt: Number(facts[0]), tookOver: facts[1] === 1 }
    case 'processing':
      return { result: 'processing', leftMs: Number(facts[0]) }
    case 'completed':
      return { result: 'completed', response: String(facts[1]) }
    default:
      return { result: 'conflict' }
  }
}

/** `state` as it is kept, `payload` the response or the reason. */
export function readLook(state: string, attempt: number, leftMs: number, payload: string): RecordLook {
  switch (state) {
    case 'PROCESSING':
      return { result: 'processing', attempt, leftMs }
    case 'COMPLETED':
      return { result: 'completed', attempt, response: payload }
    case 'FAILED_RETRYABLE':
      return { result: 'failed', attempt, reason: payload }
    default:
      return { result: 'free' }
  }
}
