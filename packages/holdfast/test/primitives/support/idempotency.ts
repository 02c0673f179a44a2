import type { Idempotency, IdempotencyCall, IdempotencyClaim } from '../../../src/primitives/index.js'
import type { On } from './topologies.js'

type Claimed = Extract<IdempotencyClaim, { result: 'claimed' }>

/** Claims a key that must be there to be claimed. */
export async function claimed<R>(on: Idempotency<R>, key: string, call: IdempotencyCall = {}): Promise<Claimed> {
  const claim = await on.tryClaim(key, call)
  if (claim.result !== 'claimed') throw new Error(`Expected that it can be claimed, but it is ${claim.result}`)
  return claim
}

/** As if the leases of all keys of an operation had run out. */
export async function endLeases({ redis, keys }: On, operation: string): Promise<void> {
  for (const key of await keys(operation)) {
    const value = String(await redis.get(key))
    await redis.set(key, value.replace(/^(1 PROCESSING \S+ \S+ \d+ [01]) \d+/, '$1 1'), 'KEEPTTL')
  }
}
