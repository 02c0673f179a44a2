/**
 * A wallet as Redis must have it, through a life of thousands of entries: the machine in TypeScript, and around it what the scripts keep and
 * forget. So much is pending, so many results are remembered, refunds are noted and swept away, and a load begins with what the journal has.
 */
import { createHash } from 'node:crypto'
import {
  apply,
  type Command,
  command,
  type Decision,
  decide,
  type Entry,
  REMEMBERED,
  type WalletState,
} from '../../src/machine/index.js'
import type { Place } from '../../src/redis/index.js'
import type { Answer } from '../../src/sequencer/index.js'
import { Oracle } from './oracle.js'

export const GENESIS = createHash('sha1').update('genesis').digest('hex')
/** `REFUNDS_MAX` in lua/wallet/refunds.lua. */
const REFUNDS_MAX = 64
/** `PENDING_MAX` in lua/wallet_tend.lua. */
export const TENDED_MAX = 512
const OPENS = ['hold', 'meter']
const CLOSES = ['settle', 'release', 'expire']

export interface Reload {
  readonly state: WalletState
  readonly recent: Entry[]
  readonly finalKeys: string[]
  /** What must be reported. */
  readonly lost: { key: string; code: string }[]
  /** What must be pending then, and whether it was acknowledged from memory. */
  readonly pending: { entry: Entry; memory: boolean }[]
}

export class Twin {
  readonly place: Place
  readonly memory: boolean
  /** Up to here Redis was told that the journal has it. */
  acked = 0
  /** Up to here the caller has the entries. */
  known = 0
  /** How often something came up that a test should not miss. */
  readonly #tally: Map<string, number>
  #oracle: Oracle
  #commands = new Map<string, Command>()
  #fromMemory = new Set<number>()
  #ring = REMEMBERED
  /** The oldest entry that is remembered. */
  #oldest = 1
  #clock = 0
  /** By entry (a number) and by closed hold: the seq of the entry that said last how much of it was refunded. */
  #noted = new Map<number | string, number>()
  #swept = false
  #more = false

  constructor(place: Place, memory: boolean, tally: Map<string, number>) {
    this.place = place
    this.memory = memory
    this.#tally = tally
    this.#oracle = new Oracle(GENESIS, place.isSale)
  }

  get state(): WalletState {
    return this.#oracle.state
  }

  get journal(): Entry[] {
    return this.#oracle.journal
  }

  facts(of: number): ReturnType<Oracle['facts']> {
    return this.#oracle.facts(of)
  }

  check(): void {
    this.#oracle.check()
  }

  /** The command that a key was used for, where the scripts can tell that it was: they remember it, or what it made is still there. */
  commandOf(key: string): Command | undefined {
    const asked = this.#commands.get(key)
    if (!asked || this.#find(key)) return asked
    if (OPENS.includes(asked.kind)) return this.state.holds.has(asked.hold) ? asked : undefined
    if (asked.kind === 'checkout') return this.state.stock?.keys.has(key) ? asked : undefined
    return asked
  }

  /** A call to Redis begins. */
  begin(): void {
    this.#swept = false
    this.#more = false
  }

  /** To be looked after is not to be used: only what runs out then takes the time along. */
  tend(now: number): void {
    const { seq } = this.state
    if (seq - this.acked < TENDED_MAX) this.#decide(command({ kind: 'touch' }), Math.max(this.#clock, now))
    if (this.state.seq > seq) this.#clock = this.state.at
  }

  answer(asked: Command, memory: boolean, now: number, pendingMax: number): Answer {
    const recalled = this.#recall(asked)
    if (recalled) return recalled
    if (this.#more) return { type: 'more' }
    if (this.state.seq - this.acked >= pendingMax) return { type: 'full' }
    this.#clock = Math.max(this.#clock, now)
    const outcome = this.#decide(asked, this.#clock)
    const { epoch, seq, head, due } = this.state
    if (outcome.type === 'rejected') return { type: 'rejected', rest: { epoch, seq, head }, ...outcome.rejection }
    this.#more = outcome.type === 'more'
    if (outcome.type !== 'accepted') return outcome
    if (asked.kind === 'touch') return { type: 'touched', touch: { due, epoch, seq } }
    this.#commands.set(asked.key, asked)
    if (memory) this.#fromMemory.add(seq)
    return { type: 'accepted', seq }
  }

  /** Loaded anew, with a journal that ends with `seq`: what was acknowledged from memory behind it is decided again. */
  reload(seq: number, epoch: number, clock: number): Reload {
    const behind = this.journal.slice(seq).filter((entry) => this.#fromMemory.has(entry.seq))
    const journal = this.journal.slice(0, seq)
    this.#oracle = new Oracle(GENESIS, this.place.isSale)
    this.journal.push(...journal)
    for (const entry of journal) apply(this.state, entry)
    Object.assign(this.state, { epoch, base: seq, refundedByEntry: new Map(), closedHolds: new Map() })
    const state = structuredClone(this.state)
    const recent = this.memory ? journal.slice(-REMEMBERED) : []
    this.acked = seq
    this.known = seq
    this.#ring = REMEMBERED
    this.#oldest = seq - recent.length + 1
    this.#noted = new Map()
    this.#fromMemory = new Set()
    this.begin()
    const keys = new Set(journal.map(({ key }) => key))
    const lost = behind.filter(({ key }) => !keys.has(key)).flatMap((entry) => this.#decideAgain(entry))
    this.#clock = Math.max(clock, this.state.at)
    return {
      state,
      recent,
      finalKeys: behind.flatMap(({ key }) => (keys.has(key) ? [key] : [])),
      lost,
      pending: this.journal.slice(seq).map((entry) => ({ entry, memory: this.#fromMemory.has(entry.seq) })),
    }
  }

  #decideAgain({ key, at }: Entry): { key: string; code: string }[] {
    const asked = this.#commands.get(key) as Command
    const now = Math.max(at, this.state.at)
    let outcome = this.#decide(asked, now)
    while (outcome.type === 'more') outcome = this.#decide(asked, now)
    this.#count(outcome.type === 'accepted' ? 'decided again' : 'lost from memory')
    if (outcome.type !== 'accepted')
      return [{ key, code: outcome.type === 'rejected' ? outcome.rejection.code : outcome.type }]
    this.#fromMemory.add(this.state.seq)
    return []
  }

  #recall({ key, kind, params, hold }: Command): Answer | null {
    if (key === '') return null
    const seen = this.#find(key)
    if (!seen) {
      const isThere = OPENS.includes(kind)
        ? this.state.holds.has(hold)
        : kind === 'checkout' && this.state.stock?.keys.has(key)
      return isThere ? { type: 'seen' } : null
    }
    const { epoch, seq, hash } = seen
    const isSame = seen.params === params && (kind === 'refund' || kind === 'checkout' || seen.hold === hold)
    if (!isSame) return { type: 'conflict', rest: { epoch, seq, head: hash } }
    return { type: 'replay', entry: seen, memory: this.#fromMemory.has(seq) }
  }

  #find(key: string): Entry | undefined {
    return this.journal.slice(this.#oldest - 1).find((entry) => entry.key === key)
  }

  #decide(asked: Command, now: number): Decision['outcome'] {
    const { entries, outcome } = decide(this.state, asked, now)
    for (const entry of entries) this.#keep(entry)
    this.#noteRefunds(entries)
    this.check()
    return outcome
  }

  #keep(entry: Entry): void {
    if (entry.seq - 1 - this.acked >= this.#ring - 1) {
      this.#ring *= 2
      this.#count('grown ring')
    }
    this.#oldest = Math.max(this.#oldest, entry.seq - this.#ring + 1)
    this.journal.push(entry)
  }

  #noteRefunds(entries: readonly Entry[]): void {
    const swept = new Set<number | string>()
    for (const { kind, seq, of, hold, holdRefunded } of entries) {
      if (kind === 'refund') {
        for (const name of this.#sweep()) swept.add(name)
        this.#noted.set(of, seq)
      }
      const isClosed = CLOSES.includes(kind) || (kind === 'refund' && hold !== '' && !this.state.holds.has(hold))
      if (isClosed && holdRefunded > 0) this.#noted.set(hold, seq)
    }
    for (const name of swept) {
      if (this.#noted.has(name)) continue
      if (typeof name === 'number') this.state.refundedByEntry.delete(name)
      else this.state.closedHolds.delete(name)
    }
  }

  /** Once a call, and only what the journal has. */
  #sweep(): (number | string)[] {
    if (this.#swept || this.#noted.size < REFUNDS_MAX) return []
    this.#swept = true
    const old = [...this.#noted].filter(([, seq]) => seq <= this.acked)
    for (const [name, seq] of old) {
      this.#noted.delete(name)
      this.state.base = Math.max(this.state.base, seq)
      this.#count('swept refund')
    }
    return old.map(([name]) => name)
  }

  #count(what: string): void {
    this.#tally.set(what, (this.#tally.get(what) ?? 0) + 1)
  }
}
