import { RedisUnavailable, type Script, type ScriptArg } from '../../redis/index.js'
import {
  bloomAdd,
  bloomBegin,
  bloomCheck,
  bloomDrop,
  bloomFill,
  bloomMake,
  bloomNews,
  bloomOffer,
  bloomRead,
  bloomRenew,
  bloomSwap,
  bloomWeigh,
} from '../../redis/scripts.generated.js'
import { Calls, callOnce, damaged } from '../calls.js'
import { type Context, note, tell } from '../context.js'
import type { Scope } from '../keys.js'
import { chunkKey, chunkKeys, type Generation, NO_STATE, readState, type State } from './generation.js'
import { chunkOf, offsetsOf, type Spot } from './spot.js'

/** For how long what is being built outlives who builds it, and an old generation the one that took its place. */
export const BUILD_TTL_MS = 60_000
const OLD_TTL_MS = 60_000
/** A state changes with a rebuild. To find another one each time one looks, so often in a row, is not to be expected. */
const TRIES_MAX = 8
/** Chunks hold as many items as each other within a percent: this many times its share is no chance any more. */
const OVER = 1.05

/**
 * A filter as it lies in Redis: what its scripts can do. They name their keys, so the caller has to know which generation answers; it
 * says which one it knows with each call, and is told when it is another one.
 */
export class BloomStore {
  /** Who wants to hear what this process has added. */
  readonly learners = new Set<(spot: Spot) => void>()
  /** As last seen. */
  #state: State = NO_STATE
  #overIn: string | undefined
  readonly #add: Calls
  readonly #check: Calls
  readonly #fill: Calls

  constructor(
    readonly context: Context,
    readonly scope: Scope,
    /** When the filter ends, ms since 1970; 0: it does not. */
    readonly endsAtMs: number,
  ) {
    this.#add = new Calls(context, 'bloom', bloomAdd)
    this.#check = new Calls(context, 'bloom', bloomCheck)
    this.#fill = new Calls(context, 'bloom', bloomFill)
  }

  /** How many were new in its chunk for sure, this one included; 0: not new for sure; −1: there is no filter. */
  add(spot: Spot): Promise<number> {
    return this.#follow(async ({ text, current, next }) => {
      const { key, args } = this.#place(spot, current)
      const later = this.#place(spot, next)
      const answer = await this.#add.add(this.scope, [this.scope.base, key, later.key], [text, ...args, ...later.args])
      if (typeof answer !== 'number') return this.#changed(answer)
      this.#watch(current, answer)
      for (const learn of this.learners) learn(spot)
      return answer
    })
  }

  /** 1: all bits are set; 0: not all; −1: there is no filter. */
  check(spot: Spot): Promise<number> {
    return this.#follow(async ({ current }) => {
      const { key, args } = this.#place(spot, current)
      const answer = await this.#check.add(this.scope, [this.scope.base, key], [current?.text ?? '', ...args])
      return typeof answer === 'number' ? answer : this.#changed(answer)
    })
  }

  /** Into what is being built. False: it is not, any more. */
  async fill(next: Generation, spot: Spot): Promise<boolean> {
    const { key, args } = this.#place(spot, next)
    const answer = (await this.#fill.add(this.scope, [this.scope.base, key], [next.text, ...args])) as number
    this.#watch(next, answer)
    return answer >= 0
  }

  /** What answers now, and the marks of its chunks, none where one is gone. */
  news(): Promise<{ readonly current: Generation | null; readonly marks: readonly Buffer[] }> {
    return this.#follow(async ({ current }) => {
      const keys = chunkKeys(this.scope, current)
      const args = [keys.length, current?.text ?? '', current?.bytes ?? 0]
      const answer = await this.#call(bloomNews, [this.scope.base, ...keys], args)
      if (!Array.isArray(answer)) return this.#changed(answer)
      return { current, marks: answer as Buffer[] }
    })
  }

  /** Chunks as bytes, none where one is gone. A generation whose place was taken can be read for a while. */
  async read(generation: Generation, indexes: readonly number[]): Promise<Buffer[]> {
    return (await this.#ofChunks(bloomRead, generation, indexes)) as Buffer[]
  }

  /** How many bits are set in each chunk, −1 where it is gone. */
  async weigh(generation: Generation): Promise<number[]> {
    const all = Array.from({ length: generation.chunks }, (_, chunk) => chunk)
    return (await this.#ofChunks(bloomWeigh, generation, all)) as number[]
  }

  /** Empty chunks that end by themselves, unless they become part of the filter. */
  async make(generation: Generation): Promise<void> {
    for (const keys of portions(chunkKeys(this.scope, generation), bloomMake.batchMax as number)) {
      await this.#call(bloomMake, keys, [keys.length, generation.bytes, BUILD_TTL_MS])
    }
  }

  async begin(generation: Generation): Promise<'begun' | 'exists' | 'lost' | 'expired'> {
    const { chunks, text, bytes } = generation
    const keys = [this.scope.base, ...chunkKeys(this.scope, generation)]
    return String(await this.#call(bloomBegin, keys, [chunks, text, bytes, this.endsAtMs])) as 'begun'
  }

  offer(generation: Generation): Promise<'building' | 'busy'> {
    return this.#follow(async ({ next }) => {
      const witness = next ? chunkKey(this.scope, next, 0) : this.scope.base
      const args = [next?.text ?? '', generation.text, BUILD_TTL_MS]
      const answer = await this.#call(bloomOffer, [this.scope.base, witness], args)
      const word = String(answer)
      return word === 'building' || word === 'busy' ? word : this.#changed(answer)
    })
  }

  /** False: it is not being built any more. */
  async renew(generation: Generation): Promise<boolean> {
    const { chunks, text, bytes } = generation
    const keys = [this.scope.base, ...chunkKeys(this.scope, generation)]
    return (await this.#call(bloomRenew, keys, [chunks, text, bytes, BUILD_TTL_MS])) === 1
  }

  swap(generation: Generation): Promise<'swapped' | 'lost' | 'expired'> {
    return this.#follow(async ({ current }) => {
      const [ours, old] = [chunkKeys(this.scope, generation), chunkKeys(this.scope, current)]
      const { text, bytes } = generation
      const answer = await this.#call(
        bloomSwap,
        [this.scope.base, ...ours, ...old],
        [ours.length + old.length, current?.text ?? '', text, ours.length, bytes, this.endsAtMs, OLD_TTL_MS],
      )
      const word = String(answer)
      return word === 'swapped' || word === 'lost' || word === 'expired' ? word : this.#changed(answer)
    })
  }

  /** What was being built, if it still is. */
  abandon({ text }: Generation): Promise<void> {
    return this.#follow(async ({ text: known, current, next }) => {
      const isOurs = next?.text === text
      const keys = isOurs ? chunkKeys(this.scope, next) : []
      const left = isOurs ? `${current?.text ?? ''} ` : known
      const answer = await this.#call(bloomDrop, [this.scope.base, ...keys], [keys.length, known, left])
      return typeof answer === 'number' ? undefined : this.#changed(answer)
    })
  }

  /** All of it. False: there was nothing. */
  drop(): Promise<boolean> {
    return this.#follow(async ({ text, current, next }) => {
      const keys = [...chunkKeys(this.scope, current), ...chunkKeys(this.scope, next)]
      const answer = await this.#call(bloomDrop, [this.scope.base, ...keys], [keys.length, text, NO_STATE.text])
      return typeof answer === 'number' ? answer === 1 : this.#changed(answer)
    })
  }

  /** More items than the filter was made for: it still forgets none, but says `maybe` more often than it should. */
  warnIfOver({ id, capacity }: Generation, items: number): void {
    if (items <= capacity * OVER) return
    tell(this.context, 'bloom', 'over_capacity')
    if (this.#overIn === id) return
    this.#overIn = id
    note(this.context, 'bloom_over_capacity', this.scope, { capacity, items: Math.round(items) })
  }

  #watch(generation: Generation | null, countInChunk: number): void {
    if (generation && countInChunk > 0) this.warnIfOver(generation, countInChunk * generation.chunks)
  }

  #place(spot: Spot, generation: Generation | null): { key: string; args: readonly [number, string] } {
    if (!generation) return { key: this.scope.base, args: [0, ''] }
    const key = chunkKey(this.scope, generation, chunkOf(spot, generation))
    return { key, args: [generation.bytes, offsetsOf(spot, generation).join(' ')] }
  }

  /** In portions: others are served in between. */
  async #ofChunks(script: Script, generation: Generation, indexes: readonly number[]): Promise<unknown[]> {
    const answers: unknown[] = []
    for (const part of portions(indexes, script.batchMax as number)) {
      const keys = part.map((chunk) => chunkKey(this.scope, generation, chunk))
      answers.push(...((await this.#call(script, keys, [keys.length, generation.bytes])) as unknown[]))
    }
    return answers
  }

  #call(script: Script, keys: readonly string[], args: readonly ScriptArg[]): Promise<unknown> {
    return callOnce(this.context, this.scope, script, keys, args)
  }

  /** Until it meets the state that it was made for. */
  async #follow<T>(act: (state: State) => Promise<T | typeof CHANGED>): Promise<T> {
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const answer = await act(this.#state)
      if (answer !== CHANGED) return answer
    }
    throw new RedisUnavailable('not_executed', `the filter changed ${TRIES_MAX} times while it was asked`)
  }

  #changed(answer: unknown): typeof CHANGED {
    const state = readState(String(answer))
    if (!state) {
      tell(this.context, 'bloom', 'damaged')
      throw damaged(this.scope)
    }
    this.#state = state
    return CHANGED
  }
}

const CHANGED = Symbol('changed')

function portions<T>(all: readonly T[], size: number): T[][] {
  const parts: T[][] = []
  for (let from = 0; from < all.length; from += size) parts.push(all.slice(from, from + size))
  return parts
}
