import { namesOf, options as optionsOf } from '../../input/index.js'
import { markerClaim, markerExtend, markerPeek, markerRelease } from '../../redis/scripts.generated.js'
import { Calls } from '../calls.js'
import { type Context, note, tell } from '../context.js'
import { durationMs, KeySpace, type Scope } from '../keys.js'
import { owned, ownership } from '../ownership.js'
import type { Primitives } from '../primitives.js'

export interface MarkerOptions {
  /** For how long a marker stands. Default 7 days: right for "this was done already". For work that may die, a little more than it takes. */
  readonly ttlMs?: number
}

const OPTION_NAMES = namesOf<MarkerOptions>({ ttlMs: true })

export interface MarkerClaimCall {
  /** For how long this one stands. Default as for all. */
  readonly ttlMs?: number
  /** One of your own, unique to this claim: the same claim made again is claimed again. Default a random one. */
  readonly token?: string
}

const CLAIM_NAMES = namesOf<MarkerClaimCall>({ ttlMs: true, token: true })

export type MarkerClaim =
  /** You are the first. The token is what you release or extend it with. */
  | { readonly result: 'claimed'; readonly token: string }
  /** Somebody else was; it stands for so long at most, unless it is extended. */
  | { readonly result: 'exists'; readonly leftMs: number }

export type MarkerLook = { readonly result: 'free' } | { readonly result: 'exists'; readonly leftMs: number }

const WEEK_MS = 7 * 24 * 60 * 60 * 1_000

/** The first of many who want to do something may, and the others hear that somebody was first: until a time is over. */
export class Marker {
  readonly ttlMs: number
  readonly #context: Context
  readonly #space: KeySpace
  readonly #claim: Calls
  readonly #extend: Calls
  readonly #release: Calls
  readonly #peek: Calls

  constructor({ context }: Primitives, operation: string, options: MarkerOptions = {}) {
    this.ttlMs = durationMs('ttlMs', optionsOf('options', options, OPTION_NAMES).ttlMs ?? WEEK_MS)
    this.#context = context
    this.#space = new KeySpace(context, 'marker', operation)
    this.#claim = new Calls(context, 'marker', markerClaim)
    this.#extend = new Calls(context, 'marker', markerExtend)
    this.#release = new Calls(context, 'marker', markerRelease)
    this.#peek = new Calls(context, 'marker', markerPeek)
  }

  /** `claimed` with the token that extends and releases it, or `exists`: somebody was first. */
  async tryClaim(scope: string | readonly string[], call: MarkerClaimCall = {}): Promise<MarkerClaim> {
    const asked = optionsOf('options', call, CLAIM_NAMES)
    const ttlMs = durationMs('ttlMs', asked.ttlMs ?? this.ttlMs)
    const { token, hash } = ownership(this.#space, asked.token)
    const place = this.#space.scope(scope)
    const leftMs = Number(await this.#claim.add(place, [place.base], [hash, ttlMs]))
    tell(this.#context, 'marker', leftMs === 0 ? 'claimed' : 'exists')
    return leftMs === 0 ? { result: 'claimed', token } : { result: 'exists', leftMs }
  }

  /** From now on for `ttlMs`. `lost`: its time was over before, and by now it may be somebody else's. */
  async extend(
    scope: string | readonly string[],
    token: string,
    call: Pick<MarkerClaimCall, 'ttlMs'> = {},
  ): Promise<'extended' | 'lost'> {
    const ttlMs = durationMs('ttlMs', optionsOf('options', call, OPTION_NAMES).ttlMs ?? this.ttlMs)
    const { hash } = owned(this.#space, token)
    const place = this.#space.scope(scope)
    const isOurs = (await this.#extend.add(place, [place.base], [hash, ttlMs])) === 1
    return this.#told(place, isOurs ? 'extended' : 'lost')
  }

  /** `lost`: it is not yours any more, and stays as it is. So it is also when the answer to a first release got lost on its way. */
  async release(scope: string | readonly string[], token: string): Promise<'released' | 'lost'> {
    const { hash } = owned(this.#space, token)
    const place = this.#space.scope(scope)
    const isOurs = (await this.#release.add(place, [place.base], [hash])) === 1
    return this.#told(place, isOurs ? 'released' : 'lost')
  }

  /** Without claiming. What it says may be over when you read it: to decide, claim. */
  async peek(scope: string | readonly string[]): Promise<MarkerLook> {
    const place = this.#space.scope(scope)
    const leftMs = Number(await this.#peek.add(place, [place.base], []))
    return leftMs === 0 ? { result: 'free' } : { result: 'exists', leftMs }
  }

  #told<Result extends string>(place: Scope, result: Result): Result {
    tell(this.#context, 'marker', result)
    if (result === 'lost') note(this.#context, 'marker_lost', place)
    return result
  }
}
