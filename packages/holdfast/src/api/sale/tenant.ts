import type { PostgresSales } from '../../journal/index.js'
import type { Tenant } from '../tenant.js'
import type { SaleAttempts } from './attempts.js'
import type { SaleFinder } from './checkout.js'
import type { EarlyRejects } from './early.js'
import type { SaleMemory } from './memory.js'
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
  /** What this process remembers of a sale. */
  memoryOf(tenant: string, saleId: string): SaleMemory
}

/** One tenant's way to the engine, with all that sales need. */
export interface SaleTenant extends Tenant, SaleParts {}
