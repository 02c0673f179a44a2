import { HoldfastError } from '../errors/index.js'
import { type Clock, jitteredMs } from './clock.js'

/** What became of a write: nothing, or nobody knows. */
const UNWRITTEN: ReadonlySet<string> = new Set(['not_executed', 'unknown', 'refused'])

const lacksRoom = (error: unknown): boolean => HoldfastError.is(error, 'unavailable') && error.refused === 'OOM'

export interface CircuitParts {
  /** Nothing worked for so long although it was tried: then it is away. */
  readonly patienceMs: number
  readonly probe: () => Promise<unknown>
  /** Can it be written to? Asked after a probe, where a write has failed. */
  readonly proveWrites?: () => Promise<boolean>
  readonly onChange: (open: boolean) => void
  /** Something waits that is written as soon as anything can be, and is tried again and again until then. */
  readonly owes?: () => boolean
}

/**
 * Whether something we depend on is there. Failures that go on for longer than our patience, with no success in between, open it: one
 * lost connection takes many calls with it at once, and says little; a call that got no answer says as much as it waited for one.
 * While it is open nobody waits for what won't come; a probe closes it again.
 *
 * A server whose disk is full, or that waits for a replica, reads as ever. So after a write has failed, what is only read says nothing until
 * one has worked: that of what waits to be written, or, where nothing does, one that is made to find out. Which of the two matters: what is made
 * for that can be committed where there is no room for anything else, and then whoever is let in finds out, once.
 */
export class Circuit {
  readonly #clock: Clock
  readonly #parts: CircuitParts
  #open = false
  #workedAt = Number.NEGATIVE_INFINITY
  #doubtedAt: number | undefined
  #tries = 0
  #cancel: (() => void) | undefined
  #closed = false
  #stop: HoldfastError | null = null
  #unwritten = false
  #full = false

  constructor(clock: Clock, parts: CircuitParts) {
    this.#clock = clock
    this.#parts = parts
  }

  get open(): boolean {
    return this.#open
  }

  /** It is open because there is no room, as far as was heard last: what makes room goes on. */
  get full(): boolean {
    return this.#open && this.#full
  }

  /** It is there, and said that an operator has to act first: only the probe finds out that he has. */
  get stop(): HoldfastError | null {
    return this.#stop
  }

  /** `begunAt`: since when the call that failed was under way. */
  failed(begunAt = this.#clock.now()): void {
    if (this.#open || this.#closed) return
    this.#doubtedAt ??= Math.max(begunAt, this.#workedAt)
    if (this.#clock.now() - this.#doubtedAt >= this.#parts.patienceMs) this.#begin()
  }

  failedWith(error: unknown, begunAt?: number): void {
    if (HoldfastError.is(error, 'reconcile_required')) return this.#stopFor(error)
    // It is there, and has answered: what it was asked about one wallet is not what it can say. Others need not suffer for that.
    if (HoldfastError.is(error, 'internal_error') && error.outcome === 'data') return
    // The same where others are in the way: a row that is kept locked, a deadlock.
    if (HoldfastError.is(error, 'unavailable') && error.outcome === 'retry') return
    this.#full = lacksRoom(error)
    // It answers, and says that it will not write: patience changes nothing. What only reads would go on working, and hide that.
    if (HoldfastError.is(error, 'unavailable') && error.refused !== undefined) return this.#away()
    this.failed(begunAt)
  }

  failedToWrite(error: unknown): void {
    // Only what the server did with it, or did not. A row that somebody has locked, what can't be stored and what can't be read are no matter of others.
    if (error instanceof HoldfastError && UNWRITTEN.has(`${error.outcome}`)) this.#unwritten = true
    this.failedWith(error)
  }

  #away(): void {
    if (!this.#open && !this.#closed) this.#begin()
  }

  #begin(): void {
    this.#open = true
    this.#tries = 0
    this.#parts.onChange(true)
    this.#schedule()
  }

  #stopFor(error: HoldfastError): void {
    if (this.#closed) return
    // Who found out knows the reason, others only hear of it.
    if (!this.#stop || error.because !== undefined) this.#stop = error
    if (!this.#open) this.#begin()
  }

  worked(): void {
    if (this.#unwritten) return
    this.#doubtedAt = undefined
    this.#workedAt = this.#clock.now()
    // What is only read works all the while.
    if (!this.#open || this.#stop) return
    this.#open = false
    this.#full = false
    this.#cancel?.()
    this.#parts.onChange(false)
  }

  wrote(): void {
    this.#unwritten = false
    this.worked()
  }

  /** The operator has acted. */
  release(): void {
    // What failed before the operator acted failed for that. And while others are let in, they write, and tell.
    if (this.#stop || (!this.#open && !this.#owes)) this.#unwritten = false
    this.#stop = null
    this.worked()
  }

  close(): void {
    this.#closed = true
    this.#cancel?.()
  }

  /** Waits for an answer; when none comes for so long, what comes now is not let in any more. It may still answer, and then that counts. */
  async watch<T>(patienceMs: number, answer: Promise<T>): Promise<T> {
    const cancel = this.#clock.after(patienceMs, () => this.#away(), true)
    try {
      return await answer
    } finally {
      cancel()
    }
  }

  /** The same for what is written, and tells what came of it. `hasWritten`: it may be answered and have written nothing. */
  async watchWrite<T>(patienceMs: number, answer: Promise<T>, hasWritten: (written: T) => boolean): Promise<T> {
    const unanswered = (): void => {
      this.#unwritten = true
      this.#away()
    }
    const cancel = this.#clock.after(patienceMs, unanswered, true)
    try {
      const written = await answer
      if (hasWritten(written)) this.wrote()
      else this.worked()
      return written
    } catch (error) {
      this.failedToWrite(error)
      throw error
    } finally {
      cancel()
    }
  }

  #schedule(): void {
    this.#cancel?.()
    const waitMs = 100 + jitteredMs(this.#clock, this.#tries, 100, 1_000)
    this.#cancel = this.#clock.after(
      waitMs,
      () => {
        this.#tries += 1
        void this.#try()
          .catch((error) => {
            this.#full = lacksRoom(error)
            if (HoldfastError.is(error, 'reconcile_required')) this.#stopFor(error)
          })
          .then(() => {
            if (this.#open && !this.#closed) this.#schedule()
          })
      },
      true,
    )
  }

  async #try(): Promise<void> {
    await this.#parts.probe()
    this.release()
    if (!this.#unwritten || this.#owes) return
    const written = (await this.#parts.proveWrites?.()) ?? true
    // What has come to be owed meanwhile shows more.
    if (written && !this.#owes) this.wrote()
  }

  get #owes(): boolean {
    return this.#parts.owes?.() ?? false
  }
}
