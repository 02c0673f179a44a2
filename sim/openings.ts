import { genesisHash } from '../packages/holdfast/src/machine/index.js'
import { keys, type Process } from './process.js'
import type { World } from './world.js'

const WITHIN_MS = 3_000
const AGAIN_WITHIN_MS = 15_000

/** What is asked for when a wallet is opened. */
export function openRequest(id: string) {
  const ref = keys.ref(id)
  return { ref, tenant: 'sim', id, currency: 'usd', creditLimit: 0, metadata: '', head: genesisHash(ref, 'usd') }
}

/** Wallets that are opened while others use them already: by two callers, who don't know of each other, and once more much later. */
export class Openings {
  /** When it was first acknowledged that a wallet is there, by ref. */
  readonly openedAt = new Map<string, number>()
  /** How often a caller was told to have made it. */
  readonly made = new Map<string, number>()
  readonly #world: World
  readonly #processes: () => readonly Process[]
  #waiting = 0

  constructor(world: World, ids: readonly string[], processes: () => readonly Process[]) {
    this.#world = world
    this.#processes = processes
    for (const id of ids) {
      for (const withinMs of [WITHIN_MS, WITHIN_MS, AGAIN_WITHIN_MS]) {
        this.#waiting += 1
        this.#later(withinMs, id)
      }
    }
  }

  get done(): boolean {
    return this.#waiting === 0
  }

  #later(withinMs: number, id: string): void {
    this.#world.plan(this.#world.chance.next() * withinMs, () => this.#try(id))
  }

  #try(id: string): void {
    const ready = this.#processes().filter(({ alive, paused }) => alive && !paused)
    if (ready.length === 0) return this.#later(100, id)
    const process = this.#world.chance.pick(ready)
    const { ref } = openRequest(id)
    let over = false
    const conclude = (made: boolean | null): void => {
      if (over) return
      over = true
      this.#world.tell(
        () => `${id} is opened at ${process.name}: ${made === null ? 'unknown' : made ? 'made' : 'was there'}`,
      )
      if (made === null) return this.#later(500, id)
      if (made) this.made.set(ref, (this.made.get(ref) ?? 0) + 1)
      if (!this.openedAt.has(ref)) this.openedAt.set(ref, this.#world.now)
      this.#waiting -= 1
    }
    this.#world.plan(2_000, () => conclude(null))
    process.journal.open(openRequest(id)).then(conclude, () => conclude(null))
  }
}
