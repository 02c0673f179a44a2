import { randomUUID } from 'node:crypto'
import type { Holdfast, OperationOptions, Receipt, Wallet, WalletState } from '../../api/index.js'
import { HoldfastError } from '../../errors/index.js'
import { namesOf, options as optionsOf } from '../../input/index.js'
import * as check from '../checks.js'
import { clientDamaged, clientNotFound, conflict, isSame, tooMuch } from '../failures.js'
import type {
  ChangeOptions,
  ClientRecord,
  LedgerStore,
  ListClientsOptions,
  ListTransactionsOptions,
  Movement,
  PruneOptions,
  TransactionPage,
  TransactionRecord,
  TransactionType,
} from '../types.js'
import { stopIfAborted, unlessDamaged } from '../walking.js'
import {
  ClientWallets,
  changeKey,
  clientOf,
  factsOf,
  OPENING_KEY,
  RECORDS_CURRENCY,
  readFacts,
  transactionFacts,
  transactionKey,
  transactionOf,
} from './format.js'
import { PageInOrder } from './page-in-order.js'

export interface HoldfastStoreOptions {
  /** What the ids of the clients' wallets begin with. Default `stripe402:`. */
  prefix?: string
}

const OPTION_NAMES = namesOf<HoldfastStoreOptions>({ prefix: true })
const PAGE_SIZE = 500
const ENTRIES_AT_ONCE = 1_000

/** What is asked of a client's wallet. */
interface Change {
  readonly type: TransactionType
  readonly amount: number
  readonly key: string
  readonly metadata?: unknown
}

/**
 * Clients as wallets: durable before anything is answered, idempotent by key and by id for good, with a journal that can be audited.
 * `format.ts` shows which entry is what. Whatever else a wallet can do (holds, freezing, refunds) works on `wallet('stripe402:<client>')`.
 */
export class HoldfastStore implements LedgerStore {
  readonly #wallets: ClientWallets

  constructor(hf: Holdfast, options: HoldfastStoreOptions = {}) {
    this.#wallets = new ClientWallets(hf, optionsOf('options', options, OPTION_NAMES).prefix)
  }

  async getClient(clientId: string): Promise<ClientRecord | null> {
    const id = check.clientId(clientId)
    const wallet = this.#wallets.of(id)
    const state = await wallet.get()
    return state && clientOf(id, await this.#opened(id, wallet, state))
  }

  async createClient(record: ClientRecord): Promise<void> {
    const given = check.client(record)
    const wallet = this.#wallets.of(given.clientId)
    const state = await this.#open(wallet, given)
    // Also by who finds that another opened it: he may have died before he got to this.
    await this.#fill(given.clientId, wallet, state)
  }

  async #open(wallet: Wallet, record: ClientRecord): Promise<WalletState> {
    try {
      return await wallet.open({ currency: record.currency, metadata: factsOf(record) })
    } catch (error) {
      if (!HoldfastError.is(error, 'wallet_exists')) throw error
      return (await wallet.get()) as WalletState
    }
  }

  /** What it was created with is in it, whoever was to put it there. */
  async #opened(clientId: string, wallet: Wallet, state: WalletState): Promise<WalletState> {
    const filled = state.seq <= 1 && (await this.#fill(clientId, wallet, state))
    return filled ? ((await wallet.get()) as WalletState) : state
  }

  /** True: what it was created with was missing, and is there now. */
  async #fill(clientId: string, wallet: Wallet, state: WalletState): Promise<boolean> {
    const { opening, imported } = readFacts(clientId, state)
    if (opening === 0 || imported || state.status === 'closed') return false
    // Its first entry may be one of somebody who came between.
    if (state.seq > 0 && (await wallet.entry(OPENING_KEY)) !== null) return false
    await wallet.credit(opening, { key: OPENING_KEY, durability: 'ledger' }).catch((error: unknown) => {
      if (!HoldfastError.is(error, 'invalid_amount')) throw error
      throw clientDamaged(clientId, 'its balance', 'room for what it was created with', 'more by now')
    })
    return true
  }

  async deductBalance(clientId: string, amount: number, options?: ChangeOptions): Promise<number | null> {
    return this.#changeBalance(check.clientId(clientId), 'deduction', amount, options)
  }

  async addBalance(clientId: string, amount: number, options?: ChangeOptions): Promise<number> {
    const id = check.clientId(clientId)
    const balance = await this.#changeBalance(id, 'topup', amount, options)
    if (balance === null) throw clientNotFound(id)
    return balance
  }

  async #changeBalance(
    clientId: string,
    type: TransactionType,
    given: number,
    options: ChangeOptions | undefined,
  ): Promise<number | null> {
    const amount = check.money('amount', given)
    const key = check.keyOf(options)
    if (amount === 0 && key === undefined) return (await this.getClient(clientId))?.balance ?? null
    const change = { type, amount, key: changeKey(key ?? randomUUID()), ...(amount === 0 && { metadata: { type } }) }
    const changed = await this.#change(clientId, change, 'key')
    return typeof changed === 'object' ? changed.available : null
  }

  async recordTransaction(transaction: TransactionRecord): Promise<void> {
    const one = check.transaction(transaction)
    const key = transactionKey(one.id)
    const moved = await this.#wallets.of(one.clientId).entry(key)
    if (moved) return mustBeSame(one, transactionOf(one.clientId, moved))
    const records = this.#wallets.recordsOf(one.clientId)
    const note = { key, metadata: transactionFacts(one, 'note'), durability: 'ledger' } as const
    const { entry } = await records.note(note).catch(async (error) => {
      if (!HoldfastError.is(error, 'wallet_not_found')) throw error
      await records.open({ currency: RECORDS_CURRENCY })
      return records.note(note)
    })
    mustBeSame(one, transactionOf(one.clientId, entry))
  }

  async move(transaction: Movement): Promise<number | null> {
    const one = check.movement(transaction, new Date())
    const { clientId, type, amount } = one
    const key = transactionKey(one.id)
    const recorded = await this.#wallets.recordsOf(clientId).entry(key)
    if (recorded) {
      mustBeSame(one, transactionOf(clientId, recorded))
      return this.#balanceOf(clientId)
    }
    const metadata = transactionFacts(one, amount === 0 ? 'note' : 'movement')
    const changed = await this.#change(clientId, { type, amount, key, metadata }, 'id')
    if (changed === 'unknown') throw clientNotFound(clientId)
    return changed === 'short' ? null : changed.available
  }

  async #balanceOf(clientId: string): Promise<number> {
    const client = await this.getClient(clientId)
    if (!client) throw clientNotFound(clientId)
    return client.balance
  }

  /** One operation on the client's wallet, and no reading before it. */
  async #change(clientId: string, change: Change, what: 'key' | 'id'): Promise<Receipt | 'short' | 'unknown'> {
    const wallet = this.#wallets.of(clientId)
    try {
      const receipt = await perform(wallet, change)
      if (change.amount === 0 && receipt.replayed) mustBeOfType(change.type, receipt, what)
      if (receipt.entry.seq === 1) await this.#tryToFinishOpening(clientId, wallet)
      return receipt
    } catch (error) {
      if (!HoldfastError.is(error)) throw error
      if (error.code === 'wallet_not_found') return 'unknown'
      if (error.code === 'idempotency_conflict') throw conflict(what)
      if (error.code === 'invalid_amount') throw tooMuch(change.amount)
      if (error.code !== 'insufficient_funds') throw error
      // A client that was never used may still wait for what it was created with.
      const mayWait = error.available === 0 && (await this.#finishOpening(clientId, wallet))
      return mayWait ? this.#change(clientId, change, what) : 'short'
    }
  }

  /** True: it was put in just now. */
  async #finishOpening(clientId: string, wallet: Wallet): Promise<boolean> {
    const state = await wallet.get()
    return state !== null && state.seq <= 1 && this.#fill(clientId, wallet, state)
  }

  /** The change before it is done and committed, whatever becomes of this: who reads next makes up for it. */
  async #tryToFinishOpening(clientId: string, wallet: Wallet): Promise<void> {
    try {
      await this.#finishOpening(clientId, wallet)
    } catch (error) {
      if (!HoldfastError.is(error)) throw error
    }
  }

  async getTransaction(clientId: string, id: string): Promise<TransactionRecord | null> {
    const client = check.clientId(clientId)
    const key = transactionKey(check.transactionId(id))
    const [moved, recorded] = await Promise.all([
      this.#wallets.of(client).entry(key),
      this.#wallets.recordsOf(client).entry(key),
    ])
    const entry = moved ?? recorded
    return entry && transactionOf(client, entry)
  }

  /** Reads all that the client's journals have: entries stand there in the order they were made in, and not by `createdAt`. */
  async listTransactions(clientId: string, options?: ListTransactionsOptions): Promise<TransactionPage> {
    const id = check.clientId(clientId)
    const page = new PageInOrder(check.page(options))
    // Recorded and moved at the very same moment it is in both, and one transaction.
    const seen = new Set<string>()
    for (const wallet of [this.#wallets.of(id), this.#wallets.recordsOf(id)]) {
      for await (const entry of entriesOf(wallet)) {
        const [transaction] = unlessDamaged(() => transactionOf(id, entry), page.onDamaged)
        if (!transaction || seen.has(transaction.id)) continue
        seen.add(transaction.id)
        page.offer(transaction)
      }
    }
    return page.close()
  }

  async *listClients(options?: ListClientsOptions): AsyncGenerator<ClientRecord, void, void> {
    const { signal, onDamaged } = check.walk(options)
    const damaged: Error[] = []
    // Without a listener the first is thrown, at the end: what is sound comes before.
    const note = onDamaged ?? ((error: Error) => void (damaged.length === 0 && damaged.push(error)))
    for (let after: string | undefined; ; ) {
      stopIfAborted(signal)
      const states = await this.#wallets.page(after, PAGE_SIZE)
      for (const state of states) yield* await this.#read(state, note)
      after = states.at(-1)?.id
      if (states.length < PAGE_SIZE) break
    }
    if (damaged[0]) throw damaged[0]
  }

  async #read(state: WalletState, note: (error: Error) => void): Promise<ClientRecord[]> {
    const id = this.#wallets.clientIdOf(state)
    try {
      return [clientOf(id, await this.#opened(id, this.#wallets.of(id), state))]
    } catch (error) {
      if (!HoldfastError.is(error, 'client_damaged')) throw error
      note(error)
      return []
    }
  }

  /** None: a journal keeps everything, for good. */
  async pruneTransactions(options: PruneOptions): Promise<number> {
    check.prune(options)
    return 0
  }
}

function perform(wallet: Wallet, { type, amount, key, metadata }: Change): Promise<Receipt> {
  const options: OperationOptions = { key, durability: 'ledger', ...(metadata !== undefined && { metadata }) }
  if (amount === 0) return wallet.note(options)
  return type === 'topup' ? wallet.credit(amount, options) : wallet.debit(amount, options)
}

function mustBeSame(asked: TransactionRecord, there: TransactionRecord | null): void {
  if (!there || !isSame(asked, there)) throw conflict('id')
}

/** What moves nothing is the same to the engine, whichever way it was not moved. */
function mustBeOfType(type: TransactionType, { entry }: Receipt, what: 'key' | 'id'): void {
  if ((entry.metadata as { type?: unknown } | undefined)?.type !== type) throw conflict(what)
}

async function* entriesOf(wallet: Wallet) {
  for (let after = 0; ; ) {
    const entries = await wallet.entries({ after, limit: ENTRIES_AT_ONCE })
    yield* entries
    if (entries.length < ENTRIES_AT_ONCE) return
    after = entries.at(-1)?.seq ?? after
  }
}
