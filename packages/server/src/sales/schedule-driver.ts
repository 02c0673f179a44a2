import type { Holdfast, Postgres, SaleSchedule, ScheduleOptions, ScheduleState, WaitOptions } from 'holdfast'
import type { ServerTelemetry } from '../metrics/index.js'

/** What is due within this time is this process's business, beside what comes due until it looks again. */
const SOON_MS = 60_000
/** For so long after a slot was due it is seen to that somebody has finished it. */
const LATELY_MS = 60_000
/** Of any age: whoever has begun a slot may have died with all other servers. */
const ALL_MS = 10 * 366 * 24 * 60 * 60 * 1_000
/** The most urgent of them. What is above has its turn when those are open. */
const DRIVEN_MAX = 1_000
const STARTS_AT_ONCE = 8
/** More than are open at a time. */
const SLOTS_MAX = 200

interface Parts {
  readonly holdfast: Holdfast
  readonly postgres: Postgres
  readonly telemetry: ServerTelemetry
}

/**
 * Opens the slots of schedules as their time comes: of all tenants, whoever put them on record and wherever. Every server does, and Postgres lets
 * one of them have each slot; so it does not matter which of them dies, nor when. Those whose items a program makes are that program's.
 *
 * Only schedules that have something to do soon are at work here. The others cost one statement a round, all together. The first round is about
 * all of them: what a server that died has left unfinished is finished by the next that starts.
 */
export class ScheduleDriver {
  readonly #parts: Parts
  readonly #everyMs: number
  readonly #driven = new Map<string, SaleSchedule>()
  #soonMs = ALL_MS
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
      this.#soonMs,
      LATELY_MS,
      DRIVEN_MAX,
    ])
    this.#soonMs = SOON_MS + this.#everyMs
    const names = new Set(due.map(({ tenant, id }) => nameOf(tenant, id)))
    const fresh = due.filter(({ tenant, id }) => !this.#driven.has(nameOf(tenant, id)))
    const worker = async (): Promise<void> => {
      for (let next = fresh.shift(); next && !this.#isClosed; next = fresh.shift()) await this.#begin(next)
    }
    await Promise.all(Array.from({ length: STARTS_AT_ONCE }, worker))
    for (const [name, schedule] of before) {
      if (names.has(name) || !(await this.#isFinished(schedule))) continue
      // What somebody has started since is not what was read.
      if (this.#driven.get(name) !== schedule) continue
      this.#driven.delete(name)
      // What it has begun it finishes, and nobody has to wait for that.
      void schedule.stop()
    }
  }

  /** Nothing that is open waits for its stock: whoever lets go of a schedule has nobody behind it for a while. */
  async #isFinished(schedule: SaleSchedule): Promise<boolean> {
    const slots = await schedule.slots({ limit: SLOTS_MAX })
    return slots.every(({ ready, endsAt }) => ready || endsAt < Date.now())
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
