import type { Holdfast, Postgres, SaleSchedule, ScheduleOptions, ScheduleState, WaitOptions } from 'holdfast'
import type { ServerTelemetry } from '../metrics/index.js'

/** What is due within this time is this process's business, beside what comes due until it looks again. */
const SOON_MS = 60_000
/** The most urgent of them. What is above has its turn when those are open. */
const DRIVEN_MAX = 1_000
const STARTS_AT_ONCE = 8

interface Parts {
  readonly holdfast: Holdfast
  readonly postgres: Postgres
  readonly telemetry: ServerTelemetry
}

/**
 * Opens the slots of schedules as their time comes: of all tenants, whoever put them on record and wherever. Every server does, and Postgres lets
 * one of them have each slot; so it does not matter which of them dies, nor when. Those whose items a program makes are that program's.
 *
 * Only schedules that have something to do soon are at work here. The others cost one statement a round, all together.
 */
export class ScheduleDriver {
  readonly #parts: Parts
  readonly #everyMs: number
  readonly #driven = new Map<string, SaleSchedule>()
  #timer: NodeJS.Timeout | undefined
  #working: Promise<void> | undefined
  #isClosed = false

  /** `everyMs` 0: it opens what it is asked to, when it is asked, and nothing by itself. */
  constructor(parts: Parts, everyMs: number) {
    this.#parts = parts
    this.#everyMs = everyMs
    if (everyMs > 0) this.#look(0)
  }

  /** Opens what is due before it answers. With options: as they are from now on. */
  async start(tenant: string, id: string, options?: ScheduleOptions & WaitOptions): Promise<ScheduleState> {
    const schedule = this.#parts.holdfast.forTenant(tenant).saleSchedule(id)
    const state = await schedule.start(options)
    if (this.#everyMs > 0) this.#driven.set(nameOf(tenant, id), schedule)
    else await schedule.stop()
    return state
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#working
  }

  #look(afterMs: number): void {
    this.#timer = setTimeout(() => {
      this.#working = this.#round()
        .catch((error) => this.#parts.telemetry.log?.('warn', 'sale_schedules_not_read', { reason: String(error) }))
        .finally(() => {
          // Not all servers at the same moment.
          if (!this.#isClosed) this.#look(this.#everyMs * (0.75 + Math.random() / 2))
        })
    }, afterMs).unref()
  }

  async #round(): Promise<void> {
    const before = [...this.#driven]
    const due = await this.#parts.postgres.query<{ tenant: string; id: string }>('dueSchedules', [
      SOON_MS + this.#everyMs,
      DRIVEN_MAX,
    ])
    const names = new Set(due.map(({ tenant, id }) => nameOf(tenant, id)))
    for (const [name, schedule] of before) {
      // What somebody has started since is not what was read.
      if (names.has(name) || this.#driven.get(name) !== schedule) continue
      this.#driven.delete(name)
      // What it has begun it finishes, and nobody has to wait for that.
      void schedule.stop()
    }
    const fresh = due.filter(({ tenant, id }) => !this.#driven.has(nameOf(tenant, id)))
    const worker = async (): Promise<void> => {
      for (let next = fresh.shift(); next && !this.#isClosed; next = fresh.shift()) await this.#begin(next)
    }
    await Promise.all(Array.from({ length: STARTS_AT_ONCE }, worker))
  }

  /** One that fails is tried again in the next round, and must not keep others from their time. */
  async #begin({ tenant, id }: { tenant: string; id: string }): Promise<void> {
    try {
      await this.start(tenant, id)
    } catch (error) {
      if (this.#isClosed) return
      this.#parts.telemetry.count('holdfast_sale_slots_total', { outcome: 'failed' })
      this.#parts.telemetry.log?.('error', 'sale_slot_failed', { reason: String(error) })
    }
  }
}

const nameOf = (tenant: string, id: string): string => `${tenant}\0${id}`
