import type { Clock } from '../../engine/index.js'
import { HoldfastError } from '../../errors/index.js'
import type { OpenSlot, PostgresSchedules, SaleTerms, ScheduleRow } from '../../journal/index.js'
import type { Telemetry } from '../../telemetry/index.js'
import * as check from '../validate.js'
import { within } from '../waiting.js'
import { fillSale } from './filling.js'
import { termsFromRecord } from './recorded-items.js'
import type { ItemsOf } from './schedule-terms.js'
import { nextSlot, type Slot } from './slots.js'
import type { SaleTenant } from './tenant.js'
import { type CheckedItem, checkTerms } from './terms.js'
import type { Turns } from './turns.js'

export interface OpeningParts {
  readonly schedules: PostgresSchedules
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** For sales of many items, of all tenants. */
  readonly large: Turns
}

/** Somebody may have paused or changed the schedule, or died over a slot. */
const LOOK_MAX_MS = 10_000
const LOOK_MIN_MS = 50
/** While a slot can be opened ahead of its time it is tried so often, at least. */
const TRIES = 4
/** What has failed is tried again after that, however often it is looked. */
const RETRY_MS = 2_500
/** Who has begun a slot so lately is most likely at work on it. */
const BUSY_MS = 2_000
const OPENING_MS = 60_000
const PAGE = 10_000
const SLOTS_MAX = 200
/** So many items make a sale a large one. */
const LARGE = 1_000

type Opened = ReturnType<typeof checkTerms>

/**
 * Opens the slots of a schedule as their time comes. Every process that was told to does; Postgres says what time it is and which slot is
 * next, and lets one of them have it:
 *
 *     read the schedule ▶ make the items ▶ the slot, its sale and its items, in one statement ▶ fill the sale ▶ it is ready
 *
 * Whoever dies after that statement leaves a slot that is not ready: the others find it and finish it, from what is on record.
 */
export class SlotOpener {
  readonly #parts: OpeningParts
  readonly #tenant: SaleTenant
  readonly #id: string
  #make: ItemsOf | null = null
  #number: number | undefined
  /** Slots that could not be finished, and when that was. */
  readonly #failures = new Map<string, number>()
  readonly #finishing = new Map<string, Promise<void>>()
  #working: Promise<unknown> = Promise.resolve()
  #starting = 0
  #cancel: (() => void) | undefined
  #isRunning = false
  #isClosed = false

  constructor(parts: OpeningParts, tenant: SaleTenant, id: string) {
    this.#parts = parts
    this.#tenant = tenant
    this.#id = id
  }

  get isAtWork(): boolean {
    return this.#isRunning || this.#starting > 0
  }

  /** Resolves when what is due is open. From then on it looks by itself. */
  async start(make: ItemsOf | null | undefined, signal: AbortSignal): Promise<void> {
    if (make !== undefined) this.#make = make
    this.#starting += 1
    const waitMs = await this.#inTurn(() => this.#round()).finally(() => {
      this.#starting -= 1
    })
    if (signal.aborted) return
    if (this.#isClosed) throw new HoldfastError('unavailable', 'Holdfast is being closed')
    this.#isRunning = true
    this.#cancel?.()
    this.#wait(waitMs)
  }

  async stop(): Promise<void> {
    this.#isRunning = false
    this.#cancel?.()
    await this.#working.catch(() => {})
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.stop()
  }

  /** What somebody else has begun. However many ask for it, it is done once at a time. */
  finish(slot: OpenSlot): Promise<void> {
    const known = this.#finishing.get(slot.sale)
    if (known) return known
    const work = this.#finish(slot).finally(() => this.#finishing.delete(slot.sale))
    this.#finishing.set(slot.sale, work)
    return work
  }

  #wait(ms: number): void {
    const { clock } = this.#parts
    this.#cancel = clock.after(ms, () => void this.#look(), true)
  }

  async #look(): Promise<void> {
    let waitMs = RETRY_MS
    try {
      waitMs = await this.#inTurn(() => this.#round())
    } catch (error) {
      this.#failed(error)
    }
    if (this.#isRunning) this.#wait(waitMs)
  }

  /** One thing at a time: start() may be called while a round is under way. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#working.catch(() => {}).then(work)
    this.#working = turn
    return turn
  }

  /** Opens all that is due. How long nothing is, as far as can be known. */
  async #round(): Promise<number> {
    const { schedules, clock } = this.#parts
    const { tenant } = this.#tenant.keys
    for (;;) {
      const row = await schedules.read(tenant, this.#id)
      if (!row) throw new HoldfastError('schedule_not_found')
      this.#number = row.number
      const { aheadMs } = row.template
      await this.#finishOthers(row)
      const lookMs = Math.max(LOOK_MIN_MS, Math.min(LOOK_MAX_MS, aheadMs / TRIES))
      // Not all processes at the same moment: who comes later finds it open.
      const apartMs = (lookMs / 2) * clock.random()
      if (row.paused || this.#isClosed) return lookMs + apartMs
      const slot = nextSlot(this.#id, row)
      const dueInMs = slot.startsAt - aheadMs - row.now
      if (dueInMs > 0) return Math.min(dueInMs, lookMs) + apartMs
      await this.#open(row, slot)
    }
  }

  async #open(row: ScheduleRow, slot: Slot): Promise<void> {
    const made = row.items === null ? await this.#made(row, slot) : null
    await this.#inShare(made?.items.length ?? row.items ?? 0, async () => {
      const opened = made ?? (await this.#fromRecord(row, slot))
      // Changed since, or nobody wants it any more.
      if (!opened || this.#isClosed) return
      const { tenant } = this.#tenant.keys
      const outcome = await this.#parts.schedules.openSlot(tenant, this.#id, row, { ...slot, ...opened })
      // Somebody else was first, or it is another one by now: the next look tells.
      if (outcome === 'passed') return
      if (outcome === 'taken') {
        const text = `The slot at ${slot.startsAt} can't be opened: there is a sale of its name with other terms`
        throw new HoldfastError('sale_exists', text)
      }
      await this.#fill(slot.sale, opened.terms, opened.items)
      this.#tell('opened')
    })
  }

  /** Null: the schedule was changed meanwhile. */
  async #fromRecord({ version, template }: ScheduleRow, slot: Slot): Promise<Opened | null> {
    const recorded = await this.#parts.schedules.items(this.#tenant.keys.tenant, this.#id, version)
    return recorded && termsFromRecord(template.options, recorded, slot)
  }

  async #made({ template }: ScheduleRow, slot: Slot): Promise<Opened> {
    const make = this.#make
    if (!make) {
      const expected = 'a function, since the items of this schedule are made by who opens a slot'
      throw check.invalid('items', expected, 'none')
    }
    const items = await within(this.#tenant.timeoutMs, {}, async () => make(slot))
    const { startsAt, endsAt } = slot
    return checkTerms({ ...template.options, items, startsAt, endsAt })
  }

  async #finishOthers({ now, template }: ScheduleRow): Promise<void> {
    const slots = await this.#parts.schedules.slots(this.#tenant.keys.tenant, this.#id, now, SLOTS_MAX)
    const busyMs = Math.min(BUSY_MS, template.aheadMs / TRIES)
    const retryFrom = this.#parts.clock.now() - RETRY_MS
    for (const [sale, failedAt] of this.#failures) if (failedAt <= retryFrom) this.#failures.delete(sale)
    for (const slot of slots) {
      if (slot.ready || slot.openedAt > now - busyMs || this.#failures.has(slot.sale)) continue
      // One that can't be finished must not keep the next from being opened.
      await this.finish(slot).catch((error) => {
        this.#failures.set(slot.sale, this.#parts.clock.now())
        this.#failed(error)
      })
    }
  }

  async #finish({ sale, terms }: OpenSlot): Promise<void> {
    await this.#inShare(terms.items, async () => this.#fill(sale, terms, await this.#recordedItems(sale)))
    this.#tell('finished')
  }

  /** Few of those that have many items are in memory at a time. Others wait for nobody. */
  #inShare<T>(items: number, work: () => Promise<T>): Promise<T> {
    return items < LARGE ? work() : this.#parts.large.take(this.#tenant.keys.tenant, work)
  }

  async #recordedItems(sale: string): Promise<CheckedItem[]> {
    const { sales, keys } = this.#tenant
    const items: CheckedItem[] = []
    for (;;) {
      const page = await sales.itemsAfter(keys.tenant, sale, items.length, PAGE)
      for (const { id, quantity } of page) items.push({ id, quantity })
      if (page.length < PAGE) return items
    }
  }

  #fill(sale: string, terms: SaleTerms, items: readonly CheckedItem[]): Promise<void> {
    return within(OPENING_MS, {}, () => fillSale(this.#tenant, sale, terms, items))
  }

  #tell(outcome: 'opened' | 'finished' | 'failed'): void {
    this.#parts.telemetry.count?.('holdfast_sale_slots_total', { outcome })
  }

  #failed(error: unknown): void {
    this.#tell('failed')
    this.#parts.telemetry.log?.('error', 'sale_slot_failed', { schedule: this.#number, reason: String(error) })
  }
}
