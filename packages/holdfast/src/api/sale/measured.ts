import { HoldfastError } from '../../errors/index.js'
import type { Telemetry } from '../../telemetry/index.js'
import type { WaitOptions } from '../waiting.js'
import type { SoldItem } from './lines.js'
import type { SaleState } from './reading.js'
import { type Checkout, type CheckoutOptions, type Purchase, type PurchaseOptions, Sale } from './sale.js'
import type { SaleTenant } from './tenant.js'
import type { SaleOptions } from './terms.js'

type Operation = 'open' | 'checkout' | 'purchase' | 'cancel' | 'close'

/** Whoever measures nothing pays for nothing. */
export const saleOf = (tenant: SaleTenant, id: string, telemetry: Telemetry): Sale =>
  telemetry.count || telemetry.observe ? new MeasuredSale(tenant, id, telemetry) : new Sale(tenant, id)

/**
 * A sale that counts what becomes of what is asked of it, whatever way the answer took: a refusal that never reached Redis is one all the
 * same. By code of refusal, never by sale or user: those are as many as there are customers.
 */
class MeasuredSale extends Sale {
  readonly #telemetry: Telemetry

  constructor(tenant: SaleTenant, id: string, telemetry: Telemetry) {
    super(tenant, id)
    this.#telemetry = telemetry
  }

  override async open(options: SaleOptions & WaitOptions): Promise<SaleState> {
    return this.#measure('open', () => super.open(options))
  }

  override async checkout(options: CheckoutOptions): Promise<Checkout> {
    const checkout = await this.#measure('checkout', () => super.checkout(options))
    if (!checkout.replayed) this.#units('checkout', options.items)
    return checkout
  }

  override async purchase(code: string, options?: PurchaseOptions): Promise<Purchase> {
    const purchase = await this.#measure('purchase', () => super.purchase(code, options))
    if (!purchase.replayed) this.#units('purchase', purchase.items)
    return purchase
  }

  override async cancel(
    code: string,
    options?: Omit<PurchaseOptions, 'take'>,
  ): Promise<{ readonly replayed: boolean }> {
    return this.#measure('cancel', () => super.cancel(code, options))
  }

  override async close(options?: Omit<PurchaseOptions, 'take'>): Promise<SaleState> {
    return this.#measure('close', () => super.close(options))
  }

  #units(operation: Operation, items: readonly Partial<SoldItem>[]): void {
    const units = items.reduce((sum, { quantity = 1 }) => sum + quantity, 0)
    this.#telemetry.count?.('holdfast_sale_units_total', { operation }, units)
  }

  async #measure<T extends object>(operation: Operation, ask: () => Promise<T>): Promise<T> {
    const startedAt = performance.now()
    let result = 'done'
    try {
      const answer = await ask()
      if ('replayed' in answer && answer.replayed) result = 'replayed'
      return answer
    } catch (error) {
      result = error instanceof HoldfastError ? error.code : 'internal_error'
      throw error
    } finally {
      this.#telemetry.count?.('holdfast_sale_results_total', { operation, result })
      const seconds = (performance.now() - startedAt) / 1_000
      this.#telemetry.observe?.('holdfast_sale_duration_seconds', seconds, { operation })
    }
  }
}
