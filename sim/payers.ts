import type { PurchaseOutcome } from '../packages/holdfast/src/engine/index.js'
import { HoldfastError } from '../packages/holdfast/src/errors/index.js'
import type { PaymentIntent } from '../packages/holdfast/src/journal/index.js'
import { type Entry, priceOf, readLinesText } from '../packages/holdfast/src/machine/index.js'
import type { Place } from '../packages/holdfast/src/redis/index.js'
import { type Buyers, PER_USER } from './buyers.js'
import { keys, type Process } from './process.js'
import { Chance, type World } from './world.js'

const CALLERS = 2
const PAYMENTS = 16
const PATIENCE_MS = 3_500
/** Who is refused so often in a row wants what nobody can have any more. */
const REFUSALS_MAX = 400
/** About as long as a purchase takes when nothing is in its way. */
const TAKES_MS = 12

export type PaymentHeard =
  | { type: 'yes'; outcome: Extract<PurchaseOutcome, { type: 'done' }> }
  | { type: 'no'; error: HoldfastError }
  | { type: 'again' | 'unknown' }

/** One purchase that was paid out of a wallet, or should have been, as its caller lived it. */
export interface AskedPayment {
  readonly intent: PaymentIntent
  readonly startedAt: number
  endedAt: number
  heard: PaymentHeard
  tries: number
}

interface Parts {
  processes(): readonly Process[]
  /** Lets a process die, or sleep. */
  strike(process: Process): void
}

/**
 * Callers who buy what they or others have checked out, and pay with the wallets that everybody uses. What they know of a checkout may be
 * old, and several may want the same; many give up early.
 */
export class Payers {
  readonly history: AskedPayment[] = []
  readonly #world: World
  readonly #wallets: readonly string[]
  readonly #buyers: Buyers
  readonly #parts: Parts
  /** Of their own: without them every other schedule stays as it is. */
  readonly #chance: Chance
  /** How often the process that a caller asks is struck in the middle of it. */
  readonly #struck: number
  #running = 0
  #refusals = 0

  constructor(world: World, seed: number, wallets: readonly string[], buyers: Buyers, parts: Parts) {
    this.#world = world
    this.#chance = new Chance(seed)
    this.#wallets = wallets
    this.#buyers = buyers
    this.#parts = parts
    this.#struck = this.#chance.happens(0.6) ? 0.3 : 0
    if (this.#chance.happens(0.3)) return
    for (let n = 0; n < CALLERS; n += 1) {
      this.#running += 1
      this.#later(() => this.#next())
    }
  }

  get done(): boolean {
    return this.#running === 0
  }

  #later(run: () => void): void {
    const chance = this.#chance
    this.#world.plan(chance.happens(0.3) ? chance.next() * 1_500 : chance.next() * 60, run)
  }

  #next(): void {
    if (this.history.length >= PAYMENTS || this.#refusals >= REFUSALS_MAX) {
      this.#running -= 1
      return
    }
    const chance = this.#chance
    const { open } = this.#buyers
    const known = open.at(-1 - chance.integer(0, Math.min(2, Math.max(0, open.length - 1))))
    if (known && chance.happens(0.4)) return this.#pay(known.entry, this.#buyers.place(known.bucket))
    // One of their own: nobody else knows of it.
    const process = this.#ready()
    const { command: own, bucket } = this.#buyers.order(`pay-${chance.hex(8)}`, chance)
    const place = this.#buyers.place(bucket)
    const heard = process?.engine.submit(place, own, { memory: false, timeoutMs: 3_000 })
    if (!heard) return this.#later(() => this.#next())
    let over = false
    const conclude = (entry: Entry | null): void => {
      if (over) return
      over = true
      if (entry) return this.#pay(entry, place)
      this.#refusals += 1
      this.#later(() => this.#next())
    }
    this.#world.plan(PATIENCE_MS, () => conclude(null))
    heard.then(
      ({ entry }) => conclude(entry),
      () => conclude(null),
    )
  }

  #ready(): Process | null {
    const ready = this.#parts.processes().filter(({ alive, paused }) => alive && !paused)
    return ready.length === 0 ? null : this.#chance.pick(ready)
  }

  #pay(entry: Entry, { ref }: Place): void {
    const chance = this.#chance
    const lines = readLinesText(entry.metadata)
    const prices = new Map(lines.map(({ item }) => [item, (item % 3) + chance.integer(0, 1)]))
    const asked: AskedPayment = {
      intent: {
        tenant: keys.tenant,
        wallet: keys.ref(chance.pick(this.#wallets)),
        bucket: ref,
        code: entry.hold,
        id: chance.hex(32),
        amount: priceOf(lines, prices),
        take: chance.happens(0.5) ? 'all' : 'left',
        perBuyer: PER_USER,
        prices: [...prices].map(([item, price]) => `${item}:${price}`).join(' '),
        counter: 'revenue',
        metadata: '',
      },
      startedAt: this.#world.now,
      endedAt: Number.POSITIVE_INFINITY,
      heard: { type: 'unknown' },
      tries: 0,
    }
    this.#refusals = 0
    this.history.push(asked)
    this.#try(asked, chance.integer(1, 4))
  }

  #try(asked: AskedPayment, triesMax: number, wasDoubled = false): void {
    const chance = this.#chance
    const process = this.#ready()
    if (!process) return this.#world.plan(50, () => this.#try(asked, triesMax, wasDoubled))
    const doubled = wasDoubled || chance.happens(0.4)
    asked.tries += 1
    let over = false
    const conclude = (heard: PaymentHeard): void => {
      if (over) return
      over = true
      this.#world.tell(() => `payment ${asked.intent.id} at ${process.name}: ${tell(heard)}`)
      if (heard.type === 'unknown' && asked.tries < triesMax)
        return this.#later(() => this.#try(asked, triesMax, doubled))
      // With two at work on it, a "no" of one says nothing of what the other does.
      asked.heard = heard.type === 'no' && doubled ? { type: 'unknown' } : heard
      asked.endedAt = this.#world.now
      this.#later(() => this.#next())
    }
    if (chance.happens(this.#struck)) this.#world.plan(chance.next() * TAKES_MS, () => this.#parts.strike(process))
    if (doubled) this.#double(asked.intent, this.#ready() as Process)
    this.#world.plan(PATIENCE_MS, () => conclude({ type: 'unknown' }))
    process.engine.purchase(asked.intent, { timeoutMs: 3_000 }).then(
      (outcome) => conclude(outcome.type === 'done' ? { type: 'yes', outcome } : { type: 'again' }),
      (error) => {
        if (!(error instanceof HoldfastError)) throw error
        conclude(error.retryable ? { type: 'unknown' } : { type: 'no', error })
      },
    )
  }

  /** As by a buyer who presses twice: two processes are at work on it at once, and nobody hears the second. */
  #double(intent: PaymentIntent, process: Process): void {
    process.inside(this.#chance.next() * TAKES_MS, () => {
      process.engine.purchase(intent, { timeoutMs: 3_000 }).catch((error) => {
        if (!(error instanceof HoldfastError)) throw error
      })
    })
  }
}

function tell(heard: PaymentHeard): string {
  if (heard.type === 'no') return `no, ${heard.error.code} ${JSON.stringify(heard.error.facts)}`
  if (heard.type !== 'yes') return heard.type
  const { sale, wallet } = heard.outcome
  return `yes, seq ${sale.entry?.seq} and ${wallet.entry?.seq}`
}
