import { shareOf } from '../packages/holdfast/src/api/sale/terms.js'
import type { Wanted } from '../packages/holdfast/src/engine/index.js'
import { checkoutWords, command, type Entry, type Line } from '../packages/holdfast/src/machine/index.js'
import type { Place } from '../packages/holdfast/src/redis/index.js'
import { Caller, type Heard, type Operation } from './caller.js'
import { keys, type Process } from './process.js'
import { Chance, type World } from './world.js'

const CALLERS = 4
const USERS = 5
export const PER_USER = 4
/** How many of each item there are: unique ones, and some of which several can have one. */
export const QUANTITIES = [1, 1, 1, 1, 2, 3, 5, 8]
/** Fewer than all items: the total is a limit of its own. */
export const STOCK = 18
const FOREVER = 4_000_000_000_000
const BUCKETS = 0xb0c5

/** One, or a few. By a chance of its own: sales with one bucket stay as they are. */
export function bucketsOf(id: string, seed: number): Place[] {
  const chance = new Chance(seed ^ BUCKETS)
  const count = chance.happens(0.5) ? chance.integer(2, 3) : 1
  return Array.from({ length: count }, (_, bucket) => keys.ofSale(id, bucket))
}

/** What somebody may buy or cancel, and in which bucket. */
export interface Open {
  /** The checkout as it was heard of. */
  readonly entry: Entry
  readonly code: string
  readonly bucket: number
  readonly lines: readonly Line[]
}

type Asked = Pick<Operation, 'command'> & { readonly bucket: number; readonly lines: readonly Line[] }

/** A sale, and those who buy in it: check out, add to it, buy, cancel, or forget it. Like others they hear no answer now and then, and ask again. */
export class Buyers {
  readonly history: Operation[] = []
  /** Checkouts that were heard of, in the order that they were. */
  readonly open: Open[] = []
  readonly #places: readonly Place[]
  readonly #world: World
  /** Of their own: without a sale every other schedule stays as it is. */
  readonly #chance: Chance
  readonly #caller: Caller
  readonly #reserves: boolean
  readonly #fromMemory: number
  readonly #wanted: number
  #running = CALLERS

  constructor(
    world: World,
    places: readonly Place[],
    seed: number,
    wanted: number,
    processes: () => readonly Process[],
  ) {
    this.#world = world
    this.#chance = new Chance(seed)
    this.#caller = new Caller(world, processes)
    this.#reserves = this.#chance.happens(0.7)
    this.#fromMemory = this.#chance.happens(0.2) ? 0.7 : 0
    this.#wanted = wanted
    this.#places = places
    for (let n = 0; n < CALLERS; n += 1) this.#caller.later(() => this.#next())
  }

  place(bucket: number): Place {
    return this.#places[bucket] as Place
  }

  get done(): boolean {
    return this.#running === 0
  }

  #next(): void {
    if (this.history.length >= this.#wanted) {
      this.#running -= 1
      return
    }
    const { command, bucket, lines } = this.#command(`buy-${this.history.length}`)
    const operation: Operation = {
      ref: this.place(bucket).ref,
      command,
      startedAt: this.#world.now,
      endedAt: Number.POSITIVE_INFINITY,
      heard: { type: 'unknown' },
      memory: false,
      tries: 0,
      buckets: { places: this.#places, target: bucket },
      wanted: this.#wantedFor(lines),
    }
    this.history.push(operation)
    this.#caller.call(operation, this.#fromMemory, (heard) => {
      this.#remember(heard, bucket, lines)
      this.#caller.later(() => this.#next())
    })
  }

  #remember(heard: Heard, bucket: number, lines: readonly Line[]): void {
    if (heard.type !== 'yes') return
    const { entry } = heard.outcome
    if (!entry?.params.startsWith('checkout')) return
    const known = this.open.find(({ code }) => code === entry.hold)
    this.open.push({ entry, code: entry.hold, bucket, lines: [...(known?.lines ?? []), ...lines] })
  }

  #command(key: string): Asked {
    const chance = this.#chance
    const open = this.open.at(-1 - chance.integer(0, Math.min(3, Math.max(0, this.open.length - 1))))
    const at = chance.next()
    if (open !== undefined && at < 0.4) {
      const also = `${chance.happens(0.5) ? 'all' : 'left'} ${PER_USER}`
      return { ...open, command: command({ kind: 'purchase', key, hold: open.code, also }) }
    }
    if (open !== undefined && at < 0.55)
      return { ...open, command: command({ kind: 'cancel', key, hold: open.code }), lines: [] }
    return this.order(key, chance)
  }

  /** What somebody may want to check out. */
  order(key: string, chance: Chance): Asked {
    const wanted = new Map<number, number>()
    for (let n = chance.integer(1, 2); n > 0; n -= 1) {
      const item = chance.integer(1, QUANTITIES.length)
      wanted.set(item, chance.integer(1, Math.min(2, QUANTITIES[item - 1] as number)))
    }
    const ttlMs = chance.happens(0.4) ? chance.integer(5, 900) : chance.integer(1_000, 20_000)
    const user = chance.integer(1, USERS)
    const bucket = user % this.#places.length
    const lines = [...wanted].map(([item, quantity]) => ({ item, quantity, share: this.#share(item, bucket) }))
    const also = checkoutWords({
      reserves: this.#reserves,
      ttlMs,
      from: 0,
      until: FOREVER,
      perBuyer: PER_USER,
      buyer: `buyer-${user}`,
      lines,
    })
    return { command: command({ kind: 'checkout', key, also }), bucket, lines }
  }

  #share(item: number, bucket: number): number {
    return shareOf(QUANTITIES[item - 1] as number, item, bucket, this.#places.length)
  }

  #wantedFor(lines: readonly Line[]): Wanted[] {
    const wanted = lines.map(({ item, quantity }) => ({
      item,
      quantity,
      shares: this.#places.map((_, bucket) => this.#share(item, bucket)),
    }))
    return [...wanted, { item: 0, quantity: lines.reduce((sum, { quantity }) => sum + quantity, 0), shares: [] }]
  }
}
