/**
 * The one table of error codes. Types, HTTP statuses and `docs/reference/errors.md` come from here; a test keeps them in step.
 * Rows stand in the order of their status, as in the reference. `meaning` says what happened, `action` what a caller can do.
 */
export const ERRORS = {
  invalid_amount: {
    status: 400,
    retryable: false,
    meaning: 'The amount is not an integer in the allowed range, or the balance would leave ±(2^53 − 1).',
    action:
      "Send a positive integer in the wallet's smallest unit; where an argument is wrong, `argument` tells which, and the message what was expected and what came.",
  },
  invalid_argument: {
    status: 400,
    retryable: false,
    meaning: 'An argument has the wrong type, length, characters or range.',
    action:
      'Correct what `argument` names; the message tells what was expected and what came. Without `argument`, go by the message alone.',
  },
  key_required: {
    status: 400,
    retryable: false,
    meaning: 'The operation moves something and came without an idempotency key.',
    action: 'Give every operation a key of its own, and repeat that key when you repeat the operation.',
  },
  unauthenticated: {
    status: 401,
    retryable: false,
    meaning: 'No valid API key or token came with the request.',
    action: 'Send `Authorization: Bearer <key>` with a key that was not revoked.',
  },
  forbidden: {
    status: 403,
    retryable: false,
    meaning: 'The API key or token does not allow this.',
    action: 'Use a key with the right that the operation needs.',
  },
  wallet_not_found: {
    status: 404,
    retryable: false,
    meaning: 'There is no wallet with this id in this tenant.',
    action: 'Open the wallet first, or check id and tenant.',
  },
  client_not_found: {
    status: 404,
    retryable: false,
    meaning: 'The stripe402 store has no client with this id.',
    action: 'Create the client first. Nothing was changed, and nothing was created.',
  },
  hold_not_found: {
    status: 404,
    retryable: false,
    meaning: 'The wallet never had a hold with this id.',
    action: 'Check the id, and that the hold belongs to this wallet.',
  },
  session_not_found: {
    status: 404,
    retryable: false,
    meaning: 'The wallet never had a metered session with this id.',
    action: 'Check the id, and that the session belongs to this wallet.',
  },
  sale_not_found: {
    status: 404,
    retryable: false,
    meaning: 'There is no sale with this id in this tenant.',
    action: 'Open the sale first, or check id and tenant.',
  },
  schedule_not_found: {
    status: 404,
    retryable: false,
    meaning: 'There is no schedule of sales with this id in this tenant.',
    action: 'Start it with what its sales are made from, or check id and tenant.',
  },
  webhook_not_found: {
    status: 404,
    retryable: false,
    meaning: 'There is no webhook with this id in this tenant.',
    action: 'Check the id: the list of webhooks has those that there are.',
  },
  flag_not_found: {
    status: 404,
    retryable: false,
    meaning: 'There is no feature flag of this name in this tenant.',
    action: 'Check the name: the list of flags has those that there are.',
  },
  checkout_not_found: {
    status: 404,
    retryable: false,
    meaning: 'There is no checkout with this code.',
    action: 'Check the code: it must be passed on to the letter.',
  },
  entry_not_found: {
    status: 404,
    retryable: false,
    meaning: 'The wallet has no entry with this seq, or none that can be refunded.',
    action: 'Name the seq of a debit, capture, tick or settle of this wallet.',
  },
  route_not_found: {
    status: 404,
    retryable: false,
    meaning: 'The server has nothing at this path and method.',
    action: 'Compare method and path with `/openapi.json` or `/docs`.',
  },
  insufficient_funds: {
    status: 409,
    retryable: false,
    meaning: 'Less is available than the operation needs; `available` tells how much there is, without `creditLimit`.',
    action: 'Top up, or ask for less. The same key may be used again: a rejection is not remembered.',
  },
  hold_exceeded: {
    status: 409,
    retryable: false,
    meaning: 'More was to be taken out of a hold than is left in it; `left` tells how much there is.',
    action: 'Take less, extend the hold, or let the rest come out of the wallet with `beyond: "available"`.',
  },
  refund_exceeded: {
    status: 409,
    retryable: false,
    meaning:
      'More was to be refunded than is left of the original charge, or a hold settled for less than was refunded of it; `left` tells how much of the charge is left.',
    action:
      'Refund at most `left`. The total of a settle must be at least what was refunded out of the hold: `refunded` of `hold.get()`.',
  },
  wallet_exists: {
    status: 409,
    retryable: false,
    meaning: 'The wallet was opened before with other parameters.',
    action: 'Read the wallet and use it as it is, or choose another id.',
  },
  wallet_frozen: {
    status: 409,
    retryable: false,
    meaning: 'The wallet is frozen and refuses operations that spend or reserve.',
    action: 'Unfreeze it first. Credits, refunds and what stays within a hold are allowed.',
  },
  wallet_closed: {
    status: 409,
    retryable: false,
    meaning: 'The wallet is closed and refuses everything but reading.',
    action: 'Open another wallet: closing is final.',
  },
  wallet_not_empty: {
    status: 409,
    retryable: false,
    meaning: 'Only a wallet with zero balances and no open hold can be closed.',
    action: 'Settle or release the open holds, and debit or credit the balance to zero.',
  },
  hold_closed: {
    status: 409,
    retryable: false,
    meaning: 'The hold was settled or released before.',
    action: 'Nothing is left to do with it; for another charge make another hold.',
  },
  sale_exists: {
    status: 409,
    retryable: false,
    meaning: 'There is a sale with this id and other terms.',
    action: 'Take another id: the terms of a sale never change.',
  },
  checkout_closed: {
    status: 409,
    retryable: false,
    meaning: 'The checkout was bought or cancelled before.',
    action: 'Nothing is left to do with it; check out again for something else.',
  },
  sold_out: {
    status: 409,
    retryable: false,
    meaning: 'The item, or the sale, has nothing left.',
    action: 'Try again later: what others cancel or let expire can be bought again.',
  },
  user_limit: {
    status: 409,
    retryable: false,
    meaning: 'The user has reached the limit of this sale.',
    action: 'Ask for at most `left`, or cancel a checkout that is not paid for.',
  },
  sale_not_active: {
    status: 409,
    retryable: false,
    meaning: 'The sale has not started, or is over.',
    action: 'Come back within `startsAt` and `endsAt`.',
  },
  duplicate_item: {
    status: 409,
    retryable: false,
    meaning: 'The item is in the checkout already.',
    action: 'Name each item once, with its quantity.',
  },
  version_conflict: {
    status: 409,
    retryable: false,
    meaning:
      'It has another version than the one that was expected: somebody else has changed it; `version` tells which.',
    action: 'Read it anew, decide whether the change is still right, and send it with that version.',
  },
  counter_overflow: {
    status: 409,
    retryable: false,
    meaning: 'The counter would pass 2^53 − 1, beyond which numbers are not exact. Nothing was added.',
    action: 'Reset the counter, count in larger units, or spread it over several.',
  },
  index_full: {
    status: 409,
    retryable: false,
    meaning: 'Every position of the index is given out, and an id that is new to it has none. Nothing was marked.',
    action: 'Raise `populationMax`, or begin another index for those who come now.',
  },
  layout_mismatch: {
    status: 409,
    retryable: false,
    meaning: 'What is stored was written with other fields or names under the same version. Nothing was changed.',
    action:
      'Give a layout that has changed a version of its own; the page of the primitive says how values move to it.',
  },
  claim_lost: {
    status: 409,
    retryable: true,
    meaning:
      'The lease of the idempotency key ran out while work was being done under it, and it is not yours any more.',
    action:
      'Roll back what is not committed. Then repeat the whole with the same key: if somebody else has done it, their answer comes.',
  },
  hold_expired: {
    status: 410,
    retryable: false,
    meaning: 'The hold ran past its ttl; what was left in it is back in the wallet.',
    action:
      'Charge what was delivered with a debit, if the money is still there. Next time give the hold a longer ttl, or extend it before it runs out.',
  },
  checkout_expired: {
    status: 410,
    retryable: false,
    meaning: 'The checkout ran past its ttl; its items are back in the sale.',
    action: 'Check out again.',
  },
  events_gone: {
    status: 410,
    retryable: false,
    meaning:
      'The events after this one are not there any more: they are older than what is kept, or Postgres was put back to before it.',
    action: 'Read wallets and entries anew, and connect without `Last-Event-ID`.',
  },
  too_large: {
    status: 413,
    retryable: false,
    meaning: 'The request, its metadata or a value is larger than allowed.',
    action: 'Send less; the message tells the limit. Metadata is limited to 4 kB of JSON.',
  },
  idempotency_conflict: {
    status: 422,
    retryable: false,
    meaning: 'The key was used before for another operation or with other parameters.',
    action:
      'Use a new key for a new operation; repeat an operation with the parameters it had. Of a wallet, `expected` tells what it was, `got` what it is now; where only the hold is another one, `expectedHold` and `gotHold` tell which.',
  },
  lock_busy: {
    status: 423,
    retryable: true,
    meaning: 'Something else is being done with this wallet right now. Please try again in a moment.',
    action:
      'The text is fit to be shown to a user. Or try again a moment later: `retryAfterMs` is the most that is left of the lock.',
  },
  lock_lost: {
    status: 423,
    retryable: true,
    meaning: 'The lock of the wallet, or the lease, was lost while work was being done under it.',
    action: 'Stop the work: somebody else may have the lock by now. Repeat it as a whole, with the same keys.',
  },
  rate_limited: {
    status: 429,
    retryable: true,
    meaning: 'Too many requests; `retryAfter` tells in how many seconds to come again.',
    action: 'Wait for `retryAfter`, then try again with the same key.',
  },
  internal_error: {
    status: 500,
    retryable: false,
    meaning: 'Something failed that should not. The outcome may be unknown.',
    action: 'Report it with the id of the request. Read the wallet before you go on, or repeat with the same key.',
  },
  client_damaged: {
    status: 500,
    retryable: false,
    meaning:
      'What a stripe402 store holds of a client is not what stripe402 writes: a fraction or a huge number for a balance, a field that is missing. Nothing was changed.',
    action: 'An operator has to look at it; the message says what is wrong. It is never put right by a guess.',
  },
  value_damaged: {
    status: 500,
    retryable: false,
    meaning: 'Under the key of a primitive stands something that it did not write. Nothing was changed.',
    action: 'Find out who else writes keys that begin with `hf:`. Then remove the key, or `reset` what it is of.',
  },
  version_unknown: {
    status: 500,
    retryable: false,
    meaning:
      'A value was written under a schema version that this process can not read: newer than it knows, or older than it can upgrade. Nothing was changed.',
    action: 'Deploy what knows the version before anybody writes it, or add the upgrade that is missing.',
  },
  incompatible: {
    status: 500,
    retryable: false,
    meaning: 'The database or a server does not fit this version of Holdfast.',
    action: 'An operator has to act: migrate, upgrade, or connect to the right database. The message says which.',
  },
  unavailable: {
    status: 503,
    retryable: true,
    meaning:
      'Redis or Postgres is away, or a queue is full. The outcome may be unknown: the same key is safe to try again.',
    action: 'Try again with the same key, later each time.',
  },
  load_failed: {
    status: 503,
    retryable: true,
    meaning:
      'A value is not there, and whoever was to load it failed a moment ago. Nobody tries until `retryAfterMs` is over.',
    action: 'Try again after `retryAfterMs`. The log of the process that tried has its own error.',
  },
  reconcile_required: {
    status: 503,
    retryable: true,
    meaning:
      'Postgres lacks entries that were acknowledged: it was restored, or failed over. Nothing is decided until an operator has acted.',
    action:
      'An operator runs `holdfast reconcile`. Then try again with the same key: what the journal has is answered, the rest is decided anew.',
  },
  timeout: {
    status: 504,
    retryable: true,
    meaning: 'No answer within the timeout. The outcome is unknown: the same key is safe to try again.',
    action: 'Try again with the same key; if it was done, the first answer comes again.',
  },
  aborted: {
    status: 504,
    retryable: true,
    meaning: 'The caller stopped waiting. The outcome is unknown: the same key is safe to try again.',
    action: 'Try again with the same key, if the answer still matters.',
  },
} as const satisfies Record<string, { status: number; retryable: boolean; meaning: string; action: string }>

export type ErrorCode = keyof typeof ERRORS
