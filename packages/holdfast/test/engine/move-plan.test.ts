import { describe, expect, it } from 'vitest'
import { planMoves } from '../../src/engine/move-plan.js'

const wanted = (item: number, quantity: number) => ({ item, quantity, shares: [10, 20, 30] })

describe('what is moved to a bucket', () => {
  it('is half of what the one has that has most', () => {
    expect(planMoves([{ wanted: wanted(7, 1), left: [0, 3, 9] }], [0, 3, 9], 0)).toEqual([
      { source: 2, move: { total: 5, lines: [{ item: 7, quantity: 5, share: 30 }] } },
    ])
  })

  it('is as much as is missing, from several where one has too little', () => {
    expect(planMoves([{ wanted: wanted(7, 6), left: [1, 2, 4] }], [1, 2, 4], 0)).toEqual([
      { source: 2, move: { total: 4, lines: [{ item: 7, quantity: 4, share: 30 }] } },
      { source: 1, move: { total: 1, lines: [{ item: 7, quantity: 1, share: 20 }] } },
    ])
  })

  it('is nothing where it is there, or where all of them together have too little', () => {
    expect(planMoves([{ wanted: wanted(7, 1), left: [1, 3, 9] }], [1, 3, 9], 0)).toEqual([])
    expect(planMoves([{ wanted: wanted(7, 3), left: [0, 1, 1] }], [0, 1, 1], 0)).toEqual([])
  })

  it('is an item without the total, and the total without an item, where a bucket has only the one', () => {
    const takings = [
      { wanted: wanted(7, 1), left: [0, 1, 0] },
      { wanted: wanted(0, 1), left: [0, 0, 4] },
    ]
    expect(planMoves(takings, [0, 0, 4], 0)).toEqual([
      { source: 1, move: { total: 0, lines: [{ item: 7, quantity: 1, share: 20 }] } },
      { source: 2, move: { total: 2, lines: [] } },
    ])
  })

  it('is of each item as much as who wants most of it', () => {
    const left = [0, 4, 0]
    const takings = [1, 4, 2].map((quantity) => ({ wanted: wanted(7, quantity), left }))
    expect(planMoves(takings, [0, 4, 0], 0)).toEqual([
      { source: 1, move: { total: 4, lines: [{ item: 7, quantity: 4, share: 20 }] } },
    ])
  })
})
