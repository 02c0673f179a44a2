import { Leases } from 'holdfast/primitives'
import { Redis } from 'ioredis'
import Redlock from 'redlock'
import { type Contender, connect, unlessEqual, type Work } from './contender.js'

const TTL_MS = 5_000

export const lease: Work = {
  name: 'lease',
  title: 'Lease',
  remarks:
    '`acquire` and `release` of `Leases` against those of redlock, on one server; nobody has to wait. A call is both. redlock gives no fencing token and renews nothing by itself; here ours does not renew either.',
  isShared: true,
  open: (allot, { scopes }) => Promise.all([ours(allot(), scopes), theirs(allot(), scopes)]),
}

/** Another one each time, so that nobody meets who has it. */
function jobs(count: number): () => string {
  let last = 0
  return () => `job-${last++ % count}`
}

async function ours(url: string, scopes: number): Promise<Contender> {
  const primitives = await connect(url)
  const leases = new Leases(primitives, 'bench', { ttlMs: TTL_MS, autoRenew: false })
  const job = jobs(scopes)
  let [acquired, released] = [0, 0]
  return {
    title: '`Leases`',
    perCall: 1,
    async call() {
      const answer = await leases.acquire(job())
      if (answer.result !== 'acquired') return
      acquired += 1
      if ((await answer.lease.release()) === 'released') released += 1
    },
    check: async () => unlessEqual(acquired, released),
    close: () => primitives.close(),
  }
}

async function theirs(url: string, scopes: number): Promise<Contender> {
  const redis = new Redis(url)
  const redlock = new Redlock([redis], { retryCount: 0 })
  const job = jobs(scopes)
  let [acquired, released] = [0, 0]
  return {
    title: 'redlock',
    perCall: 1,
    async call() {
      const lock = await redlock.acquire([job()], TTL_MS)
      acquired += 1
      await lock.unlock()
      released += 1
    },
    check: async () => unlessEqual(acquired, released),
    close: async () => redis.disconnect(),
  }
}
