import { createHmac, type KeyObject } from 'node:crypto'
import { types } from 'node:util'
import { HoldfastError } from '../../errors/index.js'
import { invalid, show } from '../../input/index.js'
import type { KeySpace } from '../keys.js'

/** As deep as requests may be: what refers to itself has no end. */
const DEPTH_MAX = 64
const REQUEST_BYTES_MAX = 1_048_576

/**
 * What a request is known by: an HMAC of its bytes, or of its JSON in one form (RFC 8785 without its rules for numbers, which are
 * JavaScript's own): keys in the order of their UTF-16 units, no blanks, members that are undefined left out. So it does not matter in
 * which order a client names the fields. Null: none was given.
 */
export function hashRequest(secret: KeyObject, space: KeySpace, request: unknown): string | null {
  if (request === undefined) return null
  // Not `instanceof`: bytes of another realm (a test runner's) are bytes too.
  const isBytes = types.isUint8Array(request)
  const content = isBytes ? request : canonical('request', request, 0)
  if (Buffer.byteLength(content) > REQUEST_BYTES_MAX) {
    const message = `request: expected at most ${REQUEST_BYTES_MAX} bytes, got ${Buffer.byteLength(content)}`
    throw new HoldfastError('too_large', message, { limit: REQUEST_BYTES_MAX })
  }
  return createHmac('sha256', secret)
    .update(`request\0${space.tenant}\0${space.operation}\0${isBytes ? 'bytes' : 'json'}\0`)
    .update(content)
    .digest('hex')
    .slice(0, 32)
}

/** What JSON would change in silence is refused: two requests that differ there would be the same one. */
export function canonical(name: string, value: unknown, depth: number): string {
  if (depth > DEPTH_MAX) throw invalid(name, `at most ${DEPTH_MAX} levels`, 'more, or one that refers to itself')
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw invalid(name, 'finite numbers', show(value))
    return JSON.stringify(value)
  }
  if (typeof value !== 'object') throw invalid(name, 'what JSON can hold', show(value))
  if (types.isDate(value) && Number.isNaN(value.getTime())) throw invalid(name, 'valid Dates', 'an invalid one')
  if ('toJSON' in value && typeof value.toJSON === 'function') return canonical(name, value.toJSON(), depth + 1)
  // Not `map` of the array itself: that passes by holes.
  if (Array.isArray(value)) return `[${Array.from(value, (one) => canonical(name, one ?? null, depth + 1)).join(',')}]`
  if (!isPlain(value)) throw invalid(name, 'plain objects', 'an object of a class')
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  members.sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${canonical(name, member, depth + 1)}`).join(',')}}`
}

/** Also one of another realm. A Map or an object of a class is none: JSON shows only a part of what is in it. */
function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}
