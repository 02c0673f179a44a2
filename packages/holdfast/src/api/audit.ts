import {
  type AuditLimits,
  Auditor,
  type AuditProgress,
  type AuditReport,
  AuditSchedule,
  auditOnDemand,
  type Finding,
  LeaseLost,
  type RebuildProgress,
  type RebuildReport,
  rebuild,
} from '../audit/index.js'
import type { Clock, Engine } from '../engine/index.js'
import { HoldfastError } from '../errors/index.js'
import type { Journal, PostgresAudits } from '../journal/index.js'
import type { Place } from '../redis/index.js'
import type { Sequencer } from '../sequencer/index.js'
import type { Telemetry } from '../telemetry/index.js'
import { PAGE_DEFAULT, PAGE_MAX } from './reading.js'
import { reading } from './reads.js'
import type { Tenant } from './tenant.js'
import * as check from './validate.js'
import type { WaitOptions } from './waiting.js'

const EVERY_MS = 300_000
const EVERY_MAX_MS = 7 * 24 * 60 * 60 * 1_000
/** Asked for by somebody who waits, beside others who should not notice. */
const DEMAND_SHARE = 0.5
const BUSY_MAX_MS = 30_000
const USED_WITHIN_MS = 60 * 60 * 1_000
const USED_WITHIN_MAX_MS = 400 * 24 * 60 * 60 * 1_000
const SURVEY_PAGE = 5_000
const NOBODY = '0'.repeat(32)

/** The audits that run by themselves. */
export interface BackgroundAudit {
  /** How often each shard is audited, ms. Default 300,000: five minutes. */
  readonly every?: number
  /** Whether what the journal decides is put right. Default true. */
  readonly repair?: boolean
  /** Told after each audit of a shard. */
  onReport?(report: AuditReport): void
  /** How much is looked at in one step: for tests. */
  readonly limits?: Partial<AuditLimits>
}

export interface AuditOptions {
  /** Which shards. Default: all. */
  readonly shards?: readonly number[]
  /** Whether what the journal decides is put right. Default true. */
  readonly repair?: boolean
  /** Reads every journal from the beginning, also what was verified before. Default false. */
  readonly full?: boolean
  /** For how long shards are waited for that another process is auditing, ms. Default 30,000. */
  readonly wait?: number
  /** Ends it when it fires. */
  readonly signal?: AbortSignal
  /** Told as it goes on. */
  onProgress?(progress: AuditProgress): void
}

export interface RebuildOptions {
  /** Which shards. Default: all. */
  readonly shards?: readonly number[]
  /** Wallets that were used within this time, ms, beside those with open holds. Default 3,600,000: an hour. */
  readonly usedWithin?: number
  /** Every wallet, whenever it was used. Default false. */
  readonly all?: boolean
  /** Also wallets that Redis has. Default false. */
  readonly force?: boolean
  /** Ends it when it fires. */
  readonly signal?: AbortSignal
  /** Told as it goes on. */
  onProgress?(progress: RebuildProgress): void
}

export interface FindingsOptions extends WaitOptions {
  /** Behind this id. Default 0: from the first on. */
  readonly after?: number
  /** How many at most, 1 to 1,000. Default 100. */
  readonly limit?: number
  /** Only what was found, or found again, at this time or later, ms. Default 0. */
  readonly since?: number
  /** Only of wallets whose ids begin with this. */
  readonly prefix?: string
}

const BACKGROUND_NAMES = check.namesOf<BackgroundAudit>({ every: true, repair: true, onReport: true, limits: true })
const AUDIT_NAMES = check.namesOf<AuditOptions>({
  shards: true,
  repair: true,
  full: true,
  wait: true,
  signal: true,
  onProgress: true,
})
const REBUILD_NAMES = check.namesOf<RebuildOptions>({
  shards: true,
  usedWithin: true,
  all: true,
  force: true,
  signal: true,
  onProgress: true,
})
const FINDINGS_NAMES = check.namesOf<FindingsOptions>({
  after: true,
  limit: true,
  since: true,
  prefix: true,
  timeout: true,
  signal: true,
})

/** Something that audits have found, once or again and again. Kept for 90 days after the last time. */
export interface KeptFinding extends Finding {
  readonly id: number
  /** Null: there is no such wallet, or it is about none. */
  readonly wallet: string | null
  /** Milliseconds since 1970. */
  readonly firstAt: number
  readonly lastAt: number
  readonly times: number
}

export interface AuditingParts {
  readonly audits: PostgresAudits
  readonly journal: Journal
  readonly sequencer: Sequencer
  readonly engine: Engine
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly holder: string
  readonly shards: number
  agendaOf(shard: number): string
  placeOf(tenant: string, ref: string): Place
}

/** Audits and rebuilds, of all tenants: they go by shards. */
export class Auditing {
  readonly #parts: AuditingParts
  readonly #auditor: Auditor
  readonly #schedule: AuditSchedule | null
  readonly #everyMs: number
  readonly #closed = new AbortController()
  #demands = 0

  constructor(parts: AuditingParts, background: BackgroundAudit | false) {
    this.#parts = parts
    const { engine, audits, clock, holder, telemetry, shards } = parts
    const { every: everyMs = EVERY_MS, repair = true, limits = {}, onReport } = background || {}
    this.#everyMs = everyMs
    this.#auditor = new Auditor({
      ...parts,
      touch: (place, epochMin) => engine.touch(place, epochMin),
      limits,
    })
    this.#schedule = background
      ? new AuditSchedule({
          auditor: this.#auditor,
          leases: audits,
          clock,
          holder,
          telemetry,
          shards,
          everyMs,
          repair,
          prepare: (...given) => audits.prepare(...given),
          waitedMs: () => audits.waitedMs(),
          ...(onReport && { onReport: (report) => onReport(report) }),
        })
      : null
  }

  start(): void {
    this.#schedule?.start()
  }

  async close(): Promise<void> {
    this.#closed.abort()
    await this.#schedule?.stop()
  }

  async audit(given: unknown): Promise<AuditReport> {
    const options = check.options('options', given, AUDIT_NAMES)
    const shards = this.#shards(options.shards)
    const repair = options.repair === undefined || check.flag('repair', options.repair)
    const full = check.flag('full', options.full)
    const { wait = BUSY_MAX_MS } = options
    const busyMaxMs = check.integer('wait', wait, 0, EVERY_MAX_MS)
    const progress = this.#onProgress<AuditProgress>(options)
    const { audits, clock, telemetry } = this.#parts
    // Not the process's own name: its background audit and this one are two.
    const holder = `${this.#parts.holder}-${++this.#demands}`
    return this.#until(options, async (signal) => {
      await audits.prepare(this.#parts.shards, this.#everyMs)
      if (full) await this.#survey(signal)
      const demand = { shards, repair, full, share: DEMAND_SHARE, busyMaxMs, signal, ...progress }
      return auditOnDemand({ auditor: this.#auditor, leases: audits, clock, holder, telemetry }, demand)
    })
  }

  async findings(of: Tenant, given: unknown): Promise<KeptFinding[]> {
    const options = check.options('options', given, FINDINGS_NAMES)
    const after = check.integer('after', options.after ?? 0, 0, Number.MAX_SAFE_INTEGER)
    const since = check.integer('since', options.since ?? 0, 0, Number.MAX_SAFE_INTEGER)
    const most = check.integer('limit', options.limit ?? PAGE_DEFAULT, 1, PAGE_MAX)
    const prefix = options.prefix === undefined ? '' : check.text('prefix', options.prefix)
    const question = { tenant: of.keys.tenant, after, prefix, since, most }
    return reading(of, options, async () => (await this.#parts.audits.kept(question)) as KeptFinding[])
  }

  async rebuild(given: unknown): Promise<RebuildReport> {
    const options = check.options('options', given, REBUILD_NAMES)
    const shards = this.#shards(options.shards)
    const all = check.flag('all', options.all)
    const force = check.flag('force', options.force)
    const { usedWithin = USED_WITHIN_MS } = options
    const usedWithinMs = check.integer('usedWithin', usedWithin, 0, USED_WITHIN_MAX_MS)
    const progress = this.#onProgress<RebuildProgress>(options)
    const { audits, engine, clock, sequencer, placeOf } = this.#parts
    const usedSince = Math.floor(clock.timeOfDay() - usedWithinMs)
    return this.#until(options, (signal) =>
      rebuild(
        {
          sequencer,
          placeOf,
          page: (...page) => audits.rebuildPage(...page),
          touch: (place, epochMin) => engine.touch(place, epochMin),
          now: () => clock.now(),
        },
        { shards, usedSince, all, force, signal, ...progress },
      ),
    )
  }

  #shards(given: unknown): number[] {
    const { shards } = this.#parts
    if (given === undefined) return Array.from({ length: shards }, (_, shard) => shard)
    if (!Array.isArray(given)) throw check.invalid('shards', 'an array of shards', check.show(given))
    return [...new Set(given.map((shard) => check.integer('shards', shard, 0, shards - 1)))]
  }

  #onProgress<Progress>({ onProgress }: Record<string, unknown>): { onProgress?: (progress: Progress) => void } {
    if (onProgress === undefined) return {}
    if (typeof onProgress !== 'function') throw check.invalid('onProgress', 'a function', check.show(onProgress))
    return { onProgress: onProgress as (progress: Progress) => void }
  }

  async #survey(signal: AbortSignal): Promise<void> {
    let after: string | null = NOBODY
    while (after !== null && !signal.aborted) after = await this.#parts.audits.survey(after, SURVEY_PAGE)
  }

  /** Work that ends when its caller, or the end of this instance, says so. */
  async #until<T>({ signal: given }: Record<string, unknown>, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const signal = check.signal(given)
    const stop = new AbortController()
    const signals = signal ? [signal, this.#closed.signal] : [this.#closed.signal]
    const end = (): void => stop.abort()
    for (const one of signals) {
      if (one.aborted) end()
      one.addEventListener('abort', end, { once: true })
    }
    try {
      return await work(stop.signal)
    } catch (error) {
      if (this.#closed.signal.aborted) throw new HoldfastError('unavailable', 'Holdfast is being closed')
      if (stop.signal.aborted) throw new HoldfastError('aborted', 'The caller stopped waiting')
      if (error instanceof LeaseLost) throw new HoldfastError('unavailable', error.message)
      throw error
    } finally {
      for (const one of signals) one.removeEventListener('abort', end)
    }
  }
}

export function checkBackground(given: unknown): BackgroundAudit | false {
  if (given === false) return false
  const options = check.options('audit', given, BACKGROUND_NAMES)
  if (options.every !== undefined) check.integer('audit.every', options.every, 1, EVERY_MAX_MS)
  if (options.repair !== undefined) check.flag('audit.repair', options.repair)
  return options as BackgroundAudit
}
