import { type Command, type CommandKind, command } from '../packages/holdfast/src/machine/index.js'
import { Caller, type Heard, type Operation } from './caller.js'
import { keys, type Process } from './process.js'
import { Sessions } from './sessions.js'
import { Chance, type World } from './world.js'

const KINDS: readonly [CommandKind, number][] = [
  ['credit', 3],
  ['debit', 3],
  ['hold', 6],
  ['capture', 4],
  ['extend', 2],
  ['settle', 4],
  ['release', 2],
  ['refund', 3],
  ['limit', 0.3],
  ['freeze', 0.2],
  ['unfreeze', 0.6],
  ['close', 0.1],
]

/** In some schedules only: they would be in the way of what the others bring about. */
const KINDS_OF_SESSIONS: typeof KINDS = [
  ['meter', 3],
  ['tick', 12],
  ['end', 2],
]

const CONFUSED = 0xc0f05ed

/** What Postgres can't store. Input is checked before the engine gets it; this stands for what a check lets through. */
const UNSTORABLE = '"\0"'

/**
 * Callers who hold, settle and retry, on few wallets, so that they are always in each other's way. In some schedules, decided by a chance of its
 * own so that the others stay as they are, they also use a key that somebody has just used for something else.
 */
export class Clients {
  readonly history: Operation[] = []
  readonly wallets: readonly string[]
  readonly #world: World
  readonly #caller: Caller
  readonly #memoryWallets: ReadonlySet<string>
  readonly #wanted: number
  readonly #holds = new Map<string, string[]>()
  readonly #charges = new Map<string, number[]>()
  /** Balances as callers last heard them. */
  readonly #available = new Map<string, { seq: number; available: number }>()
  /** Wallets that are emptied and closed halfway through. */
  readonly #leaving: ReadonlySet<string>
  readonly #unstorable: number
  readonly #confusion: Chance
  readonly #confused: number
  readonly #sessions: Sessions
  readonly #kinds: readonly (readonly [CommandKind, number])[]
  #running = 0

  constructor(
    world: World,
    wallets: readonly string[],
    memoryWallets: ReadonlySet<string>,
    wanted: number,
    processes: () => readonly Process[],
  ) {
    this.#world = world
    this.#sessions = new Sessions(world)
    this.wallets = wallets
    this.#memoryWallets = memoryWallets
    this.#wanted = wanted
    this.#caller = new Caller(world, processes)
    const { chance } = world
    this.#leaving = new Set(chance.happens(0.25) ? [chance.pick(wallets)] : [])
    this.#unstorable = chance.happens(0.2) ? 0.02 : 0
    this.#confusion = new Chance(Math.imul(world.seed + 1, CONFUSED))
    this.#confused = this.#confusion.happens(0.1) ? 0.1 : 0
    this.#kinds = chance.happens(0.4) ? [...KINDS, ...KINDS_OF_SESSIONS] : KINDS
    for (let n = 0; n < 6; n += 1) {
      this.#running += 1
      this.#later(() => this.#next())
    }
  }

  get done(): boolean {
    return this.#running === 0
  }

  #later(run: () => void): void {
    this.#caller.later(run)
  }

  #next(): void {
    if (this.history.length >= this.#wanted) {
      this.#running -= 1
      return
    }
    const id = this.#world.chance.pick(this.wallets)
    const asked = this.#mistaken(id) ?? this.#command(id, this.#newKey())
    this.#ask(id, asked, () => this.#later(() => this.#next()))
  }

  /** Something else under a key that was used just now, perhaps for what is not in the journal yet, or never will be. */
  #mistaken(id: string): Command | null {
    if (this.#confused === 0 || !this.#confusion.happens(this.#confused) || this.#memoryWallets.has(id)) return null
    const ref = keys.ref(id)
    const used = this.history.slice(-12).filter((one) => one.ref === ref && !one.command.key.startsWith('~'))
    if (used.length === 0) return null
    const { key } = this.#confusion.pick(used).command
    // As nobody else asks for: how much tells one from the other.
    return command({ kind: this.#confusion.pick(['credit', 'debit']), key, amount: 1_000 + this.history.length })
  }

  #newKey(): string {
    return `op-${this.history.length}`
  }

  #ask(id: string, asked: Command, then: () => void): void {
    const { chance } = this.#world
    // Never under a key that callers share, as those do who end one session: its entry has the data of whoever came first.
    const unstorable = chance.happens(this.#unstorable) && !asked.key.startsWith('~')
    const operation: Operation = {
      ref: keys.ref(id),
      command: unstorable ? { ...asked, metadata: UNSTORABLE } : asked,
      startedAt: this.#world.now,
      endedAt: Number.POSITIVE_INFINITY,
      heard: { type: 'unknown' },
      memory: false,
      tries: 0,
    }
    this.history.push(operation)
    // Some do not wait until they hear of a hold: they know its id, and what they ask may come first.
    if (asked.kind === 'hold' && chance.happens(0.1)) this.#list(this.#holds, id).push(asked.key)
    const fromMemory = this.#memoryWallets.has(id) ? 0.7 : 0
    this.#caller.call(operation, fromMemory, (heard) => {
      this.#remember(id, operation, heard)
      then()
    })
  }

  #remember(id: string, { command }: Operation, heard: Heard): void {
    if (command.kind === 'tick' || command.kind === 'end') this.#sessions.hear(id, command, heard)
    if (heard.type !== 'yes') return
    const { entry } = heard.outcome
    const known = this.#available.get(id)
    if (entry && entry.seq > (known?.seq ?? 0)) this.#available.set(id, entry)
    if (command.kind === 'hold') this.#list(this.#holds, id).push(command.key)
    if (command.kind === 'meter' && entry) this.#sessions.learn(id, command, entry)
    if (!entry || !['debit', 'capture', 'tick', 'settle'].includes(entry.kind)) return
    this.#list(this.#charges, id).push(entry.seq)
    if (heard.outcome.durability !== 'memory' || this.#world.chance.happens(0.7)) return
    // It is on its way into the journal, and others come who want it back already.
    for (let n = 0; n < 3; n += 1) {
      this.#running += 1
      this.#world.plan(this.#world.chance.next() * 4, () =>
        this.#ask(id, this.#refund(this.#newKey(), entry.seq), () => {
          this.#running -= 1
        }),
      )
    }
  }

  #list<T>(of: Map<string, T[]>, id: string): T[] {
    const list = of.get(id) ?? []
    of.set(id, list)
    return list
  }

  #refund(key: string, of: number): Command {
    return command({ kind: 'refund', key, of, amount: this.#world.chance.integer(1, 30) })
  }

  #command(id: string, key: string): Command {
    const { chance } = this.#world
    if (this.#leaving.has(id) && this.history.length * 2 > this.#wanted && chance.happens(0.7)) {
      const { available } = this.#available.get(id) ?? { available: 0 }
      return available > 0 ? command({ kind: 'debit', key, amount: available }) : command({ kind: 'close', key })
    }
    const kind = this.#kind()
    const holds = this.#list(this.#holds, id)
    const charges = this.#list(this.#charges, id)
    const amount = chance.integer(1, 60)
    switch (kind) {
      case 'hold':
        return command({
          kind,
          key,
          amount,
          ttlMs: chance.happens(0.4) ? chance.integer(5, 900) : chance.integer(1_000, 20_000),
        })
      case 'capture':
      case 'settle':
      case 'extend':
      case 'release': {
        const hold =
          holds.length > 0 ? (holds.at(-1 - chance.integer(0, Math.min(3, holds.length - 1))) as string) : 'none'
        if (kind === 'extend')
          return command({ kind, key, hold, amount: chance.integer(0, 20), ttlMs: chance.integer(0, 5_000) })
        if (kind === 'release') return command({ kind, key, hold })
        return command({ kind, key, hold, amount, beyond: chance.happens(0.4) })
      }
      case 'refund':
        return this.#refund(key, charges.length > 0 ? chance.pick(charges) : 1)
      case 'meter':
        return this.#sessions.begin(key)
      case 'tick':
      case 'end':
        return this.#sessions.goOn(id, kind, key)
      case 'limit':
        return command({ kind, key, amount: chance.integer(0, 50) })
      case 'freeze':
      case 'unfreeze':
      case 'close':
        return command({ kind, key })
      default:
        return command({ kind, key, amount: kind === 'credit' ? amount * 2 : amount })
    }
  }

  #kind(): CommandKind {
    let at = this.#world.chance.next() * this.#kinds.reduce((sum, [, weight]) => sum + weight, 0)
    for (const [kind, weight] of this.#kinds) {
      at -= weight
      if (at < 0) return kind
    }
    return 'credit'
  }
}
