import { Chance } from '../sim/world.js'
import type { Answer, Asked } from './history.js'

/** Kinds by how often. Holds and what ends them most: that is where money can get lost on the way. */
const KINDS: readonly [Asked['kind'], number][] = [
  ['credit', 3],
  ['debit', 3],
  ['hold', 6],
  ['capture', 3],
  ['extend', 1],
  ['settle', 4],
  ['release', 2],
  ['refund', 1],
  ['meter', 1],
  ['tick', 3],
  ['end', 1],
  ['transfer', 1],
  ['read', 4],
]
const WEIGHT = KINDS.reduce((sum, [, weight]) => sum + weight, 0)
/** What was made longer ago is left to expire. */
const REMEMBERED = 40

interface Known {
  readonly wallet: string
  readonly id: string
  delivered: number
}

/** What the callers of one worker do next, from a seed and from what they have heard. They know each other's holds and sessions. */
export class Story {
  readonly #name: string
  readonly #wallets: readonly string[]
  readonly #chance: Chance
  readonly #holds: Known[] = []
  readonly #sessions: Known[] = []
  readonly #charges: { wallet: string; seq: number }[] = []
  readonly #done: Asked[] = []
  #made = 0

  constructor(name: string, seed: number, wallets: readonly string[]) {
    this.#name = name
    this.#wallets = wallets
    this.#chance = new Chance(seed)
  }

  /** How long a caller thinks before it asks. */
  pauseMs(): number {
    return this.#chance.integer(0, 12)
  }

  next(): Asked {
    const chance = this.#chance
    // Somebody who was told yes asks again.
    if (this.#done.length > 0 && chance.happens(0.03)) return chance.pick(this.#done)
    const key = `${this.#name}-${this.#made++}`
    return this.#make(this.#kind(), this.#wallet(), key)
  }

  /** One that everybody wants, a few that are always in use, and all the others. */
  #wallet(): string {
    const among = this.#chance.pick([1, 10, 10, this.#wallets.length, this.#wallets.length])
    return this.#chance.pick(this.#wallets.slice(0, among))
  }

  #make(kind: Asked['kind'], wallet: string, key: string): Asked {
    const chance = this.#chance
    const amount = chance.integer(1, 60)
    switch (kind) {
      case 'credit':
        return { kind, wallet, key, amount: amount * 2 }
      case 'debit':
        return { kind, wallet, key, amount }
      case 'hold':
        return { kind, wallet, key, amount, ttlMs: this.#ttlMs() }
      case 'refund': {
        const charge = this.#charges.length > 0 ? chance.pick(this.#charges) : { wallet, seq: 1 }
        return { kind, wallet: charge.wallet, key, of: charge.seq, amount: chance.integer(1, 20) }
      }
      case 'meter':
        return { kind, wallet, key, rate: chance.integer(1, 4), reserve: 10, heartbeatMs: this.#ttlMs() }
      case 'transfer': {
        const others = this.#wallets.filter((id) => id !== wallet)
        return { kind, wallet, key, to: chance.pick(others), amount, fee: chance.integer(0, 3) }
      }
      case 'read':
        return { kind, wallet, key, pending: chance.happens(0.5) }
      case 'tick':
      case 'end': {
        if (this.#sessions.length === 0) return this.#make('meter', wallet, key)
        const session = chance.pick(this.#sessions)
        session.delivered += chance.integer(0, 8)
        return { kind, wallet: session.wallet, key, session: session.id, total: session.delivered }
      }
      default:
        return this.#onHold(kind, key, wallet, amount)
    }
  }

  #onHold(kind: 'capture' | 'extend' | 'settle' | 'release', key: string, wallet: string, amount: number): Asked {
    const chance = this.#chance
    if (this.#holds.length === 0) return this.#make('hold', wallet, key)
    const hold = chance.pick(this.#holds.slice(-8))
    const on = { wallet: hold.wallet, key, hold: hold.id }
    if (kind === 'release') return { kind, ...on }
    if (kind === 'extend') return { kind, ...on, amount: chance.integer(1, 20), ttlMs: this.#ttlMs() }
    return { kind, ...on, amount, beyond: chance.happens(0.3) }
  }

  /** Some run out while something else goes wrong; all of them soon after the end. */
  #ttlMs(): number {
    return this.#chance.happens(0.3) ? this.#chance.integer(20, 900) : this.#chance.integer(1_000, 2_500)
  }

  #kind(): Asked['kind'] {
    let at = this.#chance.next() * WEIGHT
    for (const [kind, weight] of KINDS) {
      at -= weight
      if (at < 0) return kind
    }
    return 'credit'
  }

  hear(asked: Asked, answer: Answer): void {
    if (answer.type !== 'yes') return
    const { wallet, key, kind } = asked
    if (kind === 'hold') remember(this.#holds, { wallet, id: key, delivered: 0 })
    if (kind === 'meter') remember(this.#sessions, { wallet, id: key, delivered: 0 })
    if (kind === 'debit' || kind === 'capture' || kind === 'settle') {
      remember(this.#charges, { wallet, seq: answer.entries[0]?.seq ?? 1 })
    }
    // A tick is another one each time.
    if (kind !== 'tick' && kind !== 'end' && !answer.replayed) remember(this.#done, asked)
  }
}

function remember<T>(list: T[], one: T): void {
  list.push(one)
  if (list.length > REMEMBERED) list.shift()
}
