import { HoldfastError } from '../../errors/index.js'
import { invalid, kind } from '../../input/index.js'

/** `text`: strings, in UTF-8. `bytes`: as they are. */
export type ValueKind = 'text' | 'bytes'

export type ValueOf<Kind extends ValueKind> = Kind extends 'bytes' ? Uint8Array : string

// The mark at the beginning is a character like any other: what comes back is what was written.
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The bytes that stand for a value. */
export function encode(name: string, value: unknown, kind: ValueKind, maxBytes: number): Buffer {
  const bytes = kind === 'text' ? bytesOfText(name, value) : bytesOf(name, value)
  if (bytes.length <= maxBytes) return bytes
  throw new HoldfastError('too_large', `${name}: expected at most ${maxBytes} bytes, got ${bytes.length}`, { maxBytes })
}

function bytesOfText(name: string, value: unknown): Buffer {
  if (typeof value !== 'string') throw invalid(name, 'a string', kind(value))
  // Would become a question mark on its way.
  if (!value.isWellFormed()) throw invalid(name, 'well-formed Unicode', 'a lone surrogate')
  return Buffer.from(value)
}

function bytesOf(name: string, value: unknown): Buffer {
  if (!(value instanceof Uint8Array)) throw invalid(name, 'bytes', kind(value))
  // A copy: it leaves at the end of the turn, and the caller may go on with its own.
  return Buffer.from(value)
}

/** Null: the bytes are no text. */
export function decode<Kind extends ValueKind>(bytes: Buffer, kind: Kind): ValueOf<Kind> | null {
  if (kind === 'bytes') return bytes as Uint8Array as ValueOf<Kind>
  try {
    return UTF8.decode(bytes) as ValueOf<Kind>
  } catch {
    return null
  }
}
