import type { Process, Weather } from './process.js'
import type { Servers } from './servers.js'
import type { DataCopy } from './valkey.js'
import type { World } from './world.js'

interface Target {
  readonly servers: Servers
  readonly weather: Weather
  processes(): readonly Process[]
  /** A new process in place of one that died. */
  replace(process: Process): void
}

/** What goes wrong in a schedule: chosen by its seed, a few kinds at a time, so that some are rough and some only odd. */
export class Faults {
  readonly #world: World
  readonly #target: Target
  readonly #kinds: (() => void)[]
  readonly #everyMs: number
  #over = false

  constructor(world: World, target: Target) {
    this.#world = world
    this.#target = target
    const { chance } = world
    const all = this.#all()
    this.#kinds = all.filter(() => chance.happens(0.35))
    if (chance.happens(0.7)) target.weather.slow = chance.next() * 0.15
    if (chance.happens(0.6)) target.weather.lossy = chance.next() * 0.06
    this.#everyMs = 30 + chance.next() * 500
    if (this.#kinds.length > 0) this.#plan()
  }

  /** From now on all is well: what is broken is mended, nothing breaks any more. */
  heal(): void {
    this.#over = true
    const { servers, weather } = this.#target
    servers.postgresUp = true
    servers.master.up = true
    weather.lossy = 0
    weather.slow = 0
    for (const process of this.#target.processes()) {
      process.redisCut = false
      process.postgresCut = false
      process.redis = servers.master
      process.wake()
    }
  }

  #plan(): void {
    this.#world.plan(this.#world.chance.next() * 2 * this.#everyMs, () => {
      if (this.#over) return
      this.#world.chance.pick(this.#kinds)()
      this.#plan()
    })
  }

  #all(): (() => void)[] {
    const { chance } = this.#world
    const { servers } = this.#target
    const someone = (): Process => chance.pick(this.#target.processes().filter(({ alive }) => alive))
    const forAWhile = (maxMs: number, begin: () => void, end: () => void): void => {
      begin()
      this.#world.plan(chance.next() * maxMs, end)
    }
    return [
      () => {
        if (this.#target.processes().filter(({ alive }) => alive).length < 2) return
        const process = someone()
        process.die()
        this.#target.replace(process)
      },
      () => someone().pause(chance.happens(0.2) ? chance.next() * 120_000 : chance.next() * 5_000),
      () => {
        const copy = chance.happens(0.7) ? servers.copyRedis() : []
        this.#world.plan(chance.next() * 1_500, () => !this.#over && servers.restartRedis(copy))
      },
      () => servers.flushRedis(),
      () => servers.evictKey(),
      () => {
        const copy = servers.copyRedis()
        this.#world.plan(chance.happens(0.5) ? 0 : chance.next() * 300, () => this.#failOver(copy))
      },
      () => {
        const process = someone()
        forAWhile(
          3_000,
          () => this.#cut(process, 'redisCut', true),
          () => this.#cut(process, 'redisCut', false),
        )
      },
      () => {
        const process = someone()
        forAWhile(
          2_000,
          () => this.#cut(process, 'postgresCut', true),
          () => this.#cut(process, 'postgresCut', false),
        )
      },
      () => {
        const server = servers.master
        this.#world.tell(() => `${server.name} is away`)
        forAWhile(
          2_500,
          () => this.#down(server, false),
          () => this.#down(server, true),
        )
      },
      () => {
        this.#world.tell(() => 'postgres is away')
        forAWhile(
          2_000,
          () => {
            servers.postgresUp = false
          },
          () => {
            servers.postgresUp = true
          },
        )
      },
      () => {
        servers.redisSkewMs = this.#jump(servers.redisSkewMs)
        this.#world.tell(() => `redis's clock jumps to ${Math.round(servers.redisSkewMs)}`)
      },
      () => {
        servers.postgresSkewMs = this.#jump(servers.postgresSkewMs)
        this.#world.tell(() => `postgres's clock jumps to ${Math.round(servers.postgresSkewMs)}`)
      },
    ]
  }

  /** Forward by up to half a minute; back by no more than the margin that callers keep. */
  #jump(skewMs: number): number {
    const { chance } = this.#world
    return chance.happens(0.5) ? Math.max(skewMs, chance.next() * 30_000) : skewMs - chance.next() * 100
  }

  /** Half of the processes know at once; the others go on talking to the old master for a while. */
  #failOver(copy: DataCopy): void {
    if (this.#over) return
    const { chance } = this.#world
    this.#target.servers.failOver(copy)
    for (const process of this.#target.processes()) {
      this.#world.plan(chance.happens(0.5) ? 0 : chance.next() * 3_000, () => process.followMaster())
    }
  }

  #down(server: { up: boolean }, up: boolean): void {
    server.up = up || this.#over
  }

  #cut(process: Process, way: 'redisCut' | 'postgresCut', cut: boolean): void {
    process[way] = cut && !this.#over
    this.#world.tell(() => `${process.name} ${cut ? 'loses' : 'finds'} ${way === 'redisCut' ? 'redis' : 'postgres'}`)
  }
}
