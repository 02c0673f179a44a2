import { setTimeout } from 'node:timers/promises'
import { PostgresError } from '../postgres/index.js'

const ATTEMPTS_MAX = 5
const BACKOFF_MS = 2
const LOCK_NOT_AVAILABLE = '55P03'

/** It was not done because somebody else kept a row locked for too long. */
export const isLocked = (error: unknown): boolean =>
  error instanceof PostgresError && error.sqlstate === LOCK_NOT_AVAILABLE

/**
 * A deadlock or a row that somebody keeps locked undid the statement: nothing happened, and it may work now. A row is waited for once, and then
 * left out: one that a paused process keeps locked must not hold up the wallets beside it.
 */
export async function waitOnce<T>(send: (skipLocked: boolean) => Promise<T>, waited = false): Promise<T> {
  let skipLocked = waited
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await send(skipLocked)
    } catch (error) {
      const again = error instanceof PostgresError && error.outcome === 'retry' && attempt < ATTEMPTS_MAX
      if (!again) throw error
      skipLocked ||= isLocked(error)
      await setTimeout(Math.random() * BACKOFF_MS * 2 ** attempt)
    }
  }
}
