import { type Context, note, tell } from '../context.js'
import { type CopyLook, type FlagCopy, idOf, revisionOf } from './copy.js'
import type { FlagFacts } from './definition.js'
import type { FlagSet, FlagStore } from './store.js'

export interface FlagsStanding {
  /** The number of the last change that this process knows of; null: it has read no flags yet. */
  readonly revision: number | null
  /** Since when Postgres has not been asked, by anybody, whether the flags are still so. */
  readonly ageMs: number | null
  /** Whether that is within the bound. */
  readonly isFresh: boolean
}

interface Known {
  readonly id: string
  readonly flags: ReadonlyMap<string, FlagFacts>
  /** When Postgres was asked, by the clock that never jumps. */
  readonly since: number
}

/**
 * What a process knows of the flags, and how it comes to know of changes.
 *
 *   each poll   process ──▶ Redis     "I have revision 41"   ──▶ nothing new · flags of 42 · and perhaps: it is your turn
 *   its turn    process ──▶ Postgres  all flags              ──▶ Redis: these are the flags, as of now
 *   a change    process ──▶ Postgres ──▶ Redis               so that the others have it with their next poll
 *
 * Messages that tell of a change can be lost, and so can the write to Redis after it. A poll can't: what it does not learn now it learns
 * with the next one. With the time that flags may be behind cut into eight parts, a copy is asked about after four, a poll comes each part,
 * and who was told to ask has one part for it. The worst is then a change that never reached Redis, right after the copy was confirmed, and
 * one that died when it was its turn: 4 until the copy is asked about, 1 to the poll that is told to, 1 until that is given up, 1 to the
 * poll that is told next, 1 to the poll that everybody else learns it with.
 */
export class FlagWatch {
  readonly #context: Context
  readonly #store: FlagStore
  readonly #copy: FlagCopy
  readonly #boundMs: number
  readonly #pollMs: number
  readonly #askAfterMs: number
  #known: Known | null = null
  #looking: Promise<void> | undefined
  #asking: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #isOn = false
  /** Which start it is: one that was stopped while it looked must not go on beside the next. */
  #round = 0
  readonly #stop = () => this.stop()
  #failure: unknown
  #askedAt = Number.NEGATIVE_INFINITY
  #isBehind = false

  constructor(context: Context, store: FlagStore, copy: FlagCopy, boundMs: number) {
    this.#context = context
    this.#store = store
    this.#copy = copy
    this.#boundMs = boundMs
    this.#pollMs = Math.floor(boundMs / 8)
    this.#askAfterMs = Math.floor(boundMs / 2)
  }

  get flags(): ReadonlyMap<string, FlagFacts> | null {
    return this.#known?.flags ?? null
  }

  get ageMs(): number | null {
    return this.#known && Math.max(0, Math.floor(performance.now() - this.#known.since))
  }

  get standing(): FlagsStanding {
    const { ageMs } = this
    return {
      revision: this.#known && revisionOf(this.#known.id),
      ageMs,
      isFresh: ageMs !== null && ageMs <= this.#boundMs,
    }
  }

  /** Looks on from now. Rejects where nothing could be read; looking goes on all the same. */
  async start(): Promise<void> {
    this.#context.closing.throwIfAborted()
    if (!this.#isOn) {
      this.#isOn = true
      this.#context.closing.addEventListener('abort', this.#stop, { once: true })
      this.#tick(++this.#round)
    }
    if (this.#known === null) await this.look()
    if (this.#known === null) throw this.#failure
  }

  stop(): void {
    this.#isOn = false
    this.#context.closing.removeEventListener('abort', this.#stop)
    clearTimeout(this.#timer)
  }

  /** Now, or with who is at it already. Never rejects. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  /** What this process has read of Postgres by itself, `askedAt`. */
  adopt(set: FlagSet, askedAt: number): void {
    if (this.#isOn) this.#offer(idOf(set), set.flags, askedAt)
  }

  #tick(round: number): void {
    const startedAt = performance.now()
    void this.look().finally(() => {
      if (!this.#isOn || round !== this.#round) return
      const restMs = Math.max(0, this.#pollMs - (performance.now() - startedAt))
      this.#timer = setTimeout(() => this.#tick(round), restMs)
      this.#timer.unref()
    })
  }

  async #look(): Promise<void> {
    const look = await this.#askRedis()
    // While Redis is no help all processes ask, so each of them seldom.
    const isDue = look === null && performance.now() - this.#askedAt >= this.#askAfterMs
    if (look?.isTurn || isDue || this.#known === null) {
      this.#asking ??= this.#askPostgres(look).finally(() => {
        this.#asking = undefined
      })
      // Who has flags goes on looking at Redis: a Postgres that is silent here may have answered somebody else.
      if (this.#known === null) await this.#asking
    }
    this.#noteStanding()
  }

  /** Null: it is no help. */
  async #askRedis(): Promise<CopyLook | null> {
    const askedAt = performance.now()
    try {
      const look = await this.#copy.look(this.#known?.id ?? null, this.#askAfterMs, this.#pollMs)
      if (look.id !== null) this.#offer(look.id, look.flags, askedAt - look.ageMs)
      return look
    } catch {
      return null
    }
  }

  async #askPostgres(look: CopyLook | null): Promise<void> {
    const askedAt = performance.now()
    this.#askedAt = askedAt
    try {
      const read = await this.#store.read()
      this.#offer(idOf(read), read.flags, askedAt)
      if (look === null) tell(this.#context, 'flags', 'fallback')
      // Who can't be told finds out by itself.
      await this.#copy.confirm(read, performance.now() - askedAt, idOf(read) === look?.id).catch(() => {})
    } catch (error) {
      this.#failure = error
      tell(this.#context, 'flags', 'stale')
    }
  }

  /** Others than newer ones are taken from one who asked Postgres later: it was put back. */
  #offer(id: string, flags: readonly FlagFacts[] | null, since: number): void {
    const known = this.#known
    if (known?.id === id) {
      this.#known = { ...known, since: Math.max(known.since, since) }
      return
    }
    const isNewer = known === null || revisionOf(id) > revisionOf(known.id) || since > known.since
    if (flags === null || !isNewer) return
    this.#known = { id, flags: new Map(flags.map((flag) => [flag.name, flag])), since }
    tell(this.#context, 'flags', 'updated')
  }

  /** Once when it falls behind, and once when it is up to date again: a line a poll would hide the rest of the log. */
  #noteStanding(): void {
    const { isFresh, ageMs } = this.standing
    if (isFresh !== this.#isBehind) return
    this.#isBehind = !isFresh
    note(this.#context, isFresh ? 'flags_fresh' : 'flags_stale', this.#copy.scope, { ageMs: ageMs ?? -1 })
  }
}
