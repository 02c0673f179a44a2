import { expect } from 'vitest'
import type { ScriptRunner } from '../../../src/redis/index.js'
import { otpAttempt, otpPeek } from '../../../src/redis/scripts.generated.js'

/** Enough to come by every call to Redis that stands in the scripts of one-time passwords. */
export async function useOtp(on: ScriptRunner): Promise<void> {
  const keys = ['attempts', 'cooldown'].map((part) => `hf:app:otp:v1:default:login:{0}:${part}`)
  const call = (at: number) => [1, at, 2, 60_000, 60_000, 60_000, 2, 120_000, 60_000]
  expect(String(await on.run(otpAttempt, keys, call(1)))).toBe('1 1 0 0')
  expect(String(await on.run(otpAttempt, keys, call(2)))).toBe('1 2 60000 1')
  expect(String(await on.run(otpAttempt, keys, call(3)))).toBe('0 2 59999 0')
  expect(String(await on.run(otpPeek, keys, call(4)))).toBe('0 2 59998 0')
}
