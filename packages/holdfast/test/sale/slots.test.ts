import { describe, expect, it } from 'vitest'
import { nextSlot } from '../../src/api/sale/slots.js'

const HOUR = 3_600_000
const at = (text: string) => Date.parse(`2026-11-16T${text}Z`)

function next(every: number, openedUntil: number, now: string, offset = 0) {
  const template = { everyMs: every, offsetMs: offset, aheadMs: 1, options: {} }
  const { startsAt, endsAt, sale } = nextSlot('x', { template, openedUntil, now: at(now) })
  const time = (ms: number) => new Date(ms).toISOString().slice(11, 23)
  return [time(startsAt), time(endsAt), sale]
}

describe('the next slot', () => {
  it('is the one that is running, where none was opened, from its beginning', () => {
    expect(next(HOUR, 0, '04:17:12.345')).toEqual(['04:00:00.000', '05:00:00.000', 'x-2026111604'])
    expect(next(HOUR, 0, '04:00:00.000')).toEqual(['04:00:00.000', '05:00:00.000', 'x-2026111604'])
    expect(next(HOUR, 0, '03:59:59.999')).toEqual(['03:00:00.000', '04:00:00.000', 'x-2026111603'])
    expect(next(HOUR, 0, '04:17:12.345', HOUR / 2)).toEqual(['03:30:00.000', '04:30:00.000', 'x-202611160330'])
  })

  it('begins where the last one ends, whenever somebody looks', () => {
    for (const now of ['04:00:00.000', '04:59:59.999', '05:00:00.000', '05:59:59.999']) {
      expect(next(HOUR, at('05:00:00'), now)).toEqual(['05:00:00.000', '06:00:00.000', 'x-2026111605'])
    }
  })

  it('leaves out those that have passed, and takes the running one with its right end', () => {
    expect(next(HOUR, at('05:00:00'), '09:20:00.000')).toEqual(['09:00:00.000', '10:00:00.000', 'x-2026111609'])
  })

  it('leads from one grid to another without a gap, an overlap, or a slot of next to nothing', () => {
    expect(next(HOUR / 2, at('05:00:00'), '04:10:00')).toEqual(['05:00:00.000', '05:30:00.000', 'x-2026111605'])
    expect(next(HOUR, at('05:30:00'), '05:10:00')).toEqual(['05:30:00.000', '06:00:00.000', 'x-202611160530'])
    expect(next(HOUR, at('05:00:00'), '04:10:00', 45 * 60_000)).toEqual([
      '05:00:00.000',
      '05:45:00.000',
      'x-2026111605',
    ])
    expect(next(HOUR, at('05:00:00'), '04:10:00', 1)).toEqual(['05:00:00.000', '06:00:00.001', 'x-2026111605'])
    expect(next(HOUR, at('06:00:00.001'), '05:10:00', 1)[2]).toBe('x-20261116060000001')
  })

  it('never drifts, and no two have the same name', () => {
    for (const [every, offset] of [
      [1_000, 0],
      [7_777, 123],
      [HOUR, 0],
      [24 * HOUR, 3 * HOUR],
    ] as const) {
      const template = { everyMs: every, offsetMs: offset, aheadMs: 1, options: {} }
      const names: string[] = []
      let openedUntil = 0
      for (let n = 0; n < 1_000; n += 1) {
        const now = openedUntil || at('04:17:12.345')
        const slot = nextSlot('x', { template, openedUntil, now })
        expect(slot.startsAt).toBe(openedUntil || slot.startsAt)
        expect(slot.endsAt - slot.startsAt).toBe(every)
        expect((slot.startsAt - offset) % every).toBe(0)
        names.push(slot.sale)
        openedUntil = slot.endsAt
      }
      expect(new Set(names).size).toBe(1_000)
      expect(names.toSorted()).toEqual(names)
    }
  })
})
