import type { Context } from '../context.js'
import type { Purpose } from '../keys.js'

/** By whom it is told: all bitmaps of a process that tell the same telemetry have one highest position, and not the sum of theirs. */
const SEEN = new WeakMap<Context['telemetry'], Map<Purpose, number>>()

/** The metric is there from the first position on, for as long as the telemetry is. */
export function sawPosition({ telemetry }: Context, purpose: Purpose, position: number): void {
  let highest = SEEN.get(telemetry)
  if (highest === undefined) {
    highest = new Map()
    SEEN.set(telemetry, highest)
  }
  const before = highest.get(purpose)
  if (before === undefined) {
    const seen = highest
    telemetry.gauge?.('holdfast_bitmap_highest_offset', () => seen.get(purpose) ?? 0, { primitive: purpose })
  }
  if (before === undefined || before < position) highest.set(purpose, position)
}
