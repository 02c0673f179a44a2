import { flightClaim, flightDrop, flightFail, flightGet, flightPut, lockRenew } from '../../redis/scripts.generated.js'
import { Calls, damaged } from '../calls.js'
import { type Context, tell } from '../context.js'
import type { Scope } from '../keys.js'
import { beginOf, decode, type Loaded } from './envelope.js'
import type { MarkerActions } from './marker.js'
import type { CheckedOptions } from './options.js'

export type Looked =
  | { readonly type: 'value'; readonly loaded: Loaded; readonly leftMs: number }
  /** It is ours to load. */
  | { readonly type: 'taken' }
  /** Somebody else loads it, and the marker stands for so long unless it is renewed. */
  | { readonly type: 'busy'; readonly ms: number }
  /** Whoever was to load it failed: nobody should try for so long. */
  | { readonly type: 'failed'; readonly ms: number }

/** The most that the values of one call may have together: while it is answered, the server answers nobody else. */
const CALL_BYTES_MAX = 8 * 1024 * 1024

/** Values and markers in Redis: `…:{scope}` is the value, `…:{scope}:marker` the marker of who loads it. */
export class FlightStore {
  readonly #context: Context
  readonly #begin: string
  readonly #get: Calls
  readonly #put: Calls
  readonly #fail: Calls
  readonly #drop: Calls
  readonly #claim: Calls
  readonly #renew: Calls

  constructor(context: Context, { schemaVersion, bytesMax }: CheckedOptions) {
    this.#context = context
    this.#begin = beginOf(schemaVersion)
    this.#get = new Calls(context, 'flight', flightGet, Math.max(1, Math.floor(CALL_BYTES_MAX / bytesMax)))
    // Values may be large, and few are put at a time.
    this.#put = new Calls(context, 'flight', flightPut, 1)
    this.#fail = new Calls(context, 'flight', flightFail)
    this.#drop = new Calls(context, 'flight', flightDrop)
    this.#claim = new Calls(context, 'flight', flightClaim)
    this.#renew = new Calls(context, 'flight', lockRenew)
  }

  /** The value; if there is none, the marker. */
  async look(scope: Scope, owner: string, markerMs: number): Promise<Looked> {
    const answer = await this.#get.add(scope, keysOf(scope), [this.#begin, owner, markerMs])
    if (!Array.isArray(answer)) return { type: 'taken' }
    const [first, second] = answer as [number, Buffer] | [Buffer, number]
    if (typeof second === 'number') return { type: String(first) === 'failed' ? 'failed' : 'busy', ms: second }
    const loaded = decode(second.toString())
    if (loaded === null) {
      tell(this.#context, 'flight', 'damaged')
      throw damaged(scope)
    }
    return { type: 'value', loaded, leftMs: first as number }
  }

  /** The marker of a value that had `leftMs` to live. False: somebody else has it, or the value is a newer one. */
  async claim(scope: Scope, owner: string, markerMs: number, leftMs: number): Promise<boolean> {
    return (await this.#claim.add(scope, keysOf(scope), [owner, markerMs, leftMs])) === 0
  }

  /** True: there was a value. */
  async drop(scope: Scope): Promise<boolean> {
    return (await this.#drop.add(scope, keysOf(scope), [])) === 1
  }

  actions(scope: Scope, failedMs: number): MarkerActions {
    const marker = [scope.key('marker')]
    return {
      renew: async (owner, ttlMs) => (await this.#renew.add(scope, marker, [owner, ttlMs])) === 1,
      put: async (owner, text, keepMs) => (await this.#put.add(scope, keysOf(scope), [owner, text, keepMs])) === 1,
      fail: async (owner) => (await this.#fail.add(scope, marker, [owner, failedMs])) === 1,
    }
  }
}

const keysOf = (scope: Scope): [string, string] => [scope.base, scope.key('marker')]
