import { timingSafeEqual } from 'node:crypto'
import { HoldfastError, type Telemetry } from 'holdfast'
import type { ApiKey, ApiKeys, FoundKey } from './api-keys.js'
import { hashOf, idOf, wasGivenOut } from './key-text.js'

/**
 * What is known of a key is used for so long; from the first time on it is read anew beside the requests, and after the second they wait
 * for it. So a key that was revoked is of no use anywhere after less than a second, and a busy key costs a read every 300 ms.
 */
const FRESH_MS = 300
const STALE_MS = 700
const KNOWN_MAX = 10_000
const NOTE_USE_MS = 5_000

interface Known {
  found: FoundKey | null
  /** When the question was sent: what it says was true then. */
  askedAt: number
  asking: Promise<void> | undefined
}

/** The keys that this process has seen lately. */
export class Keyring {
  readonly #keys: ApiKeys
  readonly #telemetry: Telemetry
  readonly #known = new Map<string, Known>()
  readonly #used = new Set<string>()
  readonly #timer: NodeJS.Timeout

  constructor(keys: ApiKeys, telemetry: Telemetry) {
    this.#keys = keys
    this.#telemetry = telemetry
    this.#timer = setInterval(() => void this.#noteUse(), NOTE_USE_MS)
    this.#timer.unref()
  }

  /** Whose key this text is. At once where that is known: of a busy key it is, and promises are a good part of what a request costs. */
  verify(text: string): ApiKey | Promise<ApiKey> {
    const id = idOf(text)
    // The check is for ids that would have to be looked up; of the others the hash is compared in any case.
    if (id === null || !(this.#known.has(id) || wasGivenOut(text, this.#keys.secret))) throw unknownKey()
    const known = this.#lookUp(id)
    return known instanceof Promise ? known.then((late) => this.#match(text, late)) : this.#match(text, known)
  }

  /** The key with this id, for what was signed on its behalf. */
  async byId(id: string): Promise<ApiKey> {
    const { found, askedAt } = await this.#lookUp(id)
    if (!found) throw unknownKey()
    return this.#usable(found, askedAt)
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#noteUse()
  }

  #match(text: string, { found, askedAt }: Known): ApiKey {
    if (!found || !timingSafeEqual(hashOf(text), found.hash)) throw unknownKey()
    return this.#usable(found, askedAt)
  }

  #usable(found: FoundKey, askedAt: number): ApiKey {
    if (found.revokedAt !== null) throw new HoldfastError('unauthenticated', 'The key was revoked')
    const now = found.clock + performance.now() - askedAt
    if (found.expiresAt !== null && now >= found.expiresAt) {
      throw new HoldfastError('unauthenticated', 'The key has expired')
    }
    this.#used.add(found.id)
    return found
  }

  #lookUp(id: string): Known | Promise<Known> {
    const known = this.#known.get(id) ?? this.#remember(id)
    const ageMs = performance.now() - known.askedAt
    if (ageMs < FRESH_MS) return known
    known.asking ??= this.#ask(id, known)
    if (ageMs >= STALE_MS) return known.asking.then(() => known)
    // Nobody waits for it: its failure shows when the next one has to.
    known.asking.catch(() => {})
    return known
  }

  #remember(id: string): Known {
    for (const oldest of this.#known.keys()) {
      if (this.#known.size < KNOWN_MAX) break
      this.#known.delete(oldest)
    }
    const known: Known = { found: null, askedAt: Number.NEGATIVE_INFINITY, asking: undefined }
    this.#known.set(id, known)
    return known
  }

  async #ask(id: string, known: Known): Promise<void> {
    const askedAt = performance.now()
    try {
      known.found = await this.#keys.find(id)
      known.askedAt = askedAt
    } finally {
      known.asking = undefined
    }
  }

  /** Now and then and for all at once: when a key was last used is worth no write a request. */
  async #noteUse(): Promise<void> {
    if (this.#used.size === 0) return
    const ids = [...this.#used]
    this.#used.clear()
    await this.#keys.noteUse(ids).catch((error: Error) => {
      for (const id of ids) this.#used.add(id)
      this.#telemetry.log?.('warn', 'key_use_not_noted', { reason: error.message })
    })
  }
}

/** The same for one that never was and one whose secret is wrong. */
const unknownKey = () =>
  new HoldfastError('unauthenticated', 'authorization: expected Bearer and a key or token of this server, got another')
