import type { Process, Weather } from './process.js'
import type { Servers } from './servers.js'
import type { World } from './world.js'

interface Target {
  readonly servers: Servers
  readonly weather: Weather
  /** Nothing may happen that lets Redis forget: what was acknowledged from memory must all be there in the end. */
  readonly remembers: boolean
  processes(): readonly Process[]
  /** A new process in place of one that died. */
  replace(process: Process): void
  /** Counts what happened: a fault that no schedule has proves nothing. */
  note(fault: FaultName, times?: number): void
}

export type FaultName = keyof ReturnType<Faults['all']> | 'postgres_hanging_commit' | 'postgres_entry_lost'

const LAGGING_MAX = 6
const SET_BACK_MAX_MS = 100

/** After these what was acknowledged from memory may be gone: with Redis, or with a raise that only Postgres knew of. */
const FORGETTING: ReadonlySet<FaultName> = new Set<FaultName>([
  'redis_restarts',
  'redis_flushed',
  'redis_evicts',
  'redis_fails_over',
  'postgres_fails_over_lagging',
  'postgres_restored',
  'zone_lost',
])

/** What goes wrong in a schedule: chosen by its seed, a few kinds at a time, so that some are rough and some only odd. */
export class Faults {
  readonly #world: World
  readonly #target: Target
  readonly #kinds: readonly [FaultName, () => void][]
  readonly #everyMs: number
  /** By how much a server's clock shows less than it has shown already. */
  readonly #behind = new WeakMap<object, number>()
  #lagging = 0
  #over = false

  constructor(world: World, target: Target) {
    this.#world = world
    this.#target = target
    const { chance } = world
    const all = Object.entries(this.all()) as [FaultName, () => void][]
    this.#kinds = all.filter(([name]) => !(target.remembers && FORGETTING.has(name)) && chance.happens(0.35))
    const { weather } = target
    if (chance.happens(0.7)) weather.slow = chance.next() * 0.15
    if (chance.happens(0.6)) weather.lossy = chance.next() * 0.06
    if (chance.happens(0.3)) weather.contended = chance.next() * 0.2
    if (this.#kinds.some(([name]) => name === 'redis_evicts')) weather.evicting = 0.5
    this.#everyMs = 30 + chance.next() * 500
    if (this.#kinds.length > 0) this.#plan()
  }

  /** From now on all is well: what is broken is mended, nothing breaks any more. */
  heal(): void {
    this.#over = true
    const { servers, weather } = this.#target
    servers.postgres.heal()
    servers.master.up = true
    weather.lossy = 0
    weather.slow = 0
    weather.contended = 0
    weather.evicting = 0
    for (const process of this.#target.processes()) {
      process.redisCut = false
      process.postgresCut = false
      process.redis = servers.master
      if (!process.asleep) process.wake()
    }
  }

  /** In the middle of what it is doing: this very process dies, or sleeps for a while. */
  strike(process: Process): void {
    if (this.#over || !process.alive) return
    const { chance } = this.#world
    if (this.#alive().length < 2 || chance.happens(0.4)) return process.pause(chance.next() * 10_000)
    process.die()
    this.#target.replace(process)
  }

  #plan(): void {
    this.#world.plan(this.#world.chance.next() * 2 * this.#everyMs, () => {
      if (this.#over) return
      const [name, begin] = this.#world.chance.pick(this.#kinds)
      this.#target.note(name)
      begin()
      this.#plan()
    })
  }

  all() {
    const { chance } = this.#world
    const { servers } = this.#target
    return {
      process_dies: () => {
        if (this.#alive().length < 2) return
        const process = this.#someone()
        process.die()
        this.#target.replace(process)
      },
      process_pauses: () =>
        this.#someone().pause(chance.happens(0.2) ? chance.next() * 120_000 : chance.next() * 5_000),
      redis_restarts: () => {
        const copy = chance.happens(0.7) ? servers.copyRedis() : []
        this.#soon(1_500, () => servers.restartRedis(copy))
      },
      redis_flushed: () => servers.flushRedis(),
      redis_evicts: () => servers.evictKey(),
      redis_fails_over: () => {
        const failOver = this.#laggingReplica()
        this.#soon(chance.happens(0.5) ? 0 : 300, failOver)
      },
      redis_cut: () => this.#cut(this.#someone(), 'redisCut', 3_000),
      postgres_cut: () => this.#cut(this.#someone(), 'postgresCut', 2_000),
      redis_away: () => this.#away(servers.master, servers.master.name, 2_500),
      postgres_away: () => this.#away(servers.postgres, 'postgres', 2_000),
      redis_clock: () => this.#jump(servers.master, servers.master.name),
      postgres_clock: () => this.#jump(servers.postgres, 'postgres'),
      postgres_fails_over: () => {
        servers.postgres.loseStandby()
        this.#soon(1_500, () => {
          this.#target.note('postgres_hanging_commit', servers.postgres.failOver())
          servers.postgres.skewMs = this.#clockOfAnother(servers.postgres.skewMs)
        })
      },
      postgres_fails_over_lagging: () => this.#goBack('promoted', chance.happens(0.3) ? 50 : 4_000),
      postgres_restored: () => this.#goBack('put back', chance.happens(0.3) ? 50 : 4_000),
      // Both primaries stood in it, and both replicas that take over lagged a little.
      zone_lost: () => this.#goBack('promoted', 100, this.#laggingReplica()),
    }
  }

  /** Seldom: what was refused before one can't be judged after it. */
  #goBack(how: 'promoted' | 'put back', lagMaxMs: number, andThen = () => {}): void {
    this.#lagging += 1
    if (this.#lagging > LAGGING_MAX) return
    const { chance } = this.#world
    const { servers } = this.#target
    const copy = servers.postgres.database.snapshot()
    const { session } = servers.postgres
    const lagMs = chance.next() * lagMaxMs
    // What Redis is told of entries that get lost may arrive when all has begun anew.
    if (chance.happens(0.5)) {
      for (const process of this.#alive()) process.holdUp(lagMs, lagMs + 1_000 + chance.next() * 7_000)
    }
    this.#in(lagMs, () => {
      // Another one came first: what this replica follows, or this copy is of, is not the primary any more.
      if (session !== servers.postgres.session) return
      servers.forget()
      this.#target.note('postgres_entry_lost', servers.postgres.goBackTo(copy, how))
      if (how === 'put back') servers.putPostgresBack()
      servers.postgres.skewMs = this.#clockOfAnother(servers.postgres.skewMs)
      andThen()
    })
  }

  #alive(): Process[] {
    return this.#target.processes().filter(({ alive }) => alive)
  }

  #someone(): Process {
    return this.#world.chance.pick(this.#alive())
  }

  #soon(maxMs: number, run: () => void): void {
    this.#in(this.#world.chance.next() * maxMs, run)
  }

  #in(ms: number, run: () => void): void {
    this.#world.plan(ms, () => !this.#over && run())
  }

  /** Forward by up to half a minute; back by no more, all in all, than the margin that callers keep. */
  #jump(server: { skewMs: number }, name: string): void {
    const { chance } = this.#world
    const behind = this.#behind.get(server) ?? 0
    const byMs = chance.happens(0.5)
      ? Math.max(0, chance.next() * 30_000 - server.skewMs)
      : -chance.next() * (SET_BACK_MAX_MS - behind)
    server.skewMs += byMs
    this.#behind.set(server, Math.max(0, behind - byMs))
    this.#world.tell(() => `${name}'s clock jumps to ${Math.round(server.skewMs)}`)
  }

  /** Who takes over has a clock of its own, and may be far behind. */
  #clockOfAnother(skewMs: number): number {
    const { chance } = this.#world
    return chance.happens(0.5) ? skewMs : (2 * chance.next() - 1) * 30_000
  }

  /**
   * What Redis has now is what a replica has when it takes over. Half of the processes know at once; the others go on talking to the
   * old master for a while.
   */
  #laggingReplica(): () => void {
    const { chance } = this.#world
    const { servers } = this.#target
    const copy = servers.copyRedis()
    for (const process of this.#alive()) process.holdUp(600, 1_000 + chance.next() * 5_000)
    return () => {
      servers.failOver(copy, this.#clockOfAnother(servers.master.skewMs))
      for (const process of this.#target.processes()) {
        this.#world.plan(chance.happens(0.5) ? 0 : chance.next() * 3_000, () => process.followMaster())
      }
    }
  }

  #away(server: { up: boolean }, name: string, maxMs: number): void {
    server.up = false
    this.#world.tell(() => `${name} is away`)
    this.#world.plan(this.#world.chance.next() * maxMs, () => {
      server.up = true
    })
  }

  #cut(process: Process, way: 'redisCut' | 'postgresCut', maxMs: number): void {
    const what = way === 'redisCut' ? 'redis' : 'postgres'
    process[way] = true
    this.#world.tell(() => `${process.name} loses ${what}`)
    this.#world.plan(this.#world.chance.next() * maxMs, () => {
      process[way] = false
      this.#world.tell(() => `${process.name} finds ${what}`)
    })
  }
}
