import type { Holdfast, Postgres, SaleSchedule, ScheduleOptions, ScheduleState, WaitOptions } from 'holdfast'
import type { ServerTelemetry } from '../metrics/index.js'

/** What is due within this time is this process's business, beside what comes due until it looks again. */
const SOON_MS = 60_000
/** Who has begun a slot so lately is most likely at work on it. */
const BUSY_MS = 10_000
/** The most urgent of them. What is above has its turn when those are open. */
const DRIVEN_MAX = 1_000
const STARTS_AT_ONCE = 8
/** Then it looks again: what is more urgent by now must not wait for a long list of others. */
const STARTING_MS = 5_000
/** One that fails rests from one look on, twice as long each time, until this. */
const REST_MAX_MS = 30_000
const RESTING_MAX = 10_000

interface Due {
  readonly tenant: string
  readonly id: string
  /** What stands for it in logs. */
  readonly number: string
}

interface Resting extends Pick<Due, 'tenant' | 'id'> {
  readonly forMs: number
  readonly until: number
}

interface Parts {
  readonly holdfast: Holdfast
  readonly postgres: Postgres
  readonly telemetry: ServerTelemetry
}

/**
 * Opens the slots of schedules as their time comes: of all tenants, whoever put them on record and wherever. Every server does, and Postgres lets
 * one of them have each slot; so it does not matter which of them dies, nor when. Those whose items a program makes are that program's.
 *
 * Only schedules that have something to do soon are at work here, or have a slot that somebody has left unfinished. The others cost one statement
 * a round, all together.
 */
export class ScheduleDriver {
  readonly #parts: Parts
  readonly #everyMs: number
  readonly #driven = new Map<string, SaleSchedule>()
  readonly #resting = new Map<string, Resting>()
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
    this.#resting.delete(nameOf(tenant, id))
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
    const now = performance.now()
    const resting = [...this.#resting.values()].filter(({ until }) => until > now)
    const due = await this.#parts.postgres.query<Due>('dueSchedules', [
      SOON_MS + this.#everyMs,
      BUSY_MS,
      DRIVEN_MAX,
      resting.map(({ tenant }) => tenant),
      resting.map(({ id }) => id),
    ])
    const names = new Set(due.map(({ tenant, id }) => nameOf(tenant, id)))
    const fresh = due.filter(({ tenant, id }) => !this.#driven.has(nameOf(tenant, id)))
    const isTime = () => !this.#isClosed && performance.now() < now + STARTING_MS
    const worker = async (): Promise<void> => {
      for (let next = fresh.shift(); next && isTime(); next = fresh.shift()) await this.#begin(next)
    }
    await Promise.all(Array.from({ length: STARTS_AT_ONCE }, worker))
    for (const [name, { until }] of this.#resting) if (until <= now && !names.has(name)) this.#resting.delete(name)
    for (const [name, schedule] of before) {
      // What somebody has started since is not what was read.
      if (names.has(name) || this.#driven.get(name) !== schedule) continue
      this.#driven.delete(name)
      // What it has begun it finishes, and nobody has to wait for that.
      void schedule.stop()
    }
  }

  /** One that fails must not keep others from their time: it is left alone for a while. */
  async #begin({ tenant, id, number }: Due): Promise<void> {
    try {
      await this.start(tenant, id)
    } catch (error) {
      if (this.#isClosed) return
      this.#rest(tenant, id)
      this.#parts.telemetry.count('holdfast_sale_slots_total', { outcome: 'failed' })
      this.#parts.telemetry.log?.('error', 'sale_slot_failed', { schedule: Number(number), reason: String(error) })
    }
  }

  #rest(tenant: string, id: string): void {
    const name = nameOf(tenant, id)
    const forMs = Math.min(REST_MAX_MS, 2 * (this.#resting.get(name)?.forMs ?? this.#everyMs))
    this.#resting.delete(name)
    const [oldest] = this.#resting.keys()
    if (oldest !== undefined && this.#resting.size >= RESTING_MAX) this.#resting.delete(oldest)
    this.#resting.set(name, { tenant, id, forMs, until: performance.now() + forMs })
  }
}

const nameOf = (tenant: string, id: string): string => `${tenant}\0${id}`
