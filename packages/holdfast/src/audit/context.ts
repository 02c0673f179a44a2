import type { Clock } from '../engine/index.js'
import type { Audits, Journal } from '../journal/index.js'
import type { Place } from '../redis/index.js'
import type { Sequencer } from '../sequencer/index.js'
import type { Telemetry } from '../telemetry/index.js'

export interface AuditLimits {
  /** Wallets a page, compared in Postgres. */
  readonly pageMax: number
  /** Wallets of which journals are read at once, and entries of each at a time. */
  readonly readMax: number
  readonly stretchMax: number
  /** Wallets a look into Redis: a call keeps Redis for itself while it runs. */
  readonly hotMax: number
  /** Fields of a sale's stock a look into Redis. */
  readonly stockMax: number
  /** A sale with more of them is compared only where all is: its stock is copied at once, a second for a million fields. */
  readonly stockInAllMax: number
  /** An entry may wait in Redis for the journal for so long. Others help after 10 s. */
  readonly pendingMaxMs: number
  /** Nothing is from further in the future than this, by the clocks of the servers. */
  readonly aheadMaxMs: number
  /** A hold may be open for so long after it has run out. Sweepers come by every second. */
  readonly overdueAfterMs: number
  /** What looks wrong is looked at again after this, and again, before it is called so. */
  readonly confirmAfterMs: number
  /** The same for what is merely late: who would see to it may just have started. */
  readonly confirmLateAfterMs: number
  /** Every journal is read from the beginning so often, a part of them in each audit: so many entries of a shard at most. */
  readonly fullEveryMs: number
  readonly fullEntriesMax: number
}

export const DEFAULT_LIMITS: AuditLimits = {
  pageMax: 500,
  readMax: 100,
  stretchMax: 200,
  hotMax: 16,
  stockMax: 500,
  stockInAllMax: 50_000,
  pendingMaxMs: 60_000,
  aheadMaxMs: 600_000,
  overdueAfterMs: 60_000,
  confirmAfterMs: 250,
  confirmLateAfterMs: 5_000,
  fullEveryMs: 7 * 24 * 60 * 60 * 1_000,
  fullEntriesMax: 20_000,
}

/** What the auditor needs of the rest. Repairs are the engine's: it alone knows how state enters Redis. */
export interface AuditParts {
  readonly audits: Audits
  readonly journal: Pick<Journal, 'find' | 'stock'>
  readonly sequencer: Pick<Sequencer, 'scan' | 'inspect' | 'inspectStock'>
  readonly clock: Clock
  readonly telemetry: Telemetry
  agendaOf(shard: number): string
  placeOf(tenant: string, ref: string): Place
  /** Lets due holds expire. What Redis has under an older epoch than this is loaded anew. */
  touch(place: Place, epochMin?: number): Promise<unknown>
  readonly limits?: Partial<AuditLimits>
}
