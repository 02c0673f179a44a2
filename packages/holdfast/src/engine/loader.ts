import { HoldfastError } from '../errors/index.js'
import type { WalletRow, Witness } from '../journal/index.js'
import { type Entry, hasNumbers, type WalletState } from '../machine/index.js'
import type { Place } from '../redis/index.js'
import type { Look } from '../sequencer/index.js'
import type { Attempt } from './attempt.js'
import { tookTooLong } from './checkpoints.js'
import type { Circuit } from './circuit.js'
import { jitteredMs, sleep } from './clock.js'
import type { Context } from './context.js'
import type { Lane } from './lane.js'
import { Raiser } from './raiser.js'

/** Looks at a wallet that somebody else is loading before the advisory lease is ignored: for about two seconds. */
const BUSY_LOOKS_MAX = 20
/** The stock of a large sale takes seconds; who reads it says so again and again. */
const BUSY_WITH_STOCK_MAX = 600
/** After Redis failed to look at a wallet, or to take it in, until it is asked again. */
const GIVEN_UP_MS = 20

/**
 * Puts wallets into Redis: look, raise, install. State enters only under a raised epoch, so that nothing of its life before is
 * accepted beside it; and only on a raise whose success was seen, once. Whatever goes wrong in between, the next round raises again.
 */
export class Loader {
  readonly #context: Context
  readonly #raiser: Raiser
  readonly #queue: Lane[] = []
  #loads = 0

  constructor(context: Context) {
    this.#context = context
    this.#raiser = new Raiser(context)
  }

  park(attempt: Attempt): void {
    const { lane } = attempt
    lane.parked.push(attempt)
    this.#turnAway(lane)
    if (lane.loading || lane.parked.length === 0) return
    lane.loading = true
    this.#queue.push(lane)
    this.#next()
  }

  /** While Postgres is away nothing can be loaded, for however long that is. */
  #turnAway(lane: Lane): void {
    const away = this.#context.turnedAway(false)
    if (away) for (const attempt of lane.parked.splice(0)) this.#context.refuse(attempt, away)
  }

  /** After a failover everything is loaded anew: as wallets are needed, and never all at once. */
  #next(): void {
    while (this.#loads < this.#context.options.loadsMax) {
      const lane = this.#queue.shift()
      if (!lane) return
      this.#loads += 1
      void this.#load(lane).finally(() => {
        this.#loads -= 1
        this.#next()
      })
    }
  }

  async #load(lane: Lane): Promise<void> {
    let disappointed: ReadonlySet<Attempt> = new Set()
    try {
      disappointed = await this.#bring(lane)
    } finally {
      const attempts = lane.parked
      lane.parked = []
      lane.loading = false
      for (const attempt of attempts) {
        if (disappointed.has(attempt)) this.#context.refuse(attempt, new HoldfastError('wallet_not_found'))
        else this.#context.route(attempt)
      }
    }
  }

  /**
   * Returns as soon as Redis has a state to be trusted, or is away, or the wallet is left to the Postgres path; or when there is no such
   * wallet, with those who came before that was asked. Who came since may have opened it meanwhile.
   */
  async #bring(lane: Lane): Promise<ReadonlySet<Attempt>> {
    const nobody = new Set<Attempt>()
    const { clock, options, postgres } = this.#context
    const circuit = this.#context.redisAt(lane.place)
    for (let round = 0, busy = 0; ; round += 1) {
      // While it can't be loaded callers come and go.
      lane.parked = lane.parked.filter(({ settled }) => !settled)
      this.#turnAway(lane)
      if (lane.parked.length === 0) return nobody
      if (round > 0) await sleep(clock, 1 + jitteredMs(clock, Math.min(round, 6), 2, 100))
      let look: Look
      const begunAt = clock.now()
      try {
        look = await this.#context.sequencer.look(lane.place, lane.epochMin, this.#context.asker, options.leaseMs)
        circuit.worked()
      } catch (error) {
        this.#context.telemetry.log?.('warn', 'look_failed', { reason: String(error) })
        await this.#giveUp(circuit, error, begunAt)
        return nobody
      }
      const unmarked = lane.memoryWanted && look.core?.memory === false
      if (look.why === 'trusted' && !unmarked) return nobody
      if (look.lease === 'busy' && busy < (lane.place.isSale ? BUSY_WITH_STOCK_MAX : BUSY_LOOKS_MAX)) {
        busy += 1
        continue
      }
      try {
        const asking = new Set(lane.parked)
        const done = await this.#raiseAndInstall(lane, look)
        if (done !== 'again') return done === 'missing' ? asking : nobody
      } catch (error) {
        this.#context.telemetry.log?.('warn', 'load_failed', { reason: String(error) })
        if (!(error instanceof JournalFailure)) {
          await this.#giveUp(circuit, error)
          return nobody
        }
        if (!tookTooLong(error.cause)) postgres.failedToWrite(error.cause)
      }
    }
  }

  /** Who is let go while Redis still passes for being there comes back at once: without a pause each of them would keep Redis busy. */
  async #giveUp(circuit: Circuit, error: unknown, begunAt?: number): Promise<void> {
    const { clock } = this.#context
    circuit.failedWith(error, begunAt)
    if (!circuit.open) await sleep(clock, GIVEN_UP_MS * (0.5 + clock.random()))
  }

  async #raiseAndInstall(lane: Lane, look: Look): Promise<'installed' | 'missing' | 'left' | 'again'> {
    const { journal, sequencer, clock, options, asker, telemetry, witnesses } = this.#context
    const { ref } = lane.place
    const known = acknowledged(ref, look)
    let bad: ReadonlySet<string> = new Set()
    const snapshot = await fromJournal(async () => {
      bad = await this.#savePending(lane, look)
      const epochMin = Math.max(lane.epochMin, look.epoch + 1)
      const raised = await this.#raiser.raise({ ref, epochMin, memory: lane.memoryWanted, known })
      // Redis knows of something in the journal that is not there. What Redis has is left as it is: it may be all that is left of it.
      if (known && !raised?.holds) await witnesses.accuse(journal, known)
      return raised
    })
    if (!snapshot) return 'missing'
    this.#context.postgres.wrote()
    this.#context.learnPostgresClock(snapshot.clock)
    lane.distrust(snapshot.state.epoch)
    lane.owned = null
    lane.memory = snapshot.memory
    const { committed, unstorable } = await this.#finalKeys(lane.place, snapshot.memory, bad)
    const { isSale } = lane.place
    const heardAt = isSale ? await this.#stage(lane.place, snapshot.state, look) : look.clock
    if (isSale) {
      // Time enough for others to have gone on under a later epoch, and for Redis to have forgotten it.
      const [row] = await fromJournal(() => journal.read([ref]))
      if (row?.epoch !== snapshot.state.epoch) {
        await this.#unstage(lane.place, snapshot.state)
        return this.#giveWay(lane, row)
      }
    }
    const reply = await sequencer.install(asker, {
      place: lane.place,
      state: snapshot.state,
      memory: snapshot.memory,
      deadline: heardAt + options.installWithinMs,
      life: look.life,
      clock: Math.floor(Math.min(snapshot.clock, clock.timeOfDay() + options.aheadMaxMs)),
      recent: snapshot.recent,
      finalKeys: [...committed, ...unstorable],
    })
    telemetry.count?.('holdfast_recoveries_total', { what: 'reload' })
    if (reply.type !== 'installed') {
      await this.#unstage(lane.place, snapshot.state)
      return 'again'
    }
    this.#tellLost([...unstorable.map(() => 'not_storable'), ...reply.lost.map(({ code }) => code)])
    return 'installed'
  }

  /**
   * Reads the stock of a sale and sets it aside in Redis. That may take seconds: others are told to wait, so that they do not raise the epoch
   * again and again and nobody ever gets done. Returns Redis's clock when it was last heard of.
   */
  async #stage(place: Place, state: WalletState, { clock: heardAt }: Look): Promise<number> {
    const { journal, sequencer, clock, options, asker } = this.#context
    let renewing = true
    const renew = (): void => {
      if (!renewing) return
      // Unheard, others come a little early: that costs time, and nothing else.
      sequencer.renewLoad(place, asker, options.leaseMs).catch(() => {})
      clock.after(options.leaseMs / 3, renew)
    }
    clock.after(options.leaseMs / 3, renew)
    try {
      state.stock = await fromJournal(() => journal.stock(place.ref, state.seq))
      return (await sequencer.stage(asker, place, state)) ?? heardAt
    } finally {
      renewing = false
    }
  }

  /** Unheard, it goes by itself after a while. */
  async #unstage(place: Place, { epoch }: WalletState): Promise<void> {
    const { sequencer, asker } = this.#context
    if (place.isSale) await sequencer.unstage(asker, place, epoch).catch(() => {})
  }

  /**
   * Others have gone on while the stock was read. Those who do not see Redis are followed: they take it over again each time, sooner than it is
   * read, so nothing would ever be installed.
   */
  #giveWay(lane: Lane, row: WalletRow | undefined): 'left' | 'again' {
    if (row?.owner !== 'postgres' || row.epoch < lane.epochMin) return 'again'
    this.#context.follow(lane, row.owner, row.epoch)
    return 'left'
  }

  /**
   * A raise discards what is pending. What still fits goes into the journal first: what Redis has, and what this process has on its way there, of
   * which Redis may have forgotten all. Returns the keys of what Postgres can't store.
   */
  async #savePending(lane: Lane, { pending }: Look): Promise<ReadonlySet<string>> {
    const bad = new Set<string>()
    const entries = [...pending, ...lane.items.values()].map(({ entry }) => entry)
    if (entries.length === 0) return bad
    const { ref } = lane.place
    const { verdicts } = await this.#context.journal.append(entries.map((entry) => ({ ref, entry, deadline: 0 })))
    this.#context.telemetry.count?.('holdfast_recoveries_total', { what: 'help' }, pending.length)
    for (const [index, entry] of entries.entries()) {
      if (verdicts[index]?.type === 'bad' && hasNumbers(entry)) bad.add(entry.key)
    }
    return bad
  }

  /**
   * Redis decides again what it acknowledged from memory, unless the journal has it, perhaps from another life and with another hash; or will
   * never have it: decided again and again, that would keep everything behind it out. Looked for after the raise, because from then on nothing of
   * the lives before gets in any more.
   */
  async #finalKeys(
    place: Place,
    memory: boolean,
    bad: ReadonlySet<string>,
  ): Promise<{ committed: string[]; unstorable: string[] }> {
    if (!memory) return { committed: [], unstorable: [] }
    const { journal, sequencer, asker } = this.#context
    const { pending } = await sequencer.look(place, 0, asker, 0)
    const entries = pending.flatMap(({ memory, entry }) => (memory ? [entry] : []))
    const [storable, unstorable]: [Entry[], Entry[]] = [[], []]
    for (const entry of entries) (journal.canKeep(entry) && !bad.has(entry.key) ? storable : unstorable).push(entry)
    const wanted = storable.map(({ key }) => ({ ref: place.ref, key }))
    const found = wanted.length > 0 ? await fromJournal(() => journal.find(wanted)) : []
    return {
      committed: storable.flatMap(({ key }, index) => (found[index] ? [key] : [])),
      unstorable: unstorable.map(({ key }) => key),
    }
  }

  /** Acknowledged from memory, and lost. */
  #tellLost(codes: readonly string[]): void {
    if (codes.length === 0) return
    const { telemetry } = this.#context
    telemetry.count?.('holdfast_memory_lost_total', {}, codes.length)
    telemetry.log?.('error', 'memory_operations_lost', { count: codes.length, codes })
  }
}

/**
 * What the state in Redis, of whichever life, knows to be in the journal: since it was loaded, or since then acknowledged. Only an entry that is
 * whole counts, and a look brings no other: a state that somebody damaged says nothing about Postgres.
 */
function acknowledged(ref: string, { core, last, pending }: Look): Witness | null {
  if (!core || !last || last.seq !== core.acked || last.epoch > core.epoch) return null
  const head = pending[0]?.entry.prev ?? core.head
  if (last.hash !== head) return null
  return { ref, epoch: core.epoch, seq: last.seq, hash: last.hash }
}

/** It was Postgres that failed, not Redis. */
class JournalFailure extends Error {}

async function fromJournal<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw new JournalFailure('the journal did not answer', { cause: error })
  }
}
