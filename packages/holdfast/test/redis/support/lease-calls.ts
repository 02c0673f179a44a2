import { expect } from 'vitest'
import type { ScriptRunner } from '../../../src/redis/index.js'
import { leaseRaise, leaseTake } from '../../../src/redis/scripts.generated.js'

/** Enough to come by every call to Redis that stands in the scripts of leases alone. */
export async function useLeases(on: ScriptRunner): Promise<void> {
  const lock = 'hf:app:lease:v1:default:send:{0}'
  const keys = [lock, `${lock}:token`]
  const [token] = (await on.run(leaseTake, keys, [1, 'me', 60_000])) as Buffer[]
  const [again, busyMs] = (await on.run(leaseTake, [...keys, ...keys], [2, 'me', 60_000, 'you', 60_000])) as [
    Buffer,
    number,
  ]
  expect(Number(again)).toBeGreaterThan(Number(token))
  expect(busyMs).toBeGreaterThan(0)
  const raised = Number(again) + 1
  expect(await on.run(leaseRaise, keys, [1, 'me', 60_000, raised])).toEqual([1])
  expect(await on.run(leaseRaise, keys, [1, 'you', 60_000, raised + 1])).toEqual([0])
}
