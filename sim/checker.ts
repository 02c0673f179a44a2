import type { HoldfastError } from '../packages/holdfast/src/errors/index.js'
import { isStorable } from '../packages/holdfast/src/journal/index.js'
import {
  apply,
  type Command,
  type CommandKind,
  command,
  decide,
  type Entry,
  emptyStock,
  genesisHash,
  hashEntry,
  isSale,
  REMEMBERED,
  readMeter,
  type WalletState,
} from '../packages/holdfast/src/machine/index.js'
import type { Operation } from './caller.js'
import { type Commit, isThereBy } from './commits.js'
import type { SimWallet } from './database.js'
import type { Openings } from './openings.js'

/** What the simulation knows and the product does not. */
export interface Circumstances {
  /** When an entry was accepted into the journal, by hash: the first time, and the last. */
  readonly commits: ReadonlyMap<string, Commit>
  /** Those are the times; and not about the times, earlier rather than later. */
  readonly commitsAreExact: boolean
  /** What was acknowledged from memory before this may be gone, of a wallet by its ref. */
  redisForgotAt(ref: string): number
  /**
   * Entries that went with a primary whose replica lagged, or when an old copy was put back, and when: that they are lost is outside of what
   * is promised. And when a wallet last lost any, by ref.
   */
  readonly lostHashes: ReadonlyMap<string, number>
  readonly lostAt: ReadonlyMap<string, number>
  readonly openings: Pick<Openings, 'openedAt' | 'made'>
}

/**
 * Judges what callers heard against what the journal holds, with a plain sequential model: the machine, one entry after the other.
 * Returns what is wrong, or nothing.
 */
export function check(
  wallets: Iterable<SimWallet>,
  history: readonly Operation[],
  circumstances: Circumstances,
): string[] {
  const problems: string[] = []
  const byRef = new Map<string, Operation[]>()
  for (const operation of history) {
    const list = byRef.get(operation.ref) ?? []
    list.push(operation)
    byRef.set(operation.ref, list)
  }
  for (const wallet of wallets) {
    const all = byRef.get(wallet.row.ref) ?? []
    const journal = new WalletCheck(wallet, circumstances, problems)
    journal.checkLegal()
    for (const operation of all) journal.checkHeard(operation, all)
  }
  return problems
}

/**
 * What was acknowledged and then lost must be found, while anybody is left who knows: everything stops, until an operator has acted. After
 * that it is lost, and nobody is told any more that it happened. What was only pending in Redis for others may come back by itself: who
 * appends it to what was put back loses nothing.
 */
export function checkFound(
  wallets: Iterable<SimWallet>,
  history: readonly Operation[],
  lostHashes: ReadonlyMap<string, number>,
  { stoppedAt, reconciledAt }: { stoppedAt: number; reconciledAt: readonly number[] },
): string[] {
  const there = new Set([...wallets].flatMap(({ entries }) => entries.map(({ hash }) => hash)))
  return history.flatMap(({ heard, by, startedAt, endedAt, command: { key } }) => {
    if (heard.type !== 'yes' || heard.outcome.durability !== 'ledger') return []
    const hash = heard.outcome.entry?.hash ?? ''
    const lostAt = lostHashes.get(hash)
    if (lostAt === undefined || there.has(hash)) return []
    if (endedAt <= lostAt && by?.alive && stoppedAt < lostAt)
      return [`${key} was acknowledged and lost, and nobody noticed`]
    if (reconciledAt.some((time) => lostAt < time && time < startedAt))
      return [`${key} was lost, and acknowledged after an operator had reconciled`]
    return []
  })
}

class WalletCheck {
  readonly #wallet: SimWallet
  readonly #circumstances: Circumstances
  readonly #problems: string[]
  readonly #byKey = new Map<string, Entry>()
  /** The state before each entry, by seq − 1; replayed once. */
  readonly #states: WalletState[] = []

  constructor(wallet: SimWallet, circumstances: Circumstances, problems: string[]) {
    this.#wallet = wallet
    this.#circumstances = circumstances
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
    const made = this.#circumstances.openings.made.get(row.ref) ?? 0
    if (made > 1 && !this.#circumstances.lostAt.has(row.ref)) this.#fault(`was made ${made} times`)
    // A transfer's hold may have outlived the note of the transfer, if that went with a primary.
    const lost = this.#circumstances.lostAt.has(row.ref)
    const left = [...state.holds.keys()].filter((id) => !(lost && id.startsWith('~')))
    if (left.length > 0) this.#fault(`a hold never ended: ${left}`)
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
    const { key, hold, of, counter, metadata } = entry
    const kind = words[0] as CommandKind
    if (entry.kind === 'expire') throw new Error('An expiry has no command')
    // What stands in the metadata of those is the machine's own, and a checkout may have joined another.
    if (kind === 'checkout') return command({ kind, key, counter, also: words.slice(1).join(' ') })
    if (kind === 'purchase') return command({ kind, key, hold, counter, also: words.slice(1).join(' ') })
    if (kind === 'give' || kind === 'take') return command({ kind, key, counter, also: words.slice(1).join(' ') })
    const timed = kind === 'hold' || kind === 'extend'
    // A transfer's hold has more words: where it goes, and what it costs.
    const also = kind === 'hold' && words.length > 3 ? words.slice(3).join(' ') : undefined
    const asked = command({
      kind,
      key,
      hold,
      of,
      counter,
      metadata,
      also,
      amount: kind === 'release' || kind === 'cancel' ? 0 : entry.amount,
      ttlMs: timed ? Number(words[2]) : 0,
      beyond: words[2] === 'available',
      meter: readMeter(entry.params),
    })
    return kind === 'refund' ? { ...asked, ...this.#facts(before, of) } : asked
  }

  #facts(before: WalletState, of: number): Pick<Command, 'charge' | 'facts' | 'hold'> {
    const past = this.#wallet.entries.slice(0, before.seq)
    const charged = past[of - 1]
    if (!charged || !['debit', 'capture', 'tick', 'settle'].includes(charged.kind))
      return { charge: 0, facts: null, hold: '' }
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

  checkHeard(operation: Operation, all: readonly Operation[]): void {
    const { heard, command: asked, memory, endedAt } = operation
    const { lostHashes, commits } = this.#circumstances
    const entry = this.#byKey.get(asked.key)
    if (heard.type === 'yes') {
      const told = heard.outcome.entry
      if (told && heard.outcome.durability === 'ledger' && !isThereBy(endedAt, [told], commits))
        this.#fault(`${asked.key} (${asked.params}) was acknowledged before it was in the journal`)
      if (!memory && heard.outcome.durability !== 'ledger')
        this.#fault(`${asked.key} (${asked.params}) was acknowledged from memory, and asked for otherwise`)
      // Users of the library are not told the parameters: then it is the hash that says what it was.
      const was = entry?.hash === told?.hash ? entry : told
      if (was && 'params' in was && was.params !== asked.params)
        this.#fault(`${asked.key} (${asked.params}) was told of something else (${was.params})`)
      if (!told) this.#fault(`${asked.key} was acknowledged with nothing`)
      else if (entry?.hash === told.hash || lostHashes.has(told.hash)) return
      else if (!(memory && heard.outcome.durability === 'memory'))
        this.#fault(
          `${asked.key} (${asked.params}) was acknowledged and is ${entry ? 'another' : 'not'} in the journal`,
        )
      else if (
        entry &&
        entry.epoch <= told.epoch &&
        told.seq - entry.seq < REMEMBERED &&
        !this.#isOfBeforeALoss(operation)
      )
        this.#fault(
          `${asked.key} (${asked.params}) was decided anew from memory, though the journal had it at ${entry.seq}`,
        )
      else if (
        !entry &&
        operation.startedAt > this.#circumstances.redisForgotAt(operation.ref) &&
        isStorable(asked.metadata) &&
        !this.#restedOnNothing(told, all)
      )
        this.#fault(
          `${asked.key} (${asked.params}) was acknowledged from memory and is lost, though Redis forgot nothing since`,
        )
      return
    }
    if (heard.type === 'unknown') return
    const shared = asked.kind === 'end' || all.some((one) => one !== operation && one.command.key === asked.key)
    const another = shared && this.#isAnothers(operation, entry)
    if (heard.error.code === 'idempotency_conflict') {
      if (!another) this.#fault(`${asked.key} (${asked.params}) conflicts with itself`)
      else if (!this.#isOfBeforeALoss(operation) && !isThereBy(endedAt, [entry ?? null], commits))
        this.#fault(`${asked.key} (${asked.params}) conflicts with what was not in the journal yet`)
      return
    }
    if (entry && !another && !this.#cameAfterALoss(operation, entry)) {
      this.#fault(`${asked.key} (${asked.params}) was refused (${heard.error.code}) and is in the journal`)
      return
    }
    this.#checkRefusal(operation, heard.error, all)
  }

  /** A key that callers share, as those do who end one session: what stands there, or stood there before a replica lost it, may be another's. */
  #isAnothers(operation: Operation, entry: Entry | undefined): boolean {
    const { params, metadata } = operation.command
    if (this.#isOfBeforeALoss(operation)) return true
    return entry !== undefined && (entry.params !== params || entry.metadata !== metadata)
  }

  /** It was refused because of what Postgres has lost since, and then whoever still had it on the way brought it. */
  #cameAfterALoss({ endedAt, ref }: Operation, entry: Entry): boolean {
    const lostAt = this.#circumstances.lostAt.get(ref) ?? Number.NEGATIVE_INFINITY
    return endedAt <= lostAt && lostAt < (this.#circumstances.commits.get(entry.hash)?.last ?? 0)
  }

  #isOfBeforeALoss({ startedAt, ref }: Pick<Operation, 'startedAt' | 'ref'>): boolean {
    return startedAt <= (this.#circumstances.lostAt.get(ref) ?? Number.NEGATIVE_INFINITY)
  }

  /**
   * Did it rest on an entry that nobody had acknowledged, and that did not come to pass, or that Postgres lost? Or on one that can't be stored, or whose key was
   * decided long before, so that Redis did not remember it and decided it anew? Then it may not fit any more.
   */
  #restedOnNothing(told: Entry, all: readonly Operation[]): boolean {
    let { prev } = told
    while (prev !== this.#wallet.genesis && !this.#wallet.entries.some(({ hash }) => hash === prev)) {
      if (this.#circumstances.lostHashes.has(prev)) return true
      const before = all.find(({ heard }) => heard.type === 'yes' && heard.outcome.entry?.hash === prev)
      if (before?.heard.type !== 'yes' || !before.heard.outcome.entry) return true
      if (!isStorable(before.command.metadata)) return true
      const first = this.#byKey.get(before.command.key)
      if (first && before.heard.outcome.entry.seq - first.seq >= REMEMBERED) return true
      prev = before.heard.outcome.entry.prev
    }
    return false
  }

  /** There must be a moment between call and answer at which the machine would have refused just so. */
  #checkRefusal(
    { command: asked, startedAt, endedAt }: Operation,
    { code, facts }: HoldfastError,
    all: readonly Operation[],
  ): void {
    const { commits, commitsAreExact, lostAt, openings } = this.#circumstances
    const { ref } = this.#wallet.row
    // It rested on what was true then, and is gone.
    if (this.#isOfBeforeALoss({ startedAt, ref })) return
    const fault = (why: string) =>
      this.#fault(`${asked.key} (${asked.params}) was refused (${code} ${JSON.stringify(facts)}), but ${why}`)
    if (code === 'invalid_argument') {
      if (isStorable(asked.metadata)) fault('there is nothing wrong with it')
      return
    }
    if (code === 'wallet_not_found') {
      const openedAt = openings.openedAt.get(ref) ?? 0
      // A replica that lagged may have missed the opening too.
      if (startedAt > openedAt && !lostAt.has(ref)) fault('the wallet was there')
      return
    }
    let from = 0
    for (const { endedAt: before, heard } of all) {
      if (before > startedAt || heard.type !== 'yes') continue
      const { entry, durability } = heard.outcome
      if (durability === 'ledger' && entry && this.#byKey.get(entry.key)?.hash === entry.hash)
        from = Math.max(from, entry.seq)
    }
    let to = from
    for (const { hash, seq } of this.#wallet.entries) {
      const committedAt = commits.get(hash)?.last ?? Number.POSITIVE_INFINITY
      // Whoever asked for it, and whatever he heard.
      if (commitsAreExact && committedAt <= startedAt) from = Math.max(from, seq)
      if (committedAt <= endedAt) to = Math.max(to, seq)
    }
    for (let seq = from; seq <= to; seq += 1) {
      const state = this.#states[seq]
      const gone = this.#tellsOfGone(asked.hold, seq)
      if (state && refusesSo(copy(state), this.#asked(state, asked), { code, facts, gone })) return
    }
    fault(`nothing between seq ${from} and ${to} refuses it so`)
  }

  /** What is told of a hold that is not open there: whether it ever was, and how it ended. */
  #tellsOfGone(hold: string, seq: number): string {
    const made = this.#byKey.get(hold)
    if (made?.kind !== 'hold' || made.seq > seq) return 'hold_not_found'
    return this.#byKey.has(`~expire:${hold}`) ? 'hold_expired' : 'hold_closed'
  }

  #asked(state: WalletState, asked: Command): Command {
    return asked.kind === 'refund' ? { ...asked, ...this.#facts(state, asked.of) } : asked
  }
}

interface Told {
  readonly code: string
  readonly facts: Record<string, unknown>
  /** The code for a hold that is not open. */
  readonly gone: string
}

function refusesSo(state: WalletState, asked: Command, { code, facts, gone }: Told): boolean {
  state.due = 0
  // Who found no charge that it could be for was told so before anything was decided.
  if (code === 'entry_not_found') return asked.kind === 'refund' && asked.facts === null
  const { outcome } = decide(state, asked, state.at)
  if (outcome.type !== 'rejected') return false
  const { rejection } = outcome
  if (rejection.code === 'hold_unknown') return code === gone
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
    stock: isSale(row.ref) ? emptyStock() : null,
  }
}

function copy(state: WalletState): WalletState {
  return {
    ...state,
    holds: new Map(state.holds),
    refundedByEntry: new Map(state.refundedByEntry),
    closedHolds: new Map(state.closedHolds),
    stock: state.stock && {
      ...state.stock,
      taken: new Map(state.stock.taken),
      buyers: new Map(state.stock.buyers),
      checkouts: new Map(state.stock.checkouts),
    },
  }
}
