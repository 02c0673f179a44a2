import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import { given, integer, invalid, kind, show, text } from '../input/index.js'
import { slotOf } from '../redis/index.js'

/**
 * Every key of the primitives is made here:
 *
 *   hf:<owner>:<purpose>:v1:<tenant>:<operation>:{<scope>}[:<part>]
 *   hf:gateway:window:v1:acme:create-order:{9f86d081884c7d659a2feaa0c55ad015}:60000:202607021430
 *
 * - The owner is the application, the purpose the primitive, and `v1` the layout of the value: another one can live beside it.
 * - The operation is what the developer calls it: create-order, login. Never a word of a user.
 * - The scope is whom it is about: a user, a phone number, an idempotency key. It may be personal, so it never stands in a key: in its
 *   place stands an HMAC of it, of tenant, purpose and operation, with the secret of the application.
 * - The scope is the hash tag, so what one call must change together shares a scope, and nothing else does: a tenant is not tied to a
 *   node, nor are the parts of a counter that is spread on purpose.
 * - The part tells the keys of one scope from each other: a window, a day, a generation.
 */

/**
 * Whose keys expire. What others leave behind without an end is a mistake that the sampler looks for. A primitive that can be asked for
 * keys without an end has another purpose for those, so that it can tell what is meant from what was lost.
 */
export const PURPOSES = {
  activity: { expires: true },
  'activity-index': { expires: false },
  bloom: { expires: false },
  bucket: { expires: true },
  cell: { expires: true },
  'cell-lasting': { expires: false },
  exposure: { expires: true },
  flags: { expires: true },
  flight: { expires: true },
  idempotency: { expires: true },
  lease: { expires: true },
  limits: { expires: true },
  marker: { expires: true },
  otp: { expires: true },
  packed: { expires: true },
  'packed-lasting': { expires: false },
  permissions: { expires: false },
  sequence: { expires: true },
  'sequence-lasting': { expires: false },
  sharded: { expires: true },
  'sharded-lasting': { expires: false },
  sliding: { expires: true },
  token: { expires: true },
  window: { expires: true },
} as const satisfies Record<string, { readonly expires: boolean }>

export type Purpose = keyof typeof PURPOSES

const WORD = /^[a-z0-9_-]{1,64}$/
const OPERATION = /^[A-Za-z0-9_.-]{1,64}$/
const SECRET_BYTES_MIN = 16
const SECRET_LENGTH_MAX = 1_024
const SCOPE_MAX = 1_024
const VERSION = 'v1'

export interface KeysOptions {
  readonly owner: string
  readonly tenant: string
  /** Not its bytes: whoever logs what is made of it, or makes JSON of an answer, would show them. */
  readonly secret: KeyObject
}

/** What a log may say about a key: enough to find it again for who has the secret, and nothing that was hashed. */
export interface KeyFacts {
  readonly [fact: string]: unknown
  readonly tenantId: string
  readonly operation: string
  readonly keyHashPrefix: string
  readonly redisPattern: string
}

/** All that lies under one scope. */
export class Scope {
  /** Without a part; with one `<base>:<part>`. */
  readonly base: string

  constructor(
    readonly space: KeySpace,
    readonly hash: string,
  ) {
    this.base = `${space.prefix}{${hash}}`
  }

  key(part: string): string {
    return `${this.base}:${part}`
  }

  /** Where it lies on a Cluster. */
  get slot(): number {
    return slotOf(this.hash)
  }

  get facts(): KeyFacts {
    const { tenant, operation, pattern } = this.space
    return {
      tenantId: tenant,
      operation,
      keyHashPrefix: `hmac_${this.hash.slice(0, 8)}`,
      redisPattern: pattern,
    }
  }
}

/** Not the promise of a connection, where types are not checked. */
export function connected<T extends KeysOptions>(context: T): T {
  given('primitives', context, 'what Primitives.connect resolves to')
  return context
}

/** The keys of one primitive for one operation. */
export class KeySpace {
  /** What logs and the sampler call them: `hf:gateway:window:v1`. */
  readonly pattern: string
  readonly prefix: string
  readonly tenant: string
  readonly #secret: KeyObject
  /** What callers of the primitive call a scope, for errors: a key, a member. */
  readonly #called: string

  constructor(
    context: KeysOptions,
    readonly purpose: Purpose,
    readonly operation: string,
    called = 'scope',
  ) {
    const { owner, tenant, secret } = connected(context)
    checkOperation(operation)
    this.pattern = `hf:${owner}:${purpose}:${VERSION}`
    this.prefix = `${this.pattern}:${tenant}:${operation}:`
    this.tenant = tenant
    this.#secret = secret
    this.#called = called
  }

  /** Of somebody or something. Several words are one scope only as the same words: `['a', 'b']` is not `['ab']`. */
  scope(of: string | readonly string[]): Scope {
    return new Scope(this, this.hash(of))
  }

  /** Of the operation as a whole. */
  get whole(): Scope {
    return new Scope(this, this.#hmac(''))
  }

  /** What stands for words that must not be seen: 32 hex characters. */
  hash(of: string | readonly string[], called = this.#called): string {
    if (typeof of === 'string') return this.#hmac(`\0${text(called, of, SCOPE_MAX)}`)
    if (!Array.isArray(of) || of.length === 0) throw invalid(called, 'a string or some strings', kind(of))
    // Not `map`, which leaves out the holes of an array.
    return this.#hmac(Array.from(of, (word) => `\0${text(called, word, SCOPE_MAX)}`).join(''))
  }

  #hmac(words: string): string {
    // No word has a NUL, so that no two lists of words give the same bytes.
    const message = `${this.purpose}\0${this.tenant}\0${this.operation}${words}`
    return createHmac('sha256', this.#secret).update(message).digest('hex').slice(0, 32)
  }
}

/** A glob for SCAN: all keys of the primitives of an application, or of all. */
export const keysOf = (owner: string | null): string => `hf:${owner ?? '*'}:*:${VERSION}:*`

/** Which primitive a key is of; null: it is none of these. */
export function readPurpose(key: string): Purpose | null {
  const purpose = /^hf:[a-z0-9_-]+:([a-z-]+):v1:[a-z0-9_-]+:[A-Za-z0-9_.-]+:\{[0-9a-f]{32}\}/.exec(key)?.[1]
  return purpose !== undefined && Object.hasOwn(PURPOSES, purpose) ? (purpose as Purpose) : null
}

/** Lower case, so that nothing of an owner or a tenant can be told from another only by its case. */
export function word(name: string, value: unknown): string {
  if (typeof value !== 'string') throw invalid(name, 'a string', kind(value))
  // Not shown, as an operation is not: a tenant comes with a request.
  if (!WORD.test(value)) throw invalid(name, '1 to 64 characters of a-z, 0-9, _ and -', show(value))
  return value
}

function checkOperation(value: unknown): void {
  if (typeof value !== 'string') throw invalid('operation', 'a string', kind(value))
  // Not shown: whoever passes a scope here by mistake passes what must not be seen.
  if (!OPERATION.test(value)) throw invalid('operation', '1 to 64 characters of A-Z, a-z, 0-9, _, . and -', show(value))
}

export function checkSecret(value: unknown): KeyObject {
  if (typeof value !== 'string' && !(value instanceof Uint8Array)) {
    throw invalid('secret', 'a string or bytes', kind(value))
  }
  const bytes = Buffer.from(value as string)
  if (bytes.length < SECRET_BYTES_MIN || bytes.length > SECRET_LENGTH_MAX) {
    const expected = `${SECRET_BYTES_MIN} to ${SECRET_LENGTH_MAX} bytes that nobody can guess`
    throw invalid('secret', expected, `${bytes.length} bytes`)
  }
  return createSecretKey(bytes)
}

const DAY_MS = 24 * 60 * 60 * 1_000
const MS_MAX = 400 * DAY_MS

/** For what is waited for by a timer: one of Node's that is set for longer than 24 days fires at once. */
export const TIMER_MAX_MS = DAY_MS

/** A length of time in ms: 1 ms to 400 days. */
export const durationMs = (name: string, value: unknown, min = 1, max = MS_MAX): number =>
  integer(name, value, min, max)
