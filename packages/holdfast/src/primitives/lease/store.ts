import type { LockStore, Taken } from '../../lock/index.js'
import { leaseRaise, leaseTake, lockRelease, lockRenew, lockTake } from '../../redis/scripts.generated.js'
import { Calls } from '../calls.js'
import type { Context } from '../context.js'
import { KeySpace, type Scope } from '../keys.js'

/** The leases of one operation on one server. */
export class Server {
  readonly space: KeySpace
  readonly take: Calls
  readonly takeWithToken: Calls
  readonly renew: Calls
  readonly raise: Calls
  readonly release: Calls

  constructor(context: Context, operation: string) {
    this.space = new KeySpace(context, 'lease', operation)
    this.take = new Calls(context, 'lease', lockTake)
    this.takeWithToken = new Calls(context, 'lease', leaseTake)
    this.renew = new Calls(context, 'lease', lockRenew)
    this.raise = new Calls(context, 'lease', leaseRaise)
    this.release = new Calls(context, 'lease', lockRelease)
  }
}

/** One lease on one server: `…:{scope}` is the lock, `…:{scope}:token` the last token. */
export class ServerStore implements LockStore {
  readonly scope: Scope
  readonly #server: Server
  readonly #hasTokens: boolean

  constructor(server: Server, of: string | readonly string[], hasTokens: boolean) {
    this.#server = server
    this.scope = server.space.scope(of)
    this.#hasTokens = hasTokens
  }

  async take(owner: string, ttlMs: number): Promise<Taken> {
    const { scope } = this
    const answer = this.#hasTokens
      ? await this.#server.takeWithToken.add(scope, this.#both, [owner, ttlMs])
      : await this.#server.take.add(scope, [scope.base], [owner, ttlMs])
    if (answer === 0) return { token: null }
    return typeof answer === 'number' ? { busyMs: answer } : { token: Number(answer) }
  }

  async renew(owner: string, ttlMs: number): Promise<boolean> {
    return (await this.#server.renew.add(this.scope, [this.scope.base], [owner, ttlMs])) === 1
  }

  /** Renews it, and the next token here is larger than this one. False: it is not the owner's any more. */
  async raise(owner: string, ttlMs: number, token: number): Promise<boolean> {
    return (await this.#server.raise.add(this.scope, this.#both, [owner, ttlMs, token])) === 1
  }

  async release(owner: string): Promise<boolean> {
    return (await this.#server.release.add(this.scope, [this.scope.base], [owner])) === 1
  }

  get #both(): [string, string] {
    return [this.scope.base, this.scope.key('token')]
  }
}
