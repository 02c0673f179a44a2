import { expect } from 'vitest'
import type { ScriptRunner } from '../../../src/redis/index.js'
import {
  cellDrop,
  cellGet,
  cellSet,
  cellSwap,
  cellTransition,
  cellUnlink,
} from '../../../src/redis/scripts.generated.js'

/** Enough to come by every call to Redis that stands in the scripts of cells. */
export async function useCells(on: ScriptRunner): Promise<void> {
  const key = 'hf:app:cell:v1:default:order:{0}'
  const other = 'hf:app:cell:v1:default:order:{1}'
  expect(String(await on.run(cellSet, [key], [1, 'a', 'always', 'keep', 60_000, 1]))).toBe('written,')
  expect(String(await on.run(cellSet, [key], [1, 'b', 'there', 'keep', 60_000, 1]))).toBe('written,a')
  expect(String(await on.run(cellSet, [other], [1, 'c', 'missing', 'none', 'none', 0]))).toBe('written,')
  expect(String(await on.run(cellGet, [key, other], [2]))).toBe('b,c')
  expect(String(await on.run(cellSwap, [key], [1, 'b', 'A', 'keep']))).toBe('swapped')
  expect(String(await on.run(cellTransition, [key], [1, 'B', 'keep', ' A ']))).toBe('transitioned,A')
  expect(String(await on.run(cellDrop, [key], [1, 'B']))).toBe('deleted')
  expect(await on.run(cellUnlink, [other], [1])).toEqual([1])
}
