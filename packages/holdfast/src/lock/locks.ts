import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { HoldfastError } from '../errors/index.js'
import { type Backoff, backoffMs, ScriptError, type ScriptRunner } from '../redis/index.js'
import { lockRelease, lockRenew, lockTake } from '../redis/scripts.generated.js'
import type { Telemetry } from '../telemetry/index.js'
import { Lease, safeUntil } from './lease.js'

const RETRIES_MAX = 3
const RETRY: Backoff = { baseMs: 100, capMs: 400 }

/**
 * Locks of wallets: leases in Redis, with tokens from Postgres.
 *
 *     take (Redis)  ─▶  token (Postgres)  ─▶  renew (Redis): still ours  ─▶  work, renewed now and then  ─▶  release
 *
 * The token is drawn after the lock was taken, and counts only if the lock was still ours after that. So whoever takes the lock later draws
 * later, and has the larger token, also when Redis has forgotten everything in between. Drawn before, it could be used much later;
 * counted in Redis, it would begin anew after a loss.
 */
export class Locks {
  readonly #runner: ScriptRunner
  readonly #nextToken: () => Promise<number>
  readonly #telemetry: Telemetry
  readonly #leases = new Set<Lease>()
  #closed = false

  constructor(runner: ScriptRunner, nextToken: () => Promise<number>, telemetry: Telemetry) {
    this.#runner = runner
    this.#nextToken = nextToken
    this.#telemetry = telemetry
  }

  /** Tries three times more when somebody else has it, then it is `lock_busy`. `stop` ends the trying, `given` what is done under it. */
  async take(key: string, ttlMs: number, stop: AbortSignal, given: AbortSignal | undefined): Promise<Lease> {
    const owner = randomBytes(16).toString('hex')
    for (let retry = 1; ; retry += 1) {
      if (this.#closed) throw new HoldfastError('unavailable', 'Holdfast is being closed')
      stop.throwIfAborted()
      const busyMs = await this.#tryTake(key, owner, ttlMs, stop, given)
      if (typeof busyMs !== 'number') return busyMs
      if (retry > RETRIES_MAX) {
        this.#telemetry.count?.('holdfast_locks_total', { outcome: 'busy' })
        throw new HoldfastError('lock_busy', undefined, { retryAfterMs: busyMs })
      }
      await sleep(backoffMs(retry, RETRY), undefined, { signal: stop }).catch(() => {})
    }
  }

  /** Otherwise for how long somebody else has it at most, unless it is renewed. */
  async #tryTake(
    key: string,
    owner: string,
    ttlMs: number,
    stop: AbortSignal,
    given: AbortSignal | undefined,
  ): Promise<Lease | number> {
    const busyMs = await this.#run(lockTake, key, [owner, ttlMs])
    if (busyMs > 0) return busyMs
    try {
      const token = await this.#nextToken()
      stop.throwIfAborted()
      const askedAt = performance.now()
      const held = (await this.#run(lockRenew, key, [owner, ttlMs])) === 1
      stop.throwIfAborted()
      const until = safeUntil(askedAt, ttlMs)
      // Lost before it was used, by a pause or because Redis forgot it: as good as busy.
      if (!held || performance.now() >= until) return ttlMs
      return this.#begin(key, owner, { token, ttlMs, until }, given)
    } catch (error) {
      // Nobody should wait for what nobody uses. If this fails too, its time ends it.
      void this.#run(lockRelease, key, [owner]).catch(() => {})
      throw error
    }
  }

  #begin(
    key: string,
    owner: string,
    facts: { token: number; ttlMs: number; until: number },
    given: AbortSignal | undefined,
  ): Lease {
    this.#telemetry.count?.('holdfast_locks_total', { outcome: 'taken' })
    const lease: Lease = new Lease(
      {
        ...facts,
        renew: async () => (await this.#run(lockRenew, key, [owner, facts.ttlMs])) === 1,
        release: async () => {
          this.#leases.delete(lease)
          await this.#run(lockRelease, key, [owner]).catch(() => {})
        },
        lost: () => {
          this.#leases.delete(lease)
          this.#telemetry.count?.('holdfast_locks_total', { outcome: 'lost' })
        },
      },
      given,
    )
    this.#leases.add(lease)
    return lease
  }

  /** Without connections nothing can be renewed: work under a lock is told so. Others can have it when its time is over. */
  close(): void {
    this.#closed = true
    for (const lease of this.#leases) lease.lose('Holdfast is being closed')
  }

  async #run(script: typeof lockTake, key: string, args: readonly (string | number)[]): Promise<number> {
    try {
      return Number(await this.#runner.run(script, [key], args))
    } catch (error) {
      if (!(error instanceof ScriptError)) throw error
      throw new HoldfastError('internal_error', `The lock could not be used: ${error.message}`)
    }
  }
}
