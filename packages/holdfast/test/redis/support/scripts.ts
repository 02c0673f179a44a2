import { compileScript } from '../../../../../scripts/generate.mjs'
import type { Script } from '../../../src/redis/index.js'

/** A script of a test's own, made by the compiler that makes the shipped ones. */
export function script(name: string, directives: string, code: string): Script {
  const contract = ['-- A script of a test.', '-- KEYS  see @keys', '-- ARGV  see the code', '-- Returns  see the code']
  const lines = directives.split(' | ').map((line) => `-- @${line}`)
  return compileScript({ name, source: [...contract, ...lines, code].join('\n') })
}

/** Counts how often it ran: the one thing that a lost reply leaves in doubt. */
export const countNever = script('count-never', 'keys 1 | resend never', "return redis.call('INCR', KEYS[1])")
export const countSafe = script('count-safe', 'keys 1 | resend safe', "return redis.call('INCRBY', KEYS[1], 1)")
