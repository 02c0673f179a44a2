import { expect } from 'vitest'
import type { ScriptRunner } from '../../../src/redis/index.js'
import {
  activityCombine,
  activityCount,
  activityHas,
  activityIndexBegin,
  activityIndexFind,
  activityIndexInspect,
  activityInspect,
  activityMark,
  activityMarkMany,
  activityRead,
} from '../../../src/redis/scripts.generated.js'

/** Enough to come by every call to Redis that stands in the scripts of indexes and bitmaps. */
export async function useActivity(on: ScriptRunner): Promise<void> {
  const index = 'hf:app:activity-index:v1:default:users:{0}'
  const key = (part: string) => `hf:app:activity:v1:default:opened:{0}:g.${part}`
  const [day, next] = [key('20260702'), key('20260703')]
  expect(await on.run(activityIndexInspect, [index], [])).toEqual([])
  expect(String(await on.run(activityIndexBegin, [index], ['g']))).toBe('g')
  expect(String(await on.run(activityMark, [index, day], [1, 'h', 'a', 8, 60_000]))).toBe('~,g')
  expect(await on.run(activityMark, [index, day], [1, 'g', 'a', 8, 60_000])).toEqual([[0, 0]])
  expect(await on.run(activityMarkMany, [index, next], [2, 'g', 8, 60_000, 'a', 'b'])).toEqual([2, 1])
  expect(await on.run(activityHas, [index, day], [1, 'g', 'a'])).toEqual([1])
  expect(await on.run(activityCount, [index, next], ['g', 0, 10])).toEqual([2, 1])
  expect(await on.run(activityInspect, [index, next], ['g'])).toEqual([0, 2, 1, expect.any(Number), expect.any(Number)])
  expect(String(await on.run(activityRead, [index, day, next], [2, 'g', 0, 10]))).toBe('1,\ufffd,\ufffd')
  expect(String(await on.run(activityIndexFind, [index], [1, 'b']))).toBe('1')
  expect(await on.run(activityIndexInspect, [index], [])).toEqual([expect.any(Buffer), 2, expect.any(Number)])
  const combine = (how: string, days: readonly string[], atOnce: number, from = 0, total = -1) =>
    on.run(
      activityCombine,
      [index, key('r'), key('made'), key('work'), key('full'), ...days, ...days.map((_, at) => key(`${at}`))],
      [days.length, 'g', how, from, atOnce, 1, total, -1, 60_000, (days.includes(day) ? '1' : '0').repeat(days.length)],
    )
  expect(await combine('ANDNOT', [next, day], 100)).toEqual([1, 1, 1, -1])
  expect(await combine('AND', [key('x'), key('y')], 100)).toEqual([0, 0, 0, -1])
  expect(await combine('NOT', [day], 0)).toEqual([1, 1, 1, 2])
  // In portions of a byte, as if there were two of them.
  expect(await combine('OR', [day, next], 0, 0, 2)).toEqual([2, 1, 2, -1])
  expect(await combine('OR', [day, next], 0, 1, 2)).toEqual([0, 2, 2, -1])
}
