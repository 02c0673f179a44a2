/**
 * How clients and transactions look as wallets and entries:
 *
 *     stripe402:<client>           the client      available: its balance · metadata: its customer and its dates
 *       opening                      credit          what it was created with
 *       key:<key>                    credit, debit   addBalance and deductBalance; without a key of the caller's under a random one
 *       txn:<id>                     credit, debit   move: metadata has what else there is of the transaction
 *     records:stripe402:<client>   what was recorded and not moved, since the balance was changed by other means; its balance is zero
 *       txn:<id>                     void            recordTransaction: all of it is metadata
 *
 * Records have a wallet of their own: published callers record a transaction before its client is there, and a record leaves `updatedAt`
 * of the client alone. A transaction of length zero moves nothing, so it is a note, also where it was moved.
 */
import { createHash } from 'node:crypto'
import type { Entry, Holdfast, Wallet, WalletState } from '../../api/index.js'
import { HoldfastError } from '../../errors/index.js'
import { invalid, text } from '../../input/index.js'
import { clientDamaged } from '../failures.js'
import type { ClientRecord, TransactionRecord, TransactionType } from '../types.js'

const DEFAULT_PREFIX = 'stripe402:'
const PREFIX_MAX = 64
const RECORDS = 'records:'
/** Of ids and keys, in characters. */
const LENGTH_MAX = 255

export const OPENING_KEY = 'opening'
/** Of wallets that hold records: nothing is ever in them. */
export const RECORDS_CURRENCY = 'records'

/** Where the clients of a store are among the wallets of a tenant. */
export class ClientWallets {
  readonly prefix: string
  readonly #hf: Holdfast

  constructor(hf: Holdfast, prefix: unknown = DEFAULT_PREFIX) {
    this.#hf = hf
    this.prefix = text('prefix', prefix, PREFIX_MAX)
    if (this.prefix.startsWith(RECORDS))
      throw invalid('prefix', `one that does not begin with ${RECORDS}`, 'one that does')
  }

  of(clientId: string): Wallet {
    return this.#hf.wallet(`${this.prefix}${this.#fitting(clientId)}`)
  }

  recordsOf(clientId: string): Wallet {
    return this.#hf.wallet(`${RECORDS}${this.prefix}${this.#fitting(clientId)}`)
  }

  clientIdOf({ id }: Pick<WalletState, 'id'>): string {
    return id.slice(this.prefix.length)
  }

  /** After an id; in the order of their ids. */
  async page(after: string | undefined, limit: number): Promise<WalletState[]> {
    return this.#hf.wallets({ prefix: this.prefix, limit, ...(after !== undefined && { after }) })
  }

  /** For both of its wallets. */
  #fitting(clientId: string): string {
    const most = LENGTH_MAX - RECORDS.length - [...this.prefix].length
    if (clientId.length <= most || [...clientId].length <= most) return clientId
    throw invalid('clientId', `1 to ${most} characters, since it becomes part of the id of a wallet`, 'more')
  }
}

/** Keys are as long as the engine takes them at most: a longer id is known by its hash, and stands in the metadata. */
const keyOf = (kind: 'txn' | 'key', id: string): string => {
  const key = `${kind}:${id}`
  return [...key].length <= LENGTH_MAX ? key : `${kind}#${createHash('sha256').update(id).digest('hex')}`
}

export const changeKey = (key: string): string => keyOf('key', key)
export const transactionKey = (id: string): string => keyOf('txn', id)
const isTransaction = ({ key }: Pick<Entry, 'key'>): boolean => /^txn[:#]/.test(key)

/** What a client's wallet has for metadata. */
export interface ClientFacts {
  readonly stripeCustomerId: string
  readonly createdAt: string
  readonly updatedAt: string
  /** What it was created with: credited by who opens the wallet, or by who comes by next. */
  readonly opening: number
  /** How many entries belong to its beginning: after as many it has not been used, and `updatedAt` is as given. */
  readonly entries: number
  /** It came from another store, and is not complete before it has that many entries. */
  readonly imported?: true
}

export const factsOf = (record: ClientRecord): ClientFacts => ({
  stripeCustomerId: record.stripeCustomerId,
  createdAt: record.createdAt.toISOString(),
  updatedAt: record.updatedAt.toISOString(),
  opening: record.balance,
  entries: record.balance > 0 ? 1 : 0,
})

export function readFacts(clientId: string, { metadata }: WalletState): ClientFacts {
  const facts = (metadata ?? {}) as Partial<Record<keyof ClientFacts, unknown>>
  const sound =
    typeof facts === 'object' &&
    typeof facts.stripeCustomerId === 'string' &&
    isInstant(facts.createdAt) &&
    isInstant(facts.updatedAt) &&
    Number.isSafeInteger(facts.opening) &&
    Number.isSafeInteger(facts.entries)
  if (sound) return facts as unknown as ClientFacts
  throw clientDamaged(clientId, 'metadata of its wallet', 'what createClient writes', 'something else')
}

const isInstant = (value: unknown): boolean => typeof value === 'string' && !Number.isNaN(Date.parse(value))

export function clientOf(clientId: string, state: WalletState): ClientRecord {
  const facts = readFacts(clientId, state)
  if (facts.imported && state.seq < facts.entries) {
    throw new HoldfastError('unavailable', 'The client is being imported: finish that first')
  }
  return {
    clientId,
    stripeCustomerId: facts.stripeCustomerId,
    balance: state.available,
    currency: state.currency,
    createdAt: new Date(facts.createdAt),
    updatedAt: new Date(state.seq <= facts.entries ? facts.updatedAt : state.updatedAt),
  }
}

/** What an entry says of a transaction beside its own amount and kind. */
interface TransactionFacts {
  readonly createdAt: string
  readonly stripePaymentIntentId?: string
  readonly resource?: string
  /** Where the key is a hash. */
  readonly id?: string
  /** Where the entry itself moves nothing. */
  readonly type?: TransactionType
  readonly amount?: number
}

export function transactionFacts(transaction: TransactionRecord, as: 'movement' | 'note'): TransactionFacts {
  const { id, type, amount, stripePaymentIntentId, resource, createdAt } = transaction
  return {
    createdAt: createdAt.toISOString(),
    ...(stripePaymentIntentId !== undefined && { stripePaymentIntentId }),
    ...(resource !== undefined && { resource }),
    ...(!transactionKey(id).startsWith('txn:') && { id }),
    ...(as === 'note' && { type, amount }),
  }
}

/** Null: the entry is none. */
export function transactionOf(clientId: string, entry: Entry): TransactionRecord | null {
  if (!isTransaction(entry)) return null
  // Whoever can use the wallet can make an entry that looks like one.
  const facts = (entry.metadata ?? {}) as Partial<Record<keyof TransactionFacts, unknown>>
  const moved = { credit: 'topup', debit: 'deduction' }[entry.kind as string]
  const { type = moved, amount = entry.amount, createdAt, id = entry.key.slice('txn:'.length) } = facts
  const { stripePaymentIntentId, resource } = facts
  const sound =
    (type === 'topup' || type === 'deduction') &&
    Number.isSafeInteger(amount) &&
    (amount as number) >= 0 &&
    isInstant(createdAt) &&
    typeof id === 'string' &&
    [stripePaymentIntentId, resource].every((text) => text === undefined || typeof text === 'string')
  if (!sound) throw clientDamaged(clientId, `entry ${entry.seq} of its wallet`, 'a transaction', 'something else')
  return {
    id,
    clientId,
    type,
    amount: amount as number,
    createdAt: new Date(createdAt as string),
    ...(stripePaymentIntentId !== undefined && { stripePaymentIntentId: stripePaymentIntentId as string }),
    ...(resource !== undefined && { resource: resource as string }),
  }
}
