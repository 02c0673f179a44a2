import { HoldfastError } from '../errors/index.js'
import type { CommandKind } from '../machine/index.js'
import type { Attempt } from './attempt.js'

const BEGINNINGS: ReadonlySet<CommandKind> = new Set(['hold', 'meter', 'debit', 'checkout'])
/** Of the time that it has, so much may pass until it is in the journal: Postgres may get slower yet, and then nobody has waited in vain. */
const BEGINNINGS_WITHIN = 1 / 2
const OTHERS_WITHIN = 3 / 4
/** So much of what the last full batch took is believed. Where they take unevenly long, it is the mean that says how long many of them do. */
const LATEST = 1 / 4

/** It begins something. Such things are refused first, so that there is room for what ends what was begun. */
export function isBeginning(kind: CommandKind): boolean {
  return BEGINNINGS.has(kind)
}

/**
 * What was decided can't be passed over any more: it goes into the journal in its order, whether its caller still waits or not. So when more
 * waits for that than can be appended in time, no more is decided; otherwise everybody would be answered too late, for as long as it lasts.
 * `waitMs`: how long it would wait; `leftMs`: how long its caller does.
 */
export function crowdedOut(kind: CommandKind, waitMs: number, leftMs: number): HoldfastError | null {
  const within = isBeginning(kind) ? BEGINNINGS_WITHIN : OTHERS_WITHIN
  if (waitMs === 0 || waitMs <= leftMs * within) return null
  return new HoldfastError('unavailable', 'Postgres has more to do than this operation has time for', {
    waitMs: Math.ceil(waitMs),
  })
}

/** A step of what was let in before: what is left half done costs more than it saves. Nor is turned away who looks after wallets, for the same reason. */
export function isLetIn({ begun, command: { kind } }: Pick<Attempt, 'begun' | 'command'>): boolean {
  return begun || kind === 'touch'
}

/** How long a full batch takes, ms, after one that took so long. 0: there was none yet. */
export function learnFull(fullMs: number, tookMs: number): number {
  return fullMs === 0 ? tookMs : fullMs + (tookMs - fullMs) * LATEST
}
