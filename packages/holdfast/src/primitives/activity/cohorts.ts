import { randomBytes } from 'node:crypto'
import { HoldfastError } from '../../errors/index.js'
import { integer, invalid, namesOf, oneOf, options as optionsOf, show, signal as signalOf } from '../../input/index.js'
import { activityCombine } from '../../redis/scripts.generated.js'
import { callOnce } from '../calls.js'
import { type Context, tell } from '../context.js'
import { durationMs, word } from '../keys.js'
import type { Primitives } from '../primitives.js'
import { Bitmap, Bitmaps } from './bitmap.js'
import { DAY_MS } from './day.js'
import { DenseIndex, OwnIndex } from './dense-index.js'
import type { Progress } from './retention.js'

/** Who is in all of them, in any, in an odd number, not in the one, in the first and in none of the others. */
export type Combination = 'and' | 'or' | 'xor' | 'not' | 'andnot'

export interface CohortsOptions<Member> {
  readonly index: DenseIndex<Member>
  /** For how long a cohort is kept. Default one day. */
  readonly ttlMs?: number
}

const OPTION_NAMES = namesOf<CohortsOptions<unknown>>({ index: true, ttlMs: true })

export interface CombineOptions {
  /** Up to where `not` reaches. Default: all positions that the index has given out; of an index of your own, all that it may have. */
  readonly population?: number
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: Progress) => void
}

const COMBINE_NAMES = namesOf<CombineOptions>({ population: true, signal: true, onProgress: true })

export type Combined<Member> =
  | { readonly result: 'made'; readonly cohort: Bitmap<Member>; readonly count: number }
  /** A cohort that was to be combined is not there: it has expired. `at` is which. Nothing was made. */
  | { readonly result: 'missing'; readonly at: number }

const COMBINATIONS = ['and', 'or', 'xor', 'not', 'andnot'] as const
const BITMAPS_MAX = 32
/** Of all bitmaps and the result. Two of 10 million bits: 1 ms. */
const AT_ONCE_BYTES = 4 * 1_024 * 1_024
/** Portions go through the memory of the script, and cost some ten times as much for each byte: 1 ms too. */
const PORTION_BYTES = 256 * 1_024
/** What is made so far is gone after a minute without a portion, or when Redis evicts it. */
const TRIES_MAX = 3

/**
 * Makes bitmaps of bitmaps. Redis serves nobody else while it combines, so it never does for longer than about a millisecond: what is larger
 * goes in portions, between which others have their turn. The result appears under its name as a whole, with its end.
 */
export class Cohorts<Member> {
  readonly ttlMs: number
  readonly #context: Context
  readonly #index: DenseIndex<Member>
  readonly #bitmaps: Bitmaps<Member>

  constructor({ context }: Primitives, operation: string, options: CohortsOptions<Member>) {
    const { index, ttlMs = DAY_MS } = optionsOf('options', options, OPTION_NAMES)
    if (!(index instanceof DenseIndex)) throw invalid('index', 'a MappedIndex or an OwnIndex', show(index))
    this.ttlMs = durationMs('ttlMs', ttlMs)
    this.#context = context
    this.#index = index
    this.#bitmaps = new Bitmaps(context, 'activity', operation, this.#index)
  }

  /** One that was made before, by its name. Asks nobody: it may have expired. */
  named(name: string): Bitmap<Member> {
    return new Bitmap(this.#bitmaps, `cohort.${word('name', name)}`, true)
  }

  /** In the place of what had that name. Marks that are set meanwhile may be in it or not. */
  async combine(
    name: string,
    how: Combination,
    bitmaps: readonly Bitmap<Member>[],
    options: CombineOptions = {},
  ): Promise<Combined<Member>> {
    const cohort = this.named(name)
    oneOf('how', how, COMBINATIONS)
    this.#check(how, bitmaps)
    const { population, signal, onProgress } = optionsOf('options', options, COMBINE_NAMES)
    if (onProgress !== undefined && typeof onProgress !== 'function') {
      throw invalid('onProgress', 'a function', show(onProgress))
    }
    const reach = population === undefined ? this.#reach() : this.#population(population)
    const given = { signal: signalOf(signal), onProgress: onProgress as CombineOptions['onProgress'] }
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const combined = await this.#make(cohort, how, bitmaps, reach, given)
      if (combined === null) continue
      tell(this.#context, 'activity', combined.result)
      return combined
    }
    throw new HoldfastError('unavailable', `what was made of the cohort was lost ${TRIES_MAX} times`)
  }

  /** Null: what was made so far is lost. */
  async #make(
    cohort: Bitmap<Member>,
    how: Combination,
    bitmaps: readonly Bitmap<Member>[],
    reach: number,
    { signal, onProgress }: { [one in 'signal' | 'onProgress']: CombineOptions[one] | undefined },
  ): Promise<Combined<Member> | null> {
    const run = randomBytes(8).toString('hex')
    const needed = bitmaps.map(({ isMade }) => (isMade ? '1' : '0')).join('')
    let count = 0
    let population = reach
    let asked: string | undefined
    for (let from = 0, total = -1; from < total || total < 0; ) {
      if (signal?.aborted) throw new HoldfastError('aborted', 'the cohort was given up, and nothing was made')
      const answer = await this.#index.within(false, (generation) => {
        // Nothing that another index was asked for counts any more.
        if (from > 0 && asked !== generation) return Promise.resolve(LOST)
        asked = generation
        const args = [how.toUpperCase(), from, AT_ONCE_BYTES, PORTION_BYTES, total, population, this.ttlMs, needed]
        return this.#portion(cohort, bitmaps, run, generation, args)
      })
      if (!Array.isArray(answer)) return null
      if (answer[0] instanceof Buffer) return { result: 'missing', at: Number(answer[1]) - 1 }
      const [marked, next, bytes, reached] = answer as [number, number, number, number]
      count += marked
      from = next
      total = bytes
      population = reached
      onProgress?.({ doneBytes: from, totalBytes: total })
    }
    return { result: 'made', cohort, count }
  }

  #portion(
    { of, part }: Bitmap<Member>,
    bitmaps: readonly Bitmap<Member>[],
    run: string,
    generation: string,
    args: readonly (string | number)[],
  ): Promise<unknown> {
    const work = (name: string | number) => of.key(`run.${run}.${name}`, generation)
    const keys = [
      this.#index.scope.base,
      of.key(part, generation),
      work('made'),
      work('work'),
      work('full'),
      ...bitmaps.map((bitmap) => bitmap.of.key(bitmap.part, generation)),
      ...bitmaps.map((_, at) => work(at)),
    ]
    return callOnce(this.#context, of.scope, activityCombine, keys, [bitmaps.length, generation, ...args])
  }

  #check(how: Combination, bitmaps: readonly Bitmap<Member>[]): void {
    if (!Array.isArray(bitmaps)) throw invalid('bitmaps', 'an array', show(bitmaps))
    if (how === 'not') integer('bitmaps.length', bitmaps.length, 1, 1)
    else integer('bitmaps.length', bitmaps.length, 2, BITMAPS_MAX)
    for (const bitmap of bitmaps) {
      if (!(bitmap instanceof Bitmap)) throw invalid('bitmaps', 'what `on`, `of` or `named` gives', show(bitmap))
      const { index } = bitmap.of
      // Also of the same name: positions of one's own are none of those that ids are mapped to.
      if (index.scope.base !== this.#index.scope.base || index.constructor !== this.#index.constructor) {
        throw invalid('bitmaps', 'those of the same index', 'one of another')
      }
    }
  }

  /** Where it is known to Redis alone. */
  #reach(): number {
    return this.#index instanceof OwnIndex ? this.#index.populationMax : -1
  }

  #population(value: unknown): number {
    return integer('population', value, 1, this.#index.populationMax)
  }
}

const LOST = 'lost'
