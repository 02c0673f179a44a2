import { HoldfastError } from '../errors/index.js'
import type { SessionReceipt, TickOptions } from './session.js'
import type { Begun } from './session-state.js'
import { OPERATION_NAMES } from './tenant.js'
import * as check from './validate.js'

export interface StreamOptions<T> extends Omit<TickOptions, 'total'> {
  /** How many units a chunk is. Default: one. */
  readonly units?: (chunk: T) => number
  /** After how many units the next tick is sent, if none is under way. Default: a tenth of `reserve`. */
  readonly every?: number
}

const STREAM_NAMES = new Set([...OPERATION_NAMES, 'units', 'every'])

/** What the stream needs of its session. */
interface Metered {
  tick(options: TickOptions): Promise<SessionReceipt>
  end(options: TickOptions): Promise<SessionReceipt>
}

/** What a timer can wait at most. */
const TIMER_MAX_MS = 2_147_483_647

/**
 * The chunks of a source, metered. A chunk counts as delivered when the consumer gets it. Ticks go out beside the delivery, one at a time;
 * the stream waits for one only when all that is reserved is used up. Whatever ends it, the session is ended with what was delivered:
 *
 *     the source is done, or the consumer stops     the loop ends
 *     the source fails                              its error
 *     the money is used up and there is no more     `insufficient_funds`, and the source is told to stop
 *     the signal fires                              `aborted`, and the source is told to stop
 *     the session ended elsewhere, or expired       `hold_closed` or `hold_expired`, and the source is told to stop
 */
export class SessionStream<T> implements AsyncIterable<T> {
  /** Units so far. */
  delivered = 0
  /** How the session stood after the last tick; in the end, what it came to. */
  state: SessionReceipt | null = null
  readonly #session: Metered
  readonly #begun: () => Promise<Begun>
  readonly #source: AsyncIterable<T>
  readonly #units: (chunk: T) => number
  readonly #signal: AbortSignal | undefined
  readonly #passedOn: TickOptions
  readonly #chunks: AsyncGenerator<T, void, void>
  #every: number
  #heartbeatMs = 0
  /** The total of the last tick, when it was sent, and up to which total the money is there. */
  #told = 0
  #toldAt = 0
  #covered = 0
  #ticking: Promise<void> | null = null
  #failure: unknown = null
  /** Fires when nothing more is wanted of the source, also while it is silent. */
  readonly #over = new AbortController()

  constructor(session: Metered, begun: () => Promise<Begun>, source: AsyncIterable<T>, options: StreamOptions<T>) {
    const {
      units = () => 1,
      every,
      signal,
      ...passedOn
    } = check.options('options', options, STREAM_NAMES) as StreamOptions<T>
    if (typeof source?.[Symbol.asyncIterator] !== 'function') {
      throw check.invalid('source', 'an async iterable', check.show(source))
    }
    if (typeof units !== 'function') throw check.invalid('units', 'a function', check.show(units))
    this.#every = every === undefined ? 0 : check.integer('every', every, 1, Number.MAX_SAFE_INTEGER)
    this.#signal = check.signal(signal)
    this.#session = session
    this.#begun = begun
    this.#source = source
    this.#units = units
    this.#passedOn = passedOn
    this.#chunks = this.#deliver()
  }

  /** One and the same for all who ask: a stream is delivered once. */
  [Symbol.asyncIterator](): AsyncGenerator<T, void, void> {
    return this.#chunks
  }

  async *#deliver(): AsyncGenerator<T, void, void> {
    const { terms } = await this.#begun()
    if (terms.counting !== 'units') throw check.invalid('session', 'one by units', 'one by time')
    this.#every ||= Math.max(1, Math.floor(terms.stretch / terms.rate / 10))
    this.#heartbeatMs = terms.heartbeatMs
    const source = new Source(this.#source, this.#over.signal)
    const abort = (): void => this.#over.abort()
    this.#signal?.addEventListener('abort', abort, { once: true })
    let failed = false
    try {
      for (;;) {
        await this.#afford()
        const next = await this.#alive(() => source.next())
        if (next === 'over') this.#goOn()
        else if (next.done) return
        else {
          this.delivered += check.amount('units', this.#units(next.value), 0)
          if (this.delivered - this.#told >= this.#every) this.#tickBeside()
          yield next.value
        }
      }
    } catch (error) {
      failed = true
      throw error
    } finally {
      this.#signal?.removeEventListener('abort', abort)
      const finished = this.#finish(source)
      // What went wrong first is what is told; a session that could not be ended expires with what the ticks have charged.
      await (failed ? finished.catch(() => {}) : finished)
    }
  }

  /** Nothing is taken from the source that is not paid for: when all is used up, the next tick tells whether there is more. */
  async #afford(): Promise<void> {
    this.#goOn()
    if (this.delivered < this.#covered) return
    await this.#ticking?.catch(() => {})
    if (this.delivered >= this.#covered) await this.#tick()
    this.#goOn()
    if (this.delivered < this.#covered || !this.state?.final) return
    const { charged, receipt } = this.state
    const facts = { available: receipt.available, charged, delivered: this.delivered }
    throw new HoldfastError('insufficient_funds', 'The money for this stream is used up', facts)
  }

  /** Throws when there is a reason not to. */
  #goOn(): void {
    if (this.#signal?.aborted) throw new HoldfastError('aborted', 'The stream was aborted')
    if (this.#failure) throw this.#failure
    if (this.state?.ended) throw new HoldfastError(this.state.endedBy === 'expiry' ? 'hold_expired' : 'hold_closed')
  }

  /** A source may be silent for long. (A consumer may be, too: but one that is gone must not keep the session alive.) */
  async #alive<R>(wait: () => Promise<R>): Promise<R> {
    const beatMs = Math.min(TIMER_MAX_MS, Math.ceil(this.#heartbeatMs / 3))
    if (performance.now() - this.#toldAt >= beatMs) this.#tickBeside()
    const beat = setInterval(() => this.#tickBeside(), beatMs)
    try {
      return await wait()
    } finally {
      clearInterval(beat)
    }
  }

  /** A tick that got no answer is no harm: the next one tells the total. */
  #tickBeside(): void {
    this.#tick().catch((error) => {
      if (error instanceof HoldfastError && error.retryable) return
      this.#failure = error
      this.#over.abort()
    })
  }

  #tick(): Promise<void> {
    this.#ticking ??= this.#tell(this.delivered).finally(() => {
      this.#ticking = null
    })
    return this.#ticking
  }

  async #tell(total: number): Promise<void> {
    this.#toldAt = performance.now()
    const signal = this.#signal && { signal: this.#signal }
    const state = await this.#session.tick({ ...this.#passedOn, ...signal, total })
    this.state = state
    this.#told = total
    this.#covered = total + (state.unitsLeft ?? 0)
    if (state.ended) this.#over.abort()
  }

  async #finish(source: Source<T>): Promise<void> {
    const stopped = source.stop()
    // Awaited below, unless the end fails first.
    stopped.catch(() => {})
    await this.#ticking?.catch(() => {})
    if (!this.state?.ended) this.state = await this.#session.end({ ...this.#passedOn, total: this.delivered })
    await stopped
  }
}

/** The source of a stream, until it is done, fails or is told to stop. */
class Source<T> {
  readonly #iterator: AsyncIterator<T>
  readonly #over: AbortSignal
  #open = true
  #asked = false

  constructor(source: AsyncIterable<T>, over: AbortSignal) {
    this.#iterator = source[Symbol.asyncIterator]()
    this.#over = over
  }

  /** The next chunk, or that nobody wants it any more. */
  next(): Promise<IteratorResult<T, unknown> | 'over'> {
    return new Promise((resolve, reject) => {
      const leave = (): void => resolve('over')
      this.#over.addEventListener('abort', leave, { once: true })
      this.#asked = true
      const answered = (open: boolean): void => {
        this.#over.removeEventListener('abort', leave)
        this.#asked = false
        this.#open &&= open
      }
      this.#iterator.next().then(
        (result) => {
          answered(!result.done)
          resolve(this.#over.aborted ? 'over' : result)
        },
        (error) => {
          answered(false)
          reject(error)
        },
      )
    })
  }

  /** Waits until it has, unless it still owes an answer: whoever waits for that may wait for ever. */
  async stop(): Promise<void> {
    if (!this.#open) return
    this.#open = false
    const stopped = Promise.resolve(this.#iterator.return?.())
    if (this.#asked) stopped.catch(() => {})
    else await stopped
  }
}
