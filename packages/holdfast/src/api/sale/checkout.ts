import { HoldfastError } from '../../errors/index.js'
import { type Entry as MachineEntry, readCheckout, readLinesText } from '../../machine/index.js'
import { readCode } from '../../redis/index.js'
import { reading } from '../reads.js'
import * as check from '../validate.js'
import { WAIT_NAMES, type WaitOptions } from '../waiting.js'
import type { SoldItem } from './lines.js'
import { readRunning } from './reading.js'
import type { Purchase, PurchaseOptions, Sale } from './sale.js'
import type { SaleTenant } from './tenant.js'

export interface CheckoutState {
  readonly code: string
  /** The sale, by its id. */
  readonly sale: string
  readonly status: 'open' | 'purchased' | 'cancelled' | 'expired'
  /** What is in it, or was bought. What was given back is in it no more. */
  readonly items: readonly SoldItem[]
  readonly expiresAt: number
  /** When it was bought, cancelled, or ran out. */
  readonly closedAt?: number
}

/** Sales that a process remembers by what the codes in them begin with; then it begins anew. */
const REMEMBERED_MAX = 10_000

/** Which sale a code is of. That never changes, so nobody is asked twice. */
export class SaleFinder {
  readonly #ids = new Map<string, string>()

  /** The same answer for a code that is none, and for one of another tenant. */
  async find(tenant: SaleTenant, code: unknown): Promise<string> {
    const ref = readCode(check.text('code', code))
    if (ref === null) throw new HoldfastError('checkout_not_found')
    const known = this.#ids.get(ref)
    const id = known ?? (await tenant.journal.read([ref]))[0]?.id
    if (id === undefined) throw new HoldfastError('checkout_not_found')
    if (known === undefined) {
      if (this.#ids.size >= REMEMBERED_MAX) this.#ids.clear()
      this.#ids.set(ref, id)
    }
    // A ref follows from the tenant: where it is another's, none of our buckets has it.
    const terms = await tenant.memories.of(tenant.keys.tenant, id).terms()
    for (let bucket = 0; terms && bucket < terms.buckets; bucket += 1) {
      if (tenant.keys.ofSale(id, bucket).ref === ref) return id
    }
    throw new HoldfastError('checkout_not_found')
  }
}

/** A checkout by its code. Making one of these is no I/O: its sale is looked up when something is asked of it. */
export class CheckoutRef {
  readonly code: string
  readonly #tenant: SaleTenant
  readonly #saleOf: (id: string) => Sale

  constructor(tenant: SaleTenant, saleOf: (id: string) => Sale, code: string) {
    this.#tenant = tenant
    this.#saleOf = saleOf
    this.code = check.text('code', code)
  }

  /** How it stands, as the journal has it. */
  async get(options: WaitOptions = {}): Promise<CheckoutState> {
    return reading(this.#tenant, check.options('options', options, WAIT_NAMES), async () => {
      const sale = await this.#tenant.finder.find(this.#tenant, this.code)
      return readState(this.#tenant, sale, this.code)
    })
  }

  /** As `sale.purchase` of its sale. */
  async purchase(options: PurchaseOptions = {}): Promise<Purchase> {
    return (await this.#sale()).purchase(this.code, options)
  }

  /** As `sale.cancel` of its sale. */
  async cancel(options: Omit<PurchaseOptions, 'take'> = {}): Promise<{ readonly replayed: boolean }> {
    return (await this.#sale()).cancel(this.code, options)
  }

  async #sale(): Promise<Sale> {
    return this.#saleOf(await this.#tenant.finder.find(this.#tenant, this.code))
  }
}

/** Most of what ends a checkout has a key that follows from its code, so that it need not be looked for along the journal. */
const ENDS = ['~purchase:', '~cancel:', '~expire:'] as const
const STATUS: Partial<Record<MachineEntry['kind'], CheckoutState['status']>> = {
  settle: 'purchased',
  release: 'cancelled',
  expire: 'expired',
}

async function readState(tenant: SaleTenant, sale: string, code: string): Promise<CheckoutState> {
  const ref = readCode(code) as string
  const keys = [code, ...ENDS.map((prefix) => prefix + code)]
  const [made, ...ends] = await tenant.journal.find(keys.map((key) => ({ ref, key })))
  // A later call that went into a running checkout has a code as its key as well, and nobody was ever told that.
  if (made?.kind !== 'hold') throw new HoldfastError('checkout_not_found')
  const named = async (lines: readonly { item: number; quantity: number }[]): Promise<SoldItem[]> => {
    const items = await tenant.memories.of(tenant.keys.tenant, sale).byNumber(lines.map(({ item }) => item))
    return lines.map(({ quantity }, at) => ({ id: items[at]?.id ?? '', quantity }))
  }
  const found = ends.find((end) => end !== null)
  const open = found ? null : await readOpen(tenant, ref, made)
  if (open) return { code, sale, status: 'open', items: await named(open.lines), expiresAt: open.expiresAt }
  // What is not running and has no such key was paid out of a wallet, under a key of the payment's; or it is just being ended.
  const last = found ?? (await tenant.journal.holdEntry(ref, code)) ?? made
  const status = STATUS[last.kind] ?? 'open'
  const isThere = status === 'open' || status === 'purchased'
  const items = isThere ? await named(readLinesText(last.metadata)) : []
  const closedAt = status === 'open' ? {} : { closedAt: last.at }
  return { code, sale, status, items, expiresAt: last.holdExpiresAt, ...closedAt }
}

/** Null: it is not running, as far as Redis knows. */
async function readOpen(tenant: SaleTenant, ref: string, made: MachineEntry) {
  const running = await readRunning(tenant, tenant.keys.place(ref), readCheckout(made.params).buyer)
  return running?.hold === made.key ? running : null
}
