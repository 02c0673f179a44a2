import { createHmac, timingSafeEqual } from 'node:crypto'
import { HoldfastError } from 'holdfast'
import { isScope, type Scope } from './scopes.js'

/**
 * A token for one wallet, to be handed to a browser: `hft_<what it says>.<signature>`. Nothing of it is stored. It names the key it was
 * made with, and is worth nothing once that key is revoked or has expired.
 */
export interface TokenClaims {
  readonly keyId: string
  readonly wallet: string
  readonly scopes: readonly Scope[]
  /** Milliseconds since 1970. */
  readonly expiresAt: number
}

export const TOKEN_PREFIX = 'hft_'
export const TOKEN_TTL_MAX_MS = 24 * 60 * 60 * 1_000
export const TOKEN_TTL_DEFAULT_MS = 15 * 60 * 1_000

export class TokenSigner {
  readonly #key: Buffer

  constructor(databaseSecret: Uint8Array) {
    // A key of its own: no signature made for something else can pass for a token.
    this.#key = createHmac('sha256', databaseSecret).update('wallet tokens v1').digest()
  }

  sign({ keyId, wallet, scopes, expiresAt }: TokenClaims): string {
    const says = Buffer.from(JSON.stringify([keyId, wallet, scopes, expiresAt])).toString('base64url')
    return `${TOKEN_PREFIX}${says}.${this.#signature(says).toString('base64url')}`
  }

  /** Nothing of a token is looked at before its signature is. */
  read(text: string, now = Date.now()): TokenClaims {
    const [says = '', signature = '', ...rest] = text.slice(TOKEN_PREFIX.length).split('.')
    const given = Buffer.from(signature, 'base64url')
    const expected = this.#signature(says)
    if (rest.length > 0 || given.length !== expected.length || !timingSafeEqual(given, expected)) throw notOurs()
    const [keyId, wallet, scopes, expiresAt] = JSON.parse(Buffer.from(says, 'base64url').toString()) as [
      string,
      string,
      string[],
      number,
    ]
    if (now >= expiresAt) throw new HoldfastError('unauthenticated', 'The token has expired')
    return { keyId, wallet, scopes: scopes.filter(isScope), expiresAt }
  }

  #signature(says: string): Buffer {
    return createHmac('sha256', this.#key).update(says).digest()
  }
}

const notOurs = () =>
  new HoldfastError('unauthenticated', 'authorization: expected a token that was signed by this server, got another')
