import { HoldfastError } from '../errors/index.js'
import type { Confirmation } from '../journal/index.js'
import type { RejectionCode } from '../machine/index.js'
import type { Attempt } from './attempt.js'
import type { RefusalAnswer } from './lane.js'

/** A refusal that nobody has been told yet. */
export interface Doubt {
  readonly attempt: Attempt
  readonly refusal: Extract<RefusalAnswer, { type: 'rejected' }>
}

/** A hold that the state does not know may be closed, expired, or never have been: the journal tells which. */
export function refusalError(
  code: RejectionCode,
  facts: Record<string, number>,
  hold: Confirmation['hold'] = 'unknown',
): HoldfastError {
  if (code !== 'hold_unknown') return new HoldfastError(code, undefined, facts)
  if (hold === 'expired') return new HoldfastError('hold_expired')
  return new HoldfastError(hold === 'closed' ? 'hold_closed' : 'hold_not_found')
}
