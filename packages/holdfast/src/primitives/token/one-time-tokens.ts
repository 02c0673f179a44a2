import { randomBytes } from 'node:crypto'
import { HoldfastError } from '../../errors/index.js'
import { flag, integer, invalid, namesOf, options as optionsOf, text } from '../../input/index.js'
import { tokenConsume, tokenIssue, tokenPeek, tokenRevoke, tokenRevokeAll } from '../../redis/scripts.generated.js'
import { Calls, damaged, readJson } from '../calls.js'
import { type Context, durable, note, tell } from '../context.js'
import { durationMs, KeySpace, type Scope } from '../keys.js'
import type { Primitives } from '../primitives.js'
import { TokenAudit } from './audit.js'
import type {
  ConsumedToken,
  IssuedToken,
  OneTimeTokensOptions,
  TokenEvent,
  TokenLook,
  TokenOrder,
  TokenRefusal,
} from './contract.js'
import { generationKeyOf, newToken, type Place, placeOfId, placeOfToken } from './place.js'

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
const OPTION_NAMES = namesOf<OneTimeTokensOptions>({ ttlMs: true, replayMs: true, dataMaxBytes: true, audit: true })
const ORDER_NAMES = namesOf<TokenOrder>({ subject: true, ttlMs: true, data: true })
const CONSUME_NAMES = namesOf<{ key?: string }>({ key: true })
const HISTORY_NAMES = namesOf<{ limit?: number }>({ limit: true })
const PRUNE_NAMES = namesOf<{ olderThanMs?: number; limit?: number }>({ olderThanMs: true, limit: true })
const DATA_BYTES_MAX = 4_096
const DATA_BYTES_CAP = 65_536
const ROWS_MAX = 10_000

/** Tokens that can be used once: a link to reset a password, to confirm an address, to log in. */
export class OneTimeTokens<Data = unknown> {
  readonly ttlMs: number
  readonly replayMs: number
  readonly dataMaxBytes: number
  readonly #context: Context
  readonly #space: KeySpace
  readonly #audit: TokenAudit | null
  readonly #issue: Calls
  readonly #consume: Calls
  readonly #peek: Calls
  readonly #revoke: Calls
  readonly #revokeAll: Calls

  constructor({ context }: Primitives, operation: string, options: OneTimeTokensOptions = {}) {
    const asked = optionsOf('options', options, OPTION_NAMES)
    this.ttlMs = durationMs('ttlMs', asked.ttlMs ?? 15 * MINUTE_MS)
    this.replayMs = durationMs('replayMs', asked.replayMs ?? 10 * MINUTE_MS)
    this.dataMaxBytes = integer('dataMaxBytes', asked.dataMaxBytes ?? DATA_BYTES_MAX, 0, DATA_BYTES_CAP)
    this.#context = context
    this.#space = new KeySpace(context, 'token', operation)
    const isAudited = asked.audit === undefined ? context.postgres !== null : flag('audit', asked.audit)
    this.#audit = isAudited ? new TokenAudit(context, durable(context, 'the audit of tokens')) : null
    this.#issue = new Calls(context, 'token', tokenIssue)
    this.#consume = new Calls(context, 'token', tokenConsume)
    this.#peek = new Calls(context, 'token', tokenPeek)
    this.#revoke = new Calls(context, 'token', tokenRevoke)
    this.#revokeAll = new Calls(context, 'token', tokenRevokeAll)
  }

  /** Makes a token with 256 random bits. Send it to its subject, and keep it nowhere. */
  async issue(order: TokenOrder<Data>): Promise<IssuedToken> {
    const asked = optionsOf('options', order, ORDER_NAMES)
    const ttlMs = durationMs('ttlMs', asked.ttlMs ?? this.ttlMs)
    const subject = text('subject', asked.subject)
    const payload = this.#payload(subject, asked.data)
    const token = newToken(this.#ofSubject(subject))
    const place = placeOfToken(this.#space, token) as Place
    // First: nothing is given out that is not noted.
    await this.#audit?.issued(place, ttlMs)
    const args = [randomBytes(16).toString('hex'), ttlMs, payload]
    const answer = await this.#issue.add(place.scope, [place.key, place.generationKey], args)
    const [issuedAt, expiresAt] = (answer as [Buffer, Buffer]).map(dateOf) as [Date, Date]
    tell(this.#context, 'token', 'issued')
    return { token, id: place.id, issuedAt, expiresAt }
  }

  /**
   * Once. With a `key` of your own, unique to this use, who does not hear the answer can ask again and gets the same one. Whatever is no
   * token is `unknown`, and so is one that was used, was revoked or has expired.
   */
  async consume(token: string, call: { readonly key?: string } = {}): Promise<ConsumedToken<Data>> {
    const { key } = optionsOf('options', call, CONSUME_NAMES)
    const use = this.#space.hash(['key', key === undefined ? randomBytes(16).toString('hex') : text('key', key)])
    const place = placeOfToken(this.#space, token)
    if (place === null) return this.#refused(null, null)
    const answer = await this.#consume.add(place.scope, [place.key, place.generationKey], [use, this.replayMs])
    const [state, issuedAt, payload] = answer as [Buffer, Buffer, Buffer]
    if (String(state) !== 'consumed') {
      const known = refusalOf(String(state))
      // What was revoked is on record; where it is not, Redis has lost the generation of the subject.
      const noted = await this.#audit?.refused(place, known === 'revoked' ? null : known)
      return this.#refused(place.scope, noted ?? known)
    }
    const noted = await this.#audit?.consumed(place, use)
    // Redis has lost that it was used or revoked.
    if (noted?.isConsumed === false) return this.#refused(place.scope, noted.because)
    tell(this.#context, 'token', 'consumed')
    return { result: 'consumed', ...this.#read(place.scope, payload), issuedAt: dateOf(issuedAt) }
  }

  /** Without using it up: for a page that asks first. It is not noted in the audit. */
  async peek(token: string): Promise<TokenLook<Data>> {
    const place = placeOfToken(this.#space, token)
    if (place === null) return { result: 'unknown' }
    const answer = (await this.#peek.add(place.scope, [place.key, place.generationKey], [])) as Buffer[]
    const [issuedAt, expiresAt, payload] = answer as [Buffer, Buffer, Buffer]
    if (answer.length === 0) return { result: 'unknown' }
    return {
      result: 'live',
      ...this.#read(place.scope, payload),
      issuedAt: dateOf(issuedAt),
      expiresAt: dateOf(expiresAt),
    }
  }

  /** By the id that `issue` gave. `unknown`: there is nothing to revoke, because it was used, has expired, or never was. */
  async revoke(id: string): Promise<'revoked' | 'unknown'> {
    const place = placeOfId(this.#space, id)
    // First: whatever becomes of Redis then, it can't be used any more.
    const noted = (await this.#audit?.revoked(place.scope, place.hash)) ?? 0
    const isEnded = (await this.#revoke.add(place.scope, [place.key], [])) === 1
    if (!isEnded && noted === 0) return 'unknown'
    tell(this.#context, 'token', 'revoked')
    return 'revoked'
  }

  /** All of a subject's that were issued until now and not used: in one step. */
  async revokeAll(subject: string): Promise<void> {
    const scope = this.#ofSubject(subject)
    await this.#audit?.revoked(scope, null)
    await this.#revokeAll.add(scope, [generationKeyOf(scope)], [])
    tell(this.#context, 'token', 'revoked')
  }

  /** What the audit knows of a subject's tokens, the newest first: 100 unless `limit` is given. */
  async history(subject: string, call: { readonly limit?: number } = {}): Promise<TokenEvent[]> {
    const limit = integer('limit', optionsOf('options', call, HISTORY_NAMES).limit ?? 100, 1, ROWS_MAX)
    return this.#audited().history(this.#ofSubject(subject), limit)
  }

  /** Removes from the audit, of all tenants and operations of this owner, tokens that expired so long ago: `limit` rows at most. How many it were. */
  async prune(call: { readonly olderThanMs?: number; readonly limit?: number } = {}): Promise<number> {
    const asked = optionsOf('options', call, PRUNE_NAMES)
    const olderThanMs = durationMs('olderThanMs', asked.olderThanMs ?? 365 * DAY_MS, DAY_MS)
    const limit = integer('limit', asked.limit ?? 1_000, 1, ROWS_MAX)
    return this.#audited().prune(olderThanMs, limit)
  }

  #audited(): TokenAudit {
    if (this.#audit !== null) return this.#audit
    throw invalid('audit', 'true, since this is about what Postgres keeps', 'false')
  }

  #ofSubject(subject: unknown): Scope {
    return this.#space.scope(['subject', text('subject', subject)])
  }

  #refused(scope: Scope | null, because: TokenRefusal): ConsumedToken<Data> {
    tell(this.#context, 'token', 'refused')
    if (scope !== null && because !== null) note(this.#context, 'token_refused', scope, { because })
    return { result: 'unknown', because }
  }

  #read(scope: Scope, payload: Buffer): { subject: string; data: Data | undefined } {
    const read = readJson(this.#context, scope, String(payload)) as { subject?: unknown; data?: Data } | null
    if (typeof read?.subject === 'string') return { subject: read.subject, data: read.data }
    tell(this.#context, 'token', 'damaged')
    throw damaged(scope)
  }

  #payload(subject: string, data: unknown): string {
    const bytes = Buffer.byteLength(stringify(data))
    if (bytes <= this.dataMaxBytes) return stringify({ subject, data })
    const message = `data: expected at most ${this.dataMaxBytes} bytes of JSON, got ${bytes}`
    throw new HoldfastError('too_large', message, { limit: this.dataMaxBytes, bytes })
  }
}

/** Redis knows it only for a while. */
const refusalOf = (state: string): TokenRefusal => (state === 'used' || state === 'revoked' ? state : null)

const dateOf = (ms: Buffer): Date => new Date(Number(String(ms)))

function stringify(data: unknown): string {
  try {
    return JSON.stringify(data) ?? ''
  } catch {
    throw invalid('data', 'what JSON can hold', 'something that it can not: a bigint, or what refers to itself')
  }
}
