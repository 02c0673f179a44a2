import type { OpenSlot, PostgresSchedules } from '../../journal/index.js'
import type { SaleTenant } from './tenant.js'

/** So close to the end of a slot, and whenever the time was last asked so long ago, it is asked again. */
const MARGIN_MS = 1_000
const ASK_AFTER_MS = 10_000
/** What comes next is read with it, so that not every slot has to be. */
const COMING = 8

/**
 * Which slot is running, by the clock that decides checkouts: that of the Redis server that has the slot's sale, or Postgres's while that is
 * away. It only moves forward, so whoever is told that a slot runs is never refused because it has not begun. The clock of the process
 * measures how long ago that was asked, and no more.
 */
export class CurrentSlot {
  readonly #schedules: PostgresSchedules
  readonly #tenant: SaleTenant
  readonly #id: string
  #slots: readonly OpenSlot[] = []
  #time: { readonly at: number; readonly askedAt: number } | undefined
  #looking: Promise<OpenSlot | null> | undefined

  constructor(schedules: PostgresSchedules, tenant: SaleTenant, id: string) {
    this.#schedules = schedules
    this.#tenant = tenant
    this.#id = id
  }

  /** Null: none is. */
  async get(): Promise<OpenSlot | null> {
    const known = this.#known()
    if (known) return known
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  /** What is opened already and comes after it. Null: nothing yet. */
  async next(): Promise<OpenSlot | null> {
    const current = await this.get()
    const after = current?.endsAt ?? (await this.#postgresNow())
    const slots = await this.#schedules.slots(this.#tenant.keys.tenant, this.#id, after, 2)
    return slots.find(({ startsAt }) => startsAt >= after) ?? null
  }

  /** Without asking anybody. Undefined: that can't be known. */
  #known(): OpenSlot | undefined {
    if (!this.#time) return undefined
    const agoMs = performance.now() - this.#time.askedAt
    if (agoMs > ASK_AFTER_MS) return undefined
    const now = this.#time.at + agoMs
    return this.#slots.find(({ startsAt, endsAt, ready }) => ready && startsAt <= now && now + MARGIN_MS < endsAt)
  }

  async #look(): Promise<OpenSlot | null> {
    let now = this.#time ? this.#time.at + performance.now() - this.#time.askedAt : await this.#postgresNow()
    const asked = new Set<string>()
    let last: OpenSlot | null = null
    for (;;) {
      await this.#read(now)
      const slot = this.#slots.findLast(({ startsAt }) => startsAt <= now)
      // Two servers that differ: by one clock it has ended, by the other the next has not begun. That one will, in a moment.
      if (!slot || asked.has(slot.sale)) return last && last.endsAt > now ? last : null
      now = await this.#timeOf(slot)
      this.#time = { at: now, askedAt: performance.now() }
      if (slot.startsAt <= now && now < slot.endsAt) return slot
      asked.add(slot.sale)
      if (!last || slot.startsAt > last.startsAt) last = slot
    }
  }

  /**
   * Slots never change, and there is none between two that follow each other: they are read again only where the time is not between two of
   * them, or a sale that was not ready may be by now.
   */
  async #read(now: number): Promise<void> {
    const isBetween =
      this.#slots.some(({ startsAt }) => startsAt <= now) && this.#slots.some(({ startsAt }) => startsAt > now)
    if (isBetween && this.#slots.every(({ ready }) => ready)) return
    this.#slots = await this.#schedules.slotsAround(this.#tenant.keys.tenant, this.#id, Math.floor(now), COMING)
  }

  async #timeOf({ sale, terms }: OpenSlot): Promise<number> {
    const { keys, engine, sequencer } = this.#tenant
    const places = Array.from({ length: terms.buckets }, (_, bucket) => keys.ofSale(sale, bucket))
    if (places.some((place) => engine.isRedisAway(place))) return this.#postgresNow()
    try {
      return Math.min(...(await Promise.all(places.map((place) => sequencer.now(place)))))
    } catch {
      return this.#postgresNow()
    }
  }

  async #postgresNow(): Promise<number> {
    return (await this.#schedules.read(this.#tenant.keys.tenant, this.#id))?.now ?? 0
  }
}
