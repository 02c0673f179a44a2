import { randomInt } from 'node:crypto'
import { HoldfastError } from '../../errors/index.js'
import type {
  AttemptKind,
  AttemptOutcome,
  AttemptPlace,
  AttemptRow,
  KeptAttempt,
  PostgresAttempts,
} from '../../journal/index.js'
import type { Telemetry } from '../../telemetry/index.js'
import * as check from '../validate.js'
import { WAIT_NAMES } from '../waiting.js'

const DAY_MS = 24 * 60 * 60 * 1_000
const RETENTION_MS = 30 * DAY_MS
const RETENTION_MAX_MS = 3_660 * DAY_MS
/** Attempts that wait to be written, some 300 bytes each; more are counted and forgotten. */
const WAITING_MAX = 100_000
/** Of what they asked for, at most two bytes each: items that could not be looked up are as long as somebody likes. */
const WAITING_MAX_CHARS = 16_000_000
const BATCH_MAX = 1_000
const BATCH_MAX_CHARS = 1_000_000
/** What comes within this time is written together. */
const GATHER_MS = 200
const PAUSE_MAX_MS = 5_000
const CLOSING_TRIES = 3
const PRUNE_EVERY_MS = 600_000
const PRUNE_PORTION = 10_000

export interface SaleAttemptsOptions {
  /** How long attempts are kept, ms. Default 30 days. */
  readonly retentionMs?: number
}

/** Something that somebody tried in a sale. */
export interface SaleAttempt {
  /** For the next page: attempts after this one. */
  readonly position: string
  readonly at: number
  readonly kind: AttemptKind
  readonly outcome: AttemptOutcome
  /** Why not: the code of the error. */
  readonly code?: string
  /** The code of the checkout, where there is one. */
  readonly checkout?: string
  /** What was asked for. */
  readonly items?: readonly { readonly id: string; readonly quantity: number }[]
}

export interface SaleAttemptsPage {
  /** Those of one user alone. */
  readonly user?: string
  readonly after?: string
  /** Default 100, at most 1,000. */
  readonly limit?: number
}

export const ATTEMPTS_NAMES = new Set([
  ...WAIT_NAMES,
  ...check.namesOf<SaleAttemptsPage>({ user: true, after: true, limit: true }),
])
const RECORD_NAMES = check.namesOf<SaleAttemptsOptions>({ retentionMs: true })

/** Null: attempts are not recorded. */
export function checkAttempts(given: unknown): { retentionMs: number } | null {
  if (given === false) return null
  const { retentionMs = RETENTION_MS } = check.options('saleAttempts', given, RECORD_NAMES)
  return { retentionMs: check.integer('saleAttempts.retentionMs', retentionMs, 1, RETENTION_MAX_MS) }
}

/**
 * The record of what is tried in sales, refused or not. Nobody waits for it: attempts gather here and are written behind the answers. What has
 * no room, because Postgres is away for long, is counted and told, and is not on record; what it did is in the journal all the same.
 */
export class SaleAttempts {
  readonly #postgres: PostgresAttempts
  readonly #telemetry: Telemetry
  readonly #retentionMs: number | null
  readonly #writer = randomInt(2 ** 47)
  #waiting: AttemptRow[] = []
  #chars = 0
  #n = 0
  #lost = 0
  #gathering: NodeJS.Timeout | undefined
  /** Set while Postgres is left alone, because it did not take the last batch. */
  #pausing: NodeJS.Timeout | undefined
  #failures = 0
  #pruning: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined
  #closed = false

  constructor(postgres: PostgresAttempts, options: { retentionMs: number } | null, telemetry: Telemetry) {
    this.#postgres = postgres
    this.#telemetry = telemetry
    this.#retentionMs = options?.retentionMs ?? null
    this.#pruneLater()
  }

  note(attempt: Omit<AttemptRow, 'n' | 'at'>): void {
    if (this.#retentionMs === null) return
    const chars = this.#chars + attempt.items.length
    const isFull = this.#waiting.length >= WAITING_MAX || chars > WAITING_MAX_CHARS
    if (isFull || this.#closed) return this.#lose(1, this.#closed ? 'closed' : 'full')
    this.#n += 1
    this.#chars = chars
    // Field by field: on the hot path, and an object that is spread together costs several times as much.
    this.#waiting.push({
      n: this.#n,
      sale: attempt.sale,
      at: Date.now(),
      kind: attempt.kind,
      outcome: attempt.outcome,
      code: attempt.code,
      buyer: attempt.buyer,
      checkout: attempt.checkout,
      items: attempt.items,
    })
    if (this.#writing || this.#pausing) return
    if (this.#waiting.length >= BATCH_MAX || chars >= BATCH_MAX_CHARS) this.#begin()
    else this.#gathering ??= setTimeout(() => this.#begin(), GATHER_MS).unref()
  }

  /** Resolves when all that was noted before is written, or can't be now. */
  async flush(): Promise<void> {
    const upTo = this.#n
    while ((this.#waiting[0]?.n ?? Number.POSITIVE_INFINITY) <= upTo) {
      const before = this.#waiting[0]?.n
      if (!this.#writing) this.#begin()
      await this.#writing
      if (this.#waiting[0]?.n === before) return
    }
  }

  /** Writes what is left, within the time that there is. */
  async close(withinMs: number): Promise<void> {
    this.#closed = true
    clearTimeout(this.#pruning)
    let timer: NodeJS.Timeout | undefined
    const over = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, withinMs)
    })
    await Promise.race([this.#flushHard(), over])
    clearTimeout(timer)
    this.#clearTimers()
    if (this.#waiting.length > 0) this.#lose(this.#waiting.length, 'closed')
    this.#take(this.#waiting.length)
  }

  async #flushHard(): Promise<void> {
    for (let tries = 0; tries < CLOSING_TRIES && (tries === 0 || this.#waiting.length > 0); tries += 1) {
      if (tries > 0) await new Promise((resolve) => setTimeout(resolve, GATHER_MS * 2 ** tries))
      await this.flush()
    }
  }

  read(sale: string, buyer: string | null, after: AttemptPlace, limit: number): Promise<KeptAttempt[]> {
    return this.#postgres.read(sale, after, limit, buyer)
  }

  #begin(): void {
    this.#clearTimers()
    this.#writing = this.#write().finally(() => {
      this.#writing = undefined
    })
  }

  #clearTimers(): void {
    clearTimeout(this.#gathering)
    clearTimeout(this.#pausing)
    this.#gathering = this.#pausing = undefined
  }

  /** Until nothing waits; where Postgres does not take it, once, and later again. */
  async #write(): Promise<void> {
    while (this.#waiting.length > 0) {
      const rows = this.#batch()
      try {
        await this.#postgres.keep(this.#writer, rows)
        this.#take(rows.length)
        this.#failures = 0
      } catch (error) {
        this.#telemetry.log?.('warn', 'sale_attempts_not_written', { attempts: rows.length, reason: String(error) })
        if (error instanceof HoldfastError && !error.retryable) {
          // Postgres will never take it, and those behind it must not wait for that.
          this.#take(rows.length)
          this.#lose(rows.length, 'refused')
          continue
        }
        const pauseMs = Math.min(PAUSE_MAX_MS, GATHER_MS * 2 ** Math.min(this.#failures, 8))
        this.#failures += 1
        if (!this.#closed) this.#pausing = setTimeout(() => this.#begin(), pauseMs).unref()
        return
      }
    }
    this.#tellLost()
  }

  #batch(): AttemptRow[] {
    let count = 0
    for (let chars = 0; count < Math.min(BATCH_MAX, this.#waiting.length); count += 1) {
      chars += this.#waiting[count]?.items.length ?? 0
      if (chars > BATCH_MAX_CHARS) break
    }
    // One that is longer than all would otherwise stay for ever.
    return this.#waiting.slice(0, Math.max(1, count))
  }

  #take(count: number): void {
    for (const { items } of this.#waiting.splice(0, count)) this.#chars -= items.length
  }

  #lose(attempts: number, why: 'full' | 'closed' | 'refused'): void {
    this.#telemetry.count?.('holdfast_sale_attempts_lost_total', { why }, attempts)
    if (this.#lost === 0) this.#telemetry.log?.('error', 'sale_attempts_lost', { why, attempts })
    this.#lost += attempts
  }

  /** How many in all, once there is room again. */
  #tellLost(): void {
    if (this.#lost === 0) return
    this.#telemetry.log?.('error', 'sale_attempts_lost', { why: 'full', attempts: this.#lost })
    this.#lost = 0
  }

  #pruneLater(): void {
    const retentionMs = this.#retentionMs
    if (retentionMs === null || this.#closed) return
    this.#pruning = setTimeout(
      () => {
        this.prune(retentionMs)
          .catch((error) => this.#telemetry.log?.('warn', 'sale_attempts_not_pruned', { reason: String(error) }))
          .finally(() => this.#pruneLater())
      },
      PRUNE_EVERY_MS * (0.5 + Math.random()),
    ).unref()
  }

  /** A portion at a time: what is to be kept is not locked for long. */
  async prune(retentionMs: number): Promise<void> {
    while (!this.#closed && (await this.#postgres.prune(retentionMs, PRUNE_PORTION)) === PRUNE_PORTION);
  }
}
