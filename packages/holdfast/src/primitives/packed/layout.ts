import { invalid, options as optionsOf, show } from '../../input/index.js'
import { LAYOUT_BYTES, layoutHash, layoutVersion } from '../layout.js'

/**
 * `u8`: from 0 to 255. `i8`: from −128 to 127. 1 to 53 bits: numbers of JavaScript, and of the scripts, are exact up to there, so wider
 * ones are refused rather than rounded.
 */
export type FieldType = `${'u' | 'i'}${Bits}`

// biome-ignore format: a row each ten
type Bits =
  | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10
  | 11 | 12 | 13 | 14 | 15 | 16 | 17 | 18 | 19 | 20
  | 21 | 22 | 23 | 24 | 25 | 26 | 27 | 28 | 29 | 30
  | 31 | 32 | 33 | 34 | 35 | 36 | 37 | 38 | 39 | 40
  | 41 | 42 | 43 | 44 | 45 | 46 | 47 | 48 | 49 | 50
  | 51 | 52 | 53

export interface PlacedField {
  readonly name: string
  readonly type: FieldType
  /** Its first bit in the string, as BITFIELD counts them. */
  readonly firstBit: number
  readonly min: number
  readonly max: number
}

const BITS_MAX = 53
const FIELDS_MAX = 64
const TYPE = /^([ui])(\d{1,2})$/
const NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/

/** Where each field lies: side by side, in the order of their names, so that two who list them differently mean the same. */
export class PackedLayout {
  readonly version: number
  readonly hash: Buffer
  readonly bytes: number
  readonly fields: ReadonlyMap<string, PlacedField>

  constructor(version: unknown, fields: unknown) {
    this.version = layoutVersion('version', version)
    const given = Object.entries(optionsOf('fields', fields)).sort(([a], [b]) => (a < b ? -1 : 1))
    if (given.length < 1 || given.length > FIELDS_MAX) {
      throw invalid('fields', `1 to ${FIELDS_MAX} fields by their names`, `${given.length}`)
    }
    const placed = new Map<string, PlacedField>()
    let firstBit = LAYOUT_BYTES * 8
    for (const [name, type] of given) {
      if (!NAME.test(name))
        throw invalid('fields', 'names of 1 to 64 letters, digits, _ and -, no digit first', show(name))
      const bits = bitsOf(name, type)
      placed.set(name, { name, type: type as FieldType, firstBit, ...rangeOf(type as FieldType, bits) })
      firstBit += bits
    }
    this.fields = placed
    this.bytes = Math.ceil(firstBit / 8) - LAYOUT_BYTES
    this.hash = layoutHash(
      this.version,
      given.map(([name, type]) => `${name}:${type}`),
    )
  }
}

function bitsOf(name: string, type: unknown): number {
  const [, , digits] = typeof type === 'string' ? (TYPE.exec(type) ?? []) : []
  const bits = Number(digits)
  if (!(bits >= 1 && bits <= BITS_MAX) || String(bits) !== digits) {
    throw invalid(`fields.${name}`, `'u1' to 'u${BITS_MAX}' or 'i1' to 'i${BITS_MAX}'`, show(type))
  }
  return bits
}

function rangeOf(type: FieldType, bits: number): { min: number; max: number } {
  if (type.startsWith('u')) return { min: 0, max: 2 ** bits - 1 }
  return { min: -(2 ** (bits - 1)), max: 2 ** (bits - 1) - 1 }
}
