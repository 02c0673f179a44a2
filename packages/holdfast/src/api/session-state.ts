import { type Entry, isShort, readMeter, type Terms, usedBy } from '../machine/index.js'

/** A metered session as it stands. */
export interface SessionState {
  readonly id: string
  readonly by: 'time' | 'units'
  readonly startedAt: number
  /** All that was charged so far. */
  readonly charged: number
  /** All that was reserved for it so far, what is charged included. */
  readonly reserved: number
  /** What is reserved and not charged yet. */
  readonly left: number
  /** There was no money to reserve as much as should be: what is `left` is the last, unless the wallet is topped up. */
  readonly final: boolean
  /** By time: when all that is reserved is used up. Null by units, and once it has ended. */
  readonly runsOutAt: number | null
  /** By units: how many more are covered by what is reserved. Null by time. */
  readonly unitsLeft: number | null
  /** Without another tick it ends then. */
  readonly expiresAt: number
  readonly ended: boolean
  /** How it ended: by `end`, because no tick came, or as any other hold. Null: it has not. */
  readonly endedBy: 'end' | 'expiry' | 'release' | 'settle' | null
}

/** How a session began: its terms, and the entry that they stand in. */
export interface Begun {
  readonly terms: Terms
  readonly entry: Entry
}

/** The latest date there is. */
const LATEST = 8_640_000_000_000_000

/** The session after the entry, which is one about its hold. */
export function stateOf({ terms, entry: { hold, at: startedAt } }: Begun, entry: Entry): SessionState {
  const { holdAmount: reserved, holdCaptured: charged, holdLeft: left, holdExpiresAt: expiresAt } = entry
  const endedBy = endOf(entry)
  const units = terms.counting === 'units'
  const meter = entry.kind === 'tick' ? readMeter(entry.params) : null
  const used = meter ? usedBy(meter, charged, entry.at) : charged
  return {
    id: hold,
    by: units ? 'units' : 'time',
    startedAt,
    charged,
    reserved,
    left,
    final: endedBy !== null || isShort(terms, reserved, used),
    runsOutAt: units || endedBy ? null : runsOutAt(terms, startedAt, charged + left),
    unitsLeft: units ? Math.floor(left / terms.rate) : null,
    expiresAt,
    ended: endedBy !== null,
    endedBy,
  }
}

function endOf({ kind, params }: Entry): SessionState['endedBy'] {
  if (kind === 'expire') return 'expiry'
  if (kind === 'release') return 'release'
  if (kind !== 'settle') return null
  return params.startsWith('end ') ? 'end' : 'settle'
}

/** Whole periods; and what the rest of the money buys of the next one, where parts are charged. */
function runsOutAt({ counting, rate, perMs }: Terms, startedAt: number, money: number): number {
  const periods = Math.floor(money / rate)
  const rest = money - periods * rate
  const restMs = counting === 'prorated' ? Math.floor((rest * perMs) / rate) : 0
  return Math.min(LATEST, startedAt + periods * perMs + restMs)
}
