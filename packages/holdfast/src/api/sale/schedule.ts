import { HoldfastError } from '../../errors/index.js'
import type { OpenSlot } from '../../journal/index.js'
import * as check from '../validate.js'
import { WAIT_NAMES, type WaitOptions, within } from '../waiting.js'
import { CurrentSlot } from './current.js'
import { saleOf } from './measured.js'
import { type OpeningParts, SlotOpener } from './opening.js'
import type { Sale } from './sale.js'
import { type ScheduleState, scheduleState } from './schedule-reading.js'
import { checkSchedule, type ScheduleOptions } from './schedule-terms.js'
import type { Slot } from './slots.js'
import type { SaleTenant } from './tenant.js'

export interface OpenedSlot extends Slot {
  readonly openedAt: number
  /** Of the schedule, when it was opened. */
  readonly version: number
  /** False: its sale has not all of its stock yet. */
  readonly ready: boolean
}

export interface SlotsOptions extends WaitOptions {
  /** Those that begin before this time, ms. Default: also those that have not begun. */
  readonly before?: number
  /** Default 100, at most 1,000. */
  readonly limit?: number
}

const SLOTS_NAMES = check.namesOf<SlotsOptions>({ before: true, limit: true, timeout: true, signal: true })
/** So that the ids of sales, with the time behind it, are no longer than ids may be. */
const ID_MAX = 230
/** Schedules that a process remembers, beside those that it opens slots of. */
const KNOWN_MAX = 1_000
const PAGE_DEFAULT = 100
const PAGE_MAX = 1_000

interface Known {
  readonly opener: SlotOpener
  readonly current: CurrentSlot
}

/** The schedules that this process has to do with, of all tenants. */
export class Schedules {
  readonly parts: OpeningParts
  readonly #known = new Map<string, Known>()

  constructor(parts: OpeningParts) {
    this.parts = parts
  }

  of(tenant: SaleTenant, id: string): Known {
    const name = `${tenant.keys.tenant}\0${id}`
    let known = this.#known.get(name)
    if (!known) {
      if (this.#known.size >= KNOWN_MAX) this.#forget()
      known = {
        opener: new SlotOpener(this.parts, tenant, id),
        current: new CurrentSlot(this.parts.schedules, tenant, id),
      }
      this.#known.set(name, known)
    }
    return known
  }

  /** What was only asked about can be read again. */
  #forget(): void {
    for (const [name, { opener }] of this.#known) if (!opener.isAtWork) this.#known.delete(name)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#known.values()].map(({ opener }) => opener.close()))
  }
}

/** Sales that come again and again, one a slot. Making one of these is no I/O. */
export class SaleSchedule {
  readonly id: string
  readonly #tenant: SaleTenant

  constructor(tenant: SaleTenant, id: string) {
    this.id = check.text('schedule id', id, ID_MAX)
    this.#tenant = tenant
  }

  /**
   * Puts the schedule on record, opens the slot that is running and what is due ahead, and lets this process go on opening. Without options: as it is
   * on record. With others than before: for every slot that is not open yet, whoever opens it.
   */
  async start(options?: ScheduleOptions & WaitOptions): Promise<ScheduleState> {
    const asked = options && checkSchedule(this.id, options)
    return within(this.#tenant.timeoutMs, check.options('options', options), async (signal) => {
      if (asked) await this.#schedules.put(this.#tenant.keys.tenant, this.id, asked.template, asked.items)
      await this.#known.opener.start(asked?.make, signal)
      return this.#state()
    })
  }

  /** This process opens no more slots. Others go on. */
  async stop(): Promise<void> {
    await this.#known.opener.stop()
  }

  /** Nobody opens a slot any more, until somebody resumes it. Those that are open stay open. */
  async pause(options: WaitOptions = {}): Promise<ScheduleState> {
    return this.#within(options, () => this.#pause(true))
  }

  /** Slots that have passed meanwhile are left out. */
  async resume(options: WaitOptions = {}): Promise<ScheduleState> {
    return this.#within(options, () => this.#pause(false))
  }

  /** Null: there is no such schedule. */
  async get(options: WaitOptions = {}): Promise<ScheduleState | null> {
    return this.#within(options, async () => {
      const row = await this.#schedules.read(this.#tenant.keys.tenant, this.id)
      return row && scheduleState(this.id, row)
    })
  }

  /** The sale that is running now. Null: none is. */
  async current(options: WaitOptions = {}): Promise<Sale | null> {
    return this.#within(options, async () => this.#saleOf(await this.#known.current.get()))
  }

  /** The sale that comes after it. Null: it is not open yet. */
  async next(options: WaitOptions = {}): Promise<Sale | null> {
    return this.#within(options, async () => this.#saleOf(await this.#known.current.next()))
  }

  /** What was opened, the last of it first. */
  async slots(options: SlotsOptions = {}): Promise<OpenedSlot[]> {
    const asked = check.options('options', options, SLOTS_NAMES)
    const { before = Number.MAX_SAFE_INTEGER, limit = PAGE_DEFAULT } = asked
    const until = check.integer('before', before, 0, Number.MAX_SAFE_INTEGER)
    const most = check.integer('limit', limit, 1, PAGE_MAX)
    const { keys, timeoutMs } = this.#tenant
    return within(timeoutMs, asked, () => this.#schedules.list(keys.tenant, this.id, until, most))
  }

  get #schedules() {
    return this.#tenant.schedules.parts.schedules
  }

  get #known(): Known {
    return this.#tenant.schedules.of(this.#tenant, this.id)
  }

  /** Whoever began it may be dead: nobody has to wait until that is noticed. */
  async #saleOf(slot: OpenSlot | null): Promise<Sale | null> {
    if (!slot) return null
    if (!slot.ready) await this.#known.opener.finish(slot)
    return saleOf(this.#tenant, slot.sale, this.#tenant.schedules.parts.telemetry)
  }

  async #pause(paused: boolean): Promise<ScheduleState> {
    const isThere = await this.#schedules.pause(this.#tenant.keys.tenant, this.id, paused)
    if (!isThere) throw new HoldfastError('schedule_not_found')
    return this.#state()
  }

  async #state(): Promise<ScheduleState> {
    const state = await this.get()
    if (!state) throw new HoldfastError('schedule_not_found')
    return state
  }

  #within<T>(options: unknown, work: () => Promise<T>): Promise<T> {
    return within(this.#tenant.timeoutMs, check.options('options', options, WAIT_NAMES), work)
  }
}
