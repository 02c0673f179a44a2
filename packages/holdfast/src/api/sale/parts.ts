import { systemClock } from '../../engine/index.js'
import { type Journal, PostgresAttempts, PostgresSchedules, PostgresSold } from '../../journal/index.js'
import type { Postgres } from '../../postgres/index.js'
import { Primitives } from '../../primitives/index.js'
import type { RedisConnection } from '../../redis/index.js'
import type { Telemetry } from '../../telemetry/index.js'
import { SaleAttempts } from './attempts.js'
import { SaleFinder } from './checkout.js'
import { type CheckedEarlyReject, EarlyRejects } from './early.js'
import { SaleMemories } from './memories.js'
import { PatientSales } from './patient.js'
import { Schedules } from './schedule.js'
import { SoldOutWatch } from './sold-out.js'
import type { SaleParts } from './tenant.js'
import { Turns } from './turns.js'

/** Sales of many items that schedules open at a time: a dozen of 100,000 at once took 576 MB, and two at a time 380. */
const LARGE_AT_ONCE = 2

export interface SalesGiven {
  readonly redis: RedisConnection
  readonly postgres: Postgres
  readonly journal: Journal
  readonly secret: Buffer
  readonly telemetry: Telemetry
  /** Postgres has lost something, and nobody may rely on what it says. */
  readonly isStopped: () => boolean
  /** Null: attempts are not recorded. */
  readonly attempts: { readonly retentionMs: number } | null
  readonly early: CheckedEarlyReject | null
}

export interface OpenSales {
  readonly parts: SaleParts
  /** Nothing new is taken on from here. */
  close(): Promise<void>
  /** Once nobody asks any more: what was tried last is on record too. */
  finish(timeoutMs: number): Promise<void>
}

/** All that sales need beside the engine, of all tenants. */
export function openSales({ redis, postgres, journal, secret, telemetry, isStopped, ...given }: SalesGiven): OpenSales {
  const sales = new PatientSales(postgres)
  const soldOut = new SoldOutWatch(sales)
  const schedules = new Schedules({
    schedules: new PostgresSchedules(postgres),
    clock: systemClock,
    telemetry,
    large: new Turns(LARGE_AT_ONCE),
  })
  const attempts = new SaleAttempts(new PostgresAttempts(postgres), given.attempts, telemetry)
  let primitives: Promise<Primitives> | undefined
  const primitivesOf = async (tenant: string): Promise<Primitives> => {
    primitives ??= Primitives.connect({ redis, secret, owner: 'sales', telemetry })
    return (await primitives).forTenant(tenant)
  }
  const sold = new PostgresSold(postgres)
  const early =
    given.early &&
    new EarlyRejects({ journal, sold, clock: systemClock, telemetry, isStopped, primitivesOf }, given.early)
  const memories = new SaleMemories(sales)
  return {
    parts: { sales, soldOut, attempts, schedules, early, finder: new SaleFinder(), memories },
    async close() {
      soldOut.close()
      await Promise.all([schedules.close(), early?.close()])
    },
    async finish(timeoutMs) {
      await attempts.close(timeoutMs)
      await primitives?.then((made) => made.close())
    },
  }
}
