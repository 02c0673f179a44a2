import { type DatabaseCopy, SimDatabase } from './database.js'
import { Chance, type World } from './world.js'

/** A commit that waits for the standby. */
interface Hanging {
  readonly arrivedAt: number
  run(): void
  /** Its session is gone, and nobody will be told. */
  cut(): void
}

/** Whether a statement has something to commit; or how to tell once it is its turn. */
export type Writes = boolean | (() => boolean)

/**
 * Postgres of one simulation: a primary and its standby, and all that can befall them.
 *
 * The standby is synchronous: what was acknowledged it has. While the primary can't reach it commits hang, seen by nobody and answered
 * to nobody; when it is promoted some of them turn out to have reached it, in order, and the others never were. If the primary comes back first,
 * all can see them and the standby still has none: then they are told to nobody until it is reached, or are gone when it is promoted. Beside that
 * there are failovers to a replica that lags, and old copies that are put back. No promise covers what that loses; but it must be found, and nothing
 * else may go wrong.
 */
export class PostgresServer {
  readonly database: SimDatabase
  up = true
  skewMs = 0
  /** Sessions belong to one primary: each failover cuts them all. */
  session = 1
  /** Entries that were committed and then lost, and when; and when a wallet last lost any, by ref. */
  readonly lostHashes = new Map<string, number>()
  readonly lostAt = new Map<string, number>()
  readonly #world: World
  #hanging: Hanging[] | null = null
  /** What the standby has, while more can be seen on the primary. */
  #standby: DatabaseCopy | null = null
  #clockAt: number | undefined

  constructor(world: World) {
    this.#world = world
    // Its own chance: no schedule is another one because of it.
    const chance = new Chance(world.seed ^ 0xe90c5)
    this.database = new SimDatabase({
      now: () => Math.floor((this.#clockAt ?? world.now) + this.skewMs),
      step: () => chance.integer(1, 10_000_000),
    })
  }

  execute(writes: Writes, statement: Omit<Hanging, 'arrivedAt'>): void {
    // While the standby has all that can be seen it makes no difference: what it tells waits as well.
    const commits = this.#standby && typeof writes === 'function' ? writes() : writes !== false
    if (commits && this.#hanging) this.#hanging.push({ ...statement, arrivedAt: this.#world.now })
    else statement.run()
  }

  /** For an answer that tells of what was found: `await_replicas` of packages/holdfast/sql. While the standby has all that can be seen, it is told at once. */
  awaitStandby(statement: Omit<Hanging, 'arrivedAt'>): void {
    this.execute(this.#standby !== null, statement)
  }

  loseStandby(): void {
    if (this.#hanging) return
    this.#hanging = []
    this.#world.tell(() => 'postgres does not reach its standby: commits hang')
  }

  /** The primary restarts while commits hang: their sessions are cut, and all can see them. Returns how many that are; null: none could. */
  comeBackAlone(): number | null {
    const hanging = this.#hanging
    if (!hanging || this.#standby) return null
    const standby = this.database.snapshot()
    this.#end()
    this.#hanging = []
    this.#standby = standby
    this.#run(hanging)
    this.#world.tell(() => `postgres comes back with ${hanging.length} hanging commits, and without its standby`)
    for (const { cut } of hanging) cut()
    return hanging.length
  }

  /** Of a primary that came back alone: its standby takes over as it is, or is reached again and has everything then. */
  endAlone(promoted: boolean): void {
    if (!this.#standby) return
    if (promoted) return void this.failOver()
    const hanging = this.#hanging ?? []
    this.#hanging = null
    this.#standby = null
    this.#world.tell(() => `postgres reaches its standby: ${hanging.length} who waited go on`)
    for (const { run } of hanging) run()
  }

  /** The standby takes over. Returns how many commits it had that nobody was told of. */
  failOver(): number {
    const hanging = this.#hanging ?? []
    const standby = this.#standby
    const survived = standby ? 0 : this.#world.chance.integer(0, hanging.length)
    this.#end()
    if (standby) this.database.restore(standby)
    this.#run(hanging.slice(0, survived))
    this.database.timeline += 1
    this.#world.tell(() => `postgres's standby is promoted with ${survived} of ${hanging.length} hanging commits`)
    for (const { cut } of hanging) cut()
    return survived
  }

  /**
   * Only this is left: a replica has taken over that lagged, or an old copy was put back, which has the timeline that it always had. Returns
   * how many entries are lost.
   */
  goBackTo(copy: DatabaseCopy, how: 'promoted' | 'put back'): number {
    const kept = new Map(copy.wallets.map(({ row, entries }) => [row.ref, entries.length]))
    let lost = 0
    for (const { row, entries } of this.database.wallets()) {
      const after = entries.slice(kept.get(row.ref) ?? 0)
      for (const { hash } of after) this.lostHashes.set(hash, this.#world.now)
      lost += after.length
    }
    // A raise that is lost with no entry counts too: what was refused under it rests on nothing any more.
    const epochs = new Map(copy.wallets.map(({ row }) => [row.ref, row.epoch]))
    for (const { row, entries } of this.database.wallets()) {
      if (row.epoch === epochs.get(row.ref) && entries.length === kept.get(row.ref)) continue
      this.lostAt.set(row.ref, this.#world.now)
    }
    // And a note of what is under way between two: either may be left with a hold that nobody knows of.
    for (const ref of this.#notesSince(copy)) this.lostAt.set(ref, this.#world.now)
    const hanging = this.#hanging ?? []
    this.#end()
    this.database.restore(copy)
    if (how === 'promoted') this.database.timeline += 1
    this.#world.tell(() => `an old copy of postgres is ${how}: ${lost} entries are lost`)
    for (const { cut } of hanging) cut()
    return lost
  }

  /** Who takes part in what was begun since. */
  #notesSince({ intents, payments }: DatabaseCopy): string[] {
    const now = this.database.snapshot()
    const since = <I extends { attempt: number }>(notes: readonly I[], before: readonly I[]): I[] =>
      notes.filter(({ attempt }) => !before.some((note) => note.attempt === attempt))
    return [
      ...since(now.intents, intents).flatMap(({ source, target }) => [source, target]),
      ...since(now.payments, payments).flatMap(({ wallet, bucket }) => [wallet, bucket]),
    ]
  }

  heal(): void {
    if (this.#hanging) this.failOver()
    this.up = true
  }

  #run(hanging: readonly Hanging[]): void {
    for (const { arrivedAt, run } of hanging) {
      this.#clockAt = arrivedAt
      run()
    }
    this.#clockAt = undefined
  }

  #end(): void {
    this.#hanging = null
    this.#standby = null
    this.session += 1
  }
}
