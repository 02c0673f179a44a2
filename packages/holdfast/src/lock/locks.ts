import { HoldfastError } from '../errors/index.js'
import { type Script, ScriptError, type ScriptRunner } from '../redis/index.js'
import { lockRelease, lockRenew, lockTake } from '../redis/scripts.generated.js'
import type { Telemetry } from '../telemetry/index.js'
import { HeldLeases } from './held-leases.js'
import { Lease } from './lease.js'
import { Taker } from './take.js'
import type { LockStore, Retry, Terms } from './terms.js'

/** Three times more, within 350 to 700 ms in all. */
const RETRY: Retry = { times: 3, baseMs: 100, capMs: 400, maxWaitMs: Number.POSITIVE_INFINITY }

/** Locks of wallets: leases in Redis, with tokens from Postgres. */
export class Locks {
  readonly #runner: ScriptRunner
  readonly #telemetry: Telemetry
  readonly #held = new HeldLeases()
  readonly #taker: Taker
  readonly #terms: Omit<Terms, 'ttlMs'>

  constructor(runner: ScriptRunner, nextToken: () => Promise<number>, telemetry: Telemetry) {
    this.#runner = runner
    this.#telemetry = telemetry
    this.#taker = new Taker(telemetry, 'wallet', this.#held)
    this.#terms = {
      name: 'The lock of the wallet',
      autoRenew: true,
      heldMaxMs: Number.POSITIVE_INFINITY,
      retry: RETRY,
      drawToken: nextToken,
      lost: () => telemetry.count?.('holdfast_locks_total', { outcome: 'lost' }),
    }
  }

  /** Tries three times more when somebody else has it, then it is `lock_busy`. `stop` ends the trying, `given` what is done under it. */
  async take(key: string, ttlMs: number, stop: AbortSignal, given: AbortSignal | undefined): Promise<Lease> {
    const taken = await this.#taker.take(this.#storeOf(key), { ...this.#terms, ttlMs }, stop, given)
    const outcome = taken instanceof Lease ? 'taken' : 'busy'
    this.#telemetry.count?.('holdfast_locks_total', { outcome })
    if (taken instanceof Lease) return taken
    throw new HoldfastError('lock_busy', undefined, { retryAfterMs: taken.busyMs })
  }

  close(): void {
    this.#held.close()
  }

  #storeOf(key: string): LockStore {
    return {
      take: async (owner, ttlMs) => {
        const busyMs = await this.#run(lockTake, key, [owner, ttlMs])
        return busyMs === 0 ? { token: null } : { busyMs }
      },
      renew: async (owner, ttlMs) => (await this.#run(lockRenew, key, [owner, ttlMs])) === 1,
      // Whoever gives it back is done with it: if this fails, its time ends it.
      release: (owner) =>
        this.#run(lockRelease, key, [owner]).then(
          (gone) => gone === 1,
          () => false,
        ),
    }
  }

  async #run(script: Script, key: string, args: readonly (string | number)[]): Promise<number> {
    try {
      const [answer] = (await this.#runner.run(script, [key], [1, ...args])) as unknown[]
      if (typeof answer === 'number') return answer
      throw new ScriptError(script.name, String(answer))
    } catch (error) {
      if (!(error instanceof ScriptError)) throw error
      throw new HoldfastError('internal_error', `The lock could not be used: ${error.message}`)
    }
  }
}
