import type { TransferOutcome } from '../packages/holdfast/src/engine/index.js'
import { HoldfastError } from '../packages/holdfast/src/errors/index.js'
import type { Intent } from '../packages/holdfast/src/journal/index.js'
import { keys, type Process } from './process.js'
import type { World } from './world.js'

const CALLERS = 2
const TRANSFERS = 16
const PATIENCE_MS = 3_500
/** About as long as a transfer takes when nothing is in its way. */
const TAKES_MS = 12

export type TransferHeard =
  | { type: 'yes'; outcome: TransferOutcome }
  | { type: 'no'; error: HoldfastError }
  | { type: 'unknown' }

/** One transfer as its caller lived it. */
export interface AskedTransfer {
  readonly intent: Intent
  readonly startedAt: number
  endedAt: number
  heard: TransferHeard
  tries: number
}

interface Parts {
  processes(): readonly Process[]
  /** Lets a process die, or sleep. */
  strike(process: Process): void
}

/**
 * Callers who move money between the wallets that everybody else uses, too. Many of them give up early: what they leave behind is
 * not finished by a retry.
 */
export class Transferers {
  readonly history: AskedTransfer[] = []
  readonly #world: World
  readonly #wallets: readonly string[]
  /** A wallet that can hardly take more. */
  readonly #full: string | null
  readonly #parts: Parts
  /** How often the process that a caller asks is struck in the middle of it. */
  readonly #struck: number
  #running = 0

  constructor(world: World, wallets: readonly string[], full: string | null, parts: Parts) {
    this.#world = world
    this.#wallets = wallets
    this.#full = full
    this.#parts = parts
    this.#struck = world.chance.happens(0.5) ? 0.3 : 0
    if (wallets.length < 2) return
    for (let n = 0; n < CALLERS; n += 1) {
      this.#running += 1
      this.#later(() => this.#next())
    }
  }

  get done(): boolean {
    return this.#running === 0
  }

  #later(run: () => void): void {
    const { chance } = this.#world
    this.#world.plan(chance.happens(0.3) ? chance.next() * 2_000 : chance.next() * 100, run)
  }

  #next(): void {
    if (this.history.length >= TRANSFERS) {
      this.#running -= 1
      return
    }
    const { chance } = this.#world
    const from = chance.pick(this.#wallets)
    const others = this.#wallets.filter((id) => id !== from)
    const to = others.find((id) => id === this.#full && chance.happens(0.5)) ?? chance.pick(others)
    const asked: AskedTransfer = {
      intent: {
        tenant: keys.tenant,
        source: keys.ref(from),
        target: keys.ref(to),
        key: `transfer-${this.history.length}`,
        amount: chance.integer(1, 40),
        fee: chance.happens(0.5) ? chance.integer(1, 5) : 0,
        counter: 'revenue',
        metadata: '',
      },
      startedAt: this.#world.now,
      endedAt: Number.POSITIVE_INFINITY,
      heard: { type: 'unknown' },
      tries: 0,
    }
    this.history.push(asked)
    this.#try(asked, chance.integer(1, 4))
  }

  #try(asked: AskedTransfer, triesMax: number, wasDoubled = false): void {
    const { chance } = this.#world
    const ready = this.#parts.processes().filter(({ alive, paused }) => alive && !paused)
    if (ready.length === 0) return this.#world.plan(50, () => this.#try(asked, triesMax, wasDoubled))
    const process = chance.pick(ready)
    const doubled = wasDoubled || chance.happens(0.15)
    asked.tries += 1
    let over = false
    const conclude = (heard: TransferHeard): void => {
      if (over) return
      over = true
      this.#world.tell(() => `${asked.intent.key} at ${process.name}: ${tell(heard)}`)
      if (heard.type === 'unknown' && asked.tries < triesMax)
        return this.#later(() => this.#try(asked, triesMax, doubled))
      // With two at work on it, a "no" of one says nothing of what the other does.
      asked.heard = heard.type === 'no' && doubled ? { type: 'unknown' } : heard
      asked.endedAt = this.#world.now
      this.#later(() => this.#next())
    }
    if (chance.happens(this.#struck)) this.#world.plan(chance.next() * TAKES_MS, () => this.#parts.strike(process))
    if (doubled) this.#double(asked.intent, chance.pick(ready))
    this.#world.plan(PATIENCE_MS, () => conclude({ type: 'unknown' }))
    process.engine.transfer(asked.intent, { timeoutMs: 3_000 }).then(
      (outcome) => conclude({ type: 'yes', outcome }),
      (error) => {
        if (!(error instanceof HoldfastError)) throw error
        conclude(error.retryable ? { type: 'unknown' } : { type: 'no', error })
      },
    )
  }

  /** As by a proxy that sends again what takes long: two processes are at work on it at once, and nobody hears the second. */
  #double(intent: Intent, process: Process): void {
    process.inside(this.#world.chance.next() * TAKES_MS, () => {
      process.engine.transfer(intent, { timeoutMs: 3_000 }).catch((error) => {
        if (!(error instanceof HoldfastError)) throw error
      })
    })
  }
}

function tell(heard: TransferHeard): string {
  if (heard.type === 'unknown') return 'unknown'
  if (heard.type === 'no') return `no, ${heard.error.code} ${JSON.stringify(heard.error.facts)}`
  const { from, to, replayed } = heard.outcome
  return `yes, seq ${from.entry?.seq} and ${to.entry?.seq}${replayed ? ', replayed' : ''}`
}
