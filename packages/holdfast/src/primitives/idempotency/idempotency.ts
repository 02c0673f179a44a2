import { HoldfastError } from '../../errors/index.js'
import {
  flag,
  integer,
  invalid,
  namesOf,
  options as optionsOf,
  show,
  signal as signalOf,
  text,
} from '../../input/index.js'
import type { CallersClient } from '../../postgres/index.js'
import { readJson } from '../calls.js'
import { type Context, durable, note, tell } from '../context.js'
import { durationMs, KeySpace, type Scope } from '../keys.js'
import { owned, ownership } from '../ownership.js'
import type { Primitives } from '../primitives.js'
import type {
  IdempotencyCall,
  IdempotencyClaim,
  IdempotencyLook,
  IdempotencyOptions,
  IdempotentRun,
  IdempotentWork,
  RunCall,
} from './contract.js'
import { RecordsInPostgres } from './in-postgres.js'
import { RecordsInRedis } from './in-redis.js'
import type { Records, Terms } from './records.js'
import { Renewal } from './renewal.js'
import { hashRequest } from './request.js'
import { encodeResponse } from './response.js'

const OPTION_NAMES = namesOf<IdempotencyOptions>({
  leaseMs: true,
  retentionMs: true,
  responseMaxBytes: true,
  durable: true,
})
const CALL_NAMES = namesOf<IdempotencyCall>({ request: true, token: true })
const RUN_NAMES = namesOf<RunCall>({ request: true, token: true, signal: true })
const FAIL_NAMES = namesOf<{ reason?: string }>({ reason: true })
const PRUNE_NAMES = namesOf<{ limit?: number }>({ limit: true })
const LEASE_MS = 30_000
const RETENTION_MS = 7 * 24 * 60 * 60 * 1_000
const RESPONSE_BYTES_MAX = 65_536
/** Up to 32 answers come in one call. */
const RESPONSE_BYTES_CAP = 262_144
const PRUNE_MAX = 10_000

/**
 * A request that comes twice has one effect and one answer. An attempt is PROCESSING under a short lease, and then COMPLETED with a
 * response that is kept for long, or FAILED_RETRYABLE: then the next may try at once. `Response` is what the work answers.
 */
export class Idempotency<Response = unknown> {
  readonly leaseMs: number
  readonly retentionMs: number
  readonly responseMaxBytes: number
  readonly #context: Context
  readonly #space: KeySpace
  readonly #records: Records
  /** Null: it is not durable. */
  readonly #kept: RecordsInPostgres | null

  constructor({ context }: Primitives, operation: string, options: IdempotencyOptions = {}) {
    const asked = optionsOf('options', options, OPTION_NAMES)
    this.leaseMs = durationMs('leaseMs', asked.leaseMs ?? LEASE_MS, 10)
    this.retentionMs = durationMs('retentionMs', asked.retentionMs ?? RETENTION_MS, this.leaseMs)
    const maxBytes = asked.responseMaxBytes ?? RESPONSE_BYTES_MAX
    this.responseMaxBytes = integer('responseMaxBytes', maxBytes, 0, RESPONSE_BYTES_CAP)
    const terms: Terms = { leaseMs: this.leaseMs, retentionMs: this.retentionMs }
    this.#context = context
    this.#space = new KeySpace(context, 'idempotency', operation, 'key')
    this.#kept = flag('durable', asked.durable)
      ? new RecordsInPostgres(context, durable(context, 'what became of a key'), terms)
      : null
    this.#records = this.#kept ?? new RecordsInRedis(context, terms)
  }

  /** Another request under the same key is `idempotency_conflict`. */
  async tryClaim(key: string | readonly string[], call: IdempotencyCall = {}): Promise<IdempotencyClaim<Response>> {
    const asked = optionsOf('options', call, CALL_NAMES)
    const request = hashRequest(this.#context.secret, this.#space, asked.request)
    const { token, hash } = ownership(this.#space, asked.token)
    const scope = this.#space.scope(key)
    const found = await this.#records.claim(scope, hash, request)
    switch (found.result) {
      case 'claimed':
        tell(this.#context, 'idempotency', found.tookOver ? 'taken_over' : 'claimed')
        if (found.tookOver) note(this.#context, 'idempotency_taken_over', scope, { attempt: found.attempt })
        return { ...found, token }
      case 'processing':
        tell(this.#context, 'idempotency', 'processing')
        return found
      case 'completed':
        tell(this.#context, 'idempotency', 'replayed')
        return { result: 'completed', response: this.#decode(scope, found.response), replayed: true }
      case 'conflict':
        tell(this.#context, 'idempotency', 'conflict')
        note(this.#context, 'idempotency_conflict', scope)
        throw new HoldfastError('idempotency_conflict')
    }
  }

  /**
   * The response is kept and answered to whoever comes with the same key. `lost`: somebody else has taken over, and theirs counts; or Redis,
   * where it is not durable, has forgotten the key.
   */
  async complete(key: string | readonly string[], token: string, response: Response): Promise<'completed' | 'lost'> {
    const json = encodeResponse(response, this.responseMaxBytes)
    return (await this.#complete(this.#space.scope(key), token, json)) === null ? 'lost' : 'completed'
  }

  /**
   * As a part of your own transaction: what it does and that the key is completed are committed together, or neither is. Who has lost the
   * key gets `claim_lost`, and that transaction can't commit any more. The client must be one of `pg` on the database of these
   * primitives.
   */
  async completeIn(
    client: CallersClient,
    key: string | readonly string[],
    token: string,
    response: Response,
  ): Promise<void> {
    const kept = this.#inPostgres()
    const json = encodeResponse(response, this.responseMaxBytes)
    const scope = this.#space.scope(key)
    try {
      await kept.completeWithin(client, scope, owned(this.#space, token).hash, json)
    } catch (error) {
      if (HoldfastError.is(error, 'claim_lost')) this.#tellEnd(scope, 'lost')
      throw error
    }
    // Not counted as completed: whether it is, the commit decides.
  }

  /** The next claim gets the key at once. `reason` is for operators: a word of yours, nothing personal. */
  async fail(
    key: string | readonly string[],
    token: string,
    call: { readonly reason?: string } = {},
  ): Promise<'failed' | 'lost'> {
    const word = text('reason', optionsOf('options', call, FAIL_NAMES).reason ?? 'failed')
    const scope = this.#space.scope(key)
    const isOurs = await this.#records.fail(scope, owned(this.#space, token).hash, word)
    return this.#tellEnd(scope, isOurs ? 'failed' : 'lost')
  }

  /** Another lease from now. */
  async renew(key: string | readonly string[], token: string): Promise<'renewed' | 'lost'> {
    const scope = this.#space.scope(key)
    const isOurs = await this.#records.renew(scope, owned(this.#space, token).hash)
    return this.#tellEnd(scope, isOurs ? 'renewed' : 'lost')
  }

  /** Without claiming. */
  async peek(key: string | readonly string[]): Promise<IdempotencyLook<Response>> {
    const scope = this.#space.scope(key)
    const look = await this.#records.peek(scope)
    return look.result === 'completed' ? { ...look, response: this.#decode(scope, look.response) } : look
  }

  /**
   * Claims the key, works, and completes it; or answers what is there already. What `work` throws ends the attempt as one that may be
   * tried again, and is thrown on. The lease is renewed while it works; when it is lost, `signal` fires, and in the end it is `claim_lost`.
   * After `completeIn` only the commit completes it: without one the attempt has failed. Everybody gets the response as JSON brings it back,
   * also the first.
   */
  async run(
    key: string | readonly string[],
    call: RunCall,
    work: (work: IdempotentWork<Response>) => Promise<Response> | Response,
  ): Promise<IdempotentRun<Response>> {
    if (typeof work !== 'function') throw invalid('work', 'a function', show(work))
    const { signal, ...asked } = optionsOf('options', call, RUN_NAMES)
    const given = signalOf(signal)
    if (given?.aborted) throw new HoldfastError('aborted')
    const askedAt = performance.now()
    const claim = await this.tryClaim(key, asked)
    if (claim.result !== 'claimed') return claim
    const { token, attempt, tookOver } = claim
    if (given?.aborted) {
      await this.fail(key, token, { reason: 'aborted' }).catch(() => {})
      throw new HoldfastError('aborted')
    }
    const renew = async () => (await this.renew(key, token)) === 'renewed'
    const renewal = new Renewal(this.leaseMs, askedAt, renew, given)
    let isLeftToCommit = false
    const completeIn = async (client: CallersClient, response: Response) => {
      await this.completeIn(client, key, token, response)
      isLeftToCommit = true
      // From here to its end the transaction has the row locked, so nobody takes over, and a renewal would only wait for it.
      renewal.stop()
    }
    let response: Response
    try {
      response = await work({ signal: renewal.signal, token, attempt, tookOver, completeIn })
      renewal.end()
    } catch (error) {
      renewal.end()
      // If this fails too, the lease ends it.
      await this.fail(key, token, { reason: reasonOf(error) }).catch(() => {})
      throw error
    }
    const kept = isLeftToCommit ? await this.#committed(key, token) : await this.#finish(key, token, response)
    return { result: 'completed', response: kept, replayed: false }
  }

  /** Removes rows of Postgres that have expired, of all operations: `limit` at most, which is 1,000 unless it is given. How many it were. */
  async prune(call: { readonly limit?: number } = {}): Promise<number> {
    const limit = integer('limit', optionsOf('options', call, PRUNE_NAMES).limit ?? 1_000, 1, PRUNE_MAX)
    return this.#inPostgres().prune(limit)
  }

  #inPostgres(): RecordsInPostgres {
    if (this.#kept !== null) return this.#kept
    throw invalid('durable', 'true, since this is about what Postgres keeps', 'false')
  }

  /** What was done must not be done again because its response can't be kept: then the key is completed without one. */
  async #finish(key: string | readonly string[], token: string, response: Response): Promise<Response> {
    const scope = this.#space.scope(key)
    let json = ''
    let failure: unknown
    try {
      json = encodeResponse(response, this.responseMaxBytes)
    } catch (error) {
      failure = error
    }
    const kept = await this.#complete(scope, token, json)
    if (kept === null) throw new HoldfastError('claim_lost')
    if (failure !== undefined && kept === '') throw failure
    return this.#decode(scope, kept)
  }

  async #committed(key: string | readonly string[], token: string): Promise<Response> {
    const scope = this.#space.scope(key)
    const committed = this.#inPostgres().committed(scope, owned(this.#space, token).hash)
    const kept = await committed.catch(async (error) => {
      // What was committed is not undone by this.
      await this.fail(key, token, { reason: 'not_committed' }).catch(() => {})
      throw error
    })
    this.#tellEnd(scope, kept === null ? 'lost' : 'completed')
    if (kept === null) throw new HoldfastError('claim_lost')
    return this.#decode(scope, kept)
  }

  async #complete(scope: Scope, token: string, json: string): Promise<string | null> {
    const kept = await this.#records.complete(scope, owned(this.#space, token).hash, json)
    this.#tellEnd(scope, kept === null ? 'lost' : 'completed')
    return kept
  }

  /** Nothing where there was none. */
  #decode(scope: Scope, json: string): Response {
    return (json === '' ? undefined : readJson(this.#context, scope, json)) as Response
  }

  #tellEnd<Result extends string>(scope: Scope, result: Result): Result {
    tell(this.#context, 'idempotency', result)
    if (result === 'lost') note(this.#context, 'idempotency_lost', scope)
    return result
  }
}

/** Its code or its name, never its message: that may be about a person. Whatever else it is, it must not cost the end of the attempt. */
function reasonOf(error: unknown): string {
  try {
    if (error instanceof HoldfastError) return error.code
    const name: unknown = error instanceof Error ? error.name : ''
    return typeof name === 'string' && /^\w{1,64}$/.test(name) ? name : 'failed'
  } catch {
    return 'failed'
  }
}
