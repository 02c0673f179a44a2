import { type LostEntry, reconcile } from '../packages/holdfast/src/reconcile/index.js'
import { keys, type Process } from './process.js'
import type { Servers } from './servers.js'
import type { World } from './world.js'

/** How long the command may take before it is begun again: the process that ran it may be dead, or asleep. */
const GIVES_UP_MS = 8_000

/**
 * Somebody who is called when everything has stopped, and runs `holdfast reconcile`: the shipped code, over the connections of some process
 * with all that befalls them. It may fail, die in the middle, or run twice at once.
 */
export class Operator {
  /** What was handed out: entries that Redis still had, and the journal had not. */
  readonly exported = new Map<string, LostEntry>()
  /** When the journal was last seen to be stopped. */
  stoppedAt = 0
  /** When the command has run to its end. */
  readonly reconciledAt: number[] = []
  readonly #world: World
  readonly #servers: Servers
  readonly #processes: () => readonly Process[]
  #isStopped = false
  #actsAt = 0
  readonly #note: (what: string, times?: number) => void

  constructor(
    world: World,
    servers: Servers,
    processes: () => readonly Process[],
    note: (what: string, times?: number) => void,
  ) {
    this.#note = note
    this.#world = world
    this.#servers = servers
    this.#processes = processes
    this.#watch()
  }

  #watch(): void {
    const { now, chance } = this.#world
    const { stopped } = this.#servers.postgres.database
    if (stopped) this.stoppedAt = now
    if (stopped && !this.#isStopped) {
      this.#note('stopped')
      this.#actsAt = now + chance.next() * 1_500
    }
    this.#isStopped = stopped
    if (stopped && now >= this.#actsAt) this.#act()
    this.#world.plan(100, () => this.#watch())
  }

  #act(): void {
    this.#actsAt = this.#world.now + GIVES_UP_MS
    const ready = this.#processes().filter(({ alive, paused }) => alive && !paused)
    if (ready.length === 0) return
    const process = this.#world.chance.pick(ready)
    this.#world.tell(() => `an operator runs reconcile at ${process.name}`)
    reconcile(
      {
        journal: process.journal,
        sequencer: process.sequencer,
        witnessesKey: keys.witnesses,
        places: async function* () {
          const names = process.redis.valkey.keys().filter((name) => name.includes(':wallet:'))
          yield names.map((name) => keys.place(name.slice(-32)))
        },
      },
      { onEntry: (entry) => void this.exported.set(entry.hash, entry) },
    ).then(
      ({ done, walletsAhead, entries }) => {
        if (done) this.reconciledAt.push(this.#world.now)
        this.#note('reconciled')
        this.#note('exported', entries)
        this.#world.tell(() => `reconciled (${done}): ${entries} entries of ${walletsAhead} wallets handed out`)
      },
      (error) => {
        this.#world.tell(() => `reconcile failed: ${error}`)
        this.#actsAt = this.#world.now
      },
    )
  }
}
