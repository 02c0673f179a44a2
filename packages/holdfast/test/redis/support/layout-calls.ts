import { expect } from 'vitest'
import type { ScriptRunner } from '../../../src/redis/index.js'
import {
  packedGet,
  packedIncrement,
  packedReset,
  packedSet,
  permissionsChange,
  permissionsForget,
  permissionsRead,
} from '../../../src/redis/scripts.generated.js'

/** Enough to come by every call to Redis that stands in the scripts of permissions. */
export async function usePermissions(on: ScriptRunner): Promise<void> {
  const [key, older] = ['v2', 'v1'].map((version) => `hf:app:permissions:v1:default:documents:{0}:${version}`) as [
    string,
    string,
  ]
  const [grant, none] = [Buffer.from([0x80]), Buffer.from([0])]
  await on.run(permissionsChange, [older], [1, 'aaaa', 1, '', 0, '', grant, none])
  const args = ['bbbb', 1, 'aaaa', 1, Buffer.from([0, 1])]
  expect(await on.run(permissionsRead, [key, older], [1, ...args])).toEqual([Buffer.from([0x40])])
  expect(await on.run(permissionsChange, [key, older], [1, ...args, grant, none])).toEqual([
    [1, Buffer.from([0x40]), Buffer.from([0xc0])],
  ])
  expect(await on.run(permissionsForget, [key, older], [1])).toEqual([1])
}

/** The same for packed counters. */
export async function usePacked(on: ScriptRunner): Promise<void> {
  const key = 'hf:app:packed:v1:default:quota:{0}:v1'
  expect(await on.run(packedSet, [key], [1, 'aaaa', 2, '', 'u8 40 250'])).toEqual([1])
  expect(await on.run(packedReset, [key], [1])).toEqual([1])
  const increment = [1, 'aaaa', 2, 60_000, 'SAT', 'u8 40 300 i8 48 -3']
  expect(await on.run(packedIncrement, [key], increment)).toEqual([[Buffer.from('255 -3'), [1, 0]]])
  expect(String(await on.run(packedGet, [key], [1, 'aaaa', 2, 'i8 48']))).toBe('-3')
}
