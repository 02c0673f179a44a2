import { type Command, checkoutWords, command, type Line } from '../packages/holdfast/src/machine/index.js'
import { Caller, type Heard, type Operation } from './caller.js'
import { keys, type Process } from './process.js'
import { Chance, type World } from './world.js'

const CALLERS = 4
const USERS = 5
const PER_USER = 4
/** How many of each item there are: unique ones, and some of which several can have one. */
const QUANTITIES = [1, 1, 1, 1, 2, 3, 5, 8]
/** Fewer than all items: the total is a limit of its own. */
export const STOCK = 18
const FOREVER = 4_000_000_000_000

/** A sale, and those who buy in it: check out, add to it, buy, cancel, or forget it. Like others they hear no answer now and then, and ask again. */
export class Buyers {
  readonly history: Operation[] = []
  readonly ref: string
  readonly #world: World
  /** Of their own: without a sale every other schedule stays as it is. */
  readonly #chance: Chance
  readonly #caller: Caller
  readonly #reserves: boolean
  readonly #memory: boolean
  readonly #wanted: number
  readonly #codes: string[] = []
  #running = CALLERS

  constructor(world: World, id: string, seed: number, wanted: number, processes: () => readonly Process[]) {
    this.#world = world
    this.#chance = new Chance(seed)
    this.#caller = new Caller(world, processes)
    this.#reserves = this.#chance.happens(0.7)
    this.#memory = this.#chance.happens(0.2)
    this.#wanted = wanted
    this.ref = keys.ofSale(id, 0).ref
    for (let n = 0; n < CALLERS; n += 1) this.#caller.later(() => this.#next())
  }

  get done(): boolean {
    return this.#running === 0
  }

  #next(): void {
    if (this.history.length >= this.#wanted) {
      this.#running -= 1
      return
    }
    const operation: Operation = {
      ref: this.ref,
      command: this.#command(`buy-${this.history.length}`),
      memory: this.#memory && this.#chance.happens(0.7),
      alone: true,
      startedAt: this.#world.now,
      endedAt: Number.POSITIVE_INFINITY,
      heard: { type: 'unknown' },
      tries: 0,
    }
    this.history.push(operation)
    this.#caller.call(operation, (heard) => {
      this.#remember(heard)
      this.#caller.later(() => this.#next())
    })
  }

  #remember(heard: Heard): void {
    if (heard.type !== 'yes') return
    const { entry } = heard.outcome
    if (entry?.params.startsWith('checkout')) this.#codes.push(entry.hold)
  }

  #command(key: string): Command {
    const chance = this.#chance
    const code = this.#codes.at(-1 - chance.integer(0, Math.min(3, Math.max(0, this.#codes.length - 1))))
    const at = chance.next()
    if (code !== undefined && at < 0.4) {
      const also = `${chance.happens(0.5) ? 'all' : 'left'} ${PER_USER}`
      return command({ kind: 'purchase', key, hold: code, also })
    }
    if (code !== undefined && at < 0.55) return command({ kind: 'cancel', key, hold: code })
    return command({ kind: 'checkout', key, also: this.#order() })
  }

  #order(): string {
    const chance = this.#chance
    const lines = new Map<number, Line>()
    for (let n = chance.integer(1, 2); n > 0; n -= 1) {
      const item = chance.integer(1, QUANTITIES.length)
      const share = QUANTITIES[item - 1] as number
      lines.set(item, { item, quantity: chance.integer(1, Math.min(2, share)), share })
    }
    return checkoutWords({
      reserves: this.#reserves,
      ttlMs: chance.happens(0.4) ? chance.integer(5, 900) : chance.integer(1_000, 20_000),
      from: 0,
      until: FOREVER,
      perBuyer: PER_USER,
      buyer: `buyer-${chance.integer(1, USERS)}`,
      lines: [...lines.values()],
    })
  }
}
