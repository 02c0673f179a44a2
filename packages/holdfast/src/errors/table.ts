/**
 * The one table of error codes. Types, HTTP statuses and `docs/reference/errors.md` come from here; a test keeps them in step.
 * Rows stand in the order of their status, as in the reference.
 */
export const ERRORS = {
  invalid_amount: {
    status: 400,
    retryable: false,
    meaning: 'The amount is not an integer in the allowed range, or the balance would leave ±(2^53 − 1).',
  },
  invalid_argument: {
    status: 400,
    retryable: false,
    meaning: 'An argument has the wrong type, length, characters or range.',
  },
  key_required: {
    status: 400,
    retryable: false,
    meaning: 'The operation moves something and came without an idempotency key.',
  },
  unauthenticated: { status: 401, retryable: false, meaning: 'No valid API key or token came with the request.' },
  forbidden: { status: 403, retryable: false, meaning: 'The API key or token does not allow this.' },
  wallet_not_found: { status: 404, retryable: false, meaning: 'There is no wallet with this id in this tenant.' },
  hold_not_found: { status: 404, retryable: false, meaning: 'The wallet never had a hold with this id.' },
  session_not_found: { status: 404, retryable: false, meaning: 'The wallet never had a metered session with this id.' },
  sale_not_found: { status: 404, retryable: false, meaning: 'There is no sale with this id in this tenant.' },
  checkout_not_found: { status: 404, retryable: false, meaning: 'There is no checkout with this code.' },
  entry_not_found: {
    status: 404,
    retryable: false,
    meaning: 'The wallet has no entry with this seq, or none that can be refunded.',
  },
  insufficient_funds: {
    status: 409,
    retryable: false,
    meaning: 'Less is available than the operation needs; `available` tells how much there is.',
  },
  hold_exceeded: {
    status: 409,
    retryable: false,
    meaning: 'More was to be taken out of a hold than is left in it; `left` tells how much there is.',
  },
  refund_exceeded: {
    status: 409,
    retryable: false,
    meaning: 'More was to be refunded than is left of the original charge; `left` tells how much there is.',
  },
  wallet_exists: { status: 409, retryable: false, meaning: 'The wallet was opened before with other parameters.' },
  wallet_frozen: {
    status: 409,
    retryable: false,
    meaning: 'The wallet is frozen and refuses operations that spend or reserve.',
  },
  wallet_closed: { status: 409, retryable: false, meaning: 'The wallet is closed and refuses everything but reading.' },
  wallet_not_empty: {
    status: 409,
    retryable: false,
    meaning: 'Only a wallet with zero balances and no open hold can be closed.',
  },
  hold_closed: { status: 409, retryable: false, meaning: 'The hold was settled or released before.' },
  sold_out: { status: 409, retryable: false, meaning: 'The item, or the sale, has nothing left.' },
  user_limit: { status: 409, retryable: false, meaning: 'The user has reached the limit of this sale.' },
  sale_not_active: { status: 409, retryable: false, meaning: 'The sale has not started, or is over.' },
  duplicate_item: { status: 409, retryable: false, meaning: 'The item is in the checkout already.' },
  hold_expired: {
    status: 410,
    retryable: false,
    meaning: 'The hold ran past its ttl; what was left in it is back in the wallet.',
  },
  checkout_expired: {
    status: 410,
    retryable: false,
    meaning: 'The checkout ran past its ttl; its items are back in the sale.',
  },
  too_large: { status: 413, retryable: false, meaning: 'The request, or its metadata, is larger than allowed.' },
  idempotency_conflict: {
    status: 422,
    retryable: false,
    meaning: 'The key was used before for another operation or with other parameters.',
  },
  lock_busy: { status: 423, retryable: true, meaning: 'Somebody else holds the lock of this wallet.' },
  rate_limited: { status: 429, retryable: true, meaning: 'Too many requests; `retryAfter` tells when to come again.' },
  unavailable: {
    status: 503,
    retryable: true,
    meaning:
      'Redis or Postgres is away, or a queue is full. The outcome may be unknown: the same key is safe to try again.',
  },
  timeout: {
    status: 504,
    retryable: true,
    meaning: 'No answer within the timeout. The outcome is unknown: the same key is safe to try again.',
  },
  aborted: {
    status: 504,
    retryable: true,
    meaning: 'The caller stopped waiting. The outcome is unknown: the same key is safe to try again.',
  },
} as const satisfies Record<string, { status: number; retryable: boolean; meaning: string }>

export type ErrorCode = keyof typeof ERRORS
