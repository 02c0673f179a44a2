import { randomInt } from 'node:crypto'

/** With it about a billion raises of one wallet fit below 2^52: there is one whenever it is loaded. */
const STEP_MAX = 10_000_000

/**
 * How far above the last one the next epoch is: by chance. One more each time would do, if no raise were ever lost. But a copy of Postgres that is
 * put back has none of the raises since it was made, and would give the same epochs once more, to other states: what was decided on the one
 * would be accepted beside the other. So it happens to one lost raise in millions.
 */
export type EpochStep = () => number

export const epochStep: EpochStep = () => randomInt(1, STEP_MAX + 1)
