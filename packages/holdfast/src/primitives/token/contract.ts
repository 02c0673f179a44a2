export interface OneTimeTokensOptions {
  /** For how long a token can be used. Default 15 minutes. */
  readonly ttlMs?: number
  /** For how long who has used a token gets the same answer again with the same key. Default 10 minutes. */
  readonly replayMs?: number
  /** Of `data`, as JSON. Default 4,096, at most 65,536. */
  readonly dataMaxBytes?: number
  /** Keep in Postgres what became of each token; then nothing is answered that is not noted there. Default: if Postgres is given. */
  readonly audit?: boolean
}

export interface TokenOrder<Data = unknown> {
  /** Whom it is for: a user. Comes back when the token is used. */
  readonly subject: string
  readonly ttlMs?: number
  /** JSON that comes back when the token is used. */
  readonly data?: Data
}

export interface IssuedToken {
  /** Given out here and never again: nobody can read it anywhere. */
  readonly token: string
  /** What it can be revoked and found in the history by. No secret: it can't be used. */
  readonly id: string
  readonly issuedAt: Date
  readonly expiresAt: Date
}

/** Null: nothing is known of it. `forgotten`: it should be there, and Redis has lost it. */
export type TokenRefusal = 'used' | 'revoked' | 'expired' | 'forgotten' | null

export type ConsumedToken<Data = unknown> =
  | { readonly result: 'consumed'; readonly subject: string; readonly data: Data | undefined; readonly issuedAt: Date }
  /** Why is for you and your log. Whoever came with it should hear the same sentence in each case. */
  | { readonly result: 'unknown'; readonly because: TokenRefusal }

export type TokenLook<Data = unknown> =
  | {
      readonly result: 'live'
      readonly subject: string
      readonly data: Data | undefined
      readonly issuedAt: Date
      readonly expiresAt: Date
    }
  | { readonly result: 'unknown' }

export interface TokenEvent {
  readonly event: 'issued' | 'consumed' | 'revoked' | 'refused'
  readonly because: TokenRefusal
  readonly id: string
  readonly at: Date
  /** Of the token. */
  readonly expiresAt: Date
}
