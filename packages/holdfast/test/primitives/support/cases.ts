/** What tests of a primitive have to show. The title of a test begins with those that it shows: `it('missing key, ttl kept: …')`. */
export const CASES = [
  'keys',
  'missing key',
  'existing key',
  'wrong state',
  'wrong type',
  'serialization',
  'ttl present',
  'ttl kept',
  'expired',
  'duplicate',
  'concurrency',
  'script return type',
  'redis away',
  'metrics',
] as const

export type Case = (typeof CASES)[number]

/** What does not arise, and why: by the name of the page of the primitive. */
export const NOT_ARISING: Readonly<Record<string, Partial<Record<Case, string>>>> = {
  'fixed-window': {
    'wrong state': 'a count has no states',
    duplicate:
      'two calls are two things that happened: an answer that was lost is `unavailable`, and not asked for again',
  },
  limits: {
    duplicate:
      'two calls are two things that happened: an answer that was lost is `unavailable`, and not asked for again',
    'ttl kept': 'each limit has the end that it would have by itself, as the tests of those show',
  },
  'otp-limiter': {
    duplicate:
      'two calls are two attempts: an answer that was lost is `unavailable`, and not asked for again, so that it may have counted',
  },
  permissions: {
    'ttl present': 'permissions stay until they are revoked',
    'ttl kept': 'permissions stay until they are revoked',
    expired: 'permissions stay until they are revoked',
  },
  sequences: {
    'wrong state': 'a number has no states',
  },
  'sharded-counter': {
    'wrong state': 'a count has no states',
  },
  'sliding-window': {
    duplicate:
      'two calls are two things that happened: an answer that was lost is `unavailable`, and not asked for again',
  },
  'token-bucket': {
    duplicate:
      'two calls are two things that want a token: an answer that was lost is `unavailable`, and not asked for again',
    'ttl kept': 'the end moves with every write, since it is the time at which the bucket is full again',
  },
}
