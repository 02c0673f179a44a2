import type { Entry, WalletState } from '../machine/index.js'
import type { Place } from '../redis/index.js'
import type { Answer, Knowledge, PendingRun, Touch } from '../sequencer/index.js'
import type { Attempt } from './attempt.js'

/** Somebody who waits for an entry to be in the journal: to say yes, to have a refusal that rests on it confirmed, or to be decided. */
export interface Waiter {
  readonly attempt: Attempt
  readonly next:
    | { type: 'accept'; replayed: boolean; touch?: Touch }
    | { type: 'confirm'; refusal: RefusalAnswer }
    | { type: 'decide' }
}

export type RefusalAnswer = Extract<Answer, { type: 'rejected' | 'conflict' }>

/** An entry on its way from Redis to the journal. */
export interface Item {
  readonly lane: Lane
  readonly entry: Entry
  waiters: Waiter[]
  /** How often Postgres found that something before it was missing. */
  gaps: number
}

/** Who was met is taken to be there for so long. */
const RIVALS_MS = 2_000

/** A wallet on the Postgres path: its state, and how far the clock of the server that has it is ahead of the engine's. */
export interface Owned {
  readonly state: WalletState
  aheadMs: number
}

/**
 * What this process knows about a wallet, while it has to do with it. Nothing here decides: it is told to the script, which knows
 * better, and it says which entries are already on their way.
 *
 *         acked            known
 *     ──────┼────────────────┼──────▶ seq
 *      in the journal   on their way (`items`)
 */
export class Lane implements Knowledge {
  readonly place: Place
  epochMin = 0
  epoch = 0
  acked = 0
  known = 0
  items = new Map<number, Item>()
  /** Attempts under way; an idle lane may be forgotten. */
  active = 0
  /** Appends of this wallet that lost to something else in the journal, in a row. */
  stales = 0
  /** Until then the wallet runs on the Postgres path (the engine's clock), though Redis is there. */
  postgresUntil = 0
  /** It was taken over for that, by this process or another: if somebody loads it into Redis meanwhile, it is not taken from him again. */
  joinsOnly = false
  /** Until then it is not taken back from those who go on without Redis, where nobody here has to do with it. */
  leftToOthersUntil = 0
  /** Until then others who decide for it, on whichever path, are taken to be at work. */
  rivalsUntil = 0
  /** Batches in a row that were lost to others on the Postgres path, who may not know that there is anybody else. */
  losses = 0
  announceFrom = 0
  /** Waiting for the state to be loaded into Redis. */
  parked: Attempt[] = []
  loading = false
  memoryWanted = false
  /** Something was acknowledged from memory: only Redis may decide, because Postgres may not know all. */
  memory = false
  /** Waiting for the Postgres path, and its state as it was after the last append. */
  fallback: Attempt[] = []
  fallingBack = false
  owned: Owned | null = null
  /** Somebody kept its row locked when a refusal was last asked about. */
  rowLocked = false

  /** A sale: from this entry on everything is sold, and stays so. */
  soldOut: { readonly epoch: number; readonly seq: number } | null = null

  constructor(place: Place) {
    this.place = place
  }

  get idle(): boolean {
    return this.active === 0 && this.items.size === 0 && !this.loading && !this.fallingBack
  }

  /** Takes in what a script returned. Gives the entries that are new to this process, as items to be appended. */
  learn(run: PendingRun): Item[] {
    if (run.epoch > this.epoch) {
      this.#begin(run.epoch, run.acked)
      // Redis decides for it again: what the Postgres path knew is over, and may be large.
      this.owned = null
      // A Redis, or a Postgres, of before is not gone back to: what is known of this one would be told to it in vain.
      if (run.epoch > this.epochMin) this.epochMin = run.epoch
    }
    const current = run.epoch === this.epoch
    if (current && run.acked > this.acked) this.acked = run.acked
    const fresh: Item[] = []
    for (const entry of run.entries) {
      if (current && entry.seq <= this.known) continue
      const item: Item = { lane: this, entry, waiters: [], gaps: 0 }
      fresh.push(item)
      if (!current) continue
      this.items.set(entry.seq, item)
      this.known = entry.seq
    }
    return fresh
  }

  acknowledge(entry: Entry): void {
    this.stales = 0
    if (entry.epoch !== this.epoch) return
    if (entry.seq > this.acked) this.acked = entry.seq
    if (entry.seq > this.known) this.known = entry.seq
    this.items.delete(entry.seq)
  }

  /** Nothing older than this epoch is to be believed any more. What is on its way gets its own verdict. */
  distrust(epochMin: number): void {
    if (epochMin > this.epochMin) this.epochMin = epochMin
    if (this.epoch < this.epochMin) this.#begin(0, 0)
  }

  /** Something was lost to another who decides for the wallet. */
  meetRivals(now: number): void {
    this.rivalsUntil = now + RIVALS_MS
  }

  #begin(epoch: number, acked: number): void {
    this.epoch = epoch
    this.acked = acked
    this.known = acked
    this.items = new Map()
  }
}
