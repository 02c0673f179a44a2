import { setTimeout as sleep } from 'node:timers/promises'
import { HoldfastError } from '../../errors/index.js'
import { invalid, show } from '../../input/index.js'
import { type HeldTerms, nextOwner, safeUntil } from '../../lock/index.js'
import { backoffMs } from '../../redis/index.js'
import { damaged } from '../calls.js'
import { type Context, note, tell } from '../context.js'
import { KeySpace, type Scope } from '../keys.js'
import type { Primitives } from '../primitives.js'
import { encode, type Loaded, toJson } from './envelope.js'
import { Kept } from './kept.js'
import { type Load, runLoad } from './load.js'
import { Marker } from './marker.js'
import { type CheckedOptions, checkOptions, checkTimes, type FlightTimes, type SingleFlightOptions } from './options.js'
import { FlightStore, type Looked } from './store.js'

export interface Flown<T> {
  /** As JSON has it, also for the process that has loaded it. Each caller has a copy of its own. */
  readonly value: T
  /** `fresh` and `stale` come from Redis, `loaded` was loaded now by this process, `kept` is what it has seen last while Redis is away. */
  readonly source: 'fresh' | 'stale' | 'loaded' | 'kept'
  /** Since it was loaded. */
  readonly ageMs: number
}

/** What a caller is about. */
interface Asked extends FlightTimes {
  readonly scope: Scope
  readonly load: Load<unknown>
}

type Found = Omit<Flown<never>, 'value'> & { readonly json: string }

const POLL = { baseMs: 20, capMs: 250 }
/** After Redis did not answer it is left alone for so long: callers should not wait for a timeout each. */
const AWAY_MS = 1_000
/** A value that is declared invalid again and again while it is loaded is not loaded for ever. */
const OUTDATED_MAX = 3
/** Somebody else loads a stale value: asked no sooner than this whether that is still so. */
const CLAIM_AGAIN_MS = 100

/**
 * A value that is slow to load is loaded by one process at a time; the others get the stale one, or wait for the fresh one. Whoever has the
 * marker loads, and only what is loaded under the marker is kept.
 */
export class SingleFlight {
  readonly #context: Context
  readonly #space: KeySpace
  readonly #store: FlightStore
  readonly #options: CheckedOptions
  readonly #terms: HeldTerms
  readonly #kept: Kept
  /** What this process loads or waits for: equal calls share it. */
  readonly #flights = new Map<string, Promise<Found>>()
  /** One server is there for all scopes or for none; of a Cluster a part may be away. */
  readonly #server = { awayUntil: 0 }

  constructor({ context }: Primitives, operation: string, options: SingleFlightOptions = {}) {
    this.#options = checkOptions(options)
    this.#context = context
    this.#space = new KeySpace(context, 'flight', operation)
    this.#store = new FlightStore(context, this.#options)
    this.#kept = new Kept(this.#options.keptMax)
    const { markerMs, loadMaxMs } = this.#options
    this.#terms = {
      name: 'The marker',
      ttlMs: markerMs,
      autoRenew: true,
      // A load that takes too long is ended by its own clock, before the marker is.
      heldMaxMs: loadMaxMs + markerMs,
      lost: (loss, marker) => {
        tell(context, 'flight', 'lost')
        ;(marker as Marker).lost(loss)
      },
    }
  }

  /** The value, loaded if it is not there. The error of `load` is that of the caller whose call has loaded. */
  async get<T>(
    scope: string | readonly string[],
    load: Load<T>,
    options: Partial<FlightTimes> = {},
  ): Promise<Flown<T>> {
    if (typeof load !== 'function') throw invalid('load', 'a function', show(load))
    const asked = { scope: this.#space.scope(scope), load, ...checkTimes(options, this.#options) }
    const { json, source, ageMs } = await this.#find(asked)
    const value = this.#parse(asked, json) as T
    tell(this.#context, 'flight', source)
    return { value, source, ageMs }
  }

  /** Forgets the value, everywhere. What is being loaded meanwhile is not kept. True: there was a value. */
  async invalidate(scope: string | readonly string[]): Promise<boolean> {
    const place = this.#space.scope(scope)
    this.#kept.forget(place.hash)
    this.#flights.delete(place.hash)
    const forgotten = await this.#store.drop(place)
    // What came to be known while that was under way.
    this.#kept.forget(place.hash)
    this.#flights.delete(place.hash)
    tell(this.#context, 'flight', 'invalidated')
    return forgotten
  }

  async #find(asked: Asked): Promise<Found> {
    const owner = nextOwner()
    const askedAt = performance.now()
    const looked = await this.#look(asked, owner)
    if (looked === null) return this.#findAlone(asked)
    if (looked.type === 'value') return this.#found(asked, looked.loaded, looked.leftMs)
    // Who has the marker loads, also where this process does so already: that was declared invalid.
    if (looked.type === 'taken') return this.#fly(asked, this.#settle(asked, owner, looked, askedAt))
    const flight = this.#flights.get(asked.scope.hash)
    return flight ? this.#join(flight) : this.#fly(asked, this.#settle(asked, owner, looked, askedAt))
  }

  /** Others may load for longer than a caller waits, also others of this process. Who would load itself then waits on: it is being done. */
  async #join(flight: Promise<Found>): Promise<Found> {
    const { waitMs, afterWait } = this.#options
    if (afterWait === 'load') return flight
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(this.#late()), waitMs)
    })
    return Promise.race([flight, late]).finally(() => clearTimeout(timer))
  }

  /** Loads if that is ours to do, otherwise waits until somebody else has. */
  async #settle(asked: Asked, owner: string, first: Looked, firstAt: number): Promise<Found> {
    const deadline = firstAt + this.#options.waitMs
    let looked: Looked | null = first
    let askedAt = firstAt
    let outdated = 0
    let last: Loaded | undefined
    for (let poll = 1; ; poll += 1) {
      if (looked === null) return last ? this.#foundNow(asked, last) : this.#loadAlone(asked)
      if (looked.type === 'value') return this.#found(asked, looked.loaded, looked.leftMs)
      if (looked.type === 'failed') throw this.#failed(looked.ms)
      if (looked.type === 'taken') {
        const { loaded, isKept } = await this.#load(asked, owner, askedAt)
        if (loaded && isKept) return this.#foundNow(asked, loaded)
        last = loaded
        outdated += 1
        tell(this.#context, 'flight', 'outdated')
        if (outdated > OUTDATED_MAX) return this.#tooLate(asked)
      } else if (performance.now() >= deadline) return this.#tooLate(asked)
      else await sleep(Math.min(backoffMs(poll, POLL), Math.max(1, deadline - performance.now())))
      askedAt = performance.now()
      looked = await this.#look(asked, owner)
    }
  }

  /** Under the marker. Not kept: the marker was lost, so that what was loaded, if it was, may be outdated. */
  async #load(asked: Asked, owner: string, askedAt: number): Promise<{ loaded?: Loaded; isKept: boolean }> {
    this.#context.closing.throwIfAborted()
    const { schemaVersion, failedMs, markerMs } = this.#options
    const actions = this.#store.actions(asked.scope, failedMs)
    const marker = new Marker(actions, owner, safeUntil(askedAt, markerMs), this.#terms, this.#context.held)
    let loaded: Loaded
    try {
      loaded = await this.#run(asked, marker.signal)
    } catch (error) {
      if (marker.signal.aborted) return { isKept: false }
      await marker.fail().catch(() => {})
      this.#tellFailure(asked)
      throw error
    }
    try {
      return { loaded, isKept: await marker.put(encode(schemaVersion, loaded), loaded.ttlMs + loaded.staleMs) }
    } catch (error) {
      // Redis went away meanwhile: the value is there all the same.
      if (HoldfastError.is(error, 'unavailable')) return { loaded, isKept: true }
      throw error
    }
  }

  async #run({ load, ttlMs, staleMs }: Asked, lost: AbortSignal): Promise<Loaded> {
    const { loadMaxMs, bytesMax } = this.#options
    const startedAt = performance.now()
    const json = toJson(await runLoad(load, loadMaxMs, lost), bytesMax)
    return { json, ttlMs, staleMs, loadMs: performance.now() - startedAt }
  }

  /** Null: Redis is away. */
  async #look({ scope }: Asked, owner: string): Promise<Looked | null> {
    this.#context.closing.throwIfAborted()
    const server = this.#context.isCluster ? this.#kept.of(scope.hash) : this.#server
    const now = performance.now()
    if (now < server.awayUntil) return null
    // Whoever tries whether Redis is back does so alone.
    if (server.awayUntil > 0) server.awayUntil = now + AWAY_MS
    try {
      const looked = await this.#store.look(scope, owner, this.#options.markerMs)
      server.awayUntil = 0
      return looked
    } catch (error) {
      const isAway = HoldfastError.is(error, 'unavailable')
      server.awayUntil = isAway ? performance.now() + AWAY_MS : 0
      if (isAway) return null
      throw error
    }
  }

  #found(asked: Asked, loaded: Loaded, leftMs: number): Found {
    const { json, ttlMs, staleMs, loadMs } = loaded
    const ageMs = Math.max(0, ttlMs + staleMs - leftMs)
    this.#kept.keep(asked.scope.hash, loaded, ageMs)
    const freshMs = leftMs - staleMs
    // The nearer the end and the longer a load takes, the likelier: callers of all processes choose different moments, and a slow value
    // begins earlier than a quick one.
    const isEarly = -Math.log(Math.random()) * loadMs * this.#options.eagerness >= freshMs
    if (freshMs <= 0 || isEarly) this.#refreshLater(asked, leftMs)
    return { json, source: freshMs > 0 ? 'fresh' : 'stale', ageMs }
  }

  #foundNow({ scope }: Asked, loaded: Loaded): Found {
    this.#kept.keep(scope.hash, loaded, 0)
    return { json: loaded.json, source: 'loaded', ageMs: 0 }
  }

  /** Loads anew behind the caller's back, if nobody else does. */
  #refreshLater(asked: Asked, leftMs: number): void {
    const known = this.#kept.of(asked.scope.hash)
    const now = performance.now()
    if (this.#flights.has(asked.scope.hash) || now < known.claimAfter) return
    known.claimAfter = now + CLAIM_AGAIN_MS
    const owner = nextOwner()
    this.#store
      .claim(asked.scope, owner, this.#options.markerMs, leftMs)
      .then(async (isOurs) => {
        if (!isOurs) return
        await this.#fly(asked, this.#settle(asked, owner, { type: 'taken' }, now))
        tell(this.#context, 'flight', 'refreshed')
      })
      // A load that failed was told already; without Redis the caller has what it came for.
      .catch(() => {})
  }

  /** Without Redis: what this process has seen last, or what it loads, one at a time. */
  #findAlone(asked: Asked): Promise<Found> | Found {
    const { hash } = asked.scope
    const known = this.#kept.get(hash)
    const now = performance.now()
    if (known?.json === undefined || now >= known.staleUntil) {
      const flight = this.#flights.get(hash)
      return flight ? this.#join(flight) : this.#fly(asked, this.#loadAlone(asked))
    }
    if (now >= known.freshUntil && now >= known.failedUntil && !this.#flights.has(hash)) {
      this.#fly(asked, this.#loadAlone(asked)).catch(() => {})
    }
    return { json: known.json, source: 'kept', ageMs: Math.round(now - known.at) }
  }

  async #loadAlone(asked: Asked): Promise<Found> {
    const leftMs = this.#kept.of(asked.scope.hash).failedUntil - performance.now()
    if (leftMs > 0) throw this.#failed(Math.ceil(leftMs))
    try {
      return this.#foundNow(asked, await this.#run(asked, this.#context.closing))
    } catch (error) {
      this.#tellFailure(asked)
      throw error
    }
  }

  #fly({ scope }: Asked, flight: Promise<Found>): Promise<Found> {
    this.#flights.set(scope.hash, flight)
    const land = () => {
      if (this.#flights.get(scope.hash) === flight) this.#flights.delete(scope.hash)
    }
    flight.then(land, land)
    return flight
  }

  #tooLate(asked: Asked): Promise<Found> {
    if (this.#options.afterWait === 'load') return this.#loadAlone(asked)
    throw this.#late()
  }

  #late(): HoldfastError {
    tell(this.#context, 'flight', 'timeout')
    return new HoldfastError('timeout', `The value was not there within ${this.#options.waitMs} ms`)
  }

  #parse({ scope }: Asked, json: string): unknown {
    try {
      return JSON.parse(json)
    } catch {
      tell(this.#context, 'flight', 'damaged')
      throw damaged(scope)
    }
  }

  #failed(retryAfterMs: number): HoldfastError {
    tell(this.#context, 'flight', 'refused')
    return new HoldfastError('load_failed', undefined, { retryAfterMs })
  }

  #tellFailure({ scope }: Asked): void {
    this.#kept.of(scope.hash).failedUntil = performance.now() + this.#options.failedMs
    tell(this.#context, 'flight', 'failed')
    note(this.#context, 'flight_load_failed', scope)
  }
}
