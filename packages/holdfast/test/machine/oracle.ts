/** The machine as an oracle: decides in TypeScript what a script must answer, with the recall of keys around it. */
import {
  apply,
  type Command,
  type Decision,
  decide,
  type Entry,
  emptyStock,
  hashEntry,
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

  constructor(genesis: string, isSale = false) {
    this.#genesis = genesis
    this.#isSale = isSale
    this.state = this.beginning()
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

  /** What is always true, whatever was asked. */
  check(): void {
    const { state } = this
    let moved = 0n
    let reserved = 0
    let prev = this.#genesis
    for (const [index, entry] of this.journal.entries()) {
      if (entry.seq !== index + 1) throw new Error(`seq ${entry.seq} stands at place ${index + 1}`)
      if (entry.prev !== prev || entry.hash !== hashEntry(entry)) throw new Error(`the chain breaks at ${entry.seq}`)
      prev = entry.hash
      const charge = -(BigInt(entry.availableDelta) + BigInt(entry.reservedDelta))
      moved -= charge
    }
    for (const hold of state.holds.values()) {
      reserved += hold.left
      if (hold.left < 0 || hold.refunded > hold.captured) throw new Error(`an impossible hold: ${JSON.stringify(hold)}`)
    }
    if (moved !== BigInt(state.available) + BigInt(state.reserved)) throw new Error('money is not conserved')
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
