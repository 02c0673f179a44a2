import { expect } from 'vitest'
import type { ScriptRunner } from '../../../src/redis/index.js'
import {
  idempotencyClaim,
  idempotencyEnd,
  idempotencyHide,
  idempotencyPeek,
  idempotencyRenew,
  idempotencyShow,
} from '../../../src/redis/scripts.generated.js'

/** Enough to come by every call to Redis that stands in the scripts of idempotency. */
export async function useIdempotency(on: ScriptRunner): Promise<void> {
  const key = 'hf:app:idempotency:v1:default:create-order:{0}'
  const [mine, request] = ['a'.repeat(32), 'b'.repeat(32)]
  const claim = [mine, request, 30_000, 60_000]
  expect(String(await on.run(idempotencyClaim, [key, key], [2, ...claim, ...claim]))).toBe('claimed,1,0,claimed,1,0')
  expect(await on.run(idempotencyRenew, [key], [1, mine, 30_000, 60_000])).toEqual([1])
  expect(String(await on.run(idempotencyPeek, [key], [1]))).toMatch(/^PROCESSING,1,\d+,$/)
  expect(await on.run(idempotencyHide, [key], [1])).toEqual([1])
  await on.run(idempotencyClaim, [key], [1, ...claim])
  expect(String(await on.run(idempotencyEnd, [key], [1, mine, 'COMPLETED', 60_000, '{}']))).toBe('ended,{}')
  expect(await on.run(idempotencyShow, [key], [1, mine, '-', 1, 0, 1, 2, 60_000, '[]'])).toEqual([1])
}
