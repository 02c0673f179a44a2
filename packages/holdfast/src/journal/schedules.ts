import { type Postgres, PostgresError } from '../postgres/index.js'
import { textArray } from './array-text.js'
import type { SaleTerms } from './sales.js'

/** What the sales of a schedule are made from. */
export interface ScheduleTemplate {
  /** How long slots are, and where they begin: so long after each multiple of that since 1970. */
  readonly everyMs: number
  readonly offsetMs: number
  /** How far ahead of its slot a sale is opened. */
  readonly aheadMs: number
  /** What it is opened with, but for items and times. */
  readonly options: Readonly<Record<string, unknown>>
}

export interface ScheduleRow {
  /** What stands for it in logs. */
  readonly number: number
  readonly template: ScheduleTemplate
  /** How many items each sale has; null: whoever opens one makes them. */
  readonly items: number | null
  readonly version: number
  readonly paused: boolean
  readonly openedUntil: number
  /** The server's clock. */
  readonly now: number
}

/** What stands for an item in a template. */
export type ListedItem = readonly [id: string, quantity: number]

/** What stands for items that are made anew for each slot. */
export interface ItemTemplateRow {
  readonly id: string
  readonly count: number
  readonly quantity: number
}

export interface SlotRow {
  readonly startsAt: number
  readonly endsAt: number
  readonly sale: string
  readonly version: number
  readonly openedAt: number
  /** Its sale has all its stock. */
  readonly ready: boolean
}

/** With all that is needed to finish it. */
export interface OpenSlot extends SlotRow {
  readonly terms: SaleTerms
}

export interface NewSlot {
  readonly startsAt: number
  readonly endsAt: number
  readonly sale: string
  readonly terms: SaleTerms
  readonly items: readonly { readonly id: string; readonly quantity: number }[]
}

type RawSchedule = Pick<ScheduleRow, 'template' | 'items' | 'version' | 'paused'> & { opened_until: string }

interface Raw {
  starts_at: string
  ends_at: string
  sale: string
  version: number
  opened_at: string
  ready: boolean
}

type RawOpen = Raw & Pick<OpenSlot, 'terms'>

const UNIQUE_VIOLATION = '23505'

/** What Postgres remembers of sales that come again and again. */
export class PostgresSchedules {
  readonly #postgres: Postgres

  constructor(postgres: Postgres) {
    this.#postgres = postgres
  }

  /** `items` null: whoever opens a slot makes them. The same again changes nothing. */
  async put(
    tenant: string,
    id: string,
    template: ScheduleTemplate,
    items: readonly ListedItem[] | ItemTemplateRow | null,
  ): Promise<void> {
    const count = items && ('count' in items ? items.count : items.length)
    const json = items && JSON.stringify(items)
    await this.#postgres.query('putSchedule', [tenant, id, JSON.stringify(template), json, count])
  }

  async read(tenant: string, id: string): Promise<ScheduleRow | null> {
    const [row] = await this.#postgres.query<RawSchedule & { now: string; number: string }>('readSchedule', [
      tenant,
      id,
    ])
    if (!row) return null
    const { number, opened_until, now, ...rest } = row
    return { ...rest, number: Number(number), openedUntil: Number(opened_until), now: Number(now) }
  }

  /** Schedules of a tenant in the order of their ids, after one. */
  async listAll(
    tenant: string,
    after: string,
    most: number,
  ): Promise<(Omit<ScheduleRow, 'now' | 'number'> & { readonly id: string })[]> {
    const rows = await this.#postgres.query<RawSchedule & { id: string }>('listSchedules', [tenant, after, most])
    return rows.map(({ opened_until, ...rest }) => ({ ...rest, openedUntil: Number(opened_until) }))
  }

  /** Null: it was changed since. */
  async items(tenant: string, id: string, version: number): Promise<readonly ListedItem[] | ItemTemplateRow | null> {
    const [row] = await this.#postgres.query<{ items: ListedItem[] | ItemTemplateRow }>('readScheduleItems', [
      tenant,
      id,
      version,
    ])
    return row?.items ?? null
  }

  /** False: there is no such schedule. */
  async pause(tenant: string, id: string, paused: boolean): Promise<boolean> {
    return (await this.#postgres.query('pauseSchedule', [tenant, id, paused])).length > 0
  }

  /**
   * The slot with its sale and items, or nothing. `passed`: somebody has opened one, changed or paused the schedule since it was read, or
   * the slot is past, or somebody makes a sale of this name at this moment. `taken`: one is there that is not this slot's.
   */
  async openSlot(
    tenant: string,
    id: string,
    { openedUntil, version }: Pick<ScheduleRow, 'openedUntil' | 'version'>,
    { startsAt, endsAt, sale, terms, items }: NewSlot,
  ): Promise<'opened' | 'passed' | 'taken'> {
    const asking = this.#postgres.query<{ opened: boolean; taken: boolean }>('openSlot', [
      tenant,
      id,
      openedUntil,
      version,
      startsAt,
      endsAt,
      sale,
      JSON.stringify(terms),
      textArray(items.map((item) => item.id)),
      `{${items.map(({ quantity }) => quantity)}}`,
    ])
    const [row] = await asking.catch((error) => (isSaleMade(error) ? [] : Promise.reject(error)))
    if (row?.opened) return 'opened'
    return row?.taken ? 'taken' : 'passed'
  }

  /** Slots that end after a time, the first of them first. */
  async slots(tenant: string, id: string, endAfter: number, most: number): Promise<OpenSlot[]> {
    return (await this.#postgres.query<RawOpen>('readSlots', [tenant, id, endAfter, most])).map(openSlotOf)
  }

  /** Slots around a time, in their order: two that begin before it, or then, and those that begin after it. */
  async slotsAround(tenant: string, id: string, time: number, coming: number): Promise<OpenSlot[]> {
    return (await this.#postgres.query<RawOpen>('slotsAround', [tenant, id, time, coming])).map(openSlotOf)
  }

  /** Slots that begin before a time, the last of them first. */
  async list(tenant: string, id: string, before: number, most: number): Promise<SlotRow[]> {
    return (await this.#postgres.query<Raw>('listSlots', [tenant, id, before, most])).map(slotOf)
  }
}

const slotOf = ({ starts_at, ends_at, sale, version, opened_at, ready }: Raw): SlotRow => ({
  startsAt: Number(starts_at),
  endsAt: Number(ends_at),
  sale,
  version,
  openedAt: Number(opened_at),
  ready,
})

const openSlotOf = (row: RawOpen): OpenSlot => ({ ...slotOf(row), terms: row.terms })

const isSaleMade = (error: unknown): boolean =>
  error instanceof PostgresError && error.sqlstate === UNIQUE_VIOLATION && error.constraint === 'sales_pkey'
