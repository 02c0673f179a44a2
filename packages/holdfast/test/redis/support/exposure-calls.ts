import { expect } from 'vitest'
import type { ScriptRunner } from '../../../src/redis/index.js'
import { activityIndexBegin, exposureExpose, exposureFind } from '../../../src/redis/scripts.generated.js'

/** Enough to come by every call to Redis that stands in the scripts of experiments. */
export async function useExposure(on: ScriptRunner): Promise<void> {
  const index = 'hf:app:activity-index:v1:default:exposed:{0}'
  const keys = [index, ...['all', 'variant.a', 'variant.b'].map((part) => `hf:app:exposure:v1:default:x:{0}:g.${part}`)]
  await on.run(activityIndexBegin, [index], ['g'])
  const args = ['g', 'anna', 8, 60_000]
  const answers = await on.run(exposureExpose, [...keys, ...keys], [2, ...args, 2, ...args, 1])
  expect(answers).toEqual([
    [1, 2, 0],
    [0, 2, 0],
  ])
  expect(await on.run(exposureFind, keys, [1, 'g', 'anna'])).toEqual([2])
}
