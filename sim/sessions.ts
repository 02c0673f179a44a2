/** Metered sessions in a schedule: what callers ask of them, and what must be true of them, told without the code that decides it. */
import { type Command, command, type Entry, type Meter, readMeter } from '../packages/holdfast/src/machine/index.js'
import type { Heard, Operation } from './caller.js'
import type { World } from './world.js'

interface Known {
  readonly id: string
  readonly meter: Meter
  readonly startedAt: number
  /** Units that somebody has delivered. Callers tell of them late, twice and out of order. */
  delivered: number
}

/** The sessions that callers know of. They share them: several tick the same one, and any of them may end it. */
export class Sessions {
  readonly #world: World
  readonly #known = new Map<string, Known[]>()

  constructor(world: World) {
    this.#world = world
  }

  begin(key: string): Command {
    const { chance } = this.#world
    const counting = chance.pick(['units', 'units', 'units', 'started', 'completed', 'prorated'] as const)
    const meter: Meter = {
      counting,
      rate: chance.integer(1, 4),
      perMs: counting === 'units' ? 0 : chance.integer(20, 1_500),
      stretch: chance.integer(5, 40),
      extendAtPercent: chance.pick([80, 80, 50, 100]),
      // Some hear nothing of their callers for longer than that.
      heartbeatMs: chance.happens(0.2) ? chance.integer(5, 900) : chance.integer(2_000, 20_000),
      measure: chance.integer(1, 20),
    }
    return command({ kind: 'meter', key, meter })
  }

  learn(wallet: string, { meter }: Command, { key, at }: Entry): void {
    if (!meter) return
    const known = this.#known.get(wallet) ?? []
    known.push({ id: key, meter, startedAt: at, delivered: 0 })
    this.#known.set(wallet, known)
  }

  /** Most callers leave a session alone that they hear is over. */
  hear(wallet: string, { kind, hold }: Command, heard: Heard): void {
    const over = heard.type === 'no' || (kind === 'end' && heard.type === 'yes')
    if (!over || !this.#world.chance.happens(0.6)) return
    const known = this.#known.get(wallet) ?? []
    const at = known.findIndex(({ id }) => id === hold)
    if (at >= 0) known.splice(at, 1)
  }

  /** About one of the last: so that they meet. */
  goOn(wallet: string, kind: 'tick' | 'end', key: string): Command {
    const { chance } = this.#world
    const session = this.#known.get(wallet)?.at(-1 - chance.integer(0, 1)) ?? this.#known.get(wallet)?.at(-1)
    if (!session) return this.begin(key)
    session.delivered += chance.integer(0, 8)
    const told = chance.happens(0.3) ? chance.integer(0, session.delivered) : session.delivered
    const measure = session.meter.counting === 'units' ? told : session.startedAt
    const meter = { ...session.meter, measure }
    // As the product makes it: whoever ends a session, it is the same end.
    return command({ kind, key: kind === 'end' ? `~end:${session.id}` : key, hold: session.id, meter })
  }
}

/** In whole numbers of any size. */
function dueExactly({ counting, rate, perMs, measure }: Meter, at: number): bigint {
  if (counting === 'units') return BigInt(rate) * BigInt(measure)
  const elapsed = BigInt(Math.max(0, at - measure))
  const per = BigInt(perMs)
  if (counting === 'completed') return (elapsed / per) * BigInt(rate)
  if (counting === 'prorated') return (elapsed * BigInt(rate)) / per
  const begun = (elapsed + per - 1n) / per
  return (begun < 1n ? 1n : begun) * BigInt(rate)
}

export interface SessionsJudged {
  readonly problems: string[]
  /** What came up, so that a suite can see that it did. */
  readonly events: string[]
}

/** Every session of a journal, entry by entry: no unit and no time charged twice, no stretch set aside twice, nothing left over. */
export function judgeSessions(entries: readonly Entry[], history: readonly Operation[]): SessionsJudged {
  const judged: SessionsJudged = { problems: [], events: [] }
  for (const entry of entries) {
    const terms = entry.kind === 'hold' ? readMeter(entry.params) : null
    if (!terms) continue
    const about = entries.filter(({ hold, kind }) => hold === entry.hold && kind !== 'refund')
    judgeSession(terms, about, judged)
  }
  for (const { command: asked, heard } of history) {
    if (asked.kind === 'tick' && heard.type === 'no') judged.events.push('session_tick_late')
    if (asked.kind === 'end' && heard.type === 'yes' && heard.outcome.replayed) judged.events.push('session_end_again')
  }
  return judged
}

function judgeSession(terms: Meter, about: readonly Entry[], { problems, events }: SessionsJudged): void {
  const { stretch, extendAtPercent } = terms
  let furthest = 0n
  let taken = 0
  let charged = 0
  for (const entry of about) {
    const { kind, key, seq, at, holdAmount, holdCaptured, holdLeft, availableDelta, reservedDelta } = entry
    const fault = (text: string) => problems.push(`session ${entry.hold}: ${text} by entry ${seq} (${key})`)
    const told = kind === 'hold' ? null : readMeter(entry.params)
    const due = told ? dueExactly(told, at) : 0n
    const more = due > furthest
    if (more) furthest = due
    charged -= availableDelta + reservedDelta
    if (charged !== holdCaptured) fault(`${charged} was charged and ${holdCaptured} is said to be`)
    if (BigInt(charged) > furthest) fault(`${charged} was charged where no more than ${furthest} was due`)
    if (kind === 'expire') events.push('session_expired')
    if (kind === 'settle') events.push('session_ended')
    if (kind !== 'hold' && kind !== 'tick') continue
    taken -= availableDelta
    if (taken !== holdAmount || taken !== holdCaptured + holdLeft)
      fault(`${taken} was set aside, ${holdAmount} is said to be, and ${holdCaptured} + ${holdLeft} is there`)
    const stretches = Math.max(1, Math.ceil((Number(furthest) * 100) / (stretch * extendAtPercent)))
    if (holdAmount > stretch * stretches) fault(`${holdAmount} was set aside where ${stretch * stretches} is enough`)
    if (kind !== 'tick') continue
    if (charged < taken && BigInt(charged) < due) fault(`${charged} of ${due} was charged, though ${taken} is there`)
    events.push(availableDelta < 0 ? 'session_extended' : more ? 'session_charged' : 'session_told_again')
    if (holdAmount < stretch * stretches) events.push('session_short')
  }
}
