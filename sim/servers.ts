import type { Place } from '../packages/holdfast/src/redis/index.js'
import { PostgresServer } from './postgres.js'
import { type DataCopy, Valkey } from './valkey.js'
import type { World } from './world.js'

/** Two Valkeys that outlive a schedule: starting them takes as long as running one on them. */
export class Machines {
  #valkeys: readonly [Valkey, Valkey] | undefined
  /** What each shows as the time. */
  now: (machine: 0 | 1) => number = () => 0

  /** Empty, as every schedule finds them. */
  async ready(): Promise<readonly [Valkey, Valkey]> {
    const start = (machine: 0 | 1): Promise<Valkey> =>
      Valkey.start({ now: () => this.now(machine), random: (bytes) => bytes.fill(42) })
    this.#valkeys ??= [await start(0), await start(1)]
    for (const valkey of this.#valkeys) valkey.load([])
    return this.#valkeys
  }
}

/** One Redis server as processes see it: which Valkey, whether it answers, and how wrong its clock is. */
export interface RedisServer {
  readonly name: string
  readonly valkey: Valkey
  up: boolean
  skewMs: number
}

/**
 * Redis and Postgres of one simulation, and all that can befall them. Redis is two servers of which one is the master; copies of the
 * master's memory are kept, as files on disk and lagging replicas are, and come back when it restarts or fails over.
 */
export class Servers {
  readonly postgres: PostgresServer
  readonly #world: World
  readonly #redis: [RedisServer, RedisServer]
  #master = 0
  /** When it last forgot everything, or more than one knows; and a wallet, by its key: what was acknowledged from memory before may be gone. */
  #forgotAt = Number.NEGATIVE_INFINITY
  readonly #evictedAt = new Map<string, number>()
  /** Lives of wallets in Redis, by ref and epoch. */
  readonly #lives = new Set<string>()
  /** The floor of epochs that an old copy brought along: nobody has set anything right since. */
  #putBackUnder: number | undefined
  /** What can't be, whatever callers hear. */
  readonly problems = new Set<string>()

  private constructor(world: World, [first, second]: readonly [Valkey, Valkey]) {
    this.#world = world
    this.#redis = [
      { name: 'redis-1', valkey: first, up: true, skewMs: 0 },
      { name: 'redis-2', valkey: second, up: true, skewMs: 0 },
    ]
    for (const { valkey } of this.#redis) valkey.beginLife(world.chance.hex(40))
    this.postgres = new PostgresServer(world)
  }

  static async start(world: World, machines: Machines): Promise<Servers> {
    let servers: Servers | undefined
    machines.now = (machine) => world.now + (servers ? servers.#redis[machine].skewMs : 0)
    servers = new Servers(world, await machines.ready())
    return servers
  }

  get master(): RedisServer {
    return this.#redis[this.#master] as RedisServer
  }

  /** A wallet's state was installed on some server, under an epoch that is its own for good. */
  beginLife(wallet: string, epoch: string): void {
    const life = `${wallet} under epoch ${epoch}`
    if (this.#lives.has(life)) this.problems.add(`${life}: began twice`)
    this.#lives.add(life)
  }

  /** An old copy of Postgres takes over, which has the timeline that it always had. */
  putPostgresBack(): void {
    this.#putBackUnder = this.postgres.database.epochFloor
  }

  /** Redis takes what is up to this seq for acknowledged: the journal must have it, in a life since Postgres last lost something. */
  noteAcked(wallet: string, epoch: number, acked: number): void {
    const { database } = this.postgres
    if (epoch <= database.epochFloor || this.#nothingSetRight) return
    const seq = database.seqOf(wallet.slice(wallet.lastIndexOf(':') + 1))
    if (acked > seq) this.problems.add(`${wallet}: ${acked} is taken for acknowledged, the journal has ${seq}`)
  }

  get #nothingSetRight(): boolean {
    return this.#putBackUnder === this.postgres.database.epochFloor
  }

  /** What a replica, or a file on disk, has of the master now. It comes back some time later. */
  copyRedis(): DataCopy {
    return this.master.valkey.copy()
  }

  /** The master restarts: from an old copy, or from nothing. A new life either way. */
  restartRedis(copy: DataCopy): void {
    this.#begin(copy)
    this.master.valkey.beginLife(this.#world.chance.hex(40))
    this.#world.tell(() => `${this.master.name} restarts ${copy.length > 0 ? 'from an old file' : 'empty'}`)
  }

  /**
   * The other server, a replica that may lag, becomes the master. The old one goes on answering whoever still talks to it. Each has a
   * clock of its own.
   */
  failOver(copy: DataCopy, skewMs: number): void {
    const old = this.master.name
    this.#master = 1 - this.#master
    this.master.skewMs = skewMs
    this.#begin(copy)
    this.master.valkey.promote(this.#world.chance.hex(40))
    // Who still talks to the old one is told things that it alone knows, for as long as that may be.
    this.#forgotAt = Number.POSITIVE_INFINITY
    this.#world.tell(() => `${this.master.name} is promoted (its clock at ${Math.round(skewMs)}), ${old} goes on`)
  }

  #begin(copy: DataCopy): void {
    this.forget()
    this.master.valkey.load(copy)
  }

  /** What was acknowledged from memory up to now may be gone. */
  forget(): void {
    this.#forgotAt = Math.max(this.#forgotAt, this.#world.now)
  }

  redisForgotAt({ walletKey }: Place): number {
    return Math.max(this.#forgotAt, this.#evictedAt.get(walletKey) ?? Number.NEGATIVE_INFINITY)
  }

  /** It has no room for more: whatever writes is refused. */
  fillRedis(): void {
    this.master.valkey.limitMemory(1)
    this.#world.tell(() => `${this.master.name} is full`)
  }

  makeRoom(): void {
    for (const { valkey } of this.#redis) valkey.limitMemory(0)
  }

  flushRedis(): void {
    this.forget()
    this.master.valkey.call('FLUSHALL')
    this.#world.tell(() => `${this.master.name} is flushed`)
  }

  /** One key is evicted: this one, or any, most often a wallet, of which there are most. */
  evictKey(wanted?: string): void {
    const all = this.master.valkey.keys()
    const wallets = all.filter((key) => key.includes(':wallet:'))
    const some = this.#world.chance.happens(0.8) && wallets.length > 0 ? wallets : all
    const keys = wanted === undefined ? some : all.filter((key) => key === wanted)
    if (keys.length === 0) return
    const key = this.#world.chance.pick(keys)
    this.#evictedAt.set(key, this.#world.now)
    this.master.valkey.call('DEL', key)
    this.#world.tell(() => `${this.master.name} evicts ${key}`)
  }
}
