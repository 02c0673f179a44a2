import { HoldfastError } from '../errors/index.js'
import type { WalletRow } from '../journal/index.js'
import { genesisHash, type Entry as MachineEntry, type WalletStatus } from '../machine/index.js'
import type { CoreState } from '../sequencer/index.js'
import { type ExclusiveOptions, type Lock, runExclusive } from './exclusive.js'
import { Hold, HoldRef } from './hold.js'
import {
  type AtOptions,
  type HoldState,
  lookAt,
  PAGE_DEFAULT,
  PAGE_MAX,
  type PageOptions,
  type PastBalance,
  READ_NAMES,
  type ReadOptions,
  readBalanceAt,
  readEntries,
  readEntryOf,
  readHolds,
} from './reading.js'
import { reading } from './reads.js'
import { type Entry, holdFactsOf, type Receipt, receiptOf } from './receipt.js'
import { Session, SessionRef } from './session.js'
import { OPERATION_NAMES, type OperationOptions, type Own, perform, type Tenant } from './tenant.js'
import { METER_NAMES, type MeterOptions, meterOf } from './terms.js'
import * as check from './validate.js'
import type { WaitOptions } from './waiting.js'

export interface OpenOptions extends WaitOptions {
  /**
   * The name of the unit that amounts are integers of, yours to choose: `usd` for cents, `usd-micro` for what costs less. It is never interpreted;
   * transfers go between wallets of the same one only, and it can't be changed.
   */
  readonly currency: string
  /** How far `available` may go below zero. Default 0. */
  readonly creditLimit?: number
  /** JSON of up to 4 kB, kept with the wallet. What it was first opened with stays. */
  readonly metadata?: unknown
}

export interface HoldOptions extends OperationOptions {
  /** Milliseconds until it expires and what is left goes back: up to 400 days. */
  readonly ttl: number
}

const OPEN_NAMES = check.namesOf<OpenOptions>({
  currency: true,
  creditLimit: true,
  metadata: true,
  timeout: true,
  signal: true,
})
const HOLD_NAMES = new Set([...OPERATION_NAMES, ...check.namesOf<Own<HoldOptions>>({ ttl: true })])

/** A wallet as it stands. */
export interface WalletState {
  readonly id: string
  readonly currency: string
  readonly available: number
  readonly reserved: number
  readonly creditLimit: number
  readonly status: WalletStatus
  /** The number of its last entry. */
  readonly seq: number
  readonly epoch: number
  /** The hash of its last entry: noted elsewhere, it shows whether the journal was tampered with. */
  readonly head: string
  readonly openedAt: number
  readonly updatedAt: number
  readonly metadata?: unknown
}

/** A wallet by its id. Making one of these is no I/O. */
export class Wallet {
  readonly id: string
  readonly #tenant: Tenant

  constructor(tenant: Tenant, id: string) {
    this.#tenant = tenant
    this.id = check.text('wallet id', id)
  }

  /** Makes the wallet. Again it changes nothing, the metadata neither; with another currency or limit than first it is `wallet_exists`. */
  async open(options: OpenOptions): Promise<WalletState> {
    const given = check.options('options', options, OPEN_NAMES)
    const { currency, creditLimit = 0, metadata } = given
    const { keys, journal } = this.#tenant
    const ref = keys.ref(this.id)
    const asked = {
      ref,
      tenant: keys.tenant,
      id: this.id,
      currency: check.text('currency', currency),
      creditLimit: check.amount('creditLimit', creditLimit, 0),
      metadata: check.metadata(metadata),
    }
    const [row] = await reading(this.#tenant, given, async () => {
      await journal.open({ ...asked, head: genesisHash(ref, asked.currency) })
      return journal.read([ref])
    })
    if (!row) throw new HoldfastError('wallet_not_found')
    if (row.currency !== asked.currency || row.initialLimit !== asked.creditLimit) {
      throw new HoldfastError('wallet_exists', undefined, { currency: row.currency, creditLimit: row.initialLimit })
    }
    return stateOf(row)
  }

  /** As the journal has it; with `pending` what is decided but perhaps not committed yet. Null: never opened. */
  async get(options: ReadOptions = {}): Promise<WalletState | null> {
    const given = check.options('options', options, READ_NAMES)
    const pending = check.flag('pending', given.pending)
    const { keys, journal } = this.#tenant
    return reading(this.#tenant, given, async () => {
      const [row] = await journal.read([keys.ref(this.id)])
      if (!row) return null
      if (!pending) return stateOf(row)
      const look = await lookAt(this.#tenant, this.id, row.epoch)
      return look?.why === 'trusted' && look.core ? stateOf(row, look.core) : stateOf(row)
    })
  }

  async credit(amount: number, options: OperationOptions): Promise<Receipt> {
    const credit = { kind: 'credit' as const, amount: check.amount('amount', amount, 1) }
    return receiptOf(await perform(this.#tenant, this.id, credit, options))
  }

  /** Checks and deducts in one step. */
  async debit(amount: number, options: OperationOptions): Promise<Receipt> {
    const debit = { kind: 'debit' as const, amount: check.amount('amount', amount, 1) }
    return receiptOf(await perform(this.#tenant, this.id, debit, options))
  }

  /** Sets money aside until it is settled, released, or its time is over. Its id is the key. */
  async hold(amount: number, options: HoldOptions): Promise<Hold> {
    const { ttl } = check.options('options', options, HOLD_NAMES)
    const hold = { kind: 'hold' as const, amount: check.amount('amount', amount, 1), ttlMs: check.ttlMs(ttl) }
    const outcome = await perform(this.#tenant, this.id, hold, options, HOLD_NAMES)
    return new Hold(this.#tenant, this.id, holdFactsOf(outcome), receiptOf(outcome))
  }

  /** A hold by its id, without I/O. */
  holdRef(id: string): HoldRef {
    return new HoldRef(this.#tenant, this.id, check.text('hold id', id))
  }

  /**
   * Begins a metered session: a call by the minute, a stream by the token. Sets the first stretch aside, or what there is. Its id is the
   * key.
   */
  async meter(options: MeterOptions): Promise<Session> {
    const meter = meterOf(options)
    const outcome = await perform(this.#tenant, this.id, { kind: 'meter', meter }, options, METER_NAMES)
    return new Session(
      this.#tenant,
      this.id,
      { terms: meter, entry: outcome.entry as MachineEntry },
      receiptOf(outcome),
    )
  }

  /** A metered session by its id, without I/O. */
  sessionRef(id: string): SessionRef {
    return new SessionRef(this.#tenant, this.id, check.text('session id', id))
  }

  /** Gives back a debit, capture, tick or settle: partly, repeatedly, never more than it was. Always durable before it is acknowledged. */
  async refund(seq: number, amount: number, options: OperationOptions): Promise<Receipt> {
    const of = check.integer('seq', seq, 1, Number.MAX_SAFE_INTEGER)
    const refund = { kind: 'refund' as const, of, amount: check.amount('amount', amount, 1) }
    return receiptOf(await perform(this.#tenant, this.id, refund, options))
  }

  /** From now on nothing is spent or reserved; what was reserved can still be used. */
  async freeze(options: OperationOptions): Promise<Receipt> {
    return receiptOf(await perform(this.#tenant, this.id, { kind: 'freeze' }, options))
  }

  async unfreeze(options: OperationOptions): Promise<Receipt> {
    return receiptOf(await perform(this.#tenant, this.id, { kind: 'unfreeze' }, options))
  }

  async setCreditLimit(limit: number, options: OperationOptions): Promise<Receipt> {
    const change = { kind: 'limit' as const, amount: check.amount('limit', limit, 0) }
    return receiptOf(await perform(this.#tenant, this.id, change, options))
  }

  /** For good. Only an empty wallet without open holds can be closed. */
  async close(options: OperationOptions): Promise<Receipt> {
    return receiptOf(await perform(this.#tenant, this.id, { kind: 'close' }, options))
  }

  /** An entry that moves nothing: keeps its metadata in the journal, under a key of its own. Also in a frozen wallet. */
  async note(options: OperationOptions): Promise<Receipt> {
    return receiptOf(await perform(this.#tenant, this.id, { kind: 'void' }, options))
  }

  /** The entry that was made with this key. Null: none was. */
  async entry(key: string, options: WaitOptions = {}): Promise<Entry | null> {
    return readEntryOf(this.#tenant, this.id, key, options)
  }

  /** The journal, oldest first, after a seq. */
  async entries(options: PageOptions = {}): Promise<Entry[]> {
    return readEntries(this.#tenant, this.id, options)
  }

  /** Its open holds, oldest first, made after a seq. */
  async holds(options: PageOptions = {}): Promise<HoldState[]> {
    return readHolds(this.#tenant, this.id, options)
  }

  /** Its balance after an entry, or at a time. Null: never opened. A seq that it has not reached is `entry_not_found`. */
  async at(options: AtOptions): Promise<PastBalance | null> {
    return readBalanceAt(this.#tenant, this.id, options)
  }

  /**
   * Does `work` while nobody else does something under the same lock; `lock_busy` if it can't be had. For what lies outside of the wallet:
   * its own operations need no lock, and are not kept out by one. The wallet need not exist.
   */
  async exclusive<T>(work: (lock: Lock) => T | Promise<T>, options: ExclusiveOptions = {}): Promise<T> {
    return runExclusive(this.#tenant, this.id, work, options)
  }
}

export interface WalletsOptions extends WaitOptions {
  /** What comes after this id, whether there is such a wallet or not. Default: from the beginning. */
  readonly after?: string
  /** Only wallets whose id begins with it. */
  readonly prefix?: string
  /** How many at most, 1 to 1,000. Default 100. */
  readonly limit?: number
}

const WALLETS_NAMES = check.namesOf<WalletsOptions>({
  after: true,
  prefix: true,
  limit: true,
  timeout: true,
  signal: true,
})

export async function readWallets(tenant: Tenant, given: unknown): Promise<WalletState[]> {
  const options = check.options('options', given, WALLETS_NAMES)
  const after = options.after === undefined ? '' : check.text('after', options.after)
  const prefix = options.prefix === undefined ? '' : check.text('prefix', options.prefix)
  const limit = check.integer('limit', options.limit ?? PAGE_DEFAULT, 1, PAGE_MAX)
  return reading(tenant, options, async () => {
    const rows = await tenant.reader.wallets(tenant.keys.tenant, prefix, after, limit)
    return rows.map((row) => stateOf(row))
  })
}

function stateOf(row: WalletRow, core: CoreState | WalletRow = row): WalletState {
  return {
    id: row.id,
    currency: row.currency,
    available: core.available,
    reserved: core.reserved,
    creditLimit: core.creditLimit,
    status: core.status,
    seq: core.seq,
    epoch: core.epoch,
    head: core.head,
    openedAt: row.openedAt,
    updatedAt: core.at,
    ...(row.metadata !== '' && { metadata: JSON.parse(row.metadata) }),
  }
}
