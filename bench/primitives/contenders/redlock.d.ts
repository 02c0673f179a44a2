/** What is used of redlock 4, which has no types of its own. */
declare module 'redlock' {
  import type { Redis } from 'ioredis'

  interface Lock {
    unlock(): Promise<void>
  }

  export default class Redlock {
    constructor(clients: readonly Redis[], options?: { retryCount?: number })
    acquire(resources: readonly string[], ttlMs: number): Promise<Lock>
  }
}
