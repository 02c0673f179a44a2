import type { PostgresSales } from '../../journal/index.js'
import type { Tenant } from '../tenant.js'
import type { SaleAttempts } from './attempts.js'
import type { SaleFinder } from './checkout.js'
import type { EarlyRejects } from './early.js'
import type { SaleMemories } from './memories.js'
import type { Schedules } from './schedule.js'
import type { SoldOutWatch } from './sold-out.js'

/** What the sales of all tenants share. */
export interface SaleParts {
  readonly sales: PostgresSales
  readonly soldOut: SoldOutWatch
  readonly attempts: SaleAttempts
  readonly schedules: Schedules
  /** Null: the engine is always asked. */
  readonly early: EarlyRejects | null
  readonly finder: SaleFinder
  readonly memories: SaleMemories
}

/** One tenant's way to the engine, with all that sales need. */
export interface SaleTenant extends Tenant, SaleParts {}
