import type { Holdfast, Wallet, WalletState } from '../../api/index.js'
import { HoldfastError } from '../../errors/index.js'
import { namesOf, options as optionsOf } from '../../input/index.js'
import type { ClientRecord, LedgerStore } from '../types.js'
import { eachOf, stopIfAborted } from '../walking.js'
import { type ClientFacts, ClientWallets, readFacts } from '../wallets/format.js'
import { fileAll } from './filing.js'
import { type Finding, type FindingKind, Findings, isUnfit, LeftOut } from './findings.js'
import { patiently } from './patience.js'
import { checkFits, type ImportPlan, planOf } from './plan.js'
import { surveyOf } from './survey.js'
import { inWords } from './verify.js'

/** As many as keep both servers busy: their operations share calls and statements. */
const CLIENTS_AT_ONCE = 128

export interface ImportProgress {
  readonly clients: number
  readonly transactions: number
  /** Everything is imported, and being compared. */
  readonly comparing: boolean
}

export interface ImportOptions {
  /** Look, and change nothing. */
  readonly dryRun?: boolean
  /** Of the wallets, as the store that will use them has it. */
  readonly prefix?: string
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: ImportProgress) => void
}

const OPTION_NAMES = namesOf<ImportOptions>({ dryRun: true, prefix: true, signal: true, onProgress: true })

export interface ImportReport {
  readonly dryRun: boolean
  /** That the store has, whether they could be read or not. */
  readonly clients: number
  /** Imported now; with `dryRun`: that would be. */
  readonly imported: number
  /** Imported before, by an earlier run. */
  readonly before: number
  readonly leftOut: number
  /** Of the clients that are imported, now or before. */
  readonly transactions: number
  /** Clients whose transactions do not come to their balance, and by how much in all. */
  readonly adjusted: number
  readonly adjustedAbove: bigint
  readonly adjustedBelow: bigint
  /** Read anew at the end: of every client that is imported, in the store and in its wallet. */
  readonly balances: { readonly store: bigint; readonly wallets: bigint } | null
  readonly counts: Readonly<Record<FindingKind, number>>
  /** The first 100. */
  readonly findings: readonly Finding[]
}

/**
 * Takes the clients of a stripe402 store, with all their transactions, into wallets of Holdfast. Each entry has a key that follows from what
 * it is, so that all of it can be done again: what is there stays, what is missing comes. Nothing else may change either side meanwhile.
 */
export async function importStore(
  store: LedgerStore,
  hf: Holdfast,
  options: ImportOptions = {},
): Promise<ImportReport> {
  optionsOf('options', options, OPTION_NAMES)
  const run = new ImportRun(store, new ClientWallets(hf, options.prefix), options)
  await run.work()
  if (!options.dryRun) await run.compare()
  return run.report()
}

class ImportRun {
  readonly #store: LedgerStore
  readonly #wallets: ClientWallets
  readonly #options: ImportOptions
  readonly #findings = new Findings()
  readonly #seen = new Set<string>()
  readonly #leftOut = new Set<string>()
  readonly #sums = { imported: 0, before: 0, transactions: 0, adjusted: 0, adjustedAbove: 0n, adjustedBelow: 0n }
  #balances: { store: bigint; wallets: bigint } | null = null
  #unreadable = 0
  #compared = 0

  constructor(store: LedgerStore, wallets: ClientWallets, options: ImportOptions) {
    this.#store = store
    this.#wallets = wallets
    this.#options = options
  }

  report(): ImportReport {
    const { dryRun = false } = this.#options
    const leftOut = this.#leftOut.size + this.#unreadable
    return {
      dryRun,
      clients: this.#seen.size + this.#unreadable,
      leftOut,
      ...this.#sums,
      balances: this.#balances,
      counts: this.#findings.counts,
      findings: this.#findings.kept,
    }
  }

  async work(): Promise<void> {
    const onDamaged = (error: Error): void => {
      this.#unreadable += 1
      this.#findings.damaged(error)
    }
    await eachOf(this.#clients(onDamaged), CLIENTS_AT_ONCE, (client) => this.#take(client))
  }

  #clients(onDamaged: (error: Error) => void): AsyncIterable<ClientRecord> {
    const { signal } = this.#options
    return this.#store.listClients({ onDamaged, ...(signal && { signal }) })
  }

  async #take(client: ClientRecord): Promise<void> {
    // A walk hands over whole pages: who stops it does not wait for the rest of one.
    stopIfAborted(this.#options.signal)
    const { clientId } = client
    // A walk may come by a client twice.
    if (this.#seen.has(clientId)) return
    this.#seen.add(clientId)
    try {
      const plan = planOf(client, await surveyOf(this.#store, client, checkFits))
      const { dryRun, signal } = this.#options
      const outcome = await patiently(() => (dryRun ? this.#foresee(plan) : this.#carryOut(plan)), signal)
      this.#sums[outcome] += 1
      this.#sums.transactions += plan.survey.count
      this.#noteDifference(plan)
    } catch (error) {
      if (error instanceof LeftOut) this.#findings.add(error.kind, clientId, error.message)
      else if (HoldfastError.is(error, 'client_damaged')) this.#findings.damaged(error)
      else if (isUnfit(error)) this.#findings.add('damaged', clientId, error.message)
      else throw error
      this.#leftOut.add(clientId)
    }
    this.#tell()
  }

  #noteDifference({ client, difference }: ImportPlan): void {
    if (difference === 0) return
    this.#sums.adjusted += 1
    if (difference > 0) this.#sums.adjustedAbove += BigInt(difference)
    else this.#sums.adjustedBelow += BigInt(-difference)
    this.#findings.add('unequal', client.clientId, inWords(difference))
  }

  async #foresee(plan: ImportPlan): Promise<'imported' | 'before'> {
    const wallet = this.#wallets.of(plan.client.clientId)
    const state = await wallet.get()
    if (!state) return 'imported'
    checkState(plan, state)
    return (await isComplete(plan, wallet, state)) ? 'before' : 'imported'
  }

  async #carryOut(plan: ImportPlan): Promise<'imported' | 'before'> {
    const wallet = this.#wallets.of(plan.client.clientId)
    // Of a wallet that gets no entry only this tells whether it was there before.
    if (plan.facts.entries === 0 && (await this.#foresee(plan)) === 'before') return 'before'
    const state = await this.#open(plan, wallet)
    checkState(plan, state)
    if (state.seq > 0 && (await isComplete(plan, wallet, state))) return 'before'
    await fileAll(plan, this.#store, { wallet, resumed: state.seq > 0, signal: this.#options.signal })
    return 'imported'
  }

  async #open({ client, facts }: ImportPlan, wallet: Wallet): Promise<WalletState> {
    try {
      return await wallet.open({ currency: client.currency, metadata: facts })
    } catch (error) {
      if (!HoldfastError.is(error, 'wallet_exists')) throw error
      throw new LeftOut('exists', 'its wallet has another currency')
    }
  }

  /** Both sides as they are now, client by client. */
  async compare(): Promise<void> {
    const balances = { store: 0n, wallets: 0n }
    const seen = new Set<string>()
    const look = async (client: ClientRecord): Promise<void> => {
      stopIfAborted(this.#options.signal)
      if (seen.has(client.clientId) || this.#leftOut.has(client.clientId)) return
      seen.add(client.clientId)
      const imported = await patiently(() => this.#importedBalance(client.clientId), this.#options.signal)
      balances.store += BigInt(client.balance)
      balances.wallets += BigInt(imported ?? 0)
      if (imported !== client.balance) this.#findings.add('differs', client.clientId, differs(client.balance, imported))
      this.#compared += 1
      this.#tell(true)
    }
    // They were told of before.
    await eachOf(
      this.#clients(() => {}),
      CLIENTS_AT_ONCE,
      look,
    )
    this.#balances = balances
  }

  /** As the import left it, whatever its owner has spent since. */
  async #importedBalance(clientId: string): Promise<number | null> {
    const wallet = this.#wallets.of(clientId)
    const state = await wallet.get()
    if (!state) return null
    const facts = factsIn(clientId, state)
    if (!facts?.imported || state.seq < facts.entries) return null
    const { entries } = facts
    return state.seq === entries ? state.available : ((await wallet.at({ seq: entries }))?.available ?? null)
  }

  #tell(comparing = false): void {
    const clients = comparing ? this.#compared : this.#seen.size
    this.#options.onProgress?.({ clients, transactions: this.#sums.transactions, comparing })
  }
}

const sameFacts = (one: ClientFacts, other: ClientFacts): boolean =>
  (Object.keys(one) as (keyof ClientFacts)[]).every((name) => one[name] === other[name])

/** The wallet is the one that this plan would make. */
function checkState({ client, facts }: ImportPlan, state: WalletState): void {
  const there = factsIn(client.clientId, state)
  if (!there?.imported) throw new LeftOut('exists', 'there is a wallet with its id that no import made')
  if (state.currency !== client.currency || !sameFacts(facts, there)) {
    throw new LeftOut('changed', 'it is not what it was when an import of it began')
  }
}

function factsIn(clientId: string, state: WalletState): ClientFacts | null {
  try {
    return readFacts(clientId, state)
  } catch {
    return null
  }
}

/** The last of its entries is filed when all others are there. It need not be looked for where nothing has come since. */
async function isComplete(
  { client, facts, lastKey }: ImportPlan,
  wallet: Wallet,
  state: WalletState,
): Promise<boolean> {
  if (state.seq < facts.entries) return false
  if (state.seq === facts.entries && state.available === client.balance) return true
  return lastKey === null || (await wallet.entry(lastKey)) !== null
}

const differs = (balance: number, imported: number | null): string =>
  imported === null
    ? `${balance} in the store, and not imported completely`
    : `${balance} in the store, ${imported} in its wallet as imported`
