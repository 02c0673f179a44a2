import type { Buckets, Outcome, Wanted } from '../packages/holdfast/src/engine/index.js'
import { HoldfastError } from '../packages/holdfast/src/errors/index.js'
import type { Command } from '../packages/holdfast/src/machine/index.js'
import { keys, type Process } from './process.js'
import type { World } from './world.js'

/** A caller gives up a little after the engine must have: the margin by which Redis's clock may be set back. */
const PATIENCE_MS = 3_500
const TRIES_MAX = 6

export type Heard = { type: 'yes'; outcome: Outcome } | { type: 'no'; error: HoldfastError } | { type: 'unknown' }

/** One operation as its caller lived it: the same key, tried until there was an answer or no more patience. */
export interface Operation {
  readonly ref: string
  readonly command: Command
  readonly startedAt: number
  endedAt: number
  heard: Heard
  /** Whether the last try was content with an answer from memory. */
  memory: boolean
  tries: number
  /** Who answered last. */
  by?: Process
  /** In a sale: its buckets, and what the one that is asked must have. */
  readonly buckets?: Buckets
  readonly wanted?: readonly Wanted[]
}

/** Asks one process after the other until it is answered, or has no more patience. */
export class Caller {
  readonly #world: World
  readonly #processes: () => readonly Process[]

  constructor(world: World, processes: () => readonly Process[]) {
    this.#world = world
    this.#processes = processes
  }

  later(run: () => void): void {
    const { chance } = this.#world
    this.#world.plan(chance.happens(0.15) ? chance.next() * 600 : chance.next() * 8, run)
  }

  /** `fromMemory`: how likely a try is to ask for an answer from memory, each for itself. */
  call(operation: Operation, fromMemory: number, then: (heard: Heard) => void): void {
    const { chance } = this.#world
    const ready = this.#processes().filter(({ alive, paused }) => alive && !paused)
    if (ready.length === 0) return this.#world.plan(50, () => this.call(operation, fromMemory, then))
    const process = chance.pick(ready)
    operation.memory = chance.happens(fromMemory)
    operation.tries += 1
    let over = false
    const conclude = (heard: Heard, patiently = false): void => {
      if (over) return
      over = true
      this.#world.tell(
        () => `${operation.command.key} (${operation.command.params}) at ${process.name}: ${tell(heard)}`,
      )
      const retryable = heard.type === 'unknown'
      if (retryable && operation.tries < TRIES_MAX) {
        const again = (): void => this.call(operation, fromMemory, then)
        // Who hears that an operator has to act does not ask again at once.
        return patiently ? this.#world.plan(chance.next() * 2_000, again) : this.later(again)
      }
      operation.heard = heard
      operation.by = process
      operation.endedAt = this.#world.now
      then(heard)
    }
    this.#world.plan(PATIENCE_MS, () => conclude({ type: 'unknown' }))
    const { command, memory, ref, buckets, wanted = [] } = operation
    const { engine } = process
    const retry = operation.tries > 1 && chance.happens(0.5)
    const options = { memory, timeoutMs: 3_000, retry, alone: buckets?.places.length === 1 }
    const asked = buckets
      ? engine.moves.submit(buckets, command, async () => wanted, options)
      : engine.submit(keys.place(ref), command, options)
    asked.then(
      (outcome) => conclude({ type: 'yes', outcome }),
      (error) => {
        if (!(error instanceof HoldfastError)) throw error
        conclude(error.retryable ? { type: 'unknown' } : { type: 'no', error }, error.code === 'reconcile_required')
      },
    )
  }
}

function tell(heard: Heard): string {
  if (heard.type === 'unknown') return 'unknown'
  if (heard.type === 'no') return `no, ${heard.error.code} ${JSON.stringify(heard.error.facts)}`
  const { entry, replayed, durability } = heard.outcome
  return `yes, seq ${entry?.seq} ${replayed ? 'replayed ' : ''}${durability}`
}
