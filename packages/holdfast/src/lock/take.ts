import { setTimeout as sleep } from 'node:timers/promises'
import { HoldfastError } from '../errors/index.js'
import { backoffMs } from '../redis/index.js'
import type { Telemetry } from '../telemetry/index.js'
import type { HeldLeases } from './held-leases.js'
import { Lease, safeUntil } from './lease.js'
import { nextOwner } from './owner.js'
import type { Busy, LockStore, Retry, Terms } from './terms.js'

/** Whose locks they are, for metrics. */
export type LockKind = 'wallet' | 'lease' | 'quorum'

/**
 * Takes locks.
 *
 *     take  ─▶  token (Postgres)  ─▶  renew: still ours  ─▶  work, renewed now and then  ─▶  release
 *
 * The token is drawn after the lock was taken, and counts only if the lock was still ours after that. So whoever takes the lock later draws
 * later, and has the larger token, also when Redis has forgotten everything in between. Drawn before, it could be used much later. A
 * store that draws tokens itself does so while it takes the lock, in one step: then two of these steps fall away.
 */
export class Taker {
  readonly #telemetry: Telemetry
  readonly #kind: LockKind
  readonly #held: HeldLeases

  constructor(telemetry: Telemetry, kind: LockKind, held: HeldLeases) {
    this.#telemetry = telemetry
    this.#kind = kind
    this.#held = held
  }

  /** `stop` ends the trying, `given` what is done under the lock. */
  async take(
    store: LockStore,
    terms: Terms,
    stop: AbortSignal | undefined,
    given: AbortSignal | undefined,
  ): Promise<Lease | Busy> {
    const telemetry = this.#telemetry
    telemetry.count?.('redis_lock_attempts_total', { of: this.#kind })
    try {
      let taken = await this.#try(store, terms, stop, given)
      if (!(taken instanceof Lease) && terms.retry) {
        taken = await this.#persist(taken, terms.retry, stop, () => this.#try(store, terms, stop, given))
      }
      if (taken instanceof Lease) telemetry.count?.('redis_lock_success_total', { of: this.#kind })
      else telemetry.count?.('redis_lock_failure_total', { of: this.#kind, reason: 'busy' })
      return taken
    } catch (error) {
      const reason = HoldfastError.is(error) ? error.code : 'internal_error'
      telemetry.count?.('redis_lock_failure_total', { of: this.#kind, reason })
      throw error
    }
  }

  async #persist(
    busy: Busy,
    retry: Retry,
    stop: AbortSignal | undefined,
    attempt: () => Promise<Lease | Busy>,
  ): Promise<Lease | Busy> {
    let taken: Lease | Busy = busy
    const endsAt = performance.now() + retry.maxWaitMs
    for (let time = 1; time <= retry.times && !(taken instanceof Lease); time += 1) {
      const waitMs = backoffMs(time, retry)
      if (performance.now() + waitMs > endsAt) break
      await sleep(waitMs, undefined, stop && { signal: stop }).catch(() => {})
      taken = await attempt()
    }
    return taken
  }

  /** Each try has an owner of its own: what an earlier one has sent, and arrives late, must not give back what this one has. */
  async #try(
    store: LockStore,
    terms: Terms,
    stop: AbortSignal | undefined,
    given: AbortSignal | undefined,
  ): Promise<Lease | Busy> {
    this.#throwIfClosed()
    throwIfStopped(stop)
    const { ttlMs, drawToken } = terms
    const owner = nextOwner()
    let askedAt = performance.now()
    const taken = await store.take(owner, ttlMs)
    if ('busyMs' in taken) return taken
    try {
      let { token } = taken
      let held = true
      if (drawToken !== null) {
        token = await drawToken()
        throwIfStopped(stop)
        askedAt = performance.now()
        held = await store.renew(owner, ttlMs)
      }
      throwIfStopped(stop)
      this.#throwIfClosed()
      const until = safeUntil(askedAt, ttlMs)
      // Lost before it was used, by a pause or because Redis forgot it: as good as busy.
      if (!held || performance.now() >= until) {
        void store.release(owner).catch(() => {})
        return { busyMs: ttlMs }
      }
      return new Lease({ store, owner, token: token as number, until }, terms, this.#held, given)
    } catch (error) {
      // Nobody should wait for what nobody uses. If this fails too, its time ends it.
      void store.release(owner).catch(() => {})
      throw error
    }
  }

  #throwIfClosed(): void {
    if (this.#held.isClosed) throw new HoldfastError('unavailable', 'Holdfast is being closed')
  }
}

/** What stopped it may say why in our words. */
function throwIfStopped(stop: AbortSignal | undefined): void {
  if (!stop?.aborted) return
  throw HoldfastError.is(stop.reason) ? stop.reason : new HoldfastError('aborted')
}
