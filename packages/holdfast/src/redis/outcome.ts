import { type Facts, HoldfastError } from '../errors/index.js'

/**
 * What became of a call that failed.
 * - `not_executed`: the server certainly did not run it: never sent, or refused before anything was written.
 * - `unknown`: it was sent and its reply is missing. It may have run, and may still be about to.
 */
export type Outcome = 'not_executed' | 'unknown'

/**
 * Redis is away, refuses, or did not answer. `outcome` is what the next step must be decided by. `refused` is there when the server says
 * that it will not, and moments change nothing about that: `OOM`, `NOREPLICAS`, `NOPERM`, …
 */
export class RedisUnavailable extends HoldfastError {
  declare readonly outcome: Outcome

  constructor(outcome: Outcome, message: string, facts: Facts = {}) {
    super('unavailable', message, { ...facts, outcome })
  }
}

/**
 * A script broke: a bug, or state that somebody else has damaged. Redis does not roll back, so what it wrote before it broke
 * is there. Carries the server's words and never the call's arguments (they hold callers' data), so there is no `cause`.
 */
export class ScriptError extends Error {
  override readonly name = 'ScriptError'
  readonly outcome: Outcome = 'unknown'

  constructor(
    readonly script: string,
    reply: string,
  ) {
    super(`script ${script}: ${reply.length > 300 ? `${reply.slice(0, 300)}…` : reply}`)
  }
}
