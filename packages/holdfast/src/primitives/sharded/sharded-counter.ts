import { HoldfastError } from '../../errors/index.js'
import { amount, integer, invalid, kind, namesOf, options as optionsOf, show, text } from '../../input/index.js'
import type { Script } from '../../redis/index.js'
import { shardedAdd, shardedRead, shardedReset, shardedTake } from '../../redis/scripts.generated.js'
import { Calls } from '../calls.js'
import { type Context, tell } from '../context.js'
import { durationMs, KeySpace, type Purpose, type Scope } from '../keys.js'
import { inLanes } from '../lanes.js'
import { type Lifetime, lifetime, purposeFor } from '../lifetime.js'
import type { Primitives } from '../primitives.js'
import { instantMs } from '../time.js'
import { windowPart } from '../window/label.js'
import { type ShardedTotal, Totals } from './totals.js'

interface ShardsOptions {
  /** Over how many keys, and slots of a Cluster, each count is spread. It may grow later, and never shrink. Default 64, at most 1,024. */
  readonly shards?: number
}

interface LivedOptions extends ShardsOptions {
  /** How long each shard stays from its first write on. `none`: until it is reset; that has to be said. */
  readonly ttlMs: Lifetime
  readonly windowMs?: never
}

interface WindowedOptions extends ShardsOptions {
  /** Counts by windows, which begin at multiples of it in UTC. */
  readonly windowMs: number
  readonly ttlMs?: never
  /** For how long a window stays readable after its end. Default one minute. */
  readonly bufferMs?: number
}

export type ShardedCounterOptions = LivedOptions | WindowedOptions

const OPTION_NAMES = namesOf<LivedOptions & WindowedOptions>({
  shards: true,
  ttlMs: true,
  windowMs: true,
  bufferMs: true,
})

export interface ShardedRead {
  /** In which window it is looked. Default now; without windows there is nothing to choose. */
  readonly at?: Date
}

export interface ShardedCall extends ShardedRead {
  /** How much. Default 1. */
  readonly by?: number
  /** The same word leads to the same shard, so that what it added can be taken back to the last. Default: any shard, by chance. */
  readonly spreadBy?: string
}

const READ_NAMES = namesOf<ShardedRead>({ at: true })
const CALL_NAMES = namesOf<ShardedCall>({ at: true, by: true, spreadBy: true })
const APPROXIMATE_NAMES = namesOf<ShardedRead & { maxAgeMs?: number }>({ at: true, maxAgeMs: true })

interface Place {
  readonly words: readonly string[]
  /** Of the window, if there are any. */
  readonly part: string | null
}

const MINUTE_MS = 60_000
const SHARDS_MAX = 1_024
const DEFAULT_SHARDS = 64
/** Calls of one reading under way. */
const LANES = 64
/** How often a refund looks for what is left elsewhere, when others take from it at the same time. */
const ROUNDS_MAX = 3
const DEFAULT_AGE_MS = 1_000

/**
 * A count for what happens too often for one key: it is spread over shards, each a scope of its own, so that on a Cluster all nodes take
 * their part of it. To add is as cheap as with one key; to read the exact sum all shards are asked.
 */
export class ShardedCounter {
  readonly shards: number
  readonly #ttlMs: Lifetime
  readonly #windowMs: number | null
  readonly #context: Context
  readonly #purpose: Purpose
  readonly #space: KeySpace
  readonly #totals: Totals
  readonly #add: Calls
  readonly #take: Calls
  readonly #read: Calls
  readonly #reset: Calls

  constructor({ context }: Primitives, operation: string, options: ShardedCounterOptions) {
    const { shards = DEFAULT_SHARDS, ttlMs, windowMs, bufferMs } = optionsOf('options', options, OPTION_NAMES)
    if ((ttlMs === undefined) === (windowMs === undefined)) {
      throw invalid('options', 'either ttlMs or windowMs', ttlMs === undefined ? 'neither' : 'both')
    }
    this.shards = integer('shards', shards, 1, SHARDS_MAX)
    this.#windowMs = windowMs === undefined ? null : durationMs('windowMs', windowMs)
    if (this.#windowMs === null && bufferMs !== undefined)
      throw invalid('bufferMs', 'none without windowMs', show(bufferMs))
    this.#ttlMs =
      this.#windowMs === null
        ? lifetime('ttlMs', ttlMs)
        : this.#windowMs + durationMs('bufferMs', bufferMs ?? MINUTE_MS, 0)
    this.#context = context
    this.#purpose = purposeFor('sharded', this.#ttlMs)
    this.#space = new KeySpace(context, this.#purpose, operation)
    this.#totals = new Totals(context.now)
    const calls = (script: Script) => new Calls(context, this.#purpose, script)
    this.#add = calls(shardedAdd)
    this.#take = calls(shardedTake)
    this.#read = calls(shardedRead)
    this.#reset = calls(shardedReset)
  }

  /** Past 2^53 − 1 in one shard it is `counter_overflow`, and nothing was added. */
  async add(of: string | readonly string[], call: ShardedCall = {}): Promise<void> {
    const by = amount('by', optionsOf('options', call, CALL_NAMES).by ?? 1, 1)
    const [scope, key] = this.#shard(this.#place(of, call), this.#choose(call) ?? this.#any())
    const isOver = String(await this.#add.add(scope, [key], [by, this.#ttlMs])) === 'over'
    tell(this.#context, this.#purpose, isOver ? 'overflow' : 'added')
    if (isOver) throw new HoldfastError('counter_overflow', undefined, { by })
  }

  /** The sum of all shards. */
  async read(of: string | readonly string[], call: ShardedRead = {}): Promise<ShardedTotal> {
    return this.#sum(this.#place(of, optionsOf('options', call, READ_NAMES)))
  }

  /** A sum that this process has read not longer ago than `maxAgeMs` (default 1 s), or else reads now. */
  async approximate(
    of: string | readonly string[],
    call: ShardedRead & { readonly maxAgeMs?: number } = {},
  ): Promise<ShardedTotal> {
    const { maxAgeMs: asked = DEFAULT_AGE_MS } = optionsOf('options', call, APPROXIMATE_NAMES)
    const maxAgeMs = durationMs('maxAgeMs', asked, 0)
    const place = this.#place(of, call)
    // Hashed, and so checked: what is no scope must not get the sum of one that it looks like.
    const name = `${this.#space.hash(place.words)}:${place.part ?? ''}`
    return this.#totals.get(name, maxAgeMs, () => this.#sum(place))
  }

  /**
   * Takes back what did not happen after all, as far as it is there: `refunded` is how much that was. With `spreadBy` only from the shard
   * that it leads to; otherwise from any, and from several where one has not enough. When it fails between two of them a part may be taken:
   * its `outcome` is then `unknown`.
   */
  async refund(of: string | readonly string[], call: ShardedCall = {}): Promise<{ readonly refunded: number }> {
    const by = amount('by', optionsOf('options', call, CALL_NAMES).by ?? 1, 1)
    const place = this.#place(of, call)
    const chosen = this.#choose(call)
    let left = by - (await this.#takeFrom(place, chosen ?? this.#any(), by))
    let isUntouched = left === by
    try {
      for (let round = 1; left > 0 && chosen === null && round <= ROUNDS_MAX; round += 1) {
        const wanted = planOf(await this.#counts(place), left)
        if (wanted.length === 0) break
        isUntouched = false
        await inLanes(wanted, LANES, async ([shard, most]) => {
          const taken = await this.#takeFrom(place, shard, most)
          left -= taken
        })
      }
    } catch (error) {
      throw isUntouched ? error : partly(error)
    }
    tell(this.#context, this.#purpose, left === 0 ? 'refunded' : 'refunded_less')
    return { refunded: by - left }
  }

  /** Begins anew. What is added at the same time stays or goes. True: there was something to forget. */
  async reset(of: string | readonly string[], call: ShardedRead = {}): Promise<boolean> {
    const gone = await this.#each(this.#place(of, optionsOf('options', call, READ_NAMES)), this.#reset)
    this.#totals.clear()
    tell(this.#context, this.#purpose, 'reset')
    return gone.includes(1)
  }

  #place(of: string | readonly string[], { at }: { readonly at?: unknown }): Place {
    const atMs = instantMs('at', at, this.#context.now)
    if (typeof of !== 'string' && (!Array.isArray(of) || of.length === 0)) {
      throw invalid('scope', 'a string or some strings', kind(of))
    }
    const words = typeof of === 'string' ? [of] : [...of]
    const windowMs = this.#windowMs
    return { words, part: windowMs === null ? null : windowPart(atMs - (atMs % windowMs), windowMs) }
  }

  #any(): number {
    return Math.floor(Math.random() * this.shards)
  }

  #choose({ spreadBy }: ShardedCall): number | null {
    if (spreadBy === undefined) return null
    return Number.parseInt(this.#space.hash(text('spreadBy', spreadBy)).slice(0, 8), 16) % this.shards
  }

  /** A scope of its own, and with it a slot of its own: that is what spreads it. */
  #shard({ words, part }: Place, shard: number): [Scope, string] {
    const scope = this.#space.scope([...words, `${shard}`])
    return [scope, part === null ? scope.base : scope.key(part)]
  }

  async #takeFrom(place: Place, shard: number, most: number): Promise<number> {
    const [scope, key] = this.#shard(place, shard)
    return Number(await this.#take.add(scope, [key], [most]))
  }

  async #sum(place: Place): Promise<ShardedTotal> {
    const asOf = new Date(this.#context.now())
    const counts = await this.#counts(place)
    return { count: counts.reduce((sum, count) => sum + BigInt(count), 0n), asOf }
  }

  async #counts(place: Place): Promise<number[]> {
    return (await this.#each(place, this.#read)).map(Number)
  }

  async #each(place: Place, calls: Calls): Promise<unknown[]> {
    const answers: unknown[] = []
    const shards = Array.from({ length: this.shards }, (_, shard) => shard)
    await inLanes(shards, LANES, async (shard) => {
      const [scope, key] = this.#shard(place, shard)
      answers[shard] = await calls.add(scope, [key], [])
    })
    return answers
  }
}

/** Whatever became of the call that failed, those before it and beside it may have taken something: who repeats the refund takes that again. */
function partly(error: unknown): unknown {
  if (!(error instanceof HoldfastError)) return error
  const { code, message, facts } = error
  return new HoldfastError(
    code,
    `${message}; a part may be taken back`,
    { ...facts, outcome: 'unknown' },
    { cause: error },
  )
}

/** From which shards to take how much at most: of the fullest first, so that few are asked. */
function planOf(counts: readonly number[], wanted: number): [shard: number, most: number][] {
  const plan: [number, number][] = []
  let left = wanted
  for (const [shard, count] of [...counts.entries()].sort(([, a], [, b]) => b - a)) {
    const most = Math.min(count, left)
    if (most === 0) break
    plan.push([shard, most])
    left -= most
  }
  return plan
}
