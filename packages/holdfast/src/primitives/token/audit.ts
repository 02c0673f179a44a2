import { HoldfastError } from '../../errors/index.js'
import type { Postgres } from '../../postgres/index.js'
import { type Context, tell } from '../context.js'
import type { Scope } from '../keys.js'
import type { TokenEvent, TokenRefusal } from './contract.js'
import type { Place } from './place.js'

interface EventRow {
  readonly subject: string
  readonly token: string
  readonly event: TokenEvent['event']
  readonly because: TokenRefusal
  readonly at: string
  readonly expires_at: string
}

/** What Postgres remembers of tokens. It has the last word on whether one was used: Redis can lose that, a unique index can't. */
export class TokenAudit {
  readonly #context: Context
  readonly #postgres: Postgres

  constructor(context: Context, postgres: Postgres) {
    this.#context = context
    this.#postgres = postgres
  }

  async issued({ scope, hash }: Place, ttlMs: number): Promise<void> {
    await this.#query('issueToken', scope, [scope.hash, hash, ttlMs])
  }

  /** False: it was used by another key before, or revoked; or it was never noted. Then `because` says which. */
  async consumed({ scope, hash }: Place, key: string): Promise<{ isConsumed: boolean; because: TokenRefusal }> {
    const asked = this.#query<{ is_consumed: boolean; because: TokenRefusal }>('consumeToken', scope, [hash, key])
    const [row] = await asked.catch((error) => {
      throw HoldfastError.is(error, 'unavailable') ? usedUp(error) : error
    })
    return { isConsumed: row?.is_consumed === true, because: row?.because ?? null }
  }

  /** `known`: why, as far as Redis knows. */
  async refused({ scope, hash }: Place, known: TokenRefusal): Promise<TokenRefusal> {
    const [row] = await this.#query<{ because: TokenRefusal }>('refuseToken', scope, [hash, known])
    return row?.because ?? null
  }

  /** How many were alive until then, as far as is known here. `hash` null: all of the subject. */
  async revoked(scope: Scope, hash: string | null): Promise<number> {
    return (await this.#query('revokeTokens', scope, [scope.hash, hash])).length
  }

  async history(scope: Scope, limit: number): Promise<TokenEvent[]> {
    const rows = await this.#query<EventRow>('tokenHistory', scope, [scope.hash, limit])
    return rows.map(({ subject, token, event, because, at, expires_at }) => ({
      event,
      because,
      id: subject + token,
      at: new Date(Number(at)),
      expiresAt: new Date(Number(expires_at)),
    }))
  }

  async prune(olderThanMs: number, limit: number): Promise<number> {
    const [row] = await this.#postgres.query<{ gone: number }>('pruneTokenEvents', [
      this.#context.owner,
      olderThanMs,
      limit,
    ])
    return row?.gone ?? 0
  }

  async #query<Row extends object>(
    name: Parameters<Postgres['query']>[0],
    { space }: Scope,
    values: readonly unknown[],
  ): Promise<Row[]> {
    try {
      const of = [this.#context.owner, space.tenant, space.operation]
      return (await this.#postgres.query(name, [...of, ...values])) as Row[]
    } catch (error) {
      if (HoldfastError.is(error, 'unavailable')) tell(this.#context, 'token', 'unavailable')
      throw error
    }
  }
}

/** Whatever Postgres has done: Redis has used the token up by then, so it must not be told that nothing was done. */
function usedUp(error: HoldfastError): HoldfastError {
  const message = `${error.message}; the token may be used up for all but who comes with the same key`
  return new HoldfastError('unavailable', message, { ...error.facts, outcome: 'unknown' }, { cause: error })
}
