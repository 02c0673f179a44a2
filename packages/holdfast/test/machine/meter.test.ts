/** What a metered session must come to, told without the code that decides it. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { command, decide, type Entry, MAX_AMOUNT, type Meter, type WalletState } from '../../src/machine/index.js'
import { START } from './commands.js'
import { emptyState } from './oracle.js'

const HEAD = '0'.repeat(40)
const UNITS: Meter = {
  counting: 'units',
  rate: 3,
  perMs: 0,
  stretch: 100,
  extendAtPercent: 80,
  heartbeatMs: 60_000,
  measure: 1,
}

let keys = 0
function act(state: WalletState, kind: 'meter' | 'tick' | 'end', meter: Meter, now = START): Entry {
  keys += 1
  const asked = command({ kind, key: kind === 'meter' ? 'session' : `key-${keys}`, hold: 'session', meter })
  const { entries, outcome } = decide(state, asked, now)
  expect(outcome).toEqual({ type: 'accepted' })
  return entries.at(-1) as Entry
}

function started(meter: Meter, available: number, given: Partial<WalletState> = {}): WalletState {
  const state = { ...emptyState(HEAD), available, ...given }
  act(state, 'meter', { ...meter, measure: 1 })
  return state
}

/** In whole numbers of any size. */
function dueExactly({ counting, rate, perMs, measure }: Meter, now: number): bigint {
  if (counting === 'units') return BigInt(rate) * BigInt(measure)
  const elapsed = BigInt(now - measure)
  const per = BigInt(perMs)
  if (counting === 'completed') return (elapsed / per) * BigInt(rate)
  if (counting === 'prorated') return (elapsed * BigInt(rate)) / per
  const begun = (elapsed + per - 1n) / per
  return (begun < 1n ? 1n : begun) * BigInt(rate)
}

const anyMeter = fc
  .record({
    counting: fc.constantFrom('started' as const, 'completed' as const, 'prorated' as const, 'units' as const),
    rate: fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 2 ** 25 })),
    perMs: fc.oneof(fc.integer({ min: 1, max: 5_000 }), fc.integer({ min: 1, max: 2 ** 27 })),
    stretch: fc.integer({ min: 1, max: 2_000 }),
    extendAtPercent: fc.integer({ min: 1, max: 100 }),
  })
  .map((terms) => ({ ...terms, heartbeatMs: 2 ** 40, measure: START }))

/** The same session told of at several moments, by time or by units. */
const told = fc.array(fc.integer({ min: 0, max: 50_000 }), { minLength: 1, maxLength: 20 })

function measured(meter: Meter, moment: number): [Meter, number] {
  return meter.counting === 'units' ? [{ ...meter, measure: moment }, START] : [meter, START + moment]
}

describe('what is due', () => {
  it('is what exact arithmetic says, however large the numbers', () => {
    const moment = fc.oneof(fc.integer({ min: 0, max: 50_000 }), fc.integer({ min: 0, max: 2 ** 35 }))
    fc.assert(
      fc.property(anyMeter, moment, (meter, at) => {
        const [asked, now] = measured(meter, at)
        const state = started(meter, MAX_AMOUNT)
        const { holdCaptured } = act(state, 'end', asked, now)
        const due = dueExactly(asked, now)
        expect(BigInt(holdCaptured)).toBe(due < BigInt(MAX_AMOUNT) ? due : BigInt(MAX_AMOUNT))
      }),
    )
  })

  it.each([
    ['started', 0, 20],
    ['started', 1, 20],
    ['started', 60_000, 20],
    ['started', 60_001, 40],
    ['completed', 59_999, 0],
    ['completed', 60_000, 20],
    ['prorated', 2_999, 0],
    ['prorated', 3_000, 1],
    ['prorated', 89_999, 29],
  ] as const)('of %s periods after %d ms is %d', (counting, elapsed, due) => {
    const meter: Meter = { ...UNITS, counting, rate: 20, perMs: 60_000, measure: START, heartbeatMs: 600_000 }
    const state = started(meter, 1_000)
    expect(act(state, 'tick', meter, START + elapsed).amount).toBe(due)
  })

  it('is nothing before the beginning', () => {
    const meter: Meter = { ...UNITS, counting: 'completed', rate: 20, perMs: 1, measure: START + 500 }
    expect(act(started(meter, 1_000), 'tick', meter).amount).toBe(0)
  })
})

describe('ticks', () => {
  it('in any order and number come to what the furthest of them says, and never to more', () => {
    fc.assert(
      fc.property(anyMeter, told, fc.integer({ min: 1, max: 20_000 }), (meter, moments, money) => {
        const state = started(meter, money)
        let furthest = 0n
        let now = START
        for (const moment of moments) {
          const [asked, at] = measured(meter, moment)
          // Time goes one way; a tick that comes late is decided when it comes.
          now = Math.max(now, at)
          const due = dueExactly(asked, now)
          if (due > furthest) furthest = due
          const entry = act(state, 'tick', asked, now)
          const covered = furthest < BigInt(money) ? furthest : BigInt(money)
          expect(BigInt(entry.holdCaptured)).toBe(covered)
          expect(entry.holdAmount).toBe(entry.holdCaptured + entry.holdLeft)
          expect(entry.available + entry.reserved + entry.holdCaptured).toBe(money)
          expect(entry.reserved).toBe(entry.holdLeft)
        }
      }),
    )
  })

  it('that are repeated charge and reserve nothing', () => {
    fc.assert(
      fc.property(anyMeter, fc.integer({ min: 0, max: 50_000 }), (meter, moment) => {
        const state = started(meter, 100_000)
        const [asked, now] = measured(meter, moment)
        const first = act(state, 'tick', asked, now)
        expect(act(state, 'tick', asked, now)).toMatchObject({
          amount: 0,
          availableDelta: 0,
          reservedDelta: 0,
          holdAmount: first.holdAmount,
        })
      }),
    )
  })

  it('reserve whole stretches, as few as keep the used share below the line', () => {
    fc.assert(
      fc.property(anyMeter, told, (meter, moments) => {
        const small = { ...meter, rate: Math.min(meter.rate, 50), perMs: Math.max(meter.perMs, 100) }
        const state = started(small, 10 ** 12)
        let now = START
        for (const moment of moments) {
          const [asked, at] = measured(small, moment)
          now = Math.max(now, at)
          const { holdAmount, holdCaptured } = act(state, 'tick', asked, now)
          const { stretch, extendAtPercent } = small
          expect(holdAmount % stretch).toBe(0)
          expect(holdCaptured * 100).toBeLessThanOrEqual(holdAmount * extendAtPercent)
          const oneLess = holdAmount - stretch
          if (oneLess > 0) expect(holdCaptured * 100).toBeGreaterThan(oneLess * extendAtPercent)
        }
      }),
    )
  })

  it('extend once at the line, and not before', () => {
    const state = started(UNITS, 1_000)
    expect(act(state, 'tick', { ...UNITS, measure: 26 })).toMatchObject({ holdAmount: 100, holdCaptured: 78 })
    expect(act(state, 'tick', { ...UNITS, measure: 27 })).toMatchObject({ holdAmount: 200, available: 800 })
    expect(act(state, 'tick', { ...UNITS, measure: 27 })).toMatchObject({ holdAmount: 200, available: 800 })
    expect(act(state, 'tick', { ...UNITS, measure: 53 })).toMatchObject({ holdAmount: 200, holdCaptured: 159 })
    expect(act(state, 'tick', { ...UNITS, measure: 54 })).toMatchObject({ holdAmount: 300, holdCaptured: 162 })
  })

  it('take what is left when it is less than a stretch, and fill it up when there is more again', () => {
    const state = started(UNITS, 130)
    expect(act(state, 'tick', { ...UNITS, measure: 27 })).toMatchObject({ holdAmount: 130, available: 0, holdLeft: 49 })
    state.available += 500
    expect(act(state, 'tick', { ...UNITS, measure: 28 })).toMatchObject({ holdAmount: 200, available: 430 })
  })

  it('of a frozen wallet use up what is reserved', () => {
    const state = started(UNITS, 1_000)
    state.status = 'frozen'
    expect(act(state, 'tick', { ...UNITS, measure: 50 })).toMatchObject({ holdAmount: 100, holdCaptured: 100 })
  })

  it('reach into credit', () => {
    const state = started(UNITS, 50, { creditLimit: 60 })
    expect(act(state, 'tick', { ...UNITS, measure: 30 })).toMatchObject({ holdAmount: 110, available: -60 })
  })

  it('let the session live for another heartbeat, and never shorten it', () => {
    const state = started(UNITS, 1_000)
    const tick = act(state, 'tick', { ...UNITS, measure: 1 }, START + 50_000)
    expect(tick.holdExpiresAt).toBe(START + 110_000)
    const shorter = { ...UNITS, measure: 1, heartbeatMs: 10 }
    expect(act(state, 'tick', shorter, START + 50_001).holdExpiresAt).toBe(START + 110_000)
  })
})

describe('the end', () => {
  it('charges what is due, returns the rest, and reserves nothing that is not due', () => {
    const state = started(UNITS, 1_000)
    act(state, 'tick', { ...UNITS, measure: 10 })
    const end = act(state, 'end', { ...UNITS, measure: 50 })
    expect(end).toMatchObject({
      kind: 'settle',
      amount: 150,
      available: 850,
      reserved: 0,
      holdAmount: 150,
      holdLeft: 0,
    })
  })

  it('takes as much as there is', () => {
    const state = started(UNITS, 130)
    expect(act(state, 'end', { ...UNITS, measure: 50 })).toMatchObject({ amount: 130, available: 0, reserved: 0 })
  })

  it('gives nothing back that was charged', () => {
    const state = started(UNITS, 1_000)
    act(state, 'tick', { ...UNITS, measure: 10 })
    expect(act(state, 'end', { ...UNITS, measure: 2 })).toMatchObject({ amount: 30, available: 970, reserved: 0 })
  })
})

describe('the beginning', () => {
  const begin = (state: WalletState, meter: Meter) =>
    decide(state, command({ kind: 'meter', key: 'session', meter }), START).outcome

  it('needs the minimum, and reserves no more than a stretch', () => {
    const meter = { ...UNITS, measure: 150 }
    const refused = { type: 'rejected', rejection: { code: 'insufficient_funds', facts: { available: 149 } } }
    expect(begin({ ...emptyState(HEAD), available: 149 }, meter)).toEqual(refused)
    const state = { ...emptyState(HEAD), available: 150 }
    expect(begin(state, meter)).toEqual({ type: 'accepted' })
    expect(state).toMatchObject({ available: 50, reserved: 100 })
  })

  it('is refused by a frozen wallet', () => {
    const state = { ...emptyState(HEAD), available: 1_000, status: 'frozen' as const }
    expect(begin(state, UNITS)).toMatchObject({ rejection: { code: 'wallet_frozen' } })
  })
})
