import { expect } from 'vitest'
import type { ScriptRunner } from '../../../src/redis/index.js'
import {
  bloomAdd,
  bloomBegin,
  bloomCheck,
  bloomDrop,
  bloomFill,
  bloomMake,
  bloomNews,
  bloomOffer,
  bloomRead,
  bloomRenew,
  bloomSwap,
  bloomWeigh,
} from '../../../src/redis/scripts.generated.js'

/** Enough to come by every call to Redis that stands in the scripts of Bloom filters. */
export async function useBlooms(on: ScriptRunner): Promise<void> {
  const state = 'hf:app:bloom:v1:default:sold:{0}'
  const [first, second, third] = ['a', 'b', 'c'].map((id) => `${state}:${id}-0`) as [string, string, string]
  const [a, b, c] = ['a:1:1:8:2', 'b:1:1:8:2', 'c:1:1:8:2'] as const
  const day = Date.now() + 86_400_000
  for (const chunk of [first, second, third]) await on.run(bloomMake, [chunk], [1, 8, 60_000])
  // Built without a current one, and given up by a caller who finds its chunk gone.
  expect(String(await on.run(bloomOffer, [state, state], ['', c, 60_000]))).toBe('building')
  expect(await on.run(bloomRenew, [state, third], [1, c, 8, 60_000])).toBe(1)
  expect(await on.run(bloomAdd, [state, state, `${third}0`], [1, ` ${c}`, 0, '', 8, '1 2'])).toEqual([-1])
  expect(String(await on.run(bloomBegin, [state, first], [1, a, 8, 0]))).toBe('begun')
  expect(String(await on.run(bloomOffer, [state, state], ['', b, 60_000]))).toBe('building')
  expect(String(await on.run(bloomOffer, [state, second], [b, c, 60_000]))).toBe('busy')
  expect(await on.run(bloomAdd, [state, first, second], [1, `${a} ${b}`, 8, '1 2', 8, '3 4'])).toEqual([1])
  expect(await on.run(bloomFill, [state, second], [1, b, 8, '5 6'])).toEqual([2])
  expect(await on.run(bloomCheck, [state, first], [1, a, 8, '1 2'])).toEqual([1])
  expect(await on.run(bloomNews, [state, first], [1, a, 8])).toEqual([Buffer.from([0, 0, 0, 1, 0, 0, 0, 1])])
  expect(await on.run(bloomRead, [first], [1, 8])).toHaveLength(1)
  expect(await on.run(bloomWeigh, [first], [1, 8])).toEqual([2])
  const swap = [2, a, b, 1, 8, day, 60_000]
  expect(String(await on.run(bloomSwap, [state, second, first], swap))).toBe('swapped')
  expect(String(await on.run(bloomOffer, [state, state], ['', c, 60_000]))).toBe('building')
  expect(await on.run(bloomAdd, [state, second, `${third}0`], [1, `${b} ${c}`, 8, '1', 8, '1'])).toEqual([3])
  expect(String(await on.run(bloomOffer, [state, state], ['', c, 60_000]))).toBe('building')
  expect(await on.run(bloomDrop, [state, third], [1, `${b} ${c}`, `${b} `])).toBe(1)
  expect(await on.run(bloomDrop, [state, second], [1, `${b} `, ' '])).toBe(1)
}
