import { expect } from 'vitest'
import type { ScriptRunner } from '../../../src/redis/index.js'
import { limitsConsume, limitsPeek, limitsRefund, limitsReset } from '../../../src/redis/scripts.generated.js'

const ALL = 'bucket 4 1000 1 0;fixed 4 1000 0 0;sliding 4 1000 0 0;log 4 1000 0 0'
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
}
