import type { AuditReport, RebuildReport } from '../audit/index.js'
import type { ReconcileOptions, ReconcileReport } from '../reconcile/index.js'
import type { AuditOptions, FindingsOptions, KeptFinding, RebuildOptions } from './audit.js'
import { type ConnectOptions, open } from './connect.js'
import { CheckoutRef } from './sale/checkout.js'
import { saleOf } from './sale/measured.js'
import { readSales, type SaleState, type SalesOptions } from './sale/reading.js'
import type { Sale } from './sale/sale.js'
import { SaleSchedule } from './sale/schedule.js'
import { readSchedules, type ScheduleState, type SchedulesOptions } from './sale/schedule-reading.js'
import type { SaleTenant } from './sale/tenant.js'
import type { Shared } from './share.js'
import { type Transfer, type TransferOptions, transfer } from './transfer.js'
import * as check from './validate.js'
import { readWallets, Wallet, type WalletState, type WalletsOptions } from './wallet.js'

/** How this process stands with the servers, as its operations and connections have found them. */
export interface Health {
  /** `away`: operations go through Postgres. `partly`: those of some shards of a Cluster do. */
  readonly redis: 'up' | 'partly' | 'away'
  /** `away`: operations are refused, and nothing is acknowledged but from memory. */
  readonly postgres: 'up' | 'away'
  /** Why nothing is decided until an operator has acted; null: nothing is in the way. */
  readonly stopped: string | null
  /** Operations without an answer yet. */
  readonly operations: number
  /** Those of them that wait for the Postgres path, and how many may: from half of it on, holds and debits are refused. */
  readonly postgresPath: number
  readonly postgresPathMax: number
  /** Entries that were decided and wait for Postgres. */
  readonly backlog: number
}

/** Balances and holds that are never double-spent, oversold or lost. Redis decides, Postgres remembers. */
export class Holdfast {
  readonly tenant: string
  readonly #shared: Shared
  readonly #tenant: SaleTenant

  private constructor(tenant: string, shared: Shared) {
    this.tenant = tenant
    this.#shared = shared
    this.#tenant = shared.tenantOf(tenant)
  }

  static async connect(options: ConnectOptions): Promise<Holdfast> {
    const { tenant, shared } = await open(options)
    return new Holdfast(tenant, shared)
  }

  /** The same connections, another tenant: other wallets, other keys. */
  forTenant(tenant: string): Holdfast {
    return new Holdfast(check.tenant(tenant), this.#shared)
  }

  /** A wallet by its id, without I/O. */
  wallet(id: string): Wallet {
    return new Wallet(this.#tenant, id)
  }

  /** A sale by its id, without I/O. */
  sale(id: string): Sale {
    return saleOf(this.#tenant, id, this.#shared.telemetry)
  }

  /** The sales of this tenant, in the order of their ids, a page at a time. */
  async sales(options: SalesOptions = {}): Promise<SaleState[]> {
    return readSales(this.#tenant, options)
  }

  /** A checkout by its code, of whichever sale, without I/O. */
  checkoutRef(code: string): CheckoutRef {
    return new CheckoutRef(this.#tenant, (id) => this.sale(id), code)
  }

  /** Sales that come again and again, by the id of their schedule, without I/O. */
  saleSchedule(id: string): SaleSchedule {
    return new SaleSchedule(this.#tenant, id)
  }

  /** The schedules of this tenant's sales, in the order of their ids, a page at a time. */
  async saleSchedules(options: SchedulesOptions = {}): Promise<ScheduleState[]> {
    return readSchedules(this.#tenant, options)
  }

  /** The wallets of this tenant, in the order of their ids, a page at a time. */
  async wallets(options: WalletsOptions = {}): Promise<WalletState[]> {
    return readWallets(this.#tenant, options)
  }

  /**
   * Moves `amount` from one wallet to another, and the fee to an account, exactly once: also when processes, Redis or Postgres fail in
   * between. Wallets by their ids, of this tenant and in one currency.
   */
  async transfer(from: string, to: string, amount: number, options: TransferOptions): Promise<Transfer> {
    return transfer(this.#tenant, from, to, amount, options)
  }

  /** What its operations and connections have found of Redis and Postgres. Asks nobody. */
  health(): Health {
    const { health, load, options } = this.#shared.engine
    const { redisGroups, redisGroupsAway, postgres, stopped } = health
    const { attempts: operations, postgresPath, backlog } = load
    const { postgresPathMax } = options
    const isAnyThere = this.#shared.isRedisThere() && (redisGroupsAway === 0 || redisGroupsAway < redisGroups)
    return {
      redis: !isAnyThere ? 'away' : redisGroupsAway > 0 ? 'partly' : 'up',
      postgres: postgres ? 'up' : 'away',
      stopped,
      operations,
      postgresPath,
      postgresPathMax,
      backlog,
    }
  }

  /**
   * Compares what Redis has with the journals, and these with the laws that they obey, beside live traffic; of all tenants. What the
   * journal decides is put right. Resolves also when something was found: see `counts` and `findings`.
   */
  async audit(options?: AuditOptions): Promise<AuditReport> {
    return this.#shared.auditing.audit(options)
  }

  /** What audits have found of this tenant's wallets, in the order in which it was first found, a page at a time. */
  async findings(options: FindingsOptions = {}): Promise<KeptFinding[]> {
    return this.#shared.auditing.findings(this.#tenant, options)
  }

  /** Fills Redis from Postgres, beside live traffic; of all tenants. Nothing has to: wallets are loaded as they are needed. */
  async rebuild(options?: RebuildOptions): Promise<RebuildReport> {
    return this.#shared.auditing.rebuild(options)
  }

  /**
   * For an operator, after `reconcile_required`: Postgres was restored to an earlier point, or failed over and lost commits. Postgres wins.
   * What Redis still knows of what is lost is handed to `onEntry`; then things go on. For all tenants. Safe to run again, whenever.
   */
  async reconcile(options: ReconcileOptions = {}): Promise<ReconcileReport> {
    checkReconcile(options)
    return this.#shared.reconcile(options)
  }

  /** Answers what is under way, then ends connections of its own. Wallets of all tenants are closed with it. */
  async close(): Promise<void> {
    await this.#shared.close()
  }
}

const RECONCILE_NAMES = check.namesOf<ReconcileOptions>({ dryRun: true, onEntry: true, onExported: true })

function checkReconcile(value: unknown): void {
  const { dryRun, ...called } = check.options('options', value, RECONCILE_NAMES)
  check.flag('dryRun', dryRun)
  for (const [name, one] of Object.entries(called)) {
    if (one !== undefined && typeof one !== 'function') throw check.invalid(name, 'a function', check.show(one))
  }
}
