import { HoldfastError } from 'holdfast'
import type { Gate } from '../access/index.js'

/** A key is known to be good for less than 700 ms: see `Keyring`. Looked at so often, one that was revoked ends its streams within a second. */
const LOOK_MS = 200

/** Looks after the keys and tokens of streams that are open: once for all streams that came with the same. */
export class CredentialWatch {
  readonly #gate: Gate
  readonly #ends = new Map<string, Set<() => void>>()
  #timer: NodeJS.Timeout | undefined

  constructor(gate: Gate) {
    this.#gate = gate
  }

  /** Calls `end` when this credential is worth nothing any more. Returns how to stop caring. */
  over(authorization: string, end: () => void): () => void {
    const ends = this.#ends.get(authorization) ?? new Set()
    this.#ends.set(authorization, ends.add(end))
    this.#timer ??= setInterval(() => this.#look(), LOOK_MS).unref()
    return () => {
      ends.delete(end)
      if (ends.size > 0 || this.#ends.get(authorization) !== ends) return
      this.#ends.delete(authorization)
      if (this.#ends.size === 0) this.close()
    }
  }

  close(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #look(): void {
    for (const [authorization, ends] of this.#ends) void this.#lookAt(authorization, ends)
  }

  async #lookAt(authorization: string, ends: ReadonlySet<() => void>): Promise<void> {
    try {
      await this.#gate.identify(authorization)
    } catch (error) {
      // Postgres is away: then there is nothing to tell either.
      if (!HoldfastError.is(error, 'unauthenticated')) return
      for (const end of [...ends]) end()
    }
  }
}
