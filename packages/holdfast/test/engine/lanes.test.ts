import { afterEach, expect, it, vi } from 'vitest'
import { Lane } from '../../src/engine/lane.js'
import { Lanes } from '../../src/engine/lanes.js'
import { Keys } from '../../src/redis/index.js'

const MAX = 1_000
const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 8), shards: 1 })

afterEach(() => vi.restoreAllMocks())

function fill(lanes: Lanes, from: number, to: number): Lane[] {
  return Array.from({ length: to - from }, (_, n) => {
    const lane = lanes.of(keys.of(`w${from + n}`))
    lane.active = 1
    return lane
  })
}

it('looks for idle wallets seldom while nearly all are busy', () => {
  const lanes = new Lanes(MAX)
  fill(lanes, 0, MAX)
  const looks = vi.spyOn(Lane.prototype, 'idle', 'get')
  fill(lanes, MAX, 2 * MAX)
  expect(looks.mock.calls.length).toBeGreaterThan(0)
  expect(looks.mock.calls.length).toBeLessThan(10 * MAX)
})

it('forgets wallets that were busy once they are idle, and never one that is busy', () => {
  const lanes = new Lanes(MAX)
  const first = fill(lanes, 0, 2 * MAX)
  for (const lane of first.slice(1)) lane.active = 0
  fill(lanes, 2 * MAX, 4 * MAX)
  const kept = first.filter((lane, n) => lanes.of(keys.of(`w${n}`)) === lane)
  expect(kept).toContain(first[0])
  expect(kept.length).toBeLessThan(first.length)
})
