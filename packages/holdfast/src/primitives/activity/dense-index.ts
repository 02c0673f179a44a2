import { randomBytes } from 'node:crypto'
import { HoldfastError } from '../../errors/index.js'
import { integer, invalid, namesOf, options as optionsOf, show } from '../../input/index.js'
import type { ScriptArg } from '../../redis/index.js'
import { activityIndexBegin, activityIndexFind, activityIndexInspect } from '../../redis/scripts.generated.js'
import { Calls, callOnce } from '../calls.js'
import { type Context, note, tell } from '../context.js'
import { KeySpace, type Scope } from '../keys.js'
import type { Primitives } from '../primitives.js'

/** Far below the 2^32 that Redis takes: 16 MB a bitmap. */
const POPULATION_MAX = 2 ** 27
const POPULATION_DEFAULT = 10_000_000
/** Index begun anew so often within one call: somebody removes it again and again. */
const TRIES_MAX = 5
const OWN = 'own'
const NONE = 'none'

export interface IndexOptions {
  /** How many positions there may be. Default 10 million: 1.25 MB for a bitmap that reaches to the last of them. */
  readonly populationMax?: number
}

const OPTION_NAMES = namesOf<IndexOptions>({ populationMax: true })

/** Whom a position is of: an id, which stands in Redis only as a hash. */
export type Id = string | readonly string[]

/** A position that the caller gives: dense, from 0, and never that of another. */
export interface OwnPosition {
  readonly index: number
}

/**
 * Who has which position in bitmaps. All bitmaps of an index lie in one slot with it, and only those of one index can be combined.
 *
 * The name of a bitmap carries the generation of the index that it was marked by. Positions are given out by Redis in the same step as they
 * are used, and no process remembers any: so a bitmap is never read with positions that are not its own, whatever was lost in between.
 */
export abstract class DenseIndex<Member> {
  readonly populationMax: number
  readonly context: Context
  readonly scope: Scope

  protected constructor({ context }: Primitives, name: string, options: IndexOptions) {
    const { populationMax = POPULATION_DEFAULT } = optionsOf('options', options, OPTION_NAMES)
    this.populationMax = integer('populationMax', populationMax, 1, POPULATION_MAX)
    this.context = context
    this.scope = new KeySpace(context, 'activity-index', name, 'member').whole
  }

  /** What scripts know a member by. */
  abstract argOf(member: Member): ScriptArg

  /**
   * Asks by the generation that is known here; a script that finds another one says so, and is asked again with that. `begins`: what is
   * asked needs an index, so where there is none one is begun.
   */
  abstract within(begins: boolean, ask: (generation: string) => Promise<unknown>): Promise<unknown>
}

export interface IndexFacts {
  /** Another one than before: the index was lost, and all bitmaps of before with it. */
  readonly generation: string
  /** Positions that are given out. */
  readonly size: number
  /** Of Redis, as MEMORY USAGE estimates it. */
  readonly memoryBytes: number
}

/** Gives every id the next free position, once and for good. It has no end: it outlives the bitmaps that count on it. */
export class MappedIndex extends DenseIndex<Id> {
  readonly #find: Calls
  #generation = NONE
  #beginning: Promise<void> | undefined

  constructor(primitives: Primitives, name: string, options: IndexOptions = {}) {
    super(primitives, name, options)
    this.#find = new Calls(this.context, 'activity-index', activityIndexFind)
  }

  /** The position of an id; null: it has none yet, and gets none by this. Don't keep it: after a loss it is another's. */
  async find(id: Id): Promise<number | null> {
    const digits = String(await this.#find.add(this.scope, [this.scope.base], [this.argOf(id)]))
    return digits === '' ? null : Number(digits)
  }

  /** Null: nobody was marked yet. */
  async inspect(): Promise<IndexFacts | null> {
    const answer = await callOnce(this.context, this.scope, activityIndexInspect, [this.scope.base], [])
    const [generation, size, memoryBytes] = answer as [Buffer?, number?, number?]
    if (generation === undefined) return null
    return { generation: String(generation), size: size as number, memoryBytes: memoryBytes as number }
  }

  override argOf(id: Id): Buffer {
    return Buffer.from(this.scope.space.hash(id), 'hex')
  }

  override async within(begins: boolean, ask: (generation: string) => Promise<unknown>): Promise<unknown> {
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const asked = this.#generation
      const answer = await ask(asked)
      const other = otherGeneration(answer)
      if (other === null) return answer
      // Whoever was answered meanwhile may know better already.
      if (this.#generation === asked) this.#learn(other)
      if (this.#generation === NONE && begins) await this.#begin()
    }
    throw new HoldfastError('unavailable', `the index began anew ${TRIES_MAX} times within one call`)
  }

  #learn(generation: string): void {
    if (this.#generation !== NONE && this.#generation !== generation) {
      tell(this.context, 'activity-index', 'lost')
      note(this.context, 'activity_index_lost', this.scope)
    }
    this.#generation = generation
  }

  /** For all who wait for one. A generation is proposed once and never again: bitmaps that carry one were all marked by the same index. */
  #begin(): Promise<void> {
    this.#beginning ??= this.#propose(randomBytes(8).toString('hex')).finally(() => {
      this.#beginning = undefined
    })
    return this.#beginning
  }

  async #propose(generation: string): Promise<void> {
    const { context, scope } = this
    const current = String(await callOnce(context, scope, activityIndexBegin, [scope.base], [generation]))
    if (current === generation) tell(context, 'activity-index', 'begun')
    this.#learn(current)
  }
}

/** Positions that the caller gives, because it has dense numbers already: rows that are numbered from 0. */
export class OwnIndex extends DenseIndex<OwnPosition> {
  constructor(primitives: Primitives, name: string, options: IndexOptions = {}) {
    super(primitives, name, options)
  }

  override argOf(member: OwnPosition): number {
    if (typeof member !== 'object' || member === null) throw invalid('member', 'an object with an index', show(member))
    return integer('index', member.index, 0, this.populationMax - 1)
  }

  override within(_: boolean, ask: (generation: string) => Promise<unknown>): Promise<unknown> {
    return ask(OWN)
  }
}

/** One that was given, or one of its own for whom none was. */
export function indexOf<Member>(primitives: Primitives, operation: string, index: unknown): DenseIndex<Member> {
  // Without one members are ids, as the default of the type says.
  if (index === undefined) return new MappedIndex(primitives, operation) as unknown as DenseIndex<Member>
  if (index instanceof DenseIndex) return index
  throw invalid('index', 'a MappedIndex or an OwnIndex', show(index))
}

const otherGeneration = (answer: unknown): string | null =>
  Array.isArray(answer) && answer[0] instanceof Buffer && answer[0].toString('latin1') === '~'
    ? String(answer[1])
    : null

export interface MemoryEstimate {
  /** Of one bitmap that reaches to the last of them. */
  readonly bitmapBytes: number
  /** Of the index, where ids are mapped; one of your own costs nothing. */
  readonly indexBytes: number
}

/** 16 bytes of hash, a position, and what Redis needs around them: measured as 72 to 90, by how full the table of the hash is. */
const INDEX_BYTES_EACH = 80

/** What so many members take in Redis. */
export function estimateMemory(members: number): MemoryEstimate {
  const population = integer('members', members, 0, POPULATION_MAX)
  return { bitmapBytes: Math.ceil(population / 8), indexBytes: population * INDEX_BYTES_EACH }
}
