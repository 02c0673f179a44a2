import type { Loaded } from './envelope.js'

/** What this process knows of a scope, by its own clock (`performance.now()`). */
export interface Known {
  /** The last value that was seen. */
  json?: string
  at: number
  freshUntil: number
  staleUntil: number
  /** Nobody loads in this process before. */
  failedUntil: number
  /** Redis did not answer: it is not asked before. */
  awayUntil: number
  /** Redis is not asked for the marker before: somebody else had it. */
  claimAfter: number
}

/** The last values of a process, for when Redis is away. Bounded: who was not used for longest goes first. */
export class Kept {
  readonly #max: number
  readonly #known = new Map<string, Known>()

  constructor(max: number) {
    this.#max = max
  }

  get(hash: string): Known | undefined {
    return this.#known.get(hash)
  }

  of(hash: string): Known {
    const known = this.#known.get(hash) ?? nothing()
    this.#known.delete(hash)
    this.#known.set(hash, known)
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= this.#max) break
      this.#known.delete(oldest)
    }
    return known
  }

  /** `ageMs` ago it was loaded. */
  keep(hash: string, { json, ttlMs, staleMs }: Loaded, ageMs: number): void {
    const known = this.of(hash)
    known.json = json
    known.at = performance.now() - ageMs
    known.freshUntil = known.at + ttlMs
    known.staleUntil = known.freshUntil + staleMs
    known.failedUntil = 0
  }

  forget(hash: string): void {
    this.#known.delete(hash)
  }
}

const nothing = (): Known => ({ at: 0, freshUntil: 0, staleUntil: 0, failedUntil: 0, awayUntil: 0, claimAfter: 0 })
