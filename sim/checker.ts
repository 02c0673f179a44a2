import {
  apply,
  type Command,
  command,
  decide,
  type Entry,
  genesisHash,
  hashEntry,
  type WalletState,
} from '../packages/holdfast/src/machine/index.js'
import type { Operation } from './clients.js'
import type { SimWallet } from './journal.js'

/** When an entry was accepted into the journal, by hash: kept by the simulation, not by the product. */
export type Commits = ReadonlyMap<string, number>

/**
 * Judges what callers heard against what the journal holds, with a plain sequential model: the machine, one entry after the other.
 * Returns what is wrong, or nothing.
 */
export function check(
  wallets: Iterable<SimWallet>,
  history: readonly Operation[],
  commits: Commits,
  redisForgot: boolean,
): string[] {
  const problems: string[] = []
  const byRef = new Map<string, Operation[]>()
  for (const operation of history) {
    const list = byRef.get(operation.ref) ?? []
    list.push(operation)
    byRef.set(operation.ref, list)
  }
  for (const wallet of wallets) {
    const journal = new WalletCheck(wallet, problems)
    journal.checkLegal()
    for (const operation of byRef.get(wallet.row.ref) ?? [])
      journal.checkHeard(operation, commits, redisForgot, byRef.get(wallet.row.ref) ?? [])
  }
  return problems
}

class WalletCheck {
  readonly #wallet: SimWallet
  readonly #problems: string[]
  readonly #byKey = new Map<string, Entry>()
  /** The state before each entry, by seq − 1; replayed once. */
  readonly #states: WalletState[] = []

  constructor(wallet: SimWallet, problems: string[]) {
    this.#wallet = wallet
    this.#problems = problems
  }

  #fault(text: string): void {
    this.#problems.push(`${this.#wallet.row.id}: ${text}`)
  }

  /** Gapless, linked, each key once, and every entry exactly what the machine makes of its command at that point. */
  checkLegal(): void {
    const { row, entries, genesis } = this.#wallet
    if (genesis !== genesisHash(row.ref, row.currency)) this.#fault('the chain begins with something else')
    const state = beginning(this.#wallet)
    this.#states.push(copy(state))
    for (const entry of entries) {
      if (entry.seq !== state.seq + 1) this.#fault(`seq ${entry.seq} follows ${state.seq}`)
      if (entry.prev !== state.head) this.#fault(`entry ${entry.seq} does not rest on the one before`)
      if (hashEntry(entry) !== entry.hash) this.#fault(`the hash of entry ${entry.seq} is not its own`)
      if (this.#byKey.has(entry.key)) this.#fault(`key ${entry.key} is in the journal twice`)
      if (entry.at < state.at) this.#fault(`entry ${entry.seq} goes back in time`)
      this.#byKey.set(entry.key, entry)
      state.epoch = entry.epoch
      if (!this.#isWhatTheMachineMakes(state, entry))
        this.#fault(`entry ${entry.seq} (${entry.params}) is not what the machine makes there`)
      apply(state, entry)
      this.#states.push(copy(state))
    }
    let reserved = 0
    for (const hold of state.holds.values()) reserved += hold.left
    if (reserved !== state.reserved) this.#fault(`reserved is ${state.reserved}, open holds are ${reserved}`)
    if (state.available < -state.creditLimit) this.#fault(`available is ${state.available}`)
    const { seq, head, available, reserved: rowReserved } = row
    if (seq !== state.seq || head !== state.head || available !== state.available || rowReserved !== state.reserved) {
      this.#fault('the row is not what its journal leads to')
    }
    if (state.holds.size > 0) this.#fault(`a hold never expired: ${[...state.holds.keys()]}`)
  }

  #isWhatTheMachineMakes(before: WalletState, entry: Entry): boolean {
    if (entry.kind === 'expire') {
      const hold = before.holds.get(entry.hold)
      return hold !== undefined && hold.expiresAt <= entry.at && hold.left === entry.amount
    }
    const trial = copy(before)
    // What is due was filed before, as entries of their own; the bound may lag behind.
    trial.due = 0
    if ([...trial.holds.values()].some(({ expiresAt }) => expiresAt <= entry.at)) return false
    const { entries } = decide(trial, this.#commandOf(before, entry), entry.at)
    return entries[0]?.hash === entry.hash
  }

  #commandOf(before: WalletState, entry: Entry): Command {
    const words = entry.params.split(' ')
    const { kind, key, hold, of, counter, metadata } = entry
    if (kind === 'expire') throw new Error('An expiry has no command')
    const timed = kind === 'hold' || kind === 'extend'
    const asked = command({
      kind,
      key,
      hold,
      of,
      counter,
      metadata,
      amount: kind === 'release' ? 0 : entry.amount,
      ttlMs: timed ? Number(words[2]) : 0,
      beyond: words[2] === 'available',
    })
    return kind === 'refund' ? { ...asked, ...this.#facts(before, of) } : asked
  }

  #facts(before: WalletState, of: number): Pick<Command, 'charge' | 'facts' | 'hold'> {
    const past = this.#wallet.entries.slice(0, before.seq)
    const charged = past[of - 1]
    if (!charged || !['debit', 'capture', 'settle'].includes(charged.kind)) return { charge: 0, facts: null, hold: '' }
    const about = charged.hold === '' ? [] : past.filter(({ hold }) => hold === charged.hold)
    return {
      charge: -(charged.availableDelta + charged.reservedDelta),
      hold: charged.hold,
      facts: {
        epoch: before.epoch,
        seq: before.seq,
        refunded: past.reduce((most, entry) => (entry.of === of ? Math.max(most, entry.ofRefunded) : most), 0),
        holdClosed: about.some(({ kind }) => kind === 'settle' || kind === 'release' || kind === 'expire'),
        hold: {
          charged: about.at(-1)?.holdCaptured ?? 0,
          refunded: about.reduce((most, { holdRefunded }) => Math.max(most, holdRefunded), 0),
        },
      },
    }
  }

  checkHeard(operation: Operation, commits: Commits, redisForgot: boolean, all: readonly Operation[]): void {
    const { heard, command: asked, memory } = operation
    const entry = this.#byKey.get(asked.key)
    if (heard.type === 'yes') {
      const told = heard.outcome.entry
      if (!told) this.#fault(`${asked.key} was acknowledged with nothing`)
      else if (entry?.hash === told.hash) return
      else if (!(memory && heard.outcome.durability === 'memory'))
        this.#fault(
          `${asked.key} (${asked.params}) was acknowledged and is ${entry ? 'another' : 'not'} in the journal`,
        )
      else if (!entry && !redisForgot)
        this.#fault(
          `${asked.key} (${asked.params}) was acknowledged from memory and is lost, though Redis forgot nothing`,
        )
      return
    }
    if (heard.type === 'unknown') return
    if (heard.error.code === 'idempotency_conflict') {
      this.#fault(`${asked.key} (${asked.params}) conflicts with itself: no key is used for two things here`)
      return
    }
    if (entry) {
      this.#fault(`${asked.key} (${asked.params}) was refused (${heard.error.code}) and is in the journal`)
      return
    }
    this.#checkRefusal(operation, commits, all)
  }

  /** There must be a moment between call and answer at which the machine would have refused just so. */
  #checkRefusal(
    { command: asked, heard, startedAt, endedAt, ref }: Operation,
    commits: Commits,
    all: readonly Operation[],
  ): void {
    if (heard.type !== 'no') return
    const { code, facts } = heard.error
    if (code === 'entry_not_found') return
    let from = 0
    for (const other of all) {
      if (other.ref !== ref || other.endedAt > startedAt || other.heard.type !== 'yes') continue
      const told = other.heard.outcome
      if (told.durability === 'ledger' && told.entry) from = Math.max(from, told.entry.seq)
    }
    let to = from
    for (const entry of this.#wallet.entries) {
      if ((commits.get(entry.hash) ?? Number.POSITIVE_INFINITY) <= endedAt) to = Math.max(to, entry.seq)
    }
    for (let seq = from; seq <= to; seq += 1) {
      const state = this.#states[seq]
      if (state && refusesSo(copy(state), this.#asked(state, asked), code, facts)) return
    }
    this.#fault(
      `${asked.key} (${asked.params}) was refused (${code} ${JSON.stringify(facts)}), but nothing between seq ${from} and ${to} refuses it so`,
    )
  }

  #asked(state: WalletState, asked: Command): Command {
    return asked.kind === 'refund' ? { ...asked, ...this.#facts(state, asked.of) } : asked
  }
}

function refusesSo(state: WalletState, asked: Command, code: string, facts: Record<string, unknown>): boolean {
  state.due = 0
  const { outcome } = decide(state, asked, state.at)
  if (outcome.type !== 'rejected') return false
  const { rejection } = outcome
  if (rejection.code === 'hold_unknown') return ['hold_not_found', 'hold_closed', 'hold_expired'].includes(code)
  return rejection.code === code && Object.entries(rejection.facts).every(([name, value]) => facts[name] === value)
}

function beginning({ row, genesis }: SimWallet): WalletState {
  return {
    epoch: 0,
    seq: 0,
    head: genesis,
    at: 0,
    available: 0,
    reserved: 0,
    creditLimit: row.initialLimit,
    status: 'active',
    due: 0,
    since: 0,
    holds: new Map(),
    base: 0,
    refundedByEntry: new Map(),
    closedHolds: new Map(),
  }
}

function copy(state: WalletState): WalletState {
  return {
    ...state,
    holds: new Map(state.holds),
    refundedByEntry: new Map(state.refundedByEntry),
    closedHolds: new Map(state.closedHolds),
  }
}
