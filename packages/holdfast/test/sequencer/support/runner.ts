import type { Redis } from 'ioredis'
import type { ScriptRunner } from '../../../src/redis/index.js'

/** Runs scripts and nothing else: no retries, no timeouts. */
export function runnerOn(redis: Redis): ScriptRunner {
  return {
    run: (script, keys, args) => redis.callBuffer('EVAL', [script.source, keys.length, ...keys, ...args]),
  }
}
