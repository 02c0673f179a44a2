import { expect } from 'vitest'
import type { ScriptRunner } from '../../../src/redis/index.js'
import { flightClaim, flightDrop, flightFail, flightGet, flightPut } from '../../../src/redis/scripts.generated.js'

/** Enough to come by every call to Redis that stands in the scripts of single flights. */
export async function useFlights(on: ScriptRunner): Promise<void> {
  const base = 'hf:app:flight:v1:default:price:{0}'
  const keys = [base, `${base}:marker`]
  const get = async (owner: string) => String(await on.run(flightGet, keys, [1, '1 1 ', owner, 60_000]))
  expect(await get('me')).toBe('taken')
  expect(await get('you')).toMatch(/^busy,/)
  expect(await on.run(flightFail, keys.slice(1), [1, 'me', 60_000])).toEqual([1])
  expect(await get('you')).toMatch(/^failed,/)
  expect(await on.run(flightDrop, keys, [1])).toEqual([0])
  expect(await get('me')).toBe('taken')
  expect(await on.run(flightPut, keys, [1, 'me', '1 1 9 9 9 1', 60_000])).toEqual([1])
  expect(await get('you')).toMatch(/^\d+,1 1 9 9 9 1$/)
  expect(await on.run(flightClaim, [...keys, ...keys], [2, 'me', 60_000, 1, 'me', 60_000, 60_000])).toEqual([-1, 0])
  expect(await on.run(flightDrop, keys, [1])).toEqual([1])
}
