import { createHmac, randomBytes } from 'node:crypto'

/**
 * What never reaches a log, whoever writes the line. Secrets are replaced; what identifies a person or a piece of business
 * (a wallet, a user, an idempotency key) becomes a pseudonym: the same within one process, so that lines can be put together,
 * and worth nothing outside it.
 */
const SECRET =
  /^(authorization|cookie|set-cookie|proxy-authorization|x-api-key)$|password|secret|token|apikey|credential/i
const PERSONAL = /^(wallet|user|client|checkout|key|idempotency-?key|(wallet|user|client)_?id|email|metadata|body)$/i
/** A path without its query; routes are logged by pattern, so what is in here came from elsewhere. */
const LOCATION = /^(url|originalurl|path|referer)$/i

/** scheme://user:password@ */
const URL_CREDENTIALS = /([a-z][a-z0-9+.-]*:\/\/)[^\s/@]*@/gi
const URL_QUERY = /([a-z][a-z0-9+.-]*:\/\/[^\s?#"']+)\?[^\s"']*/gi
const BEARER = /\b(bearer|basic)\s+[\w.~+/=-]+/gi
const API_KEY = /\bhf_\w+/g
const WALLET_TOKEN = /\bhft_[\w.-]+/g

/** What any of these begins with: most lines have none of it, and one look is a fifth of five. */
const SUSPICIOUS = /:\/\/|\bb(?:earer|asic)\s|\bhft?_/i

const DEPTH_MAX = 6
const processKey = randomBytes(32)

export const pseudonym = (value: string): string =>
  `~${createHmac('sha256', processKey).update(value).digest('base64url').slice(0, 12)}`

export function redactText(text: string): string {
  if (!SUSPICIOUS.test(text)) return text
  return text
    .replace(URL_CREDENTIALS, '$1[redacted]@')
    .replace(URL_QUERY, '$1?[redacted]')
    .replace(BEARER, '$1 [redacted]')
    .replace(API_KEY, 'hf_[redacted]')
    .replace(WALLET_TOKEN, 'hft_[redacted]')
}

export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return redactText(value)
  if (typeof value !== 'object' || value === null) return value
  if (depth === DEPTH_MAX) return '[deep]'
  if (value instanceof Error) return redactError(value)
  if (value instanceof Date) return value
  if (ArrayBuffer.isView(value)) return '[bytes]'
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1))
  const redacted: Record<string, unknown> = {}
  for (const [name, item] of Object.entries(value)) redacted[name] = redactMember(name, item, depth)
  return redacted
}

type Kind = 'secret' | 'personal' | 'location' | 'plain'

const NAMES_MAX = 1_000
/** Names come from the code, so they are few: three patterns for each of them, once. */
const kinds = new Map<string, Kind>()

function kindOf(name: string): Kind {
  const known = kinds.get(name)
  if (known) return known
  const kind = SECRET.test(name)
    ? 'secret'
    : PERSONAL.test(name)
      ? 'personal'
      : LOCATION.test(name)
        ? 'location'
        : 'plain'
  if (kinds.size < NAMES_MAX) kinds.set(name, kind)
  return kind
}

function redactMember(name: string, value: unknown, depth: number): unknown {
  if (value === undefined || value === null) return value
  const kind = kindOf(name)
  if (kind === 'secret') return '[redacted]'
  if (kind === 'personal') return pseudonym(typeof value === 'string' ? value : JSON.stringify(value))
  if (kind === 'location' && typeof value === 'string') return redactText(value).replace(/\?.*$/s, '?[redacted]')
  return redact(value, depth + 1)
}

/** Never the `cause`: what servers and clients say in there quotes values and arguments. */
function redactError(error: Error & { code?: unknown }): Record<string, unknown> {
  return {
    type: error.name,
    ...(typeof error.code === 'string' && { code: error.code }),
    message: redactText(error.message),
    stack: redactText(error.stack ?? ''),
  }
}
