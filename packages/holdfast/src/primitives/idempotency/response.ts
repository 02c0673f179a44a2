import { HoldfastError } from '../../errors/index.js'
import { invalid } from '../../input/index.js'

/** What is kept of a response: its JSON, or nothing where there was none. */
export function encodeResponse(response: unknown, maxBytes: number): string {
  const json = stringify(response)
  const bytes = Buffer.byteLength(json)
  if (bytes <= maxBytes) return json
  const message = `response: expected at most ${maxBytes} bytes of JSON, got ${bytes}`
  throw new HoldfastError('too_large', message, { limit: maxBytes, bytes })
}

function stringify(response: unknown): string {
  try {
    return JSON.stringify(response) ?? ''
  } catch {
    // Not as cause: its message quotes names of members.
    throw invalid('response', 'what JSON can hold', 'something that it can not: a bigint, or what refers to itself')
  }
}
