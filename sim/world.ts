/** Time and chance of a simulation: one seed, one order of events, one history. */

/** A small, fast generator (splitmix32): good enough to shuffle schedules, and the same everywhere. */
export class Chance {
  #state: number

  constructor(seed: number) {
    this.#state = seed | 0
  }

  /** From 0 up to, not including, 1. */
  next(): number {
    this.#state = (this.#state + 0x9e3779b9) | 0
    let mixed = this.#state ^ (this.#state >>> 16)
    mixed = Math.imul(mixed, 0x21f0aaad)
    mixed ^= mixed >>> 15
    mixed = Math.imul(mixed, 0x735a2d97)
    mixed ^= mixed >>> 15
    return (mixed >>> 0) / 4_294_967_296
  }

  integer(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1))
  }

  happens(probability: number): boolean {
    return this.next() < probability
  }

  pick<T>(of: readonly T[]): T {
    return of[Math.floor(this.next() * of.length)] as T
  }

  hex(length: number): string {
    let text = ''
    while (text.length < length) text += Math.floor(this.next() * 16).toString(16)
    return text
  }
}

interface Event {
  at: number
  order: number
  run: () => void
}

/** The order in which things happen. Events at the same time happen in the order in which they were planned. */
export class World {
  readonly seed: number
  readonly chance: Chance
  /** Milliseconds since 1970, as no clock in the simulation shows it. */
  now = 1_700_000_000_000
  readonly trace: string[] = []
  readonly #heap: Event[] = []
  readonly #traced: boolean
  #planned = 0

  constructor(seed: number, traced: boolean) {
    this.seed = seed
    this.chance = new Chance(seed)
    this.#traced = traced
  }

  plan(inMs: number, run: () => void): void {
    this.#push({ at: this.now + Math.max(0, inMs), order: this.#planned++, run })
  }

  /** For whoever reads a failing schedule. */
  tell(what: () => string): void {
    if (this.#traced) this.trace.push(`${(this.now - 1_700_000_000_000).toFixed(1).padStart(10)} ms  ${what()}`)
  }

  /** Runs what is planned until `done`, or until `untilMs` of simulated time; after each event all promises that it settled run. */
  async run(until: number, done: () => boolean): Promise<void> {
    while (!done()) {
      const next = this.#heap[0]
      if (!next || next.at > until) {
        this.now = Math.max(this.now, Math.min(until, next?.at ?? until))
        return
      }
      this.#pop()
      this.now = next.at
      next.run()
      await settled()
    }
  }

  #push(event: Event): void {
    const heap = this.#heap
    let at = heap.push(event) - 1
    while (at > 0) {
      const above = (at - 1) >> 1
      if (!before(event, heap[above] as Event)) break
      heap[at] = heap[above] as Event
      at = above
    }
    heap[at] = event
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop() as Event
    if (heap.length === 0) return
    let at = 0
    for (;;) {
      let below = 2 * at + 1
      if (below >= heap.length) break
      if (below + 1 < heap.length && before(heap[below + 1] as Event, heap[below] as Event)) below += 1
      if (!before(heap[below] as Event, last)) break
      heap[at] = heap[below] as Event
      at = below
    }
    heap[at] = last
  }
}

function before(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}

/**
 * All promises that can go on have gone on: Node comes to its next tick only when no promise is left to run. A turn of the event loop
 * (`setImmediate`) would say the same; with thousands of events a schedule it was a sixth of all time.
 */
function settled(): Promise<void> {
  return new Promise((resolve) => {
    process.nextTick(resolve)
  })
}
