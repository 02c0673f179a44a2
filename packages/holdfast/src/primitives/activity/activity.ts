import { HoldfastError } from '../../errors/index.js'
import { given, integer, invalid, namesOf, options as optionsOf, show, signal as signalOf } from '../../input/index.js'
import { activityMark, activityMarkMany } from '../../redis/scripts.generated.js'
import { Calls, callOnce } from '../calls.js'
import { type Context, tell } from '../context.js'
import { durationMs } from '../keys.js'
import type { Primitives } from '../primitives.js'
import { Bitmap, Bitmaps } from './bitmap.js'
import { DAY_MS, type Day, dayMs, dayOf } from './day.js'
import { type DenseIndex, type Id, indexOf } from './dense-index.js'
import { sawPosition } from './highest.js'
import { type Progress, type RetentionRow, retentionOf } from './retention.js'

export interface ActivityOptions<Member> {
  /** Share one to combine several activities and experiments. Default: one of its own, which maps ids. */
  readonly index?: DenseIndex<Member>
  /** For how long a day is kept, from its first mark on. Default 90 days. */
  readonly ttlMs?: number
}

const OPTION_NAMES = namesOf<ActivityOptions<unknown>>({ index: true, ttlMs: true })

export interface OfDay {
  /** Default today, in UTC. */
  readonly day?: Day
}

const DAY_NAMES = namesOf<OfDay>({ day: true })

export interface Marked {
  /** `already`: also where the answer of the first was lost, and the call went out again. */
  readonly result: 'marked' | 'already'
  /** `2026-07-02` */
  readonly day: string
}

export interface MarkedMany {
  readonly marked: number
  readonly already: number
  readonly day: string
}

export interface RetentionOptions {
  /** The first day of the table. */
  readonly from: Day
  /** How many days: 2 to 31. */
  readonly days: number
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: Progress) => void
}

const RETENTION_NAMES = namesOf<RetentionOptions>({ from: true, days: true, signal: true, onProgress: true })

const TTL_MS = 90 * DAY_MS
/** As many as a call takes. */
const MANY = 256
/** Hashing so many ids keeps this process busy for some 30 ms. */
const MANY_MAX = 10_000
const RETENTION_DAYS_MAX = 31

/** Who was active on which day, one bit for each: 10 million in 1.25 MB a day. */
export class Activity<Member = Id> {
  readonly index: DenseIndex<Member>
  readonly ttlMs: number
  readonly #context: Context
  readonly #bitmaps: Bitmaps<Member>
  readonly #mark: Calls

  constructor(primitives: Primitives, operation: string, options: ActivityOptions<Member> = {}) {
    const { ttlMs = TTL_MS, index } = optionsOf('options', options, OPTION_NAMES)
    this.ttlMs = durationMs('ttlMs', ttlMs)
    this.index = indexOf(primitives, operation, index)
    this.#context = primitives.context
    this.#bitmaps = new Bitmaps(primitives.context, 'activity', operation, this.index)
    this.#mark = new Calls(primitives.context, 'activity', activityMark)
  }

  /** An id that is new gets a position in the same step. Where there is none left it is `index_full`, and nothing was marked. */
  async markActive(member: Member, of: OfDay = {}): Promise<Marked> {
    const { index } = this
    const { day, part } = this.#day(of)
    const arg = index.argOf(member)
    const answer = await index.within(true, (generation) =>
      this.#mark.add(
        this.#bitmaps.scope,
        [index.scope.base, this.#bitmaps.key(part, generation)],
        [generation, arg, index.populationMax, this.ttlMs],
      ),
    )
    const [before, position] = this.#placed(answer, 0)
    sawPosition(this.#context, 'activity', position)
    const result = before === 0 ? 'marked' : 'already'
    tell(this.#context, 'activity', result)
    return { result, day }
  }

  /**
   * Up to 10,000, in calls of 256 of which each is done as a whole. What fails halfway has marked those before it (`index_full` tells in
   * `done` how many); to do all of it again is harmless.
   */
  async markManyActive(members: readonly Member[], of: OfDay = {}): Promise<MarkedMany> {
    const { index } = this
    const { day, part } = this.#day(of)
    if (!Array.isArray(members)) throw invalid('members', 'an array', show(members))
    integer('members.length', members.length, 0, MANY_MAX)
    // Not `map`, which leaves out the holes of an array.
    const args = Array.from(members, (member) => index.argOf(member))
    let marked = 0
    for (let from = 0; from < args.length; from += MANY) {
      const some = args.slice(from, from + MANY)
      const answer = await index.within(true, (generation) =>
        callOnce(
          this.#context,
          this.#bitmaps.scope,
          activityMarkMany,
          [index.scope.base, this.#bitmaps.key(part, generation)],
          [some.length, generation, index.populationMax, this.ttlMs, ...some],
        ),
      )
      const [fresh, highest] = this.#placed(answer, from)
      sawPosition(this.#context, 'activity', highest)
      tell(this.#context, 'activity', 'marked', fresh)
      tell(this.#context, 'activity', 'already', some.length - fresh)
      marked += fresh
    }
    return { marked, already: args.length - marked, day }
  }

  /** On that day: today unless another is given. */
  wasActive(member: Member, of: OfDay = {}): Promise<boolean> {
    return this.#bitmaps.has(this.#day(of).part, member)
  }

  /** Nobody: also on a day that has expired. */
  async countActive(of: OfDay = {}): Promise<number> {
    return (await this.on(this.#day(of).day).count()) ?? 0
  }

  /** Those of a day, to be combined with others. Asks nobody. */
  on(day: Day): Bitmap<Member> {
    return new Bitmap(this.#bitmaps, this.#day({ day }).part, false)
  }

  /**
   * Of those who were active on each of some days in a row: how many were again, so many days later. The days are read in portions and
   * compared in this process, so that Redis does nothing but read.
   */
  async retention(options: RetentionOptions): Promise<RetentionRow[]> {
    const { from, days, signal, onProgress } = optionsOf('options', options, RETENTION_NAMES)
    given('from', from, 'a day')
    const firstMs = dayMs('from', from, this.#context.now)
    const count = integer('days', days, 2, RETENTION_DAYS_MAX)
    if (onProgress !== undefined && typeof onProgress !== 'function') {
      throw invalid('onProgress', 'a function', show(onProgress))
    }
    const names = Array.from({ length: count }, (_, n) => dayOf(firstMs + n * DAY_MS))
    return retentionOf(
      this.#bitmaps,
      names.map((day) => ({ day, part: this.#day({ day }).part })),
      signalOf(signal),
      onProgress as RetentionOptions['onProgress'],
    )
  }

  #day(of: unknown): { day: string; part: string } {
    const day = dayOf(dayMs('day', optionsOf('options', of, DAY_NAMES).day, this.#context.now))
    return { day, part: day.replaceAll('-', '') }
  }

  #placed(answer: unknown, done: number): [number, number] {
    if (Array.isArray(answer)) return answer as [number, number]
    tell(this.#context, 'activity', 'full')
    const { populationMax } = this.index
    throw new HoldfastError('index_full', undefined, { populationMax, done })
  }
}
