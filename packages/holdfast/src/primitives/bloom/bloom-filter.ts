import { invalid, namesOf, options as optionsOf, show } from '../../input/index.js'
import { type Context, tell } from '../context.js'
import { KeySpace } from '../keys.js'
import type { Primitives } from '../primitives.js'
import { instantMs } from '../time.js'
import { newGeneration } from './generation.js'
import { BloomMirror, type BloomMirrorOptions } from './mirror.js'
import { type BloomItems, type BloomRebuilt, rebuild } from './rebuild.js'
import { type BloomSize, itemsOf, sizeOf } from './size.js'
import { type Spot, spotter } from './spot.js'
import { BloomStore } from './store.js'

export interface BloomFilterOptions {
  /** How many items it is for. With more it still forgets none, but says `maybe` more often. */
  readonly capacity: number
  /** How often it says `maybe` of what was never added, when it is full: 0.01 is one in a hundred. Default 0.01. */
  readonly falsePositives?: number
  /** What it is a filter of, where an operation has several: a sale, a day. */
  readonly scope?: string | readonly string[]
  /** When it goes by itself, with all its generations. Default: never. */
  readonly endsAt?: Date
}

const OPTION_NAMES = namesOf<BloomFilterOptions>({ capacity: true, falsePositives: true, scope: true, endsAt: true })

/**
 * - `absent`: it was never added, for sure.
 * - `maybe`: ask who knows before you tell anybody. `bits`: it was added, or others set all its bits; `missing`: there is no filter, so
 *   nothing is sure.
 */
export type BloomMembership =
  | { readonly result: 'absent' }
  | { readonly result: 'maybe'; readonly because: 'bits' | 'missing' }

/**
 * - `new`: it had not been added before, for sure, and it is now.
 * - `maybe`: it is in the filter now; perhaps it was before.
 * - `missing`: there is no filter that could take it. One that is being built has taken it.
 */
export type BloomAdded = { readonly result: 'new' | 'maybe' | 'missing' }

export interface BloomFill {
  /** Of what answers now, which may have been made with other settings than these. */
  readonly capacity: number
  readonly bits: number
  readonly hashes: number
  readonly setBits: number
  /** How many items have set these bits, most likely. */
  readonly items: number
  /** How often it says `maybe` of what was never added, with these bits. */
  readonly falsePositives: number
  readonly isOver: boolean
}

const MANY_MAX = 10_000

/**
 * Knows what was certainly never added, in little room: 10 bits an item for one false positive in a hundred. It never forgets an item and never
 * takes one back; what should go, goes by a rebuild.
 *
 * Redis forgets, and a filter that forgot would call things absent that are there. So there is a filter only after `begin` or `rebuild` made
 * one, and until then, or when it is gone, every answer is `maybe`.
 */
export class BloomFilter {
  /** What a new generation is made with. */
  readonly size: BloomSize
  readonly #context: Context
  readonly #store: BloomStore
  readonly #spotOf: (item: unknown) => Spot

  constructor({ context }: Primitives, operation: string, options: BloomFilterOptions) {
    const { capacity, falsePositives = 0.01, scope, endsAt } = optionsOf('options', options, OPTION_NAMES)
    this.size = sizeOf(capacity, falsePositives)
    const endsAtMs = endsAt === undefined ? 0 : instantMs('endsAt', endsAt, context.now)
    const space = new KeySpace(context, 'bloom', operation)
    const of = scope === undefined ? space.whole : space.scope(scope as string)
    this.#context = context
    this.#store = new BloomStore(context, of, endsAtMs)
    this.#spotOf = spotter(context, of)
  }

  /** Makes an empty filter, unless there is one: where nothing has been added anywhere yet. Where something has, `rebuild` it. */
  async begin(): Promise<'begun' | 'exists' | 'expired'> {
    const { current } = await this.#store.news()
    const result = current ? 'exists' : await this.#begin()
    tell(this.#context, 'bloom', result)
    return result
  }

  async add(item: string): Promise<BloomAdded> {
    return this.#add(this.#spotOf(item))
  }

  /** Up to 10,000. In order; when it fails, some of them may have been added. */
  async addMany(items: readonly string[]): Promise<BloomAdded[]> {
    return Promise.all(this.#spotsOf(items).map((spot) => this.#add(spot)))
  }

  async mightHave(item: string): Promise<BloomMembership> {
    return this.#check(this.#spotOf(item))
  }

  /** Up to 10,000, in order. */
  async mightHaveMany(items: readonly string[]): Promise<BloomMembership[]> {
    return Promise.all(this.#spotsOf(items).map((spot) => this.#check(spot)))
  }

  /**
   * Makes a new generation of these items beside the one that answers, then lets it answer. `items` is called when everything that is added
   * has begun to go into both: so if what is added is first written where the items are read from, none is missing. One at a time: who
   * comes second is told `busy`.
   */
  async rebuild(items: BloomItems): Promise<BloomRebuilt> {
    if (typeof items !== 'function') throw invalid('items', 'a function that reads them', show(items))
    return rebuild(this.#store, this.size, this.#spotOf, items)
  }

  /** How full it is, by the bits that are set. Null: there is no filter, or a part of it is gone. */
  async fill(): Promise<BloomFill | null> {
    const { current } = await this.#store.news()
    if (!current) return null
    const counts = await this.#store.weigh(current)
    if (counts.includes(-1)) return null
    const bits = current.bytes * 8
    const sum = (of: (setBits: number) => number) => counts.reduce((all, setBits) => all + of(setBits), 0)
    const items = sum((setBits) => itemsOf(setBits, bits, current.hashes))
    this.#store.warnIfOver(current, items)
    return {
      capacity: current.capacity,
      bits: bits * current.chunks,
      hashes: current.hashes,
      setBits: sum((setBits) => setBits),
      items: Math.round(items),
      falsePositives: sum((setBits) => (setBits / bits) ** current.hashes) / current.chunks,
      isOver: items > current.capacity,
    }
  }

  /** A copy in this process that looks at Redis by itself, at once and then each 10 s, until it is closed. */
  mirror(options: BloomMirrorOptions = {}): BloomMirror {
    return new BloomMirror(this.#store, this.#spotOf, options)
  }

  /** Takes the filter away, with what is being built. False: there was none, or a first try took it whose answer was lost. */
  async drop(): Promise<boolean> {
    const wasThere = await this.#store.drop()
    tell(this.#context, 'bloom', 'dropped')
    return wasThere
  }

  async #begin(): Promise<'begun' | 'exists' | 'expired'> {
    for (;;) {
      const generation = newGeneration(this.size)
      await this.#store.make(generation)
      const result = await this.#store.begin(generation)
      // Lost: it took longer than its chunks live.
      if (result !== 'lost') return result
    }
  }

  async #add(spot: Spot): Promise<BloomAdded> {
    const answer = await this.#store.add(spot)
    const result = answer < 0 ? 'missing' : answer === 0 ? 'maybe' : 'new'
    tell(this.#context, 'bloom', result === 'missing' ? 'missing' : result === 'new' ? 'added' : 'added_again')
    return { result }
  }

  async #check(spot: Spot): Promise<BloomMembership> {
    const answer = await this.#store.check(spot)
    tell(this.#context, 'bloom', answer < 0 ? 'missing' : answer === 0 ? 'absent' : 'maybe')
    if (answer === 0) return { result: 'absent' }
    return { result: 'maybe', because: answer < 0 ? 'missing' : 'bits' }
  }

  #spotsOf(items: unknown): Spot[] {
    if (!Array.isArray(items)) throw invalid('items', 'an array', show(items))
    if (items.length > MANY_MAX) throw invalid('items', `at most ${MANY_MAX}`, `${items.length}`)
    return items.map((item) => this.#spotOf(item))
  }
}
