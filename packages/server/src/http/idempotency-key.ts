import { HoldfastError } from 'holdfast'

const HEADER = 'idempotency-key'
/** What a header can carry everywhere. Whether it will do as a key is the library's to say. */
const PRINTABLE = /^[\x20-\x7e]+$/
const QUOTED = /^"((?:[^"\\]|\\["\\])*)"$/

/** The key as it came, bare or as a quoted string. */
export function idempotencyKeyOf(headers: Record<string, string[] | undefined>): string | undefined {
  const given = headers[HEADER]
  if (given === undefined) return undefined
  const [text = '', ...others] = given
  if (others.length > 0) throw invalid('one', `${given.length}`)
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
