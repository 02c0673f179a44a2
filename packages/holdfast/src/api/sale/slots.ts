import type { ScheduleRow, ScheduleTemplate } from '../../journal/index.js'

/** A stretch of time with a sale of its own. */
export interface Slot {
  /** Milliseconds since 1970. The end of one is the beginning of the next. */
  readonly startsAt: number
  readonly endsAt: number
  /** The id of its sale: `hourly-2026111604` is that of the slot that begins on 16 November 2026 at 04:00 UTC. */
  readonly sale: string
}

type Grid = Pick<ScheduleTemplate, 'everyMs' | 'offsetMs'>

/**
 * The slot to be opened next. It begins where the last one ends; if that is so long ago that a whole slot was missed, at the beginning of the
 * one that is running. It ends on a line of the grid: the next one, unless the last slot was of another grid and this would be less than half
 * a slot.
 */
export function nextSlot(
  schedule: string,
  { template, openedUntil, now }: Pick<ScheduleRow, 'template' | 'openedUntil' | 'now'>,
): Slot {
  const running = lineUpTo(template, now)
  const startsAt = Math.max(openedUntil, running)
  const endsAt = lineFrom(template, startsAt + template.everyMs / 2)
  return { startsAt, endsAt, sale: saleOf(schedule, startsAt) }
}

function lineUpTo({ everyMs, offsetMs }: Grid, time: number): number {
  return Math.floor((time - offsetMs) / everyMs) * everyMs + offsetMs
}

function lineFrom({ everyMs, offsetMs }: Grid, time: number): number {
  return Math.ceil((time - offsetMs) / everyMs) * everyMs + offsetMs
}

/** The id of a sale of the schedule, as long as one can be. */
export const longestSaleOf = (schedule: string): string => `${schedule}-${'9'.repeat(17)}`

/** Hours are always there, and what is finer where it is not zero: so no two slots have the same, and they sort by time. */
function saleOf(schedule: string, startsAt: number): string {
  const digits = new Date(startsAt).toISOString().replace(/\D/g, '')
  const [hours, minutes, seconds] = [digits.slice(0, 10), digits.slice(10, 12), digits.slice(12, 14)]
  const ms = digits.slice(14)
  if (ms !== '000') return `${schedule}-${hours}${minutes}${seconds}${ms}`
  if (seconds !== '00') return `${schedule}-${hours}${minutes}${seconds}`
  return minutes === '00' ? `${schedule}-${hours}` : `${schedule}-${hours}${minutes}`
}
