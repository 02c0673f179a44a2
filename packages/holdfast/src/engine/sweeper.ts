import { HoldfastError } from '../errors/index.js'
import type { DuePlace, DueWallet } from '../journal/index.js'
import type { Place } from '../redis/index.js'
import { readAgendaName } from './agenda.js'
import type { Outcome } from './attempt.js'
import type { Circuit } from './circuit.js'
import type { Context } from './context.js'
import type { Item, Lane } from './lane.js'

/**
 * For so long a round looks after wallets that are not in Redis, and waits for one that does not answer; the next round goes on behind them.
 * What a dead process left pending in Redis waits meanwhile, so it is short; and after a flush of Redis everything that is due is here, so it is
 * many pages.
 */
const COLD_ROUND_MS = 1_000

/**
 * Shards that are looked after at a time. One after the other, each waits for all before it: with 64 shards and half a second to Redis the last
 * hold ran out 49 s late.
 */
const SHARDS_AT_ONCE = 8

interface Parts {
  readonly shards: number
  agendaOf(shard: number): string
  placeOf(tenant: string, ref: string): Place
  laneOf(place: Place): Lane
  /** Is Redis there, for this shard? */
  redisOf(shard: number): Circuit
  /** Lets due holds of a wallet expire, wherever it is; by no state of before this epoch. */
  touch(place: Place, epochMin: number): Promise<Outcome>
}

/**
 * Looks after what nobody touches: entries that a dead process left pending, holds whose time has come, wallets that may leave.
 * Every process sweeps; who takes a wallet from the agenda has it for a few seconds, so they don't get in each other's way.
 */
export class Sweeper {
  readonly #context: Context
  readonly #parts: Parts
  #cancel: (() => void) | undefined
  #working: Promise<void> | undefined
  #stopped = false
  /** Behind which wallet the next page of those that are due begins; null: at the beginning. */
  #coldAfter: DuePlace | null = null
  /** Wallets that are due and being touched. */
  readonly #touching = new Set<string>()
  /** Ends the wait for them. */
  #leave: (() => void) | undefined

  constructor(context: Context, parts: Parts) {
    this.#context = context
    this.#parts = parts
  }

  start(): void {
    const { clock, options } = this.#context
    if (this.#stopped) return
    this.#cancel = clock.after(
      options.sweepEveryMs * (0.5 + clock.random()),
      () => {
        this.#working = this.#round().finally(() => this.start())
      },
      true,
    )
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancel?.()
    this.#leave?.()
    await this.#working
  }

  async #round(): Promise<void> {
    const { clock, telemetry } = this.#context
    const startedAt = clock.now()
    const whole = await this.sweep()
    telemetry.observe?.('holdfast_sweep_duration_seconds', (clock.now() - startedAt) / 1_000)
    telemetry.count?.('holdfast_sweeps_total', { outcome: whole ? 'done' : 'failed' })
  }

  /** One round over all shards and over what Postgres knows to be due. False: somewhere it failed. */
  async sweep(): Promise<boolean> {
    const { shards } = this.#parts
    const from = Math.floor(this.#context.clock.random() * shards)
    const order = Array.from({ length: shards }, (_, i) => (from + i) % shards).values()
    const cold = this.#sweepCold().then(
      () => true,
      () => false,
    )
    // They take turns at what is left of the shards.
    const hot = Array.from({ length: Math.min(SHARDS_AT_ONCE, shards) }, () => this.#sweepShards(order))
    return (await Promise.all([...hot, cold])).every((whole) => whole)
  }

  async #sweepShards(order: IterableIterator<number>): Promise<boolean> {
    let whole = true
    for (const shard of order) {
      if (this.#stopped) break
      const redis = this.#parts.redisOf(shard)
      // What nobody could remember is left where it is: all that waits in Redis would end up in the memory of every process.
      if (this.#context.full()) continue
      // Where there is no room, this is what makes some: wallets leave.
      if (redis.open && !redis.full) continue
      try {
        await this.#sweepShard(shard)
        // It is let in where others are not: so that says nothing of them.
        if (!redis.open) redis.worked()
      } catch (error) {
        if (HoldfastError.is(error, 'unavailable')) redis.failedWith(error)
        this.#context.telemetry.log?.('debug', 'sweep_failed', { reason: String(error) })
        whole = false
      }
    }
    return whole
  }

  async #sweepShard(shard: number): Promise<void> {
    const { sequencer, options } = this.#context
    const agendaKey = this.#parts.agendaOf(shard)
    const names = await sequencer.claim(agendaKey, options.claimMax, options.claimMs)
    const lanes = names.flatMap((name) => {
      const wallet = readAgendaName(name)
      return wallet ? [this.#parts.laneOf(this.#parts.placeOf(wallet.tenant, wallet.ref))] : []
    })
    if (lanes.length === 0) return
    this.#context.telemetry.count?.('holdfast_swept_wallets_total', { where: 'hot' }, lanes.length)
    const items = await this.#tend(agendaKey, lanes)
    // What came to light goes into the journal, and then Redis is told so: nobody else may come by for a long time.
    if (items.length === 0) return
    await Promise.all(items.map((item) => this.#filed(item)))
    await this.#tend(agendaKey, [...new Set(items.map(({ lane }) => lane))])
  }

  async #tend(agendaKey: string, lanes: readonly Lane[]): Promise<Item[]> {
    const runs = await this.#context.sequencer.tend(agendaKey, lanes)
    const fresh: Item[] = []
    for (const [index, lane] of lanes.entries()) {
      const run = runs[index]
      // A command that meets the same has the wallet loaded anew.
      if (run === 'broken') this.#context.reload(lane.place)
      else if (run) fresh.push(...lane.learn(run))
    }
    if (fresh.length > 0) {
      this.#context.telemetry.count?.('holdfast_recoveries_total', { what: 'help' }, fresh.length)
      this.#context.file(fresh)
    }
    return fresh
  }

  /** Until the entry has its verdict, whichever; bounded, because Postgres may be away. */
  async #filed(item: Item): Promise<void> {
    const { clock } = this.#context
    const until = clock.now() + 2_000
    while (item.lane.items.get(item.entry.seq) === item && clock.now() < until) {
      await new Promise<void>((resolve) => {
        clock.after(20, resolve, true)
      })
    }
  }

  /** Wallets that are not in Redis: Postgres knows when their next hold expires. Page by page, also behind those that can't be touched. */
  async #sweepCold(): Promise<void> {
    const { clock, journal, options } = this.#context
    const until = Math.floor(this.#context.postgresNow() - options.dueGraceMs)
    const endsAt = clock.now() + COLD_ROUND_MS
    do {
      if (this.#context.full()) return
      const page = await journal.due(until, options.claimMax, this.#coldAfter)
      if (this.#stopped) return
      this.#coldAfter = page.length < options.claimMax ? null : (page.at(-1) ?? null)
      await this.#touchAll(page, until, Math.max(0, endsAt - clock.now()))
    } while (this.#coldAfter && !this.#stopped && clock.now() < endsAt)
  }

  /** Returns when all of them were touched, or the time is up: who takes longer comes to an end by himself. */
  async #touchAll(page: readonly DueWallet[], until: number, withinMs: number): Promise<void> {
    const touched = Promise.all(page.map((wallet) => this.#touch(wallet, until)))
    await new Promise<void>((resolve) => {
      this.#leave = resolve
      const cancel = this.#context.clock.after(withinMs, resolve, true)
      void touched.then(cancel).then(resolve)
    })
  }

  async #touch({ ref, tenant, epoch }: DueWallet, until: number): Promise<void> {
    // A round before this one has left it behind.
    if (this.#touching.has(ref)) return
    this.#touching.add(ref)
    this.#context.telemetry.count?.('holdfast_swept_wallets_total', { where: 'cold' })
    try {
      // Redis may have a state that those who did not see it have left behind: by that nothing is due, for ever.
      const { touch } = await this.#parts.touch(this.#parts.placeOf(tenant, ref), epoch)
      if (this.#stopped || !touch || (touch.due > 0 && touch.due <= until)) return
      // The bound in Postgres only said that something might be due. It moves on, if the state is still the one that was touched.
      await this.#context.journal.relax(ref, touch.epoch, touch.seq, touch.due)
    } catch {
      // It stays due, and is found again.
    } finally {
      this.#touching.delete(ref)
    }
  }
}
