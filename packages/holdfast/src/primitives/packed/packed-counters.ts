import { invalid, invalidAmount, namesOf, oneOf, options as optionsOf, show } from '../../input/index.js'
import { packedGet, packedIncrement, packedReset, packedSet } from '../../redis/scripts.generated.js'
import { Calls } from '../calls.js'
import { type Context, tell } from '../context.js'
import { KeySpace, type Purpose } from '../keys.js'
import { type Lifetime, lifetime, purposeFor } from '../lifetime.js'
import type { Primitives } from '../primitives.js'
import { type FieldType, PackedLayout, type PlacedField } from './layout.js'

/**
 * What happens to a field that would leave its range. `wrap`: it begins again at the other end. `saturate`: it stays at the end.
 * `fail-field`: it stays as it is, and the others are incremented. `fail-all`: none is.
 */
export type Overflow = 'wrap' | 'saturate' | 'fail-field' | 'fail-all'

export interface PackedCountersOptions<Fields extends Readonly<Record<string, FieldType>>> {
  /** 1 to 9,999. Fields that change, come or go need another one, and then begin at 0. */
  readonly version: number
  readonly fields: Fields
  /** For how long, from the first write on. `none`: for good; that has to be said. */
  readonly ttlMs: Lifetime
  /** Default `fail-all`. */
  readonly overflow?: Overflow
}

const OPTION_NAMES = namesOf<PackedCountersOptions<Readonly<Record<string, FieldType>>>>({
  version: true,
  fields: true,
  ttlMs: true,
  overflow: true,
})
const CALL_NAMES = namesOf<{ overflow?: Overflow }>({ overflow: true })

export interface Incremented<Field extends string> {
  /** `partly`: only with `fail-field`. `refused`: nothing was changed. */
  readonly result: 'applied' | 'partly' | 'refused'
  /** Of those that were asked for, after the call. */
  readonly values: Readonly<Record<Field, number>>
  /** Which of them left their range, or would have. */
  readonly overflowed: readonly Field[]
}

const OVERFLOWS: Readonly<Record<Overflow, string>> = {
  wrap: 'WRAP',
  saturate: 'SAT',
  'fail-field': 'FAIL_FIELD',
  'fail-all': 'FAIL_ALL',
}

/** Several small numbers of one scope in one string: a few bytes instead of a key or a hash for each. */
export class PackedCounters<const Fields extends Readonly<Record<string, FieldType>>> {
  readonly #context: Context
  readonly #purpose: Purpose
  readonly #space: KeySpace
  readonly #layout: PackedLayout
  readonly #ttlMs: number | ''
  readonly #overflow: Overflow
  readonly #get: Calls
  readonly #set: Calls
  readonly #increment: Calls
  readonly #reset: Calls

  constructor({ context }: Primitives, operation: string, options: PackedCountersOptions<Fields>) {
    const { version, fields, ttlMs, overflow = 'fail-all' } = optionsOf('options', options, OPTION_NAMES)
    this.#layout = new PackedLayout(version, fields)
    const keep = lifetime('ttlMs', ttlMs)
    this.#ttlMs = keep === 'none' ? '' : keep
    this.#overflow = checkOverflow(overflow)
    this.#context = context
    this.#purpose = purposeFor('packed', keep)
    this.#space = new KeySpace(context, this.#purpose, operation)
    this.#get = new Calls(context, this.#purpose, packedGet)
    this.#set = new Calls(context, this.#purpose, packedSet)
    this.#increment = new Calls(context, this.#purpose, packedIncrement)
    this.#reset = new Calls(context, this.#purpose, packedReset)
  }

  /** Where each field lies, for who has to look at one with BITFIELD. */
  get layout(): readonly PlacedField[] {
    return [...this.#layout.fields.values()]
  }

  /** All of them, or those that are named; 0 where nothing was written. */
  async get<Field extends keyof Fields & string = keyof Fields & string>(
    scope: string | readonly string[],
    names?: readonly Field[],
  ): Promise<Record<Field, number>> {
    const fields = names === undefined ? this.layout : this.#named(names)
    const reads = fields.map(({ type, firstBit }) => `${type} ${firstBit}`)
    const place = this.#place(scope)
    return valuesOf(fields, await this.#get.add(place.scope, place.keys, [...place.args, reads.join(' ')]))
  }

  /** Only what fits: a number outside of its field is `invalid_amount`, before anything is asked. Says whether there was nothing before. */
  async set(
    scope: string | readonly string[],
    values: Readonly<Partial<Record<keyof Fields & string, number>>>,
  ): Promise<'created' | 'set'> {
    const writes = this.#given('values', values, ({ min, max }) => [min, max])
    const place = this.#place(scope)
    const args = [...place.args, this.#ttlMs, writes.map(({ text }) => text).join(' ')]
    const isNew = (await this.#set.add(place.scope, place.keys, args)) === 1
    tell(this.#context, this.#purpose, 'set')
    return isNew ? 'created' : 'set'
  }

  /** Each by its own number, which may be below 0, in one step. */
  async increment<Field extends keyof Fields & string>(
    scope: string | readonly string[],
    by: Readonly<Partial<Record<Field, number>>>,
    options: { readonly overflow?: Overflow } = {},
  ): Promise<Incremented<Field>> {
    const overflow = checkOverflow(optionsOf('options', options, CALL_NAMES).overflow ?? this.#overflow)
    const steps = this.#given('by', by, () => [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER])
    const place = this.#place(scope)
    const text = steps.map((step) => step.text).join(' ')
    const args = [...place.args, this.#ttlMs, OVERFLOWS[overflow], text]
    const [values, left] = (await this.#increment.add(place.scope, place.keys, args)) as [unknown, number[]]
    const fields = steps.map(({ field }) => field)
    const overflowed = fields.filter((_, at) => left[at] === 1).map(({ name }) => name as Field)
    const result = resultOf(overflow, overflowed.length, fields.length)
    tell(this.#context, this.#purpose, result)
    return { result, values: valuesOf(fields, values), overflowed }
  }

  /** All fields are 0 again, also where what was there can't be read. False: nothing was there. */
  async reset(scope: string | readonly string[]): Promise<boolean> {
    const place = this.#place(scope)
    const isForgotten = (await this.#reset.add(place.scope, place.keys, [])) === 1
    tell(this.#context, this.#purpose, 'reset')
    return isForgotten
  }

  #place(of: string | readonly string[]) {
    const { version, hash, bytes } = this.#layout
    const scope = this.#space.scope(of)
    return { scope, keys: [scope.key(`v${version}`)], args: [hash, bytes] }
  }

  #field(name: unknown): PlacedField {
    const { fields } = this.#layout
    return fields.get(oneOf('field', name, [...fields.keys()])) as PlacedField
  }

  #named(names: unknown): PlacedField[] {
    if (!Array.isArray(names) || names.length === 0) throw invalid('names', 'some names of fields', show(names))
    return [...new Set(names)].map((name) => this.#field(name))
  }

  #given(what: string, values: unknown, range: (field: PlacedField) => readonly [number, number]) {
    const entries = Object.entries(optionsOf(what, values)).filter(([, value]) => value !== undefined)
    if (entries.length === 0) throw invalid(what, 'a number for at least one field', 'none')
    return entries.map(([name, value]) => {
      const field = this.#field(name)
      return { field, text: `${field.type} ${field.firstBit} ${fitting(name, value, range(field))}` }
    })
  }
}

function fitting(name: string, value: unknown, [min, max]: readonly [number, number]): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value + 0
  throw invalidAmount(name, `an integer from ${min} to ${max}`, show(value))
}

const checkOverflow = (value: unknown): Overflow =>
  oneOf('overflow', value, ['wrap', 'saturate', 'fail-field', 'fail-all'])

function resultOf(overflow: Overflow, overflowed: number, asked: number): 'applied' | 'partly' | 'refused' {
  if (overflowed === 0 || overflow === 'wrap' || overflow === 'saturate') return 'applied'
  return overflow === 'fail-all' || overflowed === asked ? 'refused' : 'partly'
}

function valuesOf<Field extends string>(fields: readonly PlacedField[], digits: unknown): Record<Field, number> {
  const values = String(digits).split(' ').map(Number)
  return Object.fromEntries(fields.map(({ name }, at) => [name, values[at]])) as Record<Field, number>
}
