import { FixedWindow } from 'holdfast/primitives'
import { Redis } from 'ioredis'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { type Contender, connect, DAY_MS, names, PLENTY, sumOf, unlessEqual, type Work } from './contender.js'

export const window: Work = {
  name: 'window',
  title: 'Fixed window',
  remarks:
    '`FixedWindow.add` against `RateLimiterRedis.consume`, each an atomic script with the end set at the first write. With `enableAutoPipelining` ioredis sends the commands of one turn together, each still a script call of its own.',
  isShared: true,
  open: (allot, { scopes }) =>
    Promise.all([ours(allot(), scopes), theirs(allot(), scopes, false), theirs(allot(), scopes, true)]),
}

async function ours(url: string, scopes: number): Promise<Contender> {
  const primitives = await connect(url)
  // One that does not end during a run.
  const windows = new FixedWindow(primitives, 'bench', { windowMs: 400 * DAY_MS })
  const user = names(scopes)
  let told = 0
  return {
    title: '`FixedWindow`',
    perCall: 1,
    async call() {
      const { count } = await windows.add(user())
      if (count > 0) told += 1
    },
    check: async () => unlessEqual(told, await sumOf(url)),
    close: () => primitives.close(),
  }
}

async function theirs(url: string, scopes: number, enableAutoPipelining: boolean): Promise<Contender> {
  const redis = new Redis(url, { enableAutoPipelining })
  const limiter = new RateLimiterRedis({ storeClient: redis, points: PLENTY, duration: (400 * DAY_MS) / 1_000 })
  const user = names(scopes)
  let told = 0
  return {
    title: `rate-limiter-flexible${enableAutoPipelining ? ', `enableAutoPipelining`' : ''}`,
    perCall: 1,
    async call() {
      const { consumedPoints } = await limiter.consume(user())
      if (consumedPoints > 0) told += 1
    },
    check: async () => unlessEqual(told, await sumOf(url)),
    close: async () => redis.disconnect(),
  }
}
