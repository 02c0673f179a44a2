import { expect } from 'vitest'
import type { ScriptRunner } from '../../../src/redis/index.js'
import { sequenceNext, sequenceRaise } from '../../../src/redis/scripts.generated.js'

/** Enough to come by every call to Redis that stands in the scripts of sequences. */
export async function useSequences(on: ScriptRunner): Promise<void> {
  const key = 'hf:app:sequence:v1:default:ticket:{0}'
  const lasting = 'hf:app:sequence-lasting:v1:default:ticket:{0}'
  expect(String(await on.run(sequenceNext, [key, key, lasting], [3, 1, 60_000, 2, 60_000, 5, 'none']))).toBe('1,3,5')
  expect(String(await on.run(sequenceRaise, [key, lasting], [2, 10, 60_000, 1, 'none']))).toBe('10,5')
}
