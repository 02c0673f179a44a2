/**
 * What a failed sending means. `refused` and `unsent`: nothing ran. `forbidden`: the script came to a command that the server does not let
 * us run, and what it wrote before that is there. `lost`: nobody knows. `broken`: the script ran and failed.
 */
export type Failure =
  | { readonly kind: 'refused'; readonly code: string; readonly again: boolean; readonly reason: string }
  | { readonly kind: 'forbidden'; readonly code: string; readonly reason: string }
  | { readonly kind: 'unsent'; readonly reason: string }
  | { readonly kind: 'lost'; readonly reason: string }
  | { readonly kind: 'broken'; readonly reason: string }

/**
 * Answers that mean that nothing was written: the server gives them before it runs a script, or at the script's first
 * write (once a script has written, Redis lets it finish). `again`: likely to pass within moments.
 */
const REFUSALS = new Map([
  ['NOSCRIPT', true],
  ['MOVED', true],
  ['ASK', true],
  ['TRYAGAIN', true],
  ['CLUSTERDOWN', true],
  ['LOADING', true],
  ['READONLY', true],
  ['MASTERDOWN', true],
  ['BUSY', true],
  ['OOM', false],
  ['MISCONF', false],
  ['NOREPLICAS', false],
  ['NOAUTH', false],
  ['NOPERM', false],
])
/** What any command that is not ours to run is refused as, however the server puts it. */
export const FORBIDDEN = 'NOPERM'

/**
 * The user lacks the right to a command inside of a script, or there is none of that name: renamed, or taken away. In the words of Redis 7.0,
 * of Redis since 7.2 and Valkey, and of both. A key that a script may not touch is not meant: it stands in no KEYS, which is a bug of ours.
 */
const FORBIDS =
  /^(?:ERR|NOPERM) (?:The user executing the script can't run this command|ACL failure in script: .* has no permissions to run the |Unknown (?:Redis )?command called from script)/
/** EVAL or EVALSHA itself. */
const UNKNOWN = /^ERR unknown command /i

/** Redis before 7 wraps what a script met: `ERR Error running script (call to f_…): @user_script:1: -READONLY You can't …`. */
const WRAPPED = /^ERR Error running script .*?: -([A-Z]+) /
/** ioredis's own words when it has followed enough redirections. */
const REDIRECTED = /^Too many Cluster redirections\. Last error: (?:\w*Error: )?(.*)$/s

export function classify(error: Error, sent: boolean, timeoutMs: number): Failure {
  const redirected = REDIRECTED.exec(error.message)?.[1]
  const reason = redirected ?? error.message
  if (error.name === 'ReplyError' || redirected !== undefined) {
    if (FORBIDS.test(reason)) return { kind: 'forbidden', code: FORBIDDEN, reason }
    if (UNKNOWN.test(reason)) return { kind: 'refused', code: FORBIDDEN, again: false, reason }
    const code = WRAPPED.exec(reason)?.[1] ?? reason.slice(0, reason.search(/\s|$/))
    const again = REFUSALS.get(code)
    if (again !== undefined) return { kind: 'refused', code, again, reason }
    if (error.name === 'ReplyError') return { kind: 'broken', reason }
  }
  const timedOut = error.message === 'Command timed out'
  if (sent) {
    return {
      kind: 'lost',
      reason: timedOut ? `no answer within ${timeoutMs} ms` : 'the connection broke before the answer',
    }
  }
  return {
    kind: 'unsent',
    reason: timedOut ? `no connection within ${timeoutMs} ms` : 'the connection broke before it was sent',
  }
}
