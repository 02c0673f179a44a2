import { HoldfastError } from 'holdfast'
import type { ServerTelemetry } from '../metrics/index.js'
import type { ApiKey, ApiKeys } from './api-keys.js'
import type { Caller } from './caller.js'
import { Keyring } from './keyring.js'
import { LargeBodies } from './large-bodies.js'
import { Limiter, type Limits } from './limiter.js'
import { TOKEN_PREFIX, type TokenClaims, TokenSigner } from './wallet-token.js'

export interface GateOptions extends Limits {
  readonly telemetry: ServerTelemetry
}

/** Where every request to `/v1` comes in: who is it, and not too often? */
export class Gate {
  readonly #keyring: Keyring
  readonly #signer: TokenSigner
  readonly #limiter = new Limiter()
  readonly #large = new LargeBodies()
  readonly #limits: Limits

  constructor(keys: ApiKeys, { telemetry, rateMax, concurrentMax }: GateOptions) {
    this.#keyring = new Keyring(keys, telemetry)
    this.#signer = new TokenSigner(keys.secret)
    this.#limits = { rateMax, concurrentMax }
  }

  /** At once where the key is known. */
  identify(authorization: string | undefined): Caller | Promise<Caller> {
    const text = /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1]
    if (text === undefined) {
      const got = authorization === undefined ? 'nothing' : 'something else'
      throw new HoldfastError('unauthenticated', `authorization: expected Bearer and a key or token, got ${got}`)
    }
    return text.startsWith(TOKEN_PREFIX) ? this.#byToken(text) : this.#byKey(text)
  }

  /** Lets the request in, and gives back how to let it out again: once. */
  enter(caller: Caller): () => void {
    const name = nameOf(caller)
    this.#limiter.enter(name, this.#limitsOf(caller))
    return () => this.#limiter.leave(name)
  }

  /** For a request with a large body, beside that. */
  enterLarge({ tenant }: Caller): () => void {
    return this.#large.enter(tenant)
  }

  /** Beside the one that came in with the request. */
  spend(caller: Caller, count: number): void {
    this.#limiter.spend(nameOf(caller), this.#limitsOf(caller), count)
  }

  sign(claims: TokenClaims): string {
    return this.#signer.sign(claims)
  }

  async close(): Promise<void> {
    await this.#keyring.close()
  }

  #byKey(text: string): Caller | Promise<Caller> {
    const key = this.#keyring.verify(text)
    return key instanceof Promise ? key.then(callerOf) : callerOf(key)
  }

  async #byToken(text: string): Promise<Caller> {
    const { keyId, wallet, scopes } = this.#signer.read(text)
    const key = await this.#keyring.byId(keyId)
    return { ...callerOf(key), kind: 'token', wallet, scopes: scopes.filter((scope) => key.scopes.includes(scope)) }
  }

  #limitsOf({ rateMax, concurrentMax }: Caller): Limits {
    return {
      rateMax: rateMax ?? this.#limits.rateMax,
      concurrentMax: concurrentMax ?? this.#limits.concurrentMax,
    }
  }
}

/** A key is read anew every now and then, and used thousands of times in between. */
const callers = new WeakMap<ApiKey, Caller>()

function callerOf(key: ApiKey): Caller {
  const known = callers.get(key)
  if (known) return known
  const { id: keyId, tenant, scopes, walletPrefix, rateMax, concurrentMax, bodyMaxBytes } = key
  const limits = { rateMax, concurrentMax, bodyMaxBytes }
  const caller: Caller = { kind: 'key', keyId, tenant, scopes, wallet: null, walletPrefix, ...limits }
  callers.set(key, caller)
  return caller
}

/** A browser that floods uses up its own wallet's share, not that of the backend behind it. */
const nameOf = ({ keyId, wallet }: Caller): string => (wallet === null ? keyId : `${keyId} ${wallet}`)
