import { expect } from 'vitest'
import type { ScriptRunner } from '../../../src/redis/index.js'
import { shardedAdd, shardedRead, shardedReset, shardedTake } from '../../../src/redis/scripts.generated.js'

/** Enough to come by every call to Redis that stands in the scripts of sharded counters. */
export async function useShardedCounters(on: ScriptRunner): Promise<void> {
  const key = 'hf:app:sharded:v1:default:views:{0}'
  const lasting = 'hf:app:sharded-lasting:v1:default:views:{0}'
  expect(String(await on.run(shardedAdd, [key, key, lasting], [3, 1, 60_000, 2, 60_000, 5, 'none']))).toBe('1,3,5')
  expect(String(await on.run(shardedTake, [key, lasting], [2, 1, 9]))).toBe('1,5')
  expect(String(await on.run(shardedRead, [key, lasting], [2]))).toBe('2,0')
  expect(await on.run(shardedReset, [key], [1])).toEqual([1])
}
