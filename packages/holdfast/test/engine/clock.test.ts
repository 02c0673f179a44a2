import { afterEach, expect, it, vi } from 'vitest'
import { systemClock } from '../../src/engine/index.js'

const HOUR = 3_600_000

afterEach(() => void vi.restoreAllMocks())

function setMachine(byMs: number): void {
  const now = Date.now
  vi.spyOn(Date, 'now').mockImplementation(() => now() + byMs)
}

it('takes the time of day from the machine where that is ahead', () => {
  setMachine(HOUR)
  expect(systemClock.timeOfDay()).toBeGreaterThan(systemClock.now() + HOUR / 2)
})

it('does not go back when the machine does', () => {
  const before = systemClock.now()
  setMachine(-HOUR)
  expect(systemClock.timeOfDay()).toBeGreaterThanOrEqual(before)
})
