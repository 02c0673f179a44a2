import { HoldfastError } from '../errors/index.js'
import { MAX_AMOUNT } from '../machine/index.js'

/** Everything that comes from outside passes here, before any I/O. Messages say what was expected and what came. */

export const LENGTH_MAX = 255
export const METADATA_BYTES_MAX = 4_096
export const TTL_MAX_MS = 400 * 24 * 60 * 60 * 1_000
export const TIMEOUT_MAX_MS = 10 * 60 * 1_000

const CONTROL = /\p{Cc}/u
const TENANT = /^[a-z0-9_-]{1,64}$/

/** An id, a key or a name: 1 to 255 characters, no control characters, no half characters. */
export function text(name: string, value: unknown): string {
  if (typeof value !== 'string') throw invalid(name, 'a string', show(value))
  if (value.length === 0 || (value.length > LENGTH_MAX && [...value].length > LENGTH_MAX)) {
    throw invalid(name, `1 to ${LENGTH_MAX} characters`, `${[...value].length} characters`)
  }
  if (CONTROL.test(value)) throw invalid(name, 'no control characters', 'one with a control character')
  if (!value.isWellFormed()) throw invalid(name, 'well-formed Unicode', 'a lone surrogate')
  return value
}

export function tenant(value: unknown): string {
  if (typeof value === 'string' && TENANT.test(value)) return value
  throw invalid('tenant', '1 to 64 characters of a-z, 0-9, _ and -', show(value))
}

export function key(value: unknown): string {
  if (value === undefined || value === null) {
    throw new HoldfastError('key_required', 'key: expected an idempotency key of 1 to 255 characters, got none')
  }
  const checked = text('key', value)
  if (checked.startsWith('~')) throw invalid('key', 'a key that does not begin with ~', 'one that does')
  return checked
}

/** An integer from `min` to 2^53 − 1. */
export function amount(name: string, value: unknown, min: 0 | 1): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < min) {
    throw new HoldfastError(
      'invalid_amount',
      `${name}: expected an integer from ${min} to ${MAX_AMOUNT}, got ${show(value)}`,
    )
  }
  // Minus zero is a zero that prints differently.
  return value + 0
}

/** A sum of amounts that are right each by itself. */
export function tooMuch(name: string): HoldfastError {
  return new HoldfastError('invalid_amount', `${name}: expected at most ${MAX_AMOUNT} together, got more`)
}

export function ttlMs(value: unknown): number {
  return integer('ttl', value, 1, TTL_MAX_MS)
}

export function timeoutMs(value: unknown): number | undefined {
  return value === undefined ? undefined : integer('timeout', value, 1, TIMEOUT_MAX_MS)
}

export function integer(name: string, value: unknown, min: number, max: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
    throw invalid(name, `an integer from ${min} to ${max}`, show(value))
  }
  return value + 0
}

export function oneOf<T extends string>(name: string, value: unknown, allowed: readonly T[]): T {
  if (!allowed.includes(value as T)) throw invalid(name, allowed.map((one) => `'${one}'`).join(' or '), show(value))
  return value as T
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

export function options(name: string, value: unknown): Record<string, unknown> {
  if (value === undefined) return {}
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid(name, 'an object', show(value))
  return value as Record<string, unknown>
}

/** JSON of up to 4 kB, kept as the text it is. */
export function metadata(value: unknown): string {
  if (value === undefined) return ''
  let json: string | undefined
  try {
    json = JSON.stringify(value)
  } catch {
    // The reason would quote names out of it.
    throw invalid('metadata', 'a value that JSON can hold', 'one that it can not, such as a cycle or a bigint')
  }
  if (json === undefined) throw invalid('metadata', 'a value that JSON can hold', show(value))
  const bytes = Buffer.byteLength(json)
  if (bytes > METADATA_BYTES_MAX) {
    throw new HoldfastError(
      'too_large',
      `metadata: expected at most ${METADATA_BYTES_MAX} bytes of JSON, got ${bytes}`,
      {
        limit: METADATA_BYTES_MAX,
        bytes,
      },
    )
  }
  return json
}

export function invalid(name: string, expected: string, got: string): HoldfastError {
  return new HoldfastError('invalid_argument', `${name}: expected ${expected}, got ${got}`)
}

/** Numbers and kinds, never the text itself: it may be personal. */
export function show(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint') return String(value)
  if (typeof value === 'string') return `a string of ${value.length} characters`
  if (value === null) return 'null'
  if (value === undefined) return 'nothing'
  return Array.isArray(value) ? 'an array' : `a ${typeof value}`
}
