import { type ExplainOptions, explainHold, type HoldExplanation } from './explain.js'
import { type HoldState, type ReadOptions, readHold } from './reading.js'
import { type HoldFacts, type HoldReceipt, holdReceiptOf, type Receipt } from './receipt.js'
import { OPERATION_NAMES, type OperationOptions, type Own, perform, type Tenant } from './tenant.js'
import * as check from './validate.js'

export interface ChargeOptions extends OperationOptions {
  /** What the hold does not cover: reject the charge, or take the rest from `available`. Default `reject`. */
  readonly beyond?: 'reject' | 'available'
}

export interface ExtendOptions extends OperationOptions {
  /** More money. */
  readonly amount?: number
  /** More time: milliseconds from now. Never shortens. */
  readonly ttl?: number
}

const CHARGE_NAMES = new Set([...OPERATION_NAMES, ...check.namesOf<Own<ChargeOptions>>({ beyond: true })])
const EXTEND_NAMES = new Set([...OPERATION_NAMES, ...check.namesOf<Own<ExtendOptions>>({ amount: true, ttl: true })])

/** A hold by its id, which is the key it was made with. Making one of these is no I/O. */
export class HoldRef {
  readonly id: string
  readonly walletId: string
  readonly #tenant: Tenant

  constructor(tenant: Tenant, walletId: string, id: string) {
    this.#tenant = tenant
    this.walletId = walletId
    this.id = id
  }

  /** Spends out of the hold; as often as wanted. */
  async capture(amount: number, options: ChargeOptions): Promise<HoldReceipt> {
    const charge = { kind: 'capture' as const, amount: check.amount('amount', amount, 1), ...this.#beyond(options) }
    return holdReceiptOf(await perform(this.#tenant, this.walletId, charge, options, CHARGE_NAMES))
  }

  /** More money, more time, or both, in one step. */
  async extend(options: ExtendOptions): Promise<HoldReceipt> {
    const { amount, ttl } = check.options('options', options, EXTEND_NAMES)
    if (amount === undefined && ttl === undefined) throw check.invalid('options', 'amount, ttl or both', 'neither')
    const extension = {
      kind: 'extend' as const,
      hold: this.#own(),
      amount: amount === undefined ? 0 : check.amount('amount', amount, 1),
      ttlMs: ttl === undefined ? 0 : check.ttlMs(ttl),
    }
    return holdReceiptOf(await perform(this.#tenant, this.walletId, extension, options, EXTEND_NAMES))
  }

  /** Final: `total` is what the whole hold costs, captures included. What is not needed goes back. */
  async settle(total: number, options: ChargeOptions): Promise<HoldReceipt> {
    const charge = { kind: 'settle' as const, amount: check.amount('total', total, 0), ...this.#beyond(options) }
    return holdReceiptOf(await perform(this.#tenant, this.walletId, charge, options, CHARGE_NAMES))
  }

  /** Returns what is left, and closes. */
  async release(options: OperationOptions): Promise<HoldReceipt> {
    const release = { kind: 'release' as const, hold: this.#own() }
    return holdReceiptOf(await perform(this.#tenant, this.walletId, release, options))
  }

  /** A transfer's hold is the engine's own: spent or released by others, what has arrived elsewhere would not have left. */
  #own(): string {
    if (this.id.startsWith('~')) throw check.invalid('hold id', 'one that does not begin with ~', 'one that does')
    return this.id
  }

  /** How it stands now, open or closed, as the journal has it. Null: there never was such a hold. */
  async get(options: ReadOptions = {}): Promise<HoldState | null> {
    return readHold(this.#tenant, this.walletId, this.id, options)
  }

  /** What happened to its money, entry by entry, refunds included; and where it is now. */
  async explain(options: ExplainOptions = {}): Promise<HoldExplanation> {
    return explainHold(this.#tenant, this.walletId, this.id, options)
  }

  #beyond(options: ChargeOptions): { hold: string; beyond: boolean } {
    const { beyond = 'reject' } = check.options('options', options, CHARGE_NAMES)
    return {
      hold: this.#own(),
      beyond: check.oneOf('beyond', beyond, ['reject', 'available'] as const) === 'available',
    }
  }
}

/** A hold as it was made. Operations on it return how it stands after them. */
export class Hold extends HoldRef implements HoldFacts {
  readonly amount: number
  readonly captured: number
  readonly left: number
  readonly expiresAt: number
  readonly receipt: Receipt

  constructor(tenant: Tenant, walletId: string, facts: HoldFacts, receipt: Receipt) {
    super(tenant, walletId, facts.id)
    this.amount = facts.amount
    this.captured = facts.captured
    this.left = facts.left
    this.expiresAt = facts.expiresAt
    this.receipt = receipt
  }
}
