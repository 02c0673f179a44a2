import { expect } from 'vitest'
import type { ScriptRunner } from '../../../src/redis/index.js'
import {
  bucketConsume,
  bucketPeek,
  bucketRefund,
  limitsConsume,
  limitsPeek,
  limitsRefund,
  limitsReset,
  slidingConsume,
  slidingPeek,
  slidingRefund,
} from '../../../src/redis/scripts.generated.js'

const ALL = 'bucket 4 1000 1 60000;fixed 4 1000 0 60000;sliding 4 1000 0 60000;log 4 1000 0 60000'
const MINUTE_MS = 60_000

/** Enough to come by every call to Redis that stands in the scripts of limits. */
export async function useLimits(on: ScriptRunner): Promise<void> {
  const keys = ['bucket', 'fixed', 'sliding', 'log'].map((kind) => `hf:app:limits:v1:default:login:{0}:${kind}`)
  const call = (at: number | '', cost: number) => [1, at, ALL, cost, cost, cost, cost]
  const used = (answers: unknown) =>
    String(answers)
      .split(' ')
      .map(Number)
      .filter((_, i) => i % 3 === 0)
  expect(used(await on.run(limitsConsume, keys, call('', 1)))).toEqual([1, 1, 1, 1])
  expect(await on.run(limitsReset, keys, [1])).toEqual([4])
  for (const at of [0, 1, 2, 3])
    expect(used(await on.run(limitsConsume, keys, call(MINUTE_MS + at, 1)))[3]).toBe(at + 1)
  expect(used(await on.run(limitsConsume, keys, call(MINUTE_MS + 4, 3)))).toEqual([4, 4, 4, 4])
  expect(used(await on.run(limitsPeek, keys, call(MINUTE_MS + 4, 3)))).toEqual([4, 4, 4, 4])
  expect(used(await on.run(limitsRefund, keys, call(MINUTE_MS + 4, 1)))[3]).toBe(3)
  expect(used(await on.run(limitsConsume, keys, call(MINUTE_MS + 4, 1)))[3]).toBe(4)
  expect(used(await on.run(limitsConsume, keys, call(2 * MINUTE_MS, 4)))).toEqual([4, 4, 4, 4])
  expect(used(await on.run(limitsRefund, keys, call(2 * MINUTE_MS, 1)))).toEqual([3, 3, 3, 3])
  for (const [terms, consume, peek, refund] of [
    ['bucket 4 1000 1 60000', bucketConsume, bucketPeek, bucketRefund],
    ['sliding 4 1000 0 60000', slidingConsume, slidingPeek, slidingRefund],
    ['log 4 1000 0 60000', slidingConsume, slidingPeek, slidingRefund],
  ] as const) {
    const key = `hf:app:limits:v1:default:login:{0}:single:${terms.split(' ')[0]}`
    expect(used(await on.run(consume, [key], [1, MINUTE_MS, terms, 3]))).toEqual([3])
    expect(used(await on.run(refund, [key], [1, MINUTE_MS, terms, 1]))).toEqual([2])
    expect(used(await on.run(peek, [key], [1, MINUTE_MS, terms, 1]))).toEqual([2])
  }
}
