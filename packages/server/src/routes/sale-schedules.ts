import { HoldfastError, type Sale as SaleHandle, type SaleSchedule } from 'holdfast'
import { Type } from 'typebox'
import type { Caller } from '../access/index.js'
import { departureOf } from '../http/departure.js'
import {
  AfterSeq,
  Id,
  PageLimit,
  refTo,
  Sale,
  SaleSlotPage,
  Schedule,
  SchedulePage,
  ScheduleTerms,
} from '../schemas/index.js'
import type { Routes } from './index.js'
import { OPENING_MAX_BYTES, requireSales } from './sales.js'
import { type ApiOptions, fewLarge } from './v1.js'

/** Shorter than other ids, since those of its sales have the time behind it. */
const SchedulePath = Type.Object({ schedule: Type.String({ ...Id, maxLength: 230 }) })

/** A few bytes can ask for 100,000 items. */
const ITEMS_PER_OPERATION = 100

/**
 * Sales that come again and again. What is put on record here is opened by whichever server is there when its time comes: see
 * `ScheduleDriver`. A schedule is never deleted, since its sales are not; paused, it opens no more.
 */
export const saleScheduleRoutes: Routes<ApiOptions> = async (app, { holdfast, gate, schedules }) => {
  const tags = ['sales']
  const reading = { scope: 'read', refusals: ['schedule_not_found'] } as const
  const scheduleOf = (caller: Caller, id: string): SaleSchedule => {
    requireSales(caller)
    return holdfast.forTenant(caller.tenant).saleSchedule(id)
  }

  const list = {
    operationId: 'listSaleSchedules',
    summary: 'Schedules of sales in the order of their ids, a page at a time',
    tags,
    querystring: Type.Object({ after: Type.Optional(Type.String({ maxLength: 255 })), limit: PageLimit }),
    response: { 200: SchedulePage },
  }
  app.get('/sale-schedules', { schema: list, config: { scope: 'read' } }, async ({ caller, query }, reply) => {
    requireSales(caller)
    const { limit, after } = query
    const asked = { limit, ...(after && { after }), signal: departureOf(reply) }
    const data = await holdfast.forTenant(caller.tenant).saleSchedules(asked)
    return { data, next: data.length === limit ? (data.at(-1)?.id ?? null) : null }
  })

  const put = {
    operationId: 'putSaleSchedule',
    summary:
      'Have a sale in every slot of time. The same again changes nothing; otherwise it holds from the next slot on',
    description:
      'Opens the sale of the slot that is running, and what is due ahead, before it answers. Where that takes too long (`timeout`), or a ' +
      'sale of the same name is in the way (`sale_exists`), it is on record all the same, and the servers go on trying.',
    tags,
    params: SchedulePath,
    body: ScheduleTerms,
    response: { 200: refTo(Schedule) },
  }
  const putting = { scope: 'sell', refusals: ['sale_exists'] } as const
  app.put(
    '/sale-schedules/:schedule',
    { schema: put, onRequest: fewLarge(gate), bodyLimit: OPENING_MAX_BYTES, config: putting },
    async ({ caller, params, body }, reply) => {
      requireSales(caller)
      const { items } = body
      const count = 'count' in items ? items.count : items.length
      gate.spend(caller, Math.floor(count / ITEMS_PER_OPERATION))
      return schedules.start(caller.tenant, params.schedule, { ...body, signal: departureOf(reply) })
    },
  )

  const get = {
    operationId: 'getSaleSchedule',
    summary: 'A schedule as it is on record',
    tags,
    params: SchedulePath,
    response: { 200: refTo(Schedule) },
  }
  app.get('/sale-schedules/:schedule', { schema: get, config: reading }, async ({ caller, params }, reply) => {
    const state = await scheduleOf(caller, params.schedule).get({ signal: departureOf(reply) })
    if (state === null) throw new HoldfastError('schedule_not_found')
    return state
  })

  const slots = {
    operationId: 'listSaleSlots',
    summary: 'What was opened of it, the latest first, a page at a time',
    tags,
    params: SchedulePath,
    querystring: Type.Object({ after: AfterSeq, limit: PageLimit }),
    response: { 200: SaleSlotPage },
  }
  app.get(
    '/sale-schedules/:schedule/slots',
    { schema: slots, config: reading },
    async ({ caller, params, query }, reply) => {
      const schedule = scheduleOf(caller, params.schedule)
      const { after, limit } = query
      const data = await schedule.slots({ limit, ...(after > 0 && { before: after }), signal: departureOf(reply) })
      if (data.length === 0 && (await schedule.get()) === null) throw new HoldfastError('schedule_not_found')
      return { data, next: data.length === limit ? (data.at(-1)?.startsAt ?? null) : null }
    },
  )

  const stateOf = async (schedule: SaleSchedule, sale: SaleHandle | null, signal: AbortSignal) => {
    const state = await sale?.status({ signal })
    if (state) return state
    if ((await schedule.get({ signal })) === null) throw new HoldfastError('schedule_not_found')
    throw new HoldfastError('sale_not_found', 'There is no such sale at this time')
  }
  for (const [which, operationId, summary] of [
    ['current', 'getCurrentSale', 'The sale of a schedule that is running now'],
    ['next', 'getNextSale', 'The one that comes after it, if it is open already'],
  ] as const) {
    const schema = { operationId, summary, tags, params: SchedulePath, response: { 200: refTo(Sale) } }
    const config = { scope: 'read', refusals: ['schedule_not_found', 'sale_not_found'] } as const
    app.get(`/sale-schedules/:schedule/${which}`, { schema, config }, async ({ caller, params }, reply) => {
      const schedule = scheduleOf(caller, params.schedule)
      const signal = departureOf(reply)
      return stateOf(schedule, await schedule[which]({ signal }), signal)
    })
  }

  const halt = (operationId: string, summary: string) => ({
    operationId,
    summary,
    tags,
    params: SchedulePath,
    body: Type.Object({}, { additionalProperties: false }),
    response: { 200: refTo(Schedule) },
  })
  const pause = halt('pauseSaleSchedule', 'Open no more sales, on any server. What is open stays open')
  const pausing = { scope: 'sell', refusals: ['schedule_not_found'] } as const
  app.post('/sale-schedules/:schedule/pause', { schema: pause, config: pausing }, async ({ caller, params }, reply) =>
    scheduleOf(caller, params.schedule).pause({ signal: departureOf(reply) }),
  )
  const resume = halt('resumeSaleSchedule', 'Open sales again. Slots that have passed meanwhile are left out')
  const resuming = { scope: 'sell', refusals: ['schedule_not_found', 'sale_exists'] } as const
  app.post(
    '/sale-schedules/:schedule/resume',
    { schema: resume, config: resuming },
    async ({ caller, params }, reply) => {
      const state = await scheduleOf(caller, params.schedule).resume({ signal: departureOf(reply) })
      // Where a program makes the items, it opens the sales too.
      return state.items === null ? state : schedules.start(caller.tenant, params.schedule)
    },
  )
}
