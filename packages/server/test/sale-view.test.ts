import type { SaleState } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { addSample, isOver, lineOf, ratesOf, type Sample, screenOf } from '../src/commands/sale/view.js'

const START = Date.parse('2026-11-20T18:00:00Z')
const SALE: SaleState = {
  id: 'friday',
  limit: 10_000,
  perUser: 10,
  startsAt: START,
  endsAt: START + 3_600_000,
  checkoutTtlMs: 600_000,
  reserve: 'checkout',
  buckets: 1,
  items: 3,
  stock: 10_000,
  reserved: 0,
  sold: 0,
  open: true,
  soldOut: false,
}
const sample = (seconds: number, sold = 0, reserved = 0, other: Partial<SaleState> = {}): Sample => ({
  at: START + seconds * 1_000,
  sale: { ...SALE, sold, reserved, stock: SALE.limit - sold - reserved, ...other },
})
const LOOK = { columns: 80, unicode: true, note: 'a note' }

describe('the view of a sale', () => {
  it('shows how it stands, how fast, and how long it still goes', () => {
    expect(screenOf([sample(10, 1_000, 100), sample(12, 1_600, 150)], LOOK)).toEqual([
      'friday   running   ends in 59:48',
      `[${'█'.repeat(9)}▒${'░'.repeat(50)}]  16 % sold`,
      'sold          1,600  +300/s',
      'in checkouts    150  +25/s',
      'left          8,250  -325/s',
      'a note',
    ])
  })

  it('fits any width, in characters that the terminal has', () => {
    for (const columns of [20, 30, 50, 200]) {
      const lines = screenOf([sample(10, 4_000, 500, { id: 'x'.repeat(100) })], { ...LOOK, columns, unicode: false })
      for (const line of lines) expect(line.length).toBeLessThan(columns)
      expect(lines[1]).toMatch(/^\[#+=+-+/)
    }
  })

  it('shows the least of what there is, and says all only when it is all', () => {
    expect(screenOf([sample(10, 1, 1)], LOOK)[1]).toBe(`[█▒${'░'.repeat(58)}]  0 % sold`)
    expect(screenOf([sample(10, 9_999, 0)], LOOK)[1]).toContain('99 % sold')
    expect(screenOf([sample(10, 10_000, 0, { soldOut: true })], LOOK).slice(0, 2)).toEqual([
      'friday   sold out   ends in 59:50',
      `[${'█'.repeat(60)}]  100 % sold`,
    ])
    // While the last moves from one bucket to another it is in neither, and may still stay unsold.
    expect(screenOf([sample(10, 10_000, 0, { buckets: 4 })], LOOK)[0]).toBe('friday   running   ends in 59:50')
  })

  it.each([
    [-90_061, 'friday   upcoming   starts in 1 d 1:01:01'],
    [-5, 'friday   upcoming   starts in 00:05'],
    [3_600, 'friday   over'],
  ])('%i s after the start: %s', (seconds, first) => {
    expect(screenOf([sample(seconds)], LOOK)[0]).toBe(first)
  })

  it('has rates of the last seconds, also where looks were far apart', () => {
    let samples: Sample[] = []
    for (let second = 0; second <= 20; second += 1) samples = addSample(samples, sample(second, second < 10 ? 0 : 500))
    expect(samples.length).toBeLessThan(10)
    expect(ratesOf(samples).sold).toBe(0)
    samples = addSample(samples, sample(60, 900))
    expect(ratesOf(samples).sold).toBe(10)
    expect(ratesOf([sample(1)])).toEqual({ sold: 0, reserved: 0, stock: 0 })
    expect(Object.is(ratesOf([sample(1, 5), sample(9, 4)]).sold, 0)).toBe(true)
  })

  it('is a line for who reads lines', () => {
    expect(lineOf([sample(10, 1_000, 100), sample(12, 1_600, 150)])).toBe(
      '18:00:12  running  sold 1,600 (+300/s)  in checkouts 150  left 8,250  16 %  ends in 59:48',
    )
  })

  it.each<[string, Sample, boolean]>([
    ['it runs', sample(10, 500), false],
    ['all is in checkouts: some may come back', sample(10, 9_000, 1_000), false],
    ['all is sold', sample(10, 10_000, 0, { soldOut: true }), true],
    ['the last is on its way from one bucket to another', sample(10, 10_000, 0, { buckets: 4 }), false],
    ['it has ended', sample(3_600, 500), true],
    ['it has ended, and checkouts are about to run out', sample(3_601, 500, 3), false],
    ['it has ended long ago', sample(3_700, 500, 3), true],
    ['it was closed', sample(10, 500, 0, { open: false }), true],
    ['it was closed, and checkouts can be bought', sample(10, 500, 3, { open: false }), false],
    ['it was closed, and what is noted can be bought', sample(10, 5, 0, { open: false, reserve: 'purchase' }), false],
  ])('%s', (_, latest, over) => {
    expect(isOver(latest)).toBe(over)
  })
})
