import { expect } from 'vitest'
import type { ScriptRunner } from '../../../src/redis/index.js'
import {
  tokenConsume,
  tokenIssue,
  tokenPeek,
  tokenRevoke,
  tokenRevokeAll,
} from '../../../src/redis/scripts.generated.js'

/** Enough to come by every call to Redis that stands in the scripts of tokens. */
export async function useTokens(on: ScriptRunner): Promise<void> {
  const [one, two, generation] = ['one', 'two', 'generation'].map(
    (part) => `hf:app:token:v1:default:reset:{0}:${part}`,
  ) as [string, string, string]
  const [mark, use] = ['a'.repeat(32), 'b'.repeat(32)]
  const issue = [one, generation, two, generation]
  expect(await on.run(tokenIssue, issue, [2, mark, 1_000, '{}', mark, 90_000, '{}'])).toHaveLength(2)
  expect(String(await on.run(tokenPeek, [two, generation], [1]))).toMatch(/^\d+,\d+,\{\}$/)
  expect(await on.run(tokenRevoke, [one], [1])).toEqual([1])
  expect(String(await on.run(tokenConsume, [two, generation], [1, use, 60_000]))).toMatch(/^consumed,\d+,\{\}$/)
  expect(await on.run(tokenRevokeAll, [generation], [1])).toEqual([1])
}
