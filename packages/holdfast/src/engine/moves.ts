import { HoldfastError } from '../errors/index.js'
import type { Intent, OpenIntent, TransferIntents } from '../journal/index.js'
import { type Command, command, MAX_AMOUNT, type Move, moveWords } from '../machine/index.js'
import type { Place } from '../redis/index.js'
import type { Outcome } from './attempt.js'
import { jitteredMs, sleep } from './clock.js'
import type { Context } from './context.js'
import type { SubmitOptions } from './engine.js'
import type { IntendedParts, Patience } from './intended.js'
import { planMoves, type Stocktaking, sumOf, type Wanted } from './move-plan.js'
import { onAbort } from './on-abort.js'
import type { Transfers } from './transfers.js'

/** The buckets of a sale, and in which of them something is wanted. */
export interface Buckets {
  readonly places: readonly Place[]
  readonly target: number
}

/** `there`: it was, or it has come; somebody else may have taken it since. `short`: all buckets together have only so many. */
export type Brought = { readonly type: 'there' } | { readonly type: 'short'; readonly left: number }

interface Asked {
  readonly wanted: Wanted
  /** Does anybody wait for it? */
  readonly isAwaited: () => boolean
  readonly resolve: (brought: Brought) => void
  readonly reject: (error: unknown) => void
}

const COUNTER = 'stock'
/** A command is tried so often while stock is brought for it. What was brought may be gone when it comes: others want it too. */
const TRIES_MAX = 50
/** Wanted at once: what is looked at in one go. */
const ROUND_MAX = 100
/** A move that is seen for so long is finished by who waits for it. */
const WAITED_MS = 1_000

/**
 * Stock from one bucket of a sale to another, so that nothing stays unsold in a corner. Nothing spans two buckets:
 *
 *     intent ─▶ give in the source ─▶ take in the target ─▶ intent removed
 *                 │ refused
 *                 ▼
 *            intent removed
 *
 * The give is the commit point. Each step has a key of its own, so it is the same whoever takes it. Who finds the intent uses up the key of the
 * give with a `void`: then it will never be; or learns that it was, and takes. That is right at any time, so nobody has to wait for anybody.
 *
 * "Sold out" is told when all buckets were looked at, one by one, and nothing was on its way between them meanwhile.
 */
export class Moves {
  readonly #context: Context
  readonly #intents: TransferIntents
  readonly #transfers: Transfers
  readonly #parts: IntendedParts
  /** By the ref of the target: what is wanted there. An entry is there while a round is under way. */
  readonly #asked = new Map<string, Asked[]>()
  readonly #underWay = new Set<Promise<unknown>>()
  #moves = 0

  constructor(context: Context, intents: TransferIntents, transfers: Transfers, parts: IntendedParts) {
    this.#context = context
    this.#intents = intents
    this.#transfers = transfers
    this.#parts = parts
  }

  /** Has a command decided in its bucket. */
  submit(
    buckets: Buckets,
    asked: Command,
    wanted: () => Promise<readonly Wanted[]>,
    options: SubmitOptions,
  ): Promise<Outcome> {
    const place = buckets.places[buckets.target] as Place
    return this.around(buckets, wanted, options, (timeoutMs) =>
      this.#parts.submit(place, asked, { ...options, timeoutMs }),
    )
  }

  /** Tries something in a bucket; where that says "sold out", what is wanted is brought from others, and it is tried again. */
  async around<T>(
    buckets: Buckets,
    wanted: () => Promise<readonly Wanted[]>,
    options: Pick<SubmitOptions, 'timeoutMs' | 'signal'>,
    attempt: (timeoutMs: number) => Promise<T>,
  ): Promise<T> {
    const { clock } = this.#context
    const patienceMs = options.timeoutMs ?? this.#context.options.timeoutMs
    // On the hot path, and nothing to bring from anywhere.
    if (buckets.places.length === 1) return attempt(patienceMs)
    const deadline = clock.now() + patienceMs
    for (let tries = 1; ; tries += 1) {
      const timeoutMs = deadline - clock.now()
      if (timeoutMs <= 0) throw new HoldfastError('timeout')
      try {
        return await attempt(timeoutMs)
      } catch (error) {
        if (!HoldfastError.is(error, 'sold_out')) throw error
        if (tries === TRIES_MAX)
          throw new HoldfastError('unavailable', 'Stock is on its way between buckets of the sale')
        const lines = await wanted()
        const brought = await this.bring(buckets, lines, { deadline, signal: options.signal })
        const short = brought.findIndex(({ type }) => type === 'short')
        if (short >= 0) throw soldOut((lines[short] as Wanted).item, brought[short] as Brought)
      }
    }
  }

  /** Brings what is wanted to the target, as far as there is any. One answer for each, in order. */
  async bring(buckets: Buckets, wanted: readonly Wanted[], { deadline, signal }: Patience): Promise<Brought[]> {
    const { clock } = this.#context
    const waitMs = deadline - clock.now()
    return new Promise((resolve, reject) => {
      const cancel = clock.after(waitMs, () => reject(new HoldfastError('timeout')))
      const stopListening = signal && onAbort(signal, () => reject(new HoldfastError('aborted')))
      const isAwaited = (): boolean => !signal?.aborted && clock.now() < deadline
      const work = Promise.all(wanted.map((one) => this.#ask(buckets, one, isAwaited))).finally(() => {
        cancel()
        stopListening?.()
      })
      this.#parts.count(work)
      work.then(resolve, reject)
    })
  }

  /** Resolves when nothing is under way any more. */
  async drain(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay)
  }

  /** Whoever finds a move: forward if it was given, and otherwise it will never be. */
  async settle(intent: OpenIntent, patience: Patience): Promise<'move_finished' | 'move_dropped'> {
    const given = await this.#wasGiven(intent, patience)
    if (given) await this.#take(intent, patience)
    this.#transfers.end({ ...intent, attempt: 0 })
    return given ? 'move_finished' : 'move_dropped'
  }

  /** A crowd wants the same: one round serves all who came before it, and those who come while it runs are served by the next. */
  #ask(buckets: Buckets, wanted: Wanted, isAwaited: () => boolean): Promise<Brought> {
    const { ref } = buckets.places[buckets.target] as Place
    return new Promise((resolve, reject) => {
      const asked = { wanted, isAwaited, resolve, reject }
      const queue = this.#asked.get(ref)
      if (queue) return void queue.push(asked)
      this.#asked.set(ref, [asked])
      const work = this.#work(ref, buckets).finally(() => this.#underWay.delete(work))
      this.#underWay.add(work)
    })
  }

  async #work(ref: string, buckets: Buckets): Promise<void> {
    const queue = this.#asked.get(ref) as Asked[]
    // What is asked for in this turn goes along.
    await new Promise<void>((resolve) => this.#context.clock.soon(resolve))
    while (queue.length > 0) {
      const asked = queue.splice(0, ROUND_MAX).filter(({ isAwaited, reject }) => {
        const awaited = isAwaited()
        if (!awaited) reject(new HoldfastError('timeout'))
        return awaited
      })
      try {
        await this.#round(buckets, asked)
      } catch (error) {
        for (const { reject } of asked) reject(error)
      }
    }
    this.#asked.delete(ref)
  }

  async #round(buckets: Buckets, all: readonly Asked[]): Promise<void> {
    const { clock, options } = this.#context
    const patience = { deadline: clock.now() + options.timeoutMs }
    const seen = new Map<number, number>()
    for (let open = all, tries = 0; open.length > 0; tries += 1) {
      if (tries > 0) await sleep(clock, 2 + jitteredMs(clock, tries, 4, 100))
      const { rows, takings, inAll } = await this.#look(buckets, open, patience)
      const short = open.filter((_, at) => isShort(takings[at] as Stocktaking))
      const certain = short.length === 0 || (await this.#nothingMoves(rows, seen, patience))
      await this.#perform(buckets, takings, inAll, patience)
      for (const [at, { wanted, resolve }] of open.entries()) {
        const { left } = takings[at] as Stocktaking
        if (sumOf(left) >= wanted.quantity) resolve({ type: 'there' })
        else if (certain) resolve({ type: 'short', left: sumOf(left) })
      }
      open = certain ? [] : short
    }
  }

  /** How far the journals were before anything was looked at, and what each bucket has. */
  async #look({ places }: Buckets, open: readonly Asked[], patience: Patience) {
    const { journal } = this.#context
    const rows = await this.#transfers.ask(patience, () => journal.read(places.map(({ ref }) => ref)))
    const everywhere = (read: (place: Place, bucket: number) => Promise<number>) => Promise.all(places.map(read))
    const total = everywhere((place) => this.#leftIn(place, { total: MAX_AMOUNT, lines: [] }, patience))
    const items = new Map<number, Promise<number[]>>([[0, total]])
    for (const { wanted } of open) {
      const { item, shares } = wanted
      const read = (place: Place, bucket: number) => {
        const line = { item, quantity: MAX_AMOUNT, share: shares[bucket] as number }
        return this.#leftIn(place, { total: 0, lines: [line] }, patience)
      }
      if (!items.has(item)) items.set(item, everywhere(read))
    }
    const lefts = new Map(await Promise.all([...items].map(async ([item, left]) => [item, await left] as const)))
    const takings = open.map(({ wanted }) => ({ wanted, left: lefts.get(wanted.item) as number[] }))
    return { rows, takings, inAll: lefts.get(0) as number[] }
  }

  /** Nobody has so many, so it is refused: with what there is, and told only when the journal confirms it, like every "no". */
  async #leftIn(place: Place, move: Move, patience: Patience): Promise<number> {
    try {
      await this.#submit(
        place,
        command({ kind: 'give', key: '~look', counter: COUNTER, also: moveWords(move) }),
        patience,
      )
    } catch (error) {
      if (HoldfastError.is(error, 'sold_out')) return error.facts.left as number
      throw error
    }
    throw new Error('A bucket has given more than there can be')
  }

  /**
   * What is on its way is in no bucket. It was written down before it was given, and that is removed after it was taken; so one look at both says
   * whether anything was in between. What lies there for long, somebody has left: then it is finished here.
   */
  async #nothingMoves(
    rows: readonly { ref: string; seq: number }[],
    seen: Map<number, number>,
    patience: Patience,
  ): Promise<boolean> {
    const { clock } = this.#context
    const { arrived, open } = await this.#transfers.ask(patience, () => this.#intents.moving(rows))
    const now = clock.now()
    for (const intent of open) {
      const since = seen.get(intent.attempt) ?? now
      seen.set(intent.attempt, since)
      if (now - since < WAITED_MS) continue
      await this.settle(intent, patience)
      this.#context.telemetry.count?.('holdfast_recoveries_total', { what: 'move_hastened' })
    }
    return !arrived && open.length === 0
  }

  async #perform(
    { places, target }: Buckets,
    takings: readonly Stocktaking[],
    inAll: readonly number[],
    patience: Patience,
  ): Promise<void> {
    const { ref, tenant } = places[target] as Place
    const moves = planMoves(
      takings.filter((taking) => !isShort(taking)),
      inAll,
      target,
    )
    await Promise.all(
      moves.map(async ({ source, move }) => {
        this.#moves += 1
        const intent: Intent = {
          tenant,
          source: (places[source] as Place).ref,
          target: ref,
          key: `${this.#context.asker}:${this.#moves}`,
          amount: move.total,
          fee: 0,
          counter: COUNTER,
          metadata: moveWords(move),
        }
        await this.#move(intent, patience)
      }),
    )
  }

  /** Where it is not known what became of it, the intent stays, and whoever waits for it or comes by finishes it. */
  async #move(intent: Intent, patience: Patience): Promise<void> {
    try {
      const { attempt } = await this.#transfers.begin(intent, patience)
      try {
        await this.#submit(this.#placeOf(intent, 'source'), giveOf(intent), patience)
      } catch (error) {
        // Somebody was quicker. Or has used up the key, and removes the intent.
        if (HoldfastError.is(error, 'sold_out')) return this.#transfers.end({ ...intent, attempt })
        if (HoldfastError.is(error, 'idempotency_conflict')) return
        throw error
      }
      await this.#take(intent, patience)
      this.#transfers.end({ ...intent, attempt: 0 })
    } catch (error) {
      if (!(error instanceof HoldfastError) || !error.retryable) throw error
      this.#context.telemetry.log?.('debug', 'move_left_open', { reason: String(error) })
    }
  }

  async #wasGiven(intent: Intent, patience: Patience): Promise<boolean> {
    const { journal } = this.#context
    const find = () => journal.find([{ ref: intent.source, key: giveOf(intent).key }])
    const [known] = await this.#transfers.ask(patience, find)
    if (known) return known.kind !== 'void'
    try {
      await this.#submit(this.#placeOf(intent, 'source'), voidOf(intent), patience)
      return false
    } catch (error) {
      if (!HoldfastError.is(error, 'idempotency_conflict')) throw error
      const [given] = await this.#transfers.ask(patience, find)
      if (!given) throw new HoldfastError('unavailable', 'The journal does not show what it knew a moment ago')
      return given.kind !== 'void'
    }
  }

  async #take(intent: Intent, patience: Patience): Promise<void> {
    await this.#submit(this.#placeOf(intent, 'target'), takeOf(intent), patience)
  }

  #placeOf(intent: Intent, side: 'source' | 'target'): Place {
    return this.#parts.placeOf(intent.tenant, intent[side])
  }

  #submit(place: Place, asked: Command, { deadline, signal }: Patience): Promise<Outcome> {
    const timeoutMs = deadline - this.#context.clock.now()
    if (timeoutMs <= 0) return Promise.reject(new HoldfastError('timeout'))
    return this.#parts.submit(place, asked, { memory: false, timeoutMs, signal, begun: true })
  }
}

const isShort = ({ wanted, left }: Stocktaking): boolean => sumOf(left) < wanted.quantity

/** Every key follows from the move's, so that whoever takes a step takes the same one. */
const giveOf = ({ key, metadata }: Intent): Command =>
  command({ kind: 'give', key: `~give:${key}`, counter: COUNTER, also: metadata })

const voidOf = ({ key }: Intent): Command => command({ kind: 'void', key: `~give:${key}`, counter: COUNTER })

const takeOf = ({ key, metadata }: Intent): Command =>
  command({ kind: 'take', key: `~take:${key}`, counter: COUNTER, also: metadata })

function soldOut(item: number, brought: Brought): HoldfastError {
  const left = brought.type === 'short' ? brought.left : 0
  return new HoldfastError('sold_out', undefined, item === 0 ? { left } : { item, left })
}
