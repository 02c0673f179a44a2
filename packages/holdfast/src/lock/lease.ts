import { HoldfastError } from '../errors/index.js'
import type { HeldLeases } from './held-leases.js'
import type { HeldStore, HeldTerms, Loss } from './terms.js'

/** Renewed so often within its time; a renewal that failed is tried again sooner than the next one is due. */
const RENEWALS = 3
const RETRIES = 12
/**
 * By so much of its time a lease ends earlier here than in Redis: whoever works under it hears that it is over before anybody else can
 * have it, also when the two clocks do not run alike.
 */
const MARGIN = 0.05

const WHY: Readonly<Record<Loss, string>> = {
  late: 'It was not renewed in time',
  taken: 'Redis gave it to somebody else, or forgot it',
  end: 'It was held for as long as it may be',
  closed: 'Holdfast is being closed',
}

/** When a lease is over at the latest that was asked for at `askedAt`. */
export function safeUntil(askedAt: number, ttlMs: number): number {
  return askedAt + ttlMs * (1 - MARGIN)
}

/** What was taken, as Redis has it. */
export interface Taking {
  readonly store: HeldStore
  readonly owner: string
  readonly token: number
  /** Until when it is safe, by `performance.now()`. */
  readonly until: number
}

/** A lock that is held: renewed until it is given back or lost. Its end is never later here than it is in Redis. */
export class Lease {
  readonly token: number
  readonly #store: HeldStore
  readonly #owner: string
  readonly #terms: HeldTerms
  readonly #held: HeldLeases
  readonly #given: AbortSignal | undefined
  /** It is never renewed beyond this, by `performance.now()`. */
  readonly #endsAt: number
  #until: number
  /** Renewed for the last time, up to its end. */
  #atEnd = false
  /** Of the next renewal, or of the end if that comes first: most leases are short, and none needs two. */
  #timer: NodeJS.Timeout | undefined
  /** Made when somebody wants it: most leases end before anybody looks. */
  #over: AbortController | undefined
  #reason: HoldfastError | undefined
  #ended: 'released' | 'lost' | undefined
  #releasing: Promise<'released' | 'lost'> | undefined

  /** `given` is the caller's own: when it fires the work is told, and the lock stays until it has stopped. `held` are those that end with the connections. */
  constructor(
    { store, owner, token, until }: Taking,
    terms: HeldTerms,
    held: HeldLeases,
    given: AbortSignal | undefined,
  ) {
    this.token = token
    this.#store = store
    this.#owner = owner
    this.#terms = terms
    this.#held = held
    this.#given = given
    this.#until = until
    this.#endsAt = performance.now() + terms.heldMaxMs
    held.add(this)
    if (given) this.#follow(given)
    this.#wait(terms.ttlMs / RENEWALS)
  }

  /** Fires when the lock is lost, or when the signal that was given fires. */
  get signal(): AbortSignal {
    this.#over ??= new AbortController()
    if (this.#reason) this.#over.abort(this.#reason)
    return this.#over.signal
  }

  /** For how long nobody else can have it, by the clock of this process. */
  get leftMs(): number {
    return this.#ended ? 0 : Math.max(0, Math.floor(this.#until - performance.now()))
  }

  /** Has it for its time from now, but never beyond its end. If Redis does not answer, it stays what it was. */
  async renew(): Promise<'renewed' | 'lost'> {
    if (this.#ended) return 'lost'
    const askedAt = performance.now()
    // After a pause a renewal may come before the end, though both are due: what is over by our own clock is not asked for again.
    if (askedAt >= this.#until) return this.#loseLate()
    if (this.#atEnd) return 'renewed'
    const ttlMs = Math.max(1, Math.min(this.#terms.ttlMs, Math.floor(this.#endsAt - askedAt)))
    const held = await this.#store.renew(this.#owner, ttlMs)
    if (this.#ended) return 'lost'
    if (!held) {
      this.lose('taken')
      return 'lost'
    }
    this.#atEnd ||= ttlMs < this.#terms.ttlMs
    this.#until = Math.max(this.#until, safeUntil(askedAt, ttlMs))
    this.#wait(ttlMs / RENEWALS)
    return 'renewed'
  }

  lose(loss: Loss): void {
    if (this.#ended) return
    this.#end('lost')
    this.#terms.lost(loss, this.#store)
    this.#abort(new HoldfastError('lock_lost', `${this.#terms.name} was lost. ${WHY[loss]}.`))
  }

  /** Given back if it is still ours; if it was lost there is nothing to give back. */
  release(): Promise<'released' | 'lost'> {
    this.#releasing ??= this.#release()
    return this.#releasing
  }

  async #release(): Promise<'released' | 'lost'> {
    if (this.#ended === 'lost') return 'lost'
    this.#end('released')
    try {
      return (await this.#store.release(this.#owner)) ? 'released' : 'lost'
    } catch (error) {
      // May be asked for again: a lease that is not given back only lasts longer.
      this.#releasing = undefined
      throw error
    }
  }

  /** For the next renewal, in so many ms; where none is to come, for the end. */
  #wait(renewalMs: number): void {
    clearTimeout(this.#timer)
    if (this.#terms.autoRenew && !this.#atEnd) this.#timer = setTimeout(() => void this.#renewDue(), renewalMs)
    else this.#waitForEnd()
  }

  #waitForEnd(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#loseLate(), Math.max(0, this.#until - performance.now()))
  }

  async #renewDue(): Promise<void> {
    // It may be over before Redis answers.
    this.#waitForEnd()
    const outcome = await this.renew().catch(() => null)
    if (outcome !== null || this.#ended) return
    const { ttlMs } = this.#terms
    if (performance.now() + ttlMs / RETRIES < this.#until) this.#wait(ttlMs / RETRIES)
  }

  #loseLate(): 'lost' {
    this.lose(this.#atEnd ? 'end' : 'late')
    return 'lost'
  }

  readonly #onAbort = () => this.#abort(new HoldfastError('aborted'))

  #follow(given: AbortSignal): void {
    if (given.aborted) this.#onAbort()
    else given.addEventListener('abort', this.#onAbort, { once: true })
  }

  #abort(reason: HoldfastError): void {
    this.#reason ??= reason
    this.#over?.abort(this.#reason)
  }

  #end(how: 'released' | 'lost'): void {
    if (this.#ended) return
    this.#ended = how
    clearTimeout(this.#timer)
    this.#given?.removeEventListener('abort', this.#onAbort)
    this.#held.delete(this)
  }
}
