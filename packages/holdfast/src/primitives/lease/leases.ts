import { HoldfastError } from '../../errors/index.js'
import { invalid, options as optionsOf, show, signal as signalOf } from '../../input/index.js'
import { type Busy, Lease, Taker, type Terms } from '../../lock/index.js'
import { type Context, durable, note, tell } from '../context.js'
import { connected } from '../keys.js'
import type { Primitives } from '../primitives.js'
import {
  ACQUIRE_NAMES,
  type AcquireOptions,
  checkTerms,
  checkTokens,
  LEASES_NAMES,
  type LeasesOptions,
  TERMS,
  type TokenSource,
} from './options.js'
import { QuorumStore, SERVERS_MAX, SERVERS_MIN } from './quorum.js'
import { Server, ServerStore } from './store.js'

/** A lease that is held. */
export interface HeldLease {
  /** Grows from one holder to the next. What you write to can refuse a smaller one than it has seen: that came too late. */
  readonly token: number
  /** Fires when the lease is lost, a little before anybody else can have it; or when the signal that was given fires. */
  readonly signal: AbortSignal
  /** For how long nobody else can have it, by the clock of this process: 0 when it is lost or given back. */
  readonly leftMs: number
  /** Has it for `ttlMs` from now, but not beyond `heldMaxMs`. If Redis does not answer that is `unavailable`, and it lasts as before. */
  renew(): Promise<'renewed' | 'lost'>
  /** Gives it back, if it is still ours. If Redis does not answer that is `unavailable`, and its time ends it. */
  release(): Promise<'released' | 'lost'>
}

export type Acquired =
  | { readonly result: 'acquired'; readonly lease: HeldLease }
  /** Somebody else has it: for so long at most, unless it is renewed. */
  | { readonly result: 'busy'; readonly leftMs: number }

export type Used<T> =
  /** The work was done. `ended` is what became of the lease: `unknown` means that Redis did not say, and that its time ends it. */
  | { readonly result: 'done'; readonly value: T; readonly ended: 'released' | 'lost' | 'unknown' }
  | { readonly result: 'busy'; readonly leftMs: number }

type Store = ServerStore | QuorumStore

/**
 * Leases: one holder at a time, for a time, with a token that grows from one holder to the next. On one Redis, or on a majority of several
 * that know nothing of each other.
 */
export class Leases {
  /** Where tokens come from, and so what they are worth when Redis forgets. */
  readonly tokens: TokenSource
  readonly #context: Context
  readonly #servers: readonly Server[]
  readonly #terms: Terms
  readonly #taker: Taker

  /** Several `Primitives` are several Redis servers: a lease is then had where more than half of them give it. */
  constructor(primitives: Primitives | readonly Primitives[], operation: string, options: LeasesOptions = {}) {
    const contexts = contextsOf(primitives)
    const context = contexts[0] as Context
    const withPostgres = contexts.find(({ postgres }) => postgres !== null)
    this.tokens = checkTokens(optionsOf('options', options, LEASES_NAMES).tokens, withPostgres !== undefined)
    this.#context = context
    this.#servers = contexts.map((one) => new Server(one, operation))
    this.#terms = {
      ...checkTerms(options, TERMS),
      name: 'The lease',
      drawToken: this.tokens === 'redis' ? null : tokensOf(withPostgres ?? context),
      lost: (loss, store) => {
        tell(context, 'lease', 'lost')
        note(context, 'lease_lost', (store as Store).scope, { loss })
      },
    }
    this.#taker = new Taker(context.telemetry, contexts.length > 1 ? 'quorum' : 'lease', context.held)
  }

  /** Not reentrant: who has it and asks again is as anybody else. */
  async acquire(scope: string | readonly string[], options: AcquireOptions = {}): Promise<Acquired> {
    const asked = optionsOf('options', options, ACQUIRE_NAMES)
    const terms = checkTerms(asked, this.#terms)
    const signal = signalOf(asked.signal)
    const store = this.#storeOf(scope)
    const taking = this.#taker.take(store, terms, signal, signal)
    const taken = signal ? await unlessAborted(taking, signal) : await taking
    if (!(taken instanceof Lease)) {
      tell(this.#context, 'lease', 'busy')
      return { result: 'busy', leftMs: taken.busyMs }
    }
    tell(this.#context, 'lease', 'acquired')
    return { result: 'acquired', lease: taken }
  }

  /** Works under a lease, and gives it back. The result of the work is yours also when the lease was lost: only the work knows what it did. */
  async using<T>(
    scope: string | readonly string[],
    work: (lease: HeldLease) => T | Promise<T>,
    options: AcquireOptions = {},
  ): Promise<Used<T>> {
    if (typeof work !== 'function') throw invalid('work', 'a function', show(work))
    const acquired = await this.acquire(scope, options)
    if (acquired.result === 'busy') return acquired
    const { lease } = acquired
    let value: T
    try {
      value = await work(lease)
    } catch (error) {
      await lease.release().catch(() => {})
      throw error
    }
    return { result: 'done', value, ended: await lease.release().catch(() => 'unknown' as const) }
  }

  #storeOf(scope: string | readonly string[]): Store {
    const hasTokens = this.tokens === 'redis'
    const [server] = this.#servers as [Server]
    if (this.#servers.length === 1) return new ServerStore(server, scope, hasTokens)
    const stores = this.#servers.map((one) => new ServerStore(one, scope, hasTokens))
    return new QuorumStore(stores, hasTokens)
  }
}

function contextsOf(given: Primitives | readonly Primitives[]): readonly Context[] {
  if (!Array.isArray(given)) return [connected((given as Primitives).context)]
  const contexts = (given as readonly Primitives[]).map(({ context }) => connected(context))
  // Two of the same would vote twice. Even numbers bear no more losses than one less, and only cost.
  const isOdd = contexts.length % 2 === 1
  const runners = new Set(contexts.map(({ runner }) => runner))
  if (!isOdd || runners.size < contexts.length || runners.size < SERVERS_MIN || runners.size > SERVERS_MAX) {
    const expected = `one, or an odd number of different ones from ${SERVERS_MIN} to ${SERVERS_MAX}`
    throw invalid('primitives', expected, `${contexts.length}, ${runners.size} of them different`)
  }
  return contexts
}

/** The sequence that the locks of wallets draw from too: its tokens are unique in a database, and have gaps. */
function tokensOf(context: Context): () => Promise<number> {
  const postgres = durable(context, 'the token')
  return async () => {
    const [row] = await postgres.query<{ token: string }>('nextLockToken', [])
    return Number(row?.token)
  }
}

/** Whoever stopped waiting must not keep what may still come. */
async function unlessAborted(taking: Promise<Lease | Busy>, signal: AbortSignal): Promise<Lease | Busy> {
  let stop = () => {}
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(new HoldfastError('aborted'))
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })
  try {
    return await Promise.race([taking, aborted])
  } catch (error) {
    taking.then((late) => (late instanceof Lease ? late.release() : undefined)).catch(() => {})
    throw error
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
