/** The machine as an oracle: decides in TypeScript what a script must answer, with the recall of keys around it. */
import { beginning, compareHolds, take } from '../../src/audit/laws.js'
import type { Verified } from '../../src/journal/index.js'
import {
  apply,
  type Command,
  type Decision,
  decide,
  type Entry,
  emptyStock,
  type RefundFacts,
  type Stock,
  type WalletState,
} from '../../src/machine/index.js'

export function emptyState(head: string, epoch = 1_000_000_001): WalletState {
  return {
    epoch,
    seq: 0,
    head,
    at: 0,
    available: 0,
    reserved: 0,
    creditLimit: 0,
    status: 'active',
    due: 0,
    since: 0,
    holds: new Map(),
    base: 0,
    refundedByEntry: new Map(),
    closedHolds: new Map(),
    stock: null,
  }
}

export class Oracle {
  readonly state: WalletState
  readonly journal: Entry[] = []
  readonly #genesis: string
  readonly #isSale: boolean
  /** Where the journal leads by laws that were written down apart from the machine: the chain, the arithmetic, and money by its kind. */
  readonly #lawful: Verified

  constructor(genesis: string, isSale = false) {
    this.#genesis = genesis
    this.#isSale = isSale
    this.state = this.beginning()
    const wallet = { ref: '', tenant: '', currency: '', row: null, lastSeq: 0, verified: null, fullAt: 0 }
    this.#lawful = beginning({ ...wallet, genesis, openedAt: 0, initialLimit: 0 })
  }

  beginning(): WalletState {
    return { ...emptyState(this.#genesis), stock: this.#isSale ? emptyStock() : null }
  }

  /** What the journal says about a charge, as the engine would read it. */
  facts(of: number): { charge: number; hold: string; facts: RefundFacts } | null {
    const charged = this.journal[of - 1]
    if (!charged || !['debit', 'capture', 'tick', 'settle'].includes(charged.kind)) return null
    const about = charged.hold === '' ? [] : this.journal.filter((entry) => entry.hold === charged.hold)
    const closed = about.find((entry) => ['settle', 'release', 'expire'].includes(entry.kind))
    return {
      charge: -(charged.availableDelta + charged.reservedDelta),
      hold: charged.hold,
      facts: {
        epoch: this.state.epoch,
        seq: this.state.seq,
        refunded: Math.max(0, ...this.journal.filter((entry) => entry.of === of).map((entry) => entry.ofRefunded)),
        holdClosed: closed !== undefined,
        hold: {
          charged: about.at(-1)?.holdCaptured ?? 0,
          refunded: Math.max(0, ...about.map((entry) => entry.holdRefunded)),
        },
      },
    }
  }

  decide(command: Command, now: number): Decision['outcome'] | { type: 'replay'; entry: Entry } | { type: 'conflict' } {
    const seen = command.key === '' ? undefined : this.journal.find((entry) => entry.key === command.key)
    const isSame = command.kind === 'checkout' || seen?.hold === command.hold
    if (seen && seen.params === command.params && isSame) return { type: 'replay', entry: seen }
    if (seen) return { type: 'conflict' }
    const { entries, outcome } = decide(this.state, command, now)
    this.journal.push(...entries)
    return outcome
  }

  /** The journal replayed from nothing: must give the state that the decisions led to. */
  replayed(): WalletState {
    const state = this.beginning()
    for (const entry of this.journal) apply(state, entry)
    return state
  }

  /** What is always true, whatever was asked. What was checked before is not gone through again: call it after every step. */
  check(): void {
    const { state } = this
    for (const entry of this.journal.slice(this.#lawful.seq)) {
      const broken = take(this.#lawful, entry)
      if (broken) throw new Error(`entry ${entry.seq} breaks a law: ${JSON.stringify(broken)}`)
    }
    for (const field of ['seq', 'head', 'at', 'available', 'reserved', 'creditLimit', 'status'] as const) {
      if (state[field] === this.#lawful[field]) continue
      throw new Error(`${field} is ${state[field]}, and by its journal ${this.#lawful[field]}`)
    }
    const causes = { missing: 'holds_differ', unknown: 'holds_differ', differs: 'holds_differ' } as const
    const [differs] = compareHolds(this.#lawful.holds, state.holds, causes)
    if (differs) throw new Error(`open holds are not what their journal says: ${JSON.stringify(differs)}`)
    let reserved = 0
    for (const hold of state.holds.values()) {
      reserved += hold.left
      if (hold.left < 0 || hold.refunded > hold.captured) throw new Error(`an impossible hold: ${JSON.stringify(hold)}`)
    }
    if (reserved !== state.reserved) throw new Error(`reserved ${state.reserved}, open holds ${reserved}`)
    if (state.available < -state.creditLimit) throw new Error(`available ${state.available} is below the limit`)
    if (![state.available, state.reserved].every(Number.isSafeInteger)) throw new Error('a balance is not exact')
    if (state.stock) this.#checkStock(state.stock)
  }

  /** What lies in checkouts is what is reserved, and who has one running is who it belongs to. */
  #checkStock({ buyers, checkouts }: Stock): void {
    const { holds, reserved } = this.state
    let lines = 0
    for (const [hold, { buyer, reserves, lines: own }] of checkouts) {
      const quantity = own.reduce((sum, line) => sum + line.quantity, 0)
      if (reserves) lines += quantity
      if (holds.get(hold)?.left !== (reserves ? quantity : 0)) throw new Error(`${hold} has ${quantity} in its lines`)
      if (buyers.get(buyer)?.running !== hold) throw new Error(`${hold} is not the running checkout of ${buyer}`)
    }
    if (lines !== reserved || holds.size !== checkouts.size)
      throw new Error(`${lines} in checkouts, ${reserved} reserved`)
    for (const [buyer, { taken, running }] of buyers) {
      if (taken < 0 || (running !== '' && !checkouts.has(running))) throw new Error(`an impossible buyer: ${buyer}`)
    }
  }
}
