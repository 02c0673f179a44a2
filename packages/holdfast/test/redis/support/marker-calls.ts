import { expect } from 'vitest'
import type { ScriptRunner } from '../../../src/redis/index.js'
import { markerClaim, markerExtend, markerPeek, markerRelease } from '../../../src/redis/scripts.generated.js'

/** Enough to come by every call to Redis that stands in the scripts of markers. */
export async function useMarkers(on: ScriptRunner): Promise<void> {
  const key = 'hf:app:marker:v1:default:import:{0}'
  const [mine, yours] = ['a'.repeat(32), 'b'.repeat(32)]
  expect(await on.run(markerClaim, [key, key], [2, mine, 60_000, mine, 60_000])).toEqual([0, 0])
  expect(await on.run(markerClaim, [key], [1, yours, 60_000])).toEqual([expect.any(Number)])
  expect(await on.run(markerPeek, [key], [1])).toEqual([expect.any(Number)])
  expect(await on.run(markerExtend, [key], [1, mine, 90_000])).toEqual([1])
  expect(await on.run(markerRelease, [key], [1, mine])).toEqual([1])
}
