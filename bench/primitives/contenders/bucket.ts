import { TokenBucket } from 'holdfast/primitives'
import { Redis } from 'ioredis'
import { BurstyRateLimiter, RateLimiterRedis } from 'rate-limiter-flexible'
import { type Contender, connect, DAY_MS, names, PLENTY, sumOf, unlessEqual, type Work } from './contender.js'

/** More than a user takes in a run. */
const CAPACITY = 100_000

export const bucket: Work = {
  name: 'bucket',
  title: 'Token bucket',
  remarks:
    '`TokenBucket.consume` against `BurstyRateLimiter.consume`, the nearest that rate-limiter-flexible has: two fixed windows, of which the second is asked when the first is used up. *Within its rate* it makes one script call, which only counts; *in a burst* it makes two, and what they take is not taken together. Ours computes what has come back, always in one call.',
  isShared: true,
  open: (allot, { scopes }) =>
    Promise.all([ours(allot(), scopes), theirs(allot(), scopes, false), theirs(allot(), scopes, true)]),
}

async function ours(url: string, scopes: number): Promise<Contender> {
  const primitives = await connect(url)
  // Not a whole token comes back during a run, so that what is missing afterwards can be counted.
  const buckets = new TokenBucket(primitives, 'bench', { capacity: CAPACITY, refillMs: 400 * DAY_MS })
  const user = names(scopes)
  let told = 0
  return {
    title: '`TokenBucket`',
    perCall: 1,
    async call() {
      const { allowed } = await buckets.consume(user())
      if (allowed) told += 1
    },
    async check() {
      let taken = 0
      for (const name of user.all) taken += CAPACITY - (await buckets.peek(name)).left
      return unlessEqual(told, taken)
    },
    close: () => primitives.close(),
  }
}

async function theirs(url: string, scopes: number, isBurst: boolean): Promise<Contender> {
  const redis = new Redis(url)
  const terms = { storeClient: redis, points: PLENTY, duration: (400 * DAY_MS) / 1_000 }
  const limiter = new BurstyRateLimiter(
    // In a burst everybody has used up what there is, but for the first call.
    new RateLimiterRedis({ ...terms, points: isBurst ? 1 : PLENTY, keyPrefix: 'rate' }),
    new RateLimiterRedis({ ...terms, keyPrefix: 'burst' }),
  )
  const user = names(scopes)
  let told = 0
  return {
    title: `rate-limiter-flexible, \`BurstyRateLimiter\` ${isBurst ? 'in a burst' : 'within its rate'}`,
    perCall: 1,
    async call() {
      const { consumedPoints } = await limiter.consume(user())
      if (consumedPoints > 0) told += 1
    },
    check: async () => unlessEqual(told, await sumOf(url, 'rate:*')),
    close: async () => redis.disconnect(),
  }
}
