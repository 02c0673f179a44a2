import { HoldfastError } from '../../errors/index.js'
import { integer, invalid, namesOf, oneOf, options as optionsOf, show } from '../../input/index.js'
import { exposureExpose, exposureFind } from '../../redis/scripts.generated.js'
import { Bitmap, Bitmaps } from '../activity/bitmap.js'
import { DAY_MS } from '../activity/day.js'
import { type DenseIndex, type Id, indexOf } from '../activity/dense-index.js'
import { sawPosition } from '../activity/highest.js'
import { Calls } from '../calls.js'
import { type Context, note, tell } from '../context.js'
import { durationMs, word } from '../keys.js'
import type { Primitives } from '../primitives.js'

export interface ExposureOptions<Variant extends string, Member> {
  /** 2 to 16. One may be added while the experiment runs. One that is left out is not forgotten: who has seen it gets no other. */
  readonly variants: readonly Variant[]
  /** That of an activity, to see who of a variant was active. Default: one of its own, which maps ids. */
  readonly index?: DenseIndex<Member>
  /** For how long all of it is kept, from the first exposure on. Default 90 days. */
  readonly ttlMs?: number
}

const OPTION_NAMES = namesOf<ExposureOptions<string, unknown>>({ variants: true, index: true, ttlMs: true })

export type Exposed<Variant extends string> =
  /** `repeated`: it was this variant before. */
  | { readonly result: 'exposed' | 'repeated'; readonly variant: Variant }
  /** It was another one before, and that stays. Null: one that is not declared here. */
  | { readonly result: 'kept'; readonly variant: Variant | null }

export type ExposedTo<Variant extends string> =
  | { readonly isExposed: false }
  /** Null: to one that is not declared here. */
  | { readonly isExposed: true; readonly variant: Variant | null }

const TTL_MS = 90 * DAY_MS
const VARIANTS_MAX = 16
const ALL = 'all'

/** Who has seen which variant of an experiment, one bit for each. The first exposure wins: nobody is ever in two variants. */
export class Exposure<const Variant extends string, Member = Id> {
  readonly index: DenseIndex<Member>
  readonly variants: readonly Variant[]
  readonly ttlMs: number
  readonly #context: Context
  readonly #bitmaps: Bitmaps<Member>
  readonly #expose: Calls
  readonly #find: Calls

  constructor(primitives: Primitives, experiment: string, options: ExposureOptions<Variant, Member>) {
    const { variants, index, ttlMs = TTL_MS } = optionsOf('options', options, OPTION_NAMES)
    const { context } = primitives
    this.variants = checkVariants(variants) as readonly Variant[]
    this.ttlMs = durationMs('ttlMs', ttlMs)
    this.index = indexOf(primitives, experiment, index)
    this.#context = context
    this.#bitmaps = new Bitmaps(context, 'exposure', experiment, this.index)
    this.#expose = new Calls(context, 'exposure', exposureExpose)
    this.#find = new Calls(context, 'exposure', exposureFind)
  }

  /** Which variant the member has to be shown from now on is in the answer: it may have seen another one before. */
  async expose(member: Member, variant: Variant): Promise<Exposed<Variant>> {
    const { index, ttlMs } = this
    const which = this.variants.indexOf(oneOf('variant', variant, this.variants)) + 1
    const arg = index.argOf(member)
    const answer = await index.within(true, (generation) =>
      this.#expose.add(this.#bitmaps.scope, this.#keys(generation), [
        generation,
        arg,
        index.populationMax,
        ttlMs,
        which,
      ]),
    )
    if (!Array.isArray(answer)) {
      tell(this.#context, 'exposure', 'full')
      throw new HoldfastError('index_full', undefined, { populationMax: index.populationMax })
    }
    const [isFirst, seen, position] = answer as [number, number, number]
    sawPosition(this.#context, 'exposure', position)
    const exposed = this.#exposed(isFirst === 1, seen, variant)
    tell(this.#context, 'exposure', exposed.result)
    if (exposed.result === 'kept') note(this.#context, 'exposure_kept', this.#bitmaps.scope, { asked: variant })
    return exposed
  }

  /** Without exposing anybody. `isExposed` with `variant: null`: to one that this process does not know. */
  async variantOf(member: Member): Promise<ExposedTo<Variant>> {
    const arg = this.index.argOf(member)
    const seen = (await this.index.within(false, (generation) =>
      this.#find.add(this.#bitmaps.scope, this.#keys(generation), [generation, arg]),
    )) as number
    return seen < 0 ? { isExposed: false } : { isExposed: true, variant: this.variants[seen - 1] ?? null }
  }

  /** How many were exposed to each. They are counted one by one, so what happens meanwhile may be in one and not yet in another. */
  async counts(): Promise<Record<Variant, number>> {
    const counts = await Promise.all(
      this.variants.map(async (one) => [one, (await this.of(one).count()) ?? 0] as const),
    )
    return Object.fromEntries(counts) as Record<Variant, number>
  }

  /** Those of a variant, to be combined with others of the same index. Asks nobody. */
  of(variant: Variant): Bitmap<Member> {
    return new Bitmap(this.#bitmaps, partOf(oneOf('variant', variant, this.variants)), false)
  }

  /** Who was exposed to any variant, declared here or not. */
  all(): Bitmap<Member> {
    return new Bitmap(this.#bitmaps, ALL, false)
  }

  #keys(generation: string): string[] {
    const parts = [ALL, ...this.variants.map(partOf)]
    return [this.index.scope.base, ...parts.map((part) => this.#bitmaps.key(part, generation))]
  }

  #exposed(isFirst: boolean, seen: number, asked: Variant): Exposed<Variant> {
    if (isFirst) return { result: 'exposed', variant: asked }
    const variant = this.variants[seen - 1] ?? null
    return variant === asked ? { result: 'repeated', variant } : { result: 'kept', variant }
  }
}

const partOf = (variant: string): string => `variant.${variant}`

function checkVariants(value: unknown): readonly string[] {
  if (!Array.isArray(value)) throw invalid('variants', 'an array of names', show(value))
  integer('variants.length', value.length, 2, VARIANTS_MAX)
  const names = value.map((one) => word('variants', one))
  if (new Set(names).size < names.length) throw invalid('variants', 'each name once', 'one twice')
  return names
}
