import { HoldfastError } from '../errors/index.js'
import { integer, invalid, invalidAmount, show, text } from '../input/index.js'
import { MAX_AMOUNT } from '../machine/index.js'

export * from '../input/index.js'

/** Everything that comes from outside passes here, before any I/O. Messages say what was expected and what came. */

export const METADATA_BYTES_MAX = 4_096
export const TTL_MAX_MS = 400 * 24 * 60 * 60 * 1_000
export const TIMEOUT_MAX_MS = 10 * 60 * 1_000

const TENANT = /^[a-z0-9_-]{1,64}$/

export function tenant(value: unknown): string {
  if (typeof value === 'string' && TENANT.test(value)) return value
  throw invalid('tenant', '1 to 64 characters of a-z, 0-9, _ and -', show(value))
}

export function key(value: unknown): string {
  if (value === undefined || value === null) {
    const message = 'key: expected an idempotency key of 1 to 255 characters, got none'
    throw new HoldfastError('key_required', message, { argument: 'key' })
  }
  const checked = text('key', value)
  if (checked.startsWith('~')) throw invalid('key', 'a key that does not begin with ~', 'one that does')
  return checked
}

/** The books have these of their own: what all wallets hold together, and what is on its way between two of them. */
const OWN_ACCOUNTS = new Set(['wallets', 'transfers'])

/** The other side of the books. */
export function account(name: string, value: unknown): string {
  const checked = text(name, value)
  if (OWN_ACCOUNTS.has(checked))
    throw invalid(name, 'an account that is not one of the books themselves', `'${checked}'`)
  return checked
}

/** A sum of amounts that are right each by itself. */
export function tooMuch(name: string, argument: string): HoldfastError {
  return invalidAmount(name, `at most ${MAX_AMOUNT} together`, 'more', argument)
}

export function ttlMs(value: unknown): number {
  return integer('ttl', value, 1, TTL_MAX_MS)
}

export function timeoutMs(value: unknown): number | undefined {
  return value === undefined ? undefined : integer('timeout', value, 1, TIMEOUT_MAX_MS)
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
        argument: 'metadata',
        limit: METADATA_BYTES_MAX,
        bytes,
      },
    )
  }
  return json
}
