import { expect } from 'vitest'
import type { ScriptRunner } from '../../../src/redis/index.js'
import { flagsRead, flagsWrite } from '../../../src/redis/scripts.generated.js'

/** Enough to come by every call to Redis that stands in the scripts of flags. */
export async function useFlags(on: ScriptRunner): Promise<void> {
  const keys = ['hf:holdfast:flags:v1:default:all:{0}:copy', 'hf:holdfast:flags:v1:default:all:{0}:turn']
  const id = `${'1'.padStart(16, '0')}00002a`
  const look = async (known: string) => String(await on.run(flagsRead, keys, [1, known, 'me', 60_000, 1_000]))
  expect(await look('')).toMatch(/^,\d+,,1$/)
  expect(await on.run(flagsWrite, keys, [1, id, '[]', 0, 60_000, 'me'])).toEqual([1])
  expect(await on.run(flagsWrite, keys, [1, id, '', 0, 60_000, ''])).toEqual([1])
  expect(await look('')).toMatch(/^0{15}100002a,\d+,\[\],0$/)
  expect(await look(id)).toMatch(/^0{15}100002a,\d+,,0$/)
}
