import { expect } from 'vitest'
import type { ScriptRunner } from '../../../src/redis/index.js'
import { keyTtl, windowAdd, windowPeek, windowRefund, windowReset } from '../../../src/redis/scripts.generated.js'

/** Enough to come by every call to Redis that stands in the scripts of windows. */
export async function useWindows(on: ScriptRunner): Promise<void> {
  const key = 'hf:app:window:v1:default:login:{0}:60000:202607021430'
  expect(String(await on.run(windowAdd, [key, key], [2, 1, 60_000, 2, 60_000]))).toBe('1,3')
  expect(await on.run(keyTtl, [key], [1])).toEqual([expect.any(Number)])
  expect(String(await on.run(windowRefund, [key], [1, 1]))).toBe('2')
  expect(String(await on.run(windowPeek, [key], [1]))).toBe('2')
  expect(await on.run(windowReset, [key], [1])).toEqual([1])
}
