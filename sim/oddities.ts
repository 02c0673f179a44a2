import type { Process } from './process.js'
import type { Servers } from './servers.js'
import { Chance, type World } from './world.js'

interface Target {
  readonly servers: Servers
  /** Nothing may happen that lets Redis forget. */
  readonly remembers: boolean
  processes(): readonly Process[]
  note(oddity: Oddity): void
}

export type Oddity =
  | 'process_sleeps'
  | 'redis_restarts_from_long_ago'
  | 'redis_full'
  | 'clock_far_ahead'
  | 'postgres_long_away'
  | 'postgres_comes_back_alone'

const ODDITIES = 0x0dd
const COME_BACK = 0xc0eba
const BEGINS_WITHIN_MS = 12_000

/**
 * What happens in few schedules, and then goes far: a process that sleeps for minutes, long after all else has healed; Redis back to where it was
 * many seconds ago; Redis full, so that it answers and writes nothing; a clock further ahead than anybody believes; Postgres away for longer than
 * an idle wallet stays in Redis, or back with commits that its standby lacks. Decided by a chance of its own, the last by another, so that all
 * other schedules stay as they are.
 */
export class Oddities {
  readonly #world: World
  readonly #target: Target
  readonly #chance: Chance
  #over = false

  constructor(world: World, target: Target) {
    this.#world = world
    this.#target = target
    this.#chance = new Chance(Math.imul(world.seed + 1, ODDITIES))
    if (this.#chance.happens(0.12)) this.#plan(() => this.#sleep())
    if (this.#chance.happens(0.12) && !target.remembers) this.#plan(() => this.#goFarBack())
    if (this.#chance.happens(0.12)) this.#plan(() => this.#fill())
    if (this.#chance.happens(0.08)) this.#plan(() => this.#leap())
    if (this.#chance.happens(0.08)) this.#plan(() => this.#leaveForLong())
    const chance = new Chance(Math.imul(world.seed + 1, COME_BACK))
    if (chance.happens(0.1)) this.#plan(() => this.#comeBack(chance), BEGINS_WITHIN_MS, chance)
  }

  /** Who sleeps goes on sleeping. */
  heal(): void {
    this.#over = true
    this.#target.servers.makeRoom()
  }

  #plan(begin: () => void, withinMs = BEGINS_WITHIN_MS, chance = this.#chance): void {
    this.#world.plan(chance.next() * withinMs, () => !this.#over && begin())
  }

  #sleep(): void {
    const alive = this.#target.processes().filter((process) => process.alive)
    this.#target.note('process_sleeps')
    this.#chance.pick(alive).sleep((0.5 + 2 * this.#chance.next()) * 60_000)
  }

  #goFarBack(): void {
    const { servers } = this.#target
    const copy = servers.copyRedis()
    this.#plan(() => {
      this.#target.note('redis_restarts_from_long_ago')
      servers.restartRedis(copy)
    }, 20_000)
  }

  #fill(): void {
    this.#target.note('redis_full')
    this.#target.servers.fillRedis()
    this.#plan(() => this.#target.servers.makeRoom(), 4_000)
  }

  #leaveForLong(): void {
    const { postgres } = this.#target.servers
    this.#target.note('postgres_long_away')
    postgres.up = false
    this.#world.tell(() => 'postgres is away for long')
    this.#world.plan(8_000 + this.#chance.next() * 7_000, () => {
      postgres.up = true
    })
  }

  #leap(): void {
    const { servers } = this.#target
    const server = this.#chance.happens(0.7) ? servers.master : servers.postgres
    this.#target.note('clock_far_ahead')
    server.skewMs += (1 + 2 * this.#chance.next()) * 60_000
    this.#world.tell(() => `a clock leaps ahead to ${Math.round(server.skewMs)}`)
  }

  /**
   * Commits hang, and the primary comes back before anybody has reached the standby; then that is reached again, or takes over as it is. Again and
   * again, and soon: who has waited for long begins nothing.
   */
  #comeBack(chance: Chance): void {
    const { postgres } = this.#target.servers
    postgres.loseStandby()
    const end = () => {
      postgres.endAlone(chance.happens(0.7))
      this.#plan(() => this.#comeBack(chance), 3_000, chance)
    }
    const comeBack = () => {
      if (postgres.comeBackAlone() !== null) this.#target.note('postgres_comes_back_alone')
      this.#plan(end, 1_000, chance)
    }
    this.#plan(comeBack, 100, chance)
  }
}
