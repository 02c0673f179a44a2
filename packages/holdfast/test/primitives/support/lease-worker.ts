/**
 * A process that adds to a number many times: reads it under a lease, waits a little, and writes one more. It enters with its token, and what
 * keeps the number refuses every token that is smaller than one it has seen. Tells how many of its writes were taken, and how many refused.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { Leases, Primitives } from '../../../src/primitives/index.js'
import { PATIENT } from './patient.js'

const { url, postgres, rounds, ttlMs } = JSON.parse(process.argv[2] as string) as {
  url: string
  postgres?: string
  rounds: number
  ttlMs: number
}

const FENCED = `
  local last = tonumber(redis.call('HGET', KEYS[1], 'token') or '0')
  if tonumber(ARGV[1]) < last then return false end
  redis.call('HSET', KEYS[1], 'token', ARGV[1])
  if ARGV[2] ~= '' then redis.call('HSET', KEYS[1], 'value', ARGV[2]) end
  return redis.call('HGET', KEYS[1], 'value') or '0'`

const redis = new Redis(url)
const primitives = await Primitives.connect({
  redis: url,
  secret: 'a secret of tests, long enough',
  ...PATIENT,
  ...(postgres !== undefined && { postgres }),
})
const leases = new Leases(primitives, 'add', { ttlMs, retry: { times: 10_000, baseMs: 5, capMs: 50 } })

let taken = 0
let refused = 0
while (taken < rounds) {
  await leases.using('number', async ({ token }) => {
    const value = await redis.eval(FENCED, 1, 'number', token, '')
    if (value === null) {
      refused += 1
      return
    }
    await sleep(Math.random() * 10)
    // On purpose without a look at the signal: a pause may come between any look and any write.
    const written = await redis.eval(FENCED, 1, 'number', token, Number(value) + 1)
    if (written === null) refused += 1
    else taken += 1
  })
}
await new Promise<void>((resolve) => process.send?.({ taken, refused }, () => resolve()))
await primitives.close()
redis.disconnect()
process.disconnect()
