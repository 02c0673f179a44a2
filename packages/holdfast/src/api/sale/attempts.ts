import { randomInt } from 'node:crypto'
import { HoldfastError } from '../../errors/index.js'
import type { AttemptKind, AttemptOutcome, AttemptPlace, AttemptRow, PostgresAttempts } from '../../journal/index.js'
import { readCode } from '../../redis/index.js'
import type { Telemetry } from '../../telemetry/index.js'
import * as check from '../validate.js'
import type { SaleTenant } from './tenant.js'

const DAY_MS = 24 * 60 * 60 * 1_000
const RETENTION_MS = 30 * DAY_MS
const RETENTION_MAX_MS = 3_660 * DAY_MS
/** Attempts that wait to be written, some 300 bytes each; more are counted and forgotten. */
const WAITING_MAX = 100_000
const BATCH_MAX = 1_000
/** What comes within this time is written together. */
const GATHER_MS = 200
const PAUSE_MAX_MS = 5_000
const CLOSING_TRIES = 3
const PRUNE_EVERY_MS = 600_000
const PRUNE_PORTION = 10_000
const PAGE_DEFAULT = 100
const PAGE_MAX = 1_000

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

/** Null: attempts are not recorded. */
export function checkAttempts(given: unknown): { retentionMs: number } | null {
  if (given === false) return null
  const { retentionMs = RETENTION_MS } = check.options('saleAttempts', given)
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
    if (this.#waiting.length >= WAITING_MAX || this.#closed) return this.#lose(1, this.#closed ? 'closed' : 'full')
    this.#n += 1
    this.#waiting.push({ ...attempt, n: this.#n, at: Date.now() })
    if (this.#writing || this.#pausing) return
    if (this.#waiting.length >= BATCH_MAX) this.#begin()
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
    this.#waiting = []
  }

  async #flushHard(): Promise<void> {
    for (let tries = 0; tries < CLOSING_TRIES && (tries === 0 || this.#waiting.length > 0); tries += 1) {
      if (tries > 0) await new Promise((resolve) => setTimeout(resolve, GATHER_MS * 2 ** tries))
      await this.flush()
    }
  }

  async read(sale: string, buyer: string | null, after: AttemptPlace, limit: number): Promise<SaleAttempt[]> {
    const rows = await this.#postgres.read(sale, after, limit, buyer)
    return rows.map(({ at, writer, n, kind, outcome, code, checkout, items }) => ({
      position: `${at}-${writer}-${n}`,
      at,
      kind,
      outcome,
      ...(code !== '' && { code }),
      ...(checkout !== '' && { checkout }),
      ...(items !== '' && { items: JSON.parse(items) }),
    }))
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
      const rows = this.#waiting.slice(0, BATCH_MAX)
      try {
        await this.#postgres.keep(this.#writer, rows)
        this.#waiting.splice(0, rows.length)
        this.#failures = 0
      } catch (error) {
        this.#telemetry.log?.('warn', 'sale_attempts_not_written', { attempts: rows.length, reason: String(error) })
        if (error instanceof HoldfastError && !error.retryable) {
          // Postgres will never take it, and those behind it must not wait for that.
          this.#waiting.splice(0, rows.length)
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

/** What is known of an attempt before it is answered. */
export interface AttemptSubject {
  readonly buyer?: string
  readonly checkout?: string
  readonly items?: readonly { readonly id: string; readonly quantity: number }[]
}

/** Does it, and puts on record what came of it. What was wrong with the input, or of no sale, is nobody's attempt. */
export async function recorded<T extends { readonly replayed: boolean; readonly code?: string }>(
  { keys, attempts }: SaleTenant,
  saleId: string,
  kind: AttemptKind,
  subject: AttemptSubject,
  work: () => Promise<T>,
): Promise<T> {
  const note = (outcome: AttemptOutcome, code: string, checkout: string): void =>
    attempts.note({
      sale: keys.ofSale(saleId, 0).ref,
      kind,
      outcome,
      code,
      buyer: subject.buyer ?? '',
      checkout,
      items: subject.items ? JSON.stringify(subject.items) : '',
    })
  // What is no code at all is not worth keeping, whatever it is.
  const asked = subject.checkout !== undefined && readCode(subject.checkout) ? subject.checkout : ''
  try {
    const done = await work()
    note(done.replayed ? 'replayed' : 'accepted', '', done.code ?? asked)
    return done
  } catch (error) {
    const { code, retryable, status } = error instanceof HoldfastError ? error : FAILED
    if (status !== 400 && code !== 'sale_not_found') {
      note(retryable || status >= 500 ? 'failed' : 'refused', code, asked)
    }
    throw error
  }
}

const FAILED = { code: 'internal_error', retryable: false, status: 500 } as const

/** A page of what was tried in a sale. What this process has noted is written first. */
export async function readAttempts(
  { keys, attempts }: SaleTenant,
  saleId: string,
  given: unknown,
): Promise<SaleAttempt[]> {
  const { user, after, limit = PAGE_DEFAULT } = check.options('options', given)
  const buyer = user === undefined ? null : keys.buyer(saleId, check.text('user', user))
  const place = placeOf(after)
  const most = check.integer('limit', limit, 1, PAGE_MAX)
  await attempts.flush()
  return attempts.read(keys.ofSale(saleId, 0).ref, buyer, place, most)
}

function placeOf(after: unknown): AttemptPlace {
  if (after === undefined) return { at: 0, writer: 0, n: 0 }
  const [, at, writer, n] = (typeof after === 'string' && /^(\d{1,15})-(\d{1,15})-(\d{1,15})$/.exec(after)) || []
  if (at === undefined) throw check.invalid('after', 'the position of an attempt', check.show(after))
  return { at: Number(at), writer: Number(writer), n: Number(n) }
}
