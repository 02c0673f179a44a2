import { HoldfastError } from 'holdfast'

const HEADER = 'idempotency-key'
/** What a header can carry everywhere. Whether it will do as a key is the library's to say. */
const PRINTABLE = /^[\x20-\x7e]+$/
const QUOTED = /^"((?:[^"\\]|\\["\\])*)"$/

/**
 * The key as it came, bare or as a quoted string. From the raw headers, name and value in turn: two of them were joined into one text
 * otherwise, and that text would do as a key.
 */
export function idempotencyKeyOf(rawHeaders: readonly string[]): string | undefined {
  let text: string | undefined
  for (let at = 0; at < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.toLowerCase() !== HEADER) continue
    if (text !== undefined) throw invalid('one', 'several')
    text = rawHeaders[at + 1] as string
  }
  if (text === undefined) return undefined
  if (!PRINTABLE.test(text)) throw invalid('printable ASCII', text === '' ? 'nothing' : 'something else')
  if (!text.startsWith('"')) return text
  const quoted = QUOTED.exec(text)?.[1]
  if (quoted === undefined) throw invalid('a closing quote at the end and none before it', 'something else')
  return quoted.replaceAll(/\\(.)/g, '$1')
}

function invalid(expected: string, got: string): HoldfastError {
  return new HoldfastError('invalid_argument', `header.${HEADER}: expected ${expected}, got ${got}`, {
    argument: `header.${HEADER}`,
  })
}
