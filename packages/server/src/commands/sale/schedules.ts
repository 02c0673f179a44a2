/** Sales that come again and again. */
import type { OpenedSlot, SaleState, ScheduleState } from 'holdfast'
import type { Config } from '../../config/index.js'
import type { Run } from '../command.js'
import { type Page, pageText, query, showing } from '../showing.js'
import { itemsOrTemplate } from './item-lists.js'
import { saleTable, scheduleTable, slotTable } from './texts.js'

const schedulePath = ({ scheduleId }: Config): string => `/sale-schedules/${encodeURIComponent(scheduleId as string)}`

const oneSchedule = (schedule: ScheduleState): string => scheduleTable([schedule])
const oneSale = (sale: SaleState): string => saleTable([sale])

export const repeat: Run = showing<ScheduleState>((config) => {
  const { everyMs: every, offsetMs: offset, aheadMs: ahead, perUser, saleLimit: limit } = config
  const { checkoutTtlMs: checkoutTtl, reserve, buckets } = config
  const terms = { perUser, limit, checkoutTtl, reserve, buckets }
  return {
    method: 'PUT',
    path: schedulePath(config),
    body: { every, offset, ahead, items: itemsOrTemplate(config), ...terms },
  }
}, oneSchedule)

export const schedule: Run = showing<ScheduleState>((config) => ({ path: schedulePath(config) }), oneSchedule)

export const schedules: Run = showing<Page<ScheduleState>>(
  ({ afterId: after, limit }) => ({ path: `/sale-schedules${query({ after, limit })}` }),
  (page) => pageText(page, scheduleTable, 'There are no schedules.'),
)

export const slots: Run = showing<Page<OpenedSlot>>(
  (config) => ({ path: `${schedulePath(config)}/slots${query({ after: config.afterSlot, limit: config.limit })}` }),
  (page) => pageText(page, slotTable, 'There are no such slots.'),
)

export const saleAt = (which: 'current' | 'next'): Run =>
  showing<SaleState>((config) => ({ path: `${schedulePath(config)}/${which}` }), oneSale)

export const halt = (which: 'pause' | 'resume'): Run =>
  showing<ScheduleState>(
    (config) => ({ method: 'POST', path: `${schedulePath(config)}/${which}`, body: {} }),
    oneSchedule,
  )
