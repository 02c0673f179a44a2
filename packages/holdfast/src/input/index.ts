import { HoldfastError } from '../errors/index.js'
import { misspelt, nearly } from './misspelt.js'

/**
 * What any argument is checked for, whoever takes it. Messages say what was expected and what came; the fact `argument` says which one it is,
 * and is never what came.
 */

const LENGTH_MAX = 255
const AMOUNT_MAX = Number.MAX_SAFE_INTEGER

const CONTROL = /\p{Cc}/u

/** An id, a key or a name: 1 to 255 characters unless another limit is given, no control characters, no half characters. */
export function text(name: string, value: unknown, max = LENGTH_MAX): string {
  if (typeof value !== 'string') throw invalid(name, 'a string', kind(value))
  if (value.length === 0 || value.length > max) {
    // A character is one unit or two: what is far too long need not be taken apart to see that.
    const length = value.length > 2 * max ? value.length : [...value].length
    if (length === 0 || length > max) throw invalid(name, `1 to ${max} characters`, `${length} characters`)
  }
  if (CONTROL.test(value)) throw invalid(name, 'no control characters', 'one with a control character')
  if (!value.isWellFormed()) throw invalid(name, 'well-formed Unicode', 'a lone surrogate')
  return value
}

/** An integer from `min` to 2^53 − 1. */
export function amount(name: string, value: unknown, min: 0 | 1): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < min) {
    throw invalidAmount(name, `an integer from ${min} to ${AMOUNT_MAX}`, show(value))
  }
  // Minus zero is a zero that prints differently.
  return value + 0
}

export function integer(name: string, value: unknown, min: number, max: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
    throw invalid(name, `an integer from ${min} to ${max}`, show(value))
  }
  return value + 0
}

export function oneOf<T extends string>(name: string, value: unknown, allowed: readonly T[]): T {
  if (allowed.includes(value as T)) return value as T
  const got = typeof value === 'string' ? nearly(value, allowed) : undefined
  throw invalid(name, allowed.map((one) => `'${one}'`).join(' or '), got ?? show(value))
}

export function flag(name: string, value: unknown): boolean {
  if (value === undefined || typeof value === 'boolean') return value ?? false
  throw invalid(name, 'true or false', show(value))
}

export function signal(value: unknown): AbortSignal | undefined {
  if (value === undefined || value instanceof AbortSignal) return value
  throw invalid('signal', 'an AbortSignal', show(value))
}

/** What has no default. */
export function given(name: string, value: unknown, expected: string): void {
  if (value === undefined || value === null) throw invalid(name, expected, show(value))
}

/** The names that options of a type have. The compiler sees to it that they are all of them, and no others. */
export const namesOf = <T>(names: Record<keyof T, true>): ReadonlySet<string> => new Set(Object.keys(names))

/**
 * With `known`, a name that is none of these is refused, unless it is inherited or `undefined`: misspelt, it would be left out in silence.
 * For the seven of an operation that takes some 40 ns.
 */
export function options(name: string, value: unknown, known?: ReadonlySet<string>): Record<string, unknown> {
  if (value === undefined) return {}
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid(name, 'an object', show(value))
  const given = value as Record<string, unknown>
  if (known) refuseUnknown(name, given, known)
  return given
}

function refuseUnknown(name: string, given: Record<string, unknown>, known: ReadonlySet<string>): void {
  let unknown: string | undefined
  try {
    for (const one in given) {
      // Read here, so that one that can't be read is told of.
      if (given[one] !== undefined && !known.has(one) && Object.hasOwn(given, one)) unknown ??= one
    }
  } catch {
    throw invalid(name, 'an object that can be read', 'one with a getter that throws')
  }
  if (unknown !== undefined) throw invalid(name, `only ${[...known].join(', ')}`, misspelt(unknown, known))
}

export function invalid(name: string, expected: string, got: string): HoldfastError {
  return new HoldfastError('invalid_argument', `${name}: expected ${expected}, got ${got}`, { argument: name })
}

/** `argument`: the one to change, where what is wrong is made of several. */
export function invalidAmount(name: string, expected: string, got: string, argument = name): HoldfastError {
  return new HoldfastError('invalid_amount', `${name}: expected ${expected}, got ${got}`, { argument })
}

/** Numbers and kinds, never the text itself: it may be personal. */
export function show(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint') return String(value)
  if (typeof value === 'string') return `a string of ${value.length} characters`
  return kind(value)
}

/** Of what may be somebody's also as a number: a phone number, a token. */
export function kind(value: unknown): string {
  if (value === null) return 'null'
  if (value === undefined) return 'nothing'
  if (typeof value === 'object') return Array.isArray(value) ? 'an array' : 'an object'
  return `a ${typeof value}`
}
