import type { Intent } from '../journal/index.js'
import { type Command, command } from '../machine/index.js'

/**
 * The steps of a transfer as commands. Every key follows from the transfer's own, so that whoever takes a step takes the same one:
 *
 *     source   ~transfer-hold:<key>       hold      amount + fee
 *     target   ~transfer:<source>:<key>   credit    amount           the commit point; or void, and then it will never be
 *     source   ~transfer-fee:<key>        capture   fee
 *     source   ~transfer-settle:<key>     settle    amount + fee
 *     source   ~transfer-release:<key>    release                    where the target's key says void, or its wallet is closed
 *
 * The hold has a name of the engine's own: nobody else can spend or release it. What
 * passes between the two is booked on the account `transfers`: it is zero when nothing is under way.
 */
const ACCOUNT = 'transfers'

/** A hundred years: it ends when the transfer does. Running out before that would give back what has arrived elsewhere. */
const HOLD_TTL_MS = 100 * 365 * 24 * 60 * 60 * 1_000

export function holdOf({ key, amount, fee, target }: Intent): Command {
  // Where it goes and what it costs decide, too: the same key for another transfer is a conflict.
  return command({
    kind: 'hold',
    key: holdKey(key),
    amount: amount + fee,
    ttlMs: HOLD_TTL_MS,
    counter: ACCOUNT,
    also: `to ${target} fee ${fee}`,
  })
}

/** Changes nothing; is there a hold? A "no" to it is a "no" to that. */
export function probeOf({ key }: Intent): Command {
  return command({ kind: 'extend', key: `~transfer-probe:${key}`, hold: holdKey(key), ttlMs: 1, counter: ACCOUNT })
}

export function creditOf({ source, key, amount, metadata }: Intent): Command {
  return command({ kind: 'credit', key: targetKey(source, key), amount, counter: ACCOUNT, metadata })
}

/** Why is kept with it: who repeats the transfer is told the same. */
export function voidOf({ source, key }: Intent, why: string): Command {
  return command({ kind: 'void', key: targetKey(source, key), counter: ACCOUNT, metadata: why })
}

export function feeOf({ key, fee, counter }: Intent): Command {
  return command({ kind: 'capture', key: `~transfer-fee:${key}`, hold: holdKey(key), amount: fee, counter })
}

export function settleOf({ key, amount, fee, metadata }: Intent): Command {
  return command({
    kind: 'settle',
    key: `~transfer-settle:${key}`,
    hold: holdKey(key),
    amount: amount + fee,
    counter: ACCOUNT,
    metadata,
  })
}

export function releaseOf({ key }: Intent): Command {
  return command({ kind: 'release', key: `~transfer-release:${key}`, hold: holdKey(key), counter: ACCOUNT })
}

export function targetKey(source: string, key: string): string {
  return `~transfer:${source}:${key}`
}

export function holdKey(key: string): string {
  return `~transfer-hold:${key}`
}
