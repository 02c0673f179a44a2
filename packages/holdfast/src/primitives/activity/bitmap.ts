import { invalid } from '../../input/index.js'
import { activityCount, activityHas, activityInspect } from '../../redis/scripts.generated.js'
import { Calls, callOnce } from '../calls.js'
import type { Context } from '../context.js'
import { KeySpace, type Purpose, Scope } from '../keys.js'
import type { DenseIndex } from './dense-index.js'

/** Bytes that are counted in one call: a quarter of a millisecond of the server for each MB. */
const COUNT_BYTES = 4 * 1_024 * 1_024

export interface BitmapFacts {
  /** The lowest position that is marked; null: none is. */
  readonly firstSet: number | null
  /** The lowest position that is not; null: all up to `populationMax` are marked. */
  readonly firstClear: number | null
  /** Of the bits: an eighth of the highest position. */
  readonly bytes: number
  /** Of Redis, as MEMORY USAGE tells it. */
  readonly memoryBytes: number
  /** Null: it has no end, though it should. */
  readonly leftMs: number | null
}

/** The bitmaps of one owner (an activity, an experiment) over an index. */
export class Bitmaps<Member> {
  readonly scope: Scope
  readonly #has: Calls

  constructor(
    readonly context: Context,
    purpose: Purpose,
    operation: string,
    readonly index: DenseIndex<Member>,
  ) {
    const { owner, tenant, runner } = index.context
    if (owner !== context.owner || tenant !== context.tenant || runner !== context.runner) {
      throw invalid('index', 'one of the same Primitives and tenant', 'one of another')
    }
    // The tag is the index's, so that all of them can be read and written with it.
    this.scope = new Scope(new KeySpace(context, purpose, operation), index.scope.hash)
    this.#has = new Calls(context, purpose, activityHas)
  }

  key(part: string, generation: string): string {
    return this.scope.key(`${generation}.${part}`)
  }

  async has(part: string, member: Member): Promise<boolean> {
    const { index } = this
    const arg = index.argOf(member)
    const answer = await index.within(false, (generation) =>
      this.#has.add(this.scope, [index.scope.base, this.key(part, generation)], [generation, arg]),
    )
    return answer === 1
  }
}

/** Members of an index who have something in common: those of a day, of a variant, of a cohort that was made of others. */
export class Bitmap<Member> {
  constructor(
    readonly of: Bitmaps<Member>,
    readonly part: string,
    /** Made at one time, so that it is an error to count on it when it is gone; a day on which nobody came just is not there. */
    readonly isMade: boolean,
  ) {}

  has(member: Member): Promise<boolean> {
    return this.of.has(this.part, member)
  }

  /** Null: there is none. Nobody was marked, or it has expired. */
  async count(): Promise<number | null> {
    const { context, scope } = this.of
    let asked = ''
    let count = 0
    for (let from = 0, bytes = 1; from < bytes; from += COUNT_BYTES) {
      const portion = (await this.#ask((keys, generation) => {
        // Of an index that was lost meanwhile nothing counts.
        if (asked !== generation) [asked, count, from] = [generation, 0, 0]
        return callOnce(context, scope, activityCount, keys, [generation, from, from + COUNT_BYTES - 1])
      })) as [number, number]
      if (portion[0] < 0) return null
      count += portion[0]
      bytes = portion[1]
    }
    return count
  }

  /** Null: there is none. */
  async inspect(): Promise<BitmapFacts | null> {
    const answer = (await this.#ask((keys, generation) =>
      callOnce(this.of.context, this.of.scope, activityInspect, keys, [generation]),
    )) as number[]
    const [set, clear, bytes, memoryBytes, leftMs] = answer as [number, number, number, number, number]
    if (answer.length === 0) return null
    return {
      firstSet: set < 0 ? null : set,
      firstClear: clear >= this.of.index.populationMax ? null : clear,
      bytes,
      memoryBytes,
      leftMs: leftMs < 0 ? null : leftMs,
    }
  }

  #ask(ask: (keys: readonly string[], generation: string) => Promise<unknown>): Promise<unknown> {
    const { index } = this.of
    return index.within(false, (generation) => ask([index.scope.base, this.of.key(this.part, generation)], generation))
  }
}
