import { HoldfastError } from '../errors/index.js'
import type { Intent, Journal, OpenIntent, PaymentIntent, PaymentIntents, TransferIntents } from '../journal/index.js'
import { type Command, type CommandKind, command, isSale } from '../machine/index.js'
import type { Place } from '../redis/index.js'
import type { Sequencer } from '../sequencer/index.js'
import type { Telemetry } from '../telemetry/index.js'
import { crowdedOut } from './admission.js'
import { Appender } from './appender.js'
import { Attempt, type Outcome } from './attempt.js'
import { Checkpoints } from './checkpoints.js'
import { Circuit } from './circuit.js'
import type { Clock } from './clock.js'
import { Confirmer } from './confirmer.js'
import { type Context, DEFAULT_OPTIONS, type EngineOptions } from './context.js'
import { Deadlines } from './deadlines.js'
import { Decider } from './decider.js'
import { Fallback } from './fallback.js'
import { Finder } from './finder.js'
import { Groups } from './groups.js'
import type { IntendedParts } from './intended.js'
import type { Item, Lane } from './lane.js'
import { Lanes } from './lanes.js'
import { Loader } from './loader.js'
import { Moves } from './moves.js'
import { onAbort } from './on-abort.js'
import { type PurchaseOutcome, Purchases } from './purchases.js'
import { type Recoverable, Recovery } from './recovery.js'
import { Router } from './router.js'
import { Sweeper } from './sweeper.js'
import { type TransferOutcome, Transfers } from './transfers.js'
import { Witnesses } from './witnesses.js'

/** What fails within this time of the first failure failed for the same reason. */
const POSTGRES_PATIENCE_MS = 20

/** Of the operations under way, those of one wallet at most. */
const WALLET_SHARE = 1 / 4

/** Of a transfer, or a purchase that is paid: each waits until it is in the journal. A fee is one more: half of the time is left for such. */
const STEPS = 3

/** All of it ASCII: so many bytes. */
const PARAMS_MAX = 60_000

export interface EngineParts {
  readonly sequencer: Sequencer
  readonly journal: Journal
  readonly intents: TransferIntents
  readonly payments: PaymentIntents
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** Who this process is, in leases: unique. */
  readonly asker: string
  readonly shards: number
  agendaOf(shard: number): string
  probeOf(shard: number): string
  placeOf(tenant: string, ref: string): Place
  /** Where Redis keeps what processes know to be in the journal. */
  readonly witnessesKey: string
  /** On a Cluster only wallets of one shard can share a script call. */
  readonly cluster: boolean
  readonly options?: Partial<EngineOptions>
}

export interface SubmitOptions {
  readonly memory: boolean
  readonly timeoutMs?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** The caller tried this key before: the journal is asked first. */
  readonly retry?: boolean | undefined
  /** In a sale of one bucket: when all of it is sold it stays so. */
  readonly alone?: boolean | undefined
  /** A step of something that was let in before, and is counted: it is not turned away at the door. */
  readonly begun?: boolean | undefined
}

/**
 * From a command to its answer:
 *
 *     submit ─▶ Decider ─▶ Redis decides ─▶ Appender ─▶ Postgres remembers ─▶ yes
 *                  │  untrusted ▶ Loader        │  gap, stale, key seen ▶ again, or the first answer
 *                  │  Redis away ▶ Fallback     │
 *                  └─ refused ──────────────▶ Confirmer ─▶ it stands ───────▶ no
 *
 * Whatever happens on the way, an attempt is answered once: with the truth, or with "unknown, the same key is safe".
 */
export class Engine {
  readonly options: EngineOptions
  readonly #context: Context
  readonly #options: EngineOptions
  readonly #lanes: Lanes
  readonly #groups: Groups
  readonly #router: Router
  readonly #decider: Decider
  readonly #appender: Appender
  readonly #finder: Finder
  readonly #confirmer: Confirmer
  readonly #fallback: Fallback
  readonly #sweeper: Sweeper
  readonly #deadlines: Deadlines
  readonly #transfers: Transfers
  readonly #purchases: Purchases
  /** Stock between the buckets of a sale. */
  readonly moves: Moves
  readonly #recovery: Recovery
  readonly #parts: EngineParts
  #postgresBehindMs = 0
  #attempts = 0
  #closing = false
  #closed: Promise<void> | undefined
  #ended = false
  #drained: (() => void) | undefined

  constructor(parts: EngineParts) {
    this.#parts = parts
    const options = { ...DEFAULT_OPTIONS, ...parts.options }
    this.options = options
    this.#options = options
    const { clock, telemetry, journal, sequencer, asker } = parts
    this.#lanes = new Lanes(options.lanesMax)
    this.#groups = new Groups({ ...parts, patienceMs: options.redisPatienceMs })
    const postgres = new Circuit(clock, {
      patienceMs: POSTGRES_PATIENCE_MS,
      probe: () => this.prove(),
      proveWrites: () => journal.proveWrites(),
      owes: () => this.#appender.owes,
      onChange: (open) => {
        telemetry.log?.(open ? 'error' : 'info', open ? 'postgres_away' : 'postgres_back')
        telemetry.count?.('holdfast_circuit_changes_total', { dependency: 'postgres', to: open ? 'open' : 'closed' })
      },
    })
    const context: Omit<Context, 'witnesses' | 'checkpoints'> = {
      sequencer,
      journal,
      clock,
      options,
      telemetry,
      asker,
      postgres,
      turnedAway: (memory) => this.#turnedAway(memory),
      redisAt: (place) => this.#groups.of(place),
      postgresNow: () => clock.now() + this.#postgresBehindMs,
      learnPostgresClock: (time) => {
        this.#postgresBehindMs = time - clock.now()
      },
      route: (attempt) => this.#router.route(attempt),
      again: (attempt) => this.#router.again(attempt),
      follow: (lane, owner, epoch) => this.#router.follow(lane, owner, epoch),
      refuse: (attempt, error) => this.#router.refuse(attempt, error),
      readCharge: (attempt, epoch) => void this.#router.readCharge(attempt, epoch),
      reload: (place) => void this.touch(place).catch(() => {}),
      file: (items: readonly Item[]) => this.#appender.add(items),
      appendWaitMs: (place) => this.#appender.waitMs(place),
      full: () => postgres.open || this.#appender.backlog >= options.backlogMax,
      ended: () => this.#ended,
    }
    this.#context = Object.assign(context, {
      witnesses: new Witnesses(context as Context, parts.witnessesKey),
      checkpoints: new Checkpoints(context as Context),
    })
    this.#deadlines = new Deadlines(clock, options.timeoutMs)
    this.#finder = new Finder(this.#context)
    this.#confirmer = new Confirmer(this.#context, this.#finder)
    const confirmer = this.#confirmer
    const loader = new Loader(this.#context)
    this.#appender = new Appender(this.#context, confirmer)
    this.#fallback = new Fallback(this.#context, confirmer)
    this.#decider = new Decider(this.#context, { loader, finder: this.#finder, confirmer }, (lane) =>
      this.#groups.numberOf(lane.place),
    )
    this.#router = new Router(this.#context, { decider: this.#decider, fallback: this.#fallback, finder: this.#finder })
    this.#sweeper = new Sweeper(this.#context, {
      shards: parts.shards,
      agendaOf: parts.agendaOf,
      placeOf: parts.placeOf,
      laneOf: (place) => this.#lanes.of(place),
      redisOf: (shard) => this.#groups.of({ shard }),
      touch: (place, epochMin) => this.touch(place, epochMin),
    })
    const steps: IntendedParts = {
      placeOf: parts.placeOf,
      submit: (place, command, options) => this.submit(place, command, options),
      count: (work) => this.#count(work),
    }
    this.#transfers = new Transfers(this.#context, parts.intents, steps)
    this.#purchases = new Purchases(this.#context, parts.payments, steps)
    this.moves = new Moves(this.#context, parts.intents, this.#transfers, steps)
    this.#recovery = new Recovery(this.#context, [this.#between(), this.#purchases])
  }

  /** Begins to look after what nobody touches. */
  start(): void {
    this.#sweeper.start()
    this.#recovery.start()
    this.#context.witnesses.start(() => this.prove())
  }

  /**
   * Has Postgres all that was acknowledged? To be asked before anything is decided on a server that is not known yet: `via` is the way to
   * it. Stops everything if not.
   */
  async prove(via?: Pick<Journal, 'prove' | 'stop'>): Promise<void> {
    if (via) this.#recovery.forget()
    const standing = await this.#context.witnesses.prove(via ?? this.#parts.journal)
    this.#lanes.raiseFloor(standing.floor)
    if (standing.stopped === null) return this.#context.postgres.release()
    const error = new HoldfastError('reconcile_required', undefined, { because: standing.stopped.because })
    this.#context.postgres.failedWith(error)
    throw error
  }

  /** Entries decided and not yet in the journal, commands under way, those that wait for the Postgres path, and refusals for the journal. */
  get load(): { backlog: number; attempts: number; postgresPath: number; refusals: number } {
    const { backlog } = this.#appender
    return {
      backlog,
      attempts: this.#attempts,
      postgresPath: this.#fallback.waiting,
      refusals: this.#confirmer.waiting,
    }
  }

  get health(): {
    redis: boolean
    redisGroups: number
    redisGroupsAway: number
    postgres: boolean
    stopped: string | null
  } {
    const { open, stop } = this.#context.postgres
    const { size: redisGroups, away: redisGroupsAway } = this.#groups
    return {
      redis: redisGroupsAway === 0,
      redisGroups,
      redisGroupsAway,
      postgres: !open || stop !== null,
      stopped: stop ? String(stop.because ?? stop.message) : null,
    }
  }

  /** Is Redis away, for the wallet of this place? Then there is no use in asking it. */
  isRedisAway(place: Place): boolean {
    return this.#context.redisAt(place).open
  }

  submit(place: Place, command: Command, options: SubmitOptions): Promise<Outcome> {
    // A refund rests on facts of the journal, so it is never acknowledged before it is there.
    const memory = options.memory && command.kind !== 'refund'
    const refusal =
      this.#refusal(options, memory && !options.retry) ?? tooLarge(command) ?? this.#overload(place, command.kind)
    if (refusal) return Promise.reject(refusal)
    const lane = this.#lanes.of(place)
    const crowded = this.#crowded(lane, options)
    if (crowded) return Promise.reject(crowded)
    return new Promise((resolve, reject) => {
      const { signal, timeoutMs = this.#options.timeoutMs } = options
      const attempt = new Attempt(
        lane,
        command,
        {
          memory,
          deadline: this.#context.clock.now() + timeoutMs,
          retry: options.retry ?? false,
          alone: options.alone ?? false,
          begun: options.begun ?? false,
        },
        { answered: options.begun ? this.#stepped : this.#answered, resolve, reject },
      )
      lane.active += 1
      if (!options.begun) this.#attempts += 1
      this.#deadlines.add(attempt, timeoutMs)
      if (signal) attempt.stopListening = onAbort(signal, () => attempt.refuse(new HoldfastError('aborted')))
      if (attempt.tries > 0) this.#finder.add(attempt, () => this.#router.route(attempt))
      else this.#router.route(attempt)
    })
  }

  /**
   * Lets due holds of a wallet expire, and has it in Redis afterwards. What stands there under an older epoch than this is not believed any more:
   * it is loaded anew, and what is pending goes into the journal first, as far as it fits.
   */
  touch(place: Place, epochMin = 0): Promise<Outcome> {
    if (epochMin > 0) this.#lanes.of(place).distrust(epochMin)
    return this.submit(place, command({ kind: 'touch' }), { memory: false })
  }

  readonly #answered = (attempt: Attempt): void => {
    this.#stepped(attempt)
    this.#left()
  }

  /** What it is a step of is counted. */
  readonly #stepped = (attempt: Attempt): void => {
    this.#deadlines.remove(attempt)
    attempt.stopListening?.()
    attempt.lane.active -= 1
  }

  #count(work: Promise<unknown>): void {
    this.#attempts += 1
    const left = (): void => this.#left()
    work.then(left, left)
  }

  #left(): void {
    this.#attempts -= 1
    if (this.#attempts === 0) this.#drained?.()
  }

  /** From one wallet to another: several operations, all of them or none. Always committed before it is acknowledged. */
  transfer(intent: Intent, options: Pick<SubmitOptions, 'timeoutMs' | 'signal'>): Promise<TransferOutcome> {
    const { timeoutMs = this.#options.timeoutMs, signal } = options
    const refusal = this.#refusal(options, false) ?? this.#crowdedOut(intent.tenant, intent.source, timeoutMs)
    if (refusal) return Promise.reject(refusal)
    return this.#transfers.perform(intent, timeoutMs, signal)
  }

  /** Stock of a sale for money of a wallet: both move, or neither. */
  purchase(intent: PaymentIntent, options: Pick<SubmitOptions, 'timeoutMs' | 'signal'>): Promise<PurchaseOutcome> {
    const { timeoutMs = this.#options.timeoutMs, signal } = options
    const refusal = this.#refusal(options, false) ?? this.#crowdedOut(intent.tenant, intent.wallet, timeoutMs)
    if (refusal) return Promise.reject(refusal)
    return this.#purchases.perform(intent, timeoutMs, signal)
  }

  /** What takes several steps is turned away before the first, if at all: left half done it would cost more. */
  #crowdedOut(tenant: string, ref: string, timeoutMs: number): HoldfastError | null {
    const place = this.#parts.placeOf(tenant, ref)
    const lane = this.#lanes.of(place)
    const waitMs = this.#router.isByPostgres(lane) ? this.#fallback.waitMs(lane) : this.#appender.waitMs(place)
    return this.#overload(place, 'hold') ?? crowdedOut('hold', STEPS * waitMs, timeoutMs)
  }

  /** `memory`: it need not wait for the journal. */
  #refusal({ signal, begun }: Pick<SubmitOptions, 'signal' | 'begun'>, memory: boolean): HoldfastError | null {
    if (signal?.aborted) return new HoldfastError('aborted')
    if (this.#closing && !begun) return new HoldfastError('unavailable', 'Holdfast is being closed')
    if (this.#attempts >= this.#options.attemptsMax && !begun) {
      return new HoldfastError('unavailable', 'Too many operations are under way', { limit: this.#options.attemptsMax })
    }
    if (this.#appender.backlog >= this.#options.backlogMax) {
      return new HoldfastError('unavailable', 'Too many entries wait for Postgres', { limit: this.#options.backlogMax })
    }
    return this.#turnedAway(memory)
  }

  /** A wallet whose row somebody keeps locked must not use up the room of all others. */
  #crowded({ active }: Lane, { begun }: SubmitOptions): HoldfastError | null {
    const limit = Math.ceil(this.#options.attemptsMax * WALLET_SHARE)
    if (active < limit || begun) return null
    return new HoldfastError('unavailable', 'Too many operations of this wallet are under way', { limit })
  }

  /** What is acknowledged from memory goes on while Postgres is away: but not when it turned out to lack what it had acknowledged. */
  #turnedAway(memory: boolean): HoldfastError | null {
    const { open, stop } = this.#context.postgres
    if (stop) return new HoldfastError('reconcile_required', undefined, stop.facts)
    if (open && !memory) return new HoldfastError('unavailable', 'Postgres is away')
    return null
  }

  /** Told at the door: who is overloaded says no to most, so that it has to cost little. */
  #overload(place: Place, kind: CommandKind): HoldfastError | null {
    return this.#context.redisAt(place).open ? this.#fallback.refusalOf(kind) : null
  }

  /** Answers what is under way, and commits what was acknowledged from memory; then ends. Asked again, it is the same end. */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  /** Transfers and moves of stock are written down in one place. */
  #between(): Recoverable {
    return {
      name: this.#transfers.name,
      intents: this.#transfers.intents,
      recover: (intent: OpenIntent, patience) =>
        isSale(intent.source) ? this.moves.settle(intent, patience) : this.#transfers.recover(intent, patience),
    }
  }

  async #close(): Promise<void> {
    this.#closing = true
    await Promise.all([this.#sweeper.stop(), this.#recovery.stop()])
    await this.moves.drain()
    await Promise.all([this.#transfers.drain(), this.#purchases.drain()])
    if (this.#attempts > 0) {
      await new Promise<void>((resolve) => {
        this.#drained = resolve
      })
    }
    await this.#appender.drain(this.#options.timeoutMs)
    this.#context.checkpoints.stop()
    await this.#context.witnesses.stop()
    this.#ended = true
    this.#deadlines.close()
    this.#context.postgres.close()
    this.#groups.close()
  }
}

/** The length of params is written in two bytes, and what is longer would spoil the call of everybody who is decided with it. */
function tooLarge({ params }: Command): HoldfastError | null {
  if (params.length <= PARAMS_MAX) return null
  return new HoldfastError('too_large', undefined, { length: params.length, max: PARAMS_MAX })
}
