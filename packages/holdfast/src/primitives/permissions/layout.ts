import { integer, invalid, options as optionsOf, show } from '../../input/index.js'
import { layoutHash, layoutVersion } from '../layout.js'

export interface PermissionsLayout<Name extends string> {
  /** 1 to 9,999. Names that change, come or go need another one. */
  readonly version: number
  /** Up to 256. Which bit a name has is its place here. */
  readonly names: readonly Name[]
}

export interface OlderLayout<Name extends string> extends PermissionsLayout<string> {
  /** What names of then are called now; null: it is dropped. Those that are called the same need not be named. */
  readonly renamed?: Readonly<Record<string, Name | null>>
}

const NAMES_MAX = 256
const NAME = /^[A-Za-z0-9_.:-]{1,64}$/

/** Names, and the bits that stand for them. */
export class Layout<Name extends string> {
  readonly version: number
  readonly names: readonly Name[]
  readonly hash: Buffer
  readonly bytes: number
  readonly #places: ReadonlyMap<string, number>

  constructor(given: unknown, what = '') {
    const { version, names } = optionsOf(`${what}options`, given)
    this.version = layoutVersion(`${what}version`, version)
    this.names = checkNames(`${what}names`, names) as Name[]
    this.hash = layoutHash(this.version, this.names)
    this.bytes = Math.ceil(this.names.length / 8)
    this.#places = new Map(this.names.map((name, place) => [name, place]))
  }

  placeOf(name: string): number | undefined {
    return this.#places.get(name)
  }

  bitsOf(names: readonly Name[]): Buffer {
    const bits = Buffer.alloc(this.bytes)
    for (const name of names) {
      const place = this.#places.get(name) as number
      bits[place >> 3] = (bits[place >> 3] as number) | (128 >> (place & 7))
    }
    return bits
  }

  namesOf(bits: Buffer): Name[] {
    return this.names.filter((_, place) => ((bits[place >> 3] ?? 0) & (128 >> (place & 7))) !== 0)
  }
}

/** From each place of the older layout to that of the newer one, two bytes a name. */
export function movesFrom(older: Layout<string>, renamed: unknown, newer: Layout<string>): Buffer {
  const names = optionsOf('upgrade.renamed', renamed)
  for (const name of Object.keys(names)) {
    if (older.placeOf(name) === undefined) throw invalid('upgrade.renamed', 'names of the older layout', 'another one')
  }
  const moves: number[] = []
  for (const [from, name] of older.names.entries()) {
    const now = Object.hasOwn(names, name) ? names[name] : name
    if (now === null) continue
    const to = newer.placeOf(String(now))
    // To forget one is easy, and then somebody has lost a permission and nobody knows why.
    if (to === undefined)
      throw invalid('upgrade.renamed', `what '${name}' is called now, or null to drop it`, show(now))
    moves.push(from, to)
  }
  return Buffer.from(moves)
}

function checkNames(what: string, value: unknown): readonly string[] {
  if (!Array.isArray(value)) throw invalid(what, 'an array of names', show(value))
  integer(`${what}.length`, value.length, 1, NAMES_MAX)
  for (const name of value) {
    if (typeof name !== 'string' || !NAME.test(name)) {
      throw invalid(what, '1 to 64 characters of A-Z, a-z, 0-9, _, ., : and -', show(name))
    }
  }
  if (new Set(value).size < value.length) throw invalid(what, 'each name once', 'one twice')
  return [...value]
}
