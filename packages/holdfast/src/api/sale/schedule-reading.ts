import type { ScheduleRow } from '../../journal/index.js'
import { PAGE_DEFAULT, PAGE_MAX } from '../reading.js'
import { reading } from '../reads.js'
import * as check from '../validate.js'
import type { WaitOptions } from '../waiting.js'
import type { SaleTenant } from './tenant.js'
import type { SaleOptions } from './terms.js'

/** A schedule as it is on record, and what its next sales are opened with. */
export interface ScheduleState {
  readonly id: string
  readonly every: number
  readonly offset: number
  readonly ahead: number
  /** How many items each sale has; null: whoever opens one makes them. */
  readonly items: number | null
  readonly perUser: number
  /** Null: all there are. */
  readonly limit: number | null
  /** Null: until the slot ends. */
  readonly checkoutTtl: number | null
  readonly reserve: 'checkout' | 'purchase'
  readonly buckets: number
  /** Another one with each change. */
  readonly version: number
  /** Nobody opens a slot. */
  readonly paused: boolean
  /** Where the last slot ends that was opened; null: none was. */
  readonly openedUntil: number | null
}

export interface SchedulesOptions extends WaitOptions {
  /** What comes after this id, whether there is such a schedule or not. Default: from the beginning. */
  readonly after?: string
  /** 1 to 1,000, default 100. */
  readonly limit?: number
}

const SCHEDULES_NAMES = check.namesOf<SchedulesOptions>({ after: true, limit: true, timeout: true, signal: true })

export function scheduleState(
  id: string,
  { template, items, version, paused, openedUntil }: Omit<ScheduleRow, 'now' | 'number'>,
): ScheduleState {
  const { everyMs: every, offsetMs: offset, aheadMs: ahead } = template
  // Checked before they were put on record.
  const options = template.options as unknown as Omit<SaleOptions, 'items'>
  const { perUser, limit = null, checkoutTtl = null, reserve = 'checkout', buckets = 1 } = options
  const terms = { perUser, limit, checkoutTtl, reserve, buckets }
  return { id, every, offset, ahead, items, ...terms, version, paused, openedUntil: openedUntil || null }
}

export async function readSchedules(tenant: SaleTenant, given: unknown): Promise<ScheduleState[]> {
  const options = check.options('options', given, SCHEDULES_NAMES)
  const after = options.after === undefined ? '' : check.text('after', options.after)
  const limit = check.integer('limit', options.limit ?? PAGE_DEFAULT, 1, PAGE_MAX)
  return reading(tenant, options, async () => {
    const rows = await tenant.schedules.parts.schedules.listAll(tenant.keys.tenant, after, limit)
    return rows.map(({ id, ...row }) => scheduleState(id, row))
  })
}
