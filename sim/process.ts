import { type Clock, Engine, type EngineOptions } from '../packages/holdfast/src/engine/index.js'
import { HoldfastError } from '../packages/holdfast/src/errors/index.js'
import { isSale } from '../packages/holdfast/src/machine/index.js'
import { PostgresError, type PostgresOutcome } from '../packages/holdfast/src/postgres/index.js'
import {
  Keys,
  RedisUnavailable,
  type Script,
  type ScriptArg,
  ScriptError,
  type ScriptRunner,
} from '../packages/holdfast/src/redis/index.js'
import { classify } from '../packages/holdfast/src/redis/refusal.js'
import { readBatch, Sequencer } from '../packages/holdfast/src/sequencer/index.js'
import type { Telemetry } from '../packages/holdfast/src/telemetry/index.js'
import { SimIntents, SimPayments } from './intents.js'
import { SimJournal } from './journal.js'
import type { Writes } from './postgres.js'
import type { RedisServer, Servers } from './servers.js'
import type { Reply } from './valkey.js'
import type { World } from './world.js'

export const SHARDS = 2
const SECRET = Buffer.alloc(32, 9)
const TIMEOUT_MS = 800

/** Small numbers, so that every limit is met: short leases, short spells, few lanes. */
const OPTIONS: Partial<EngineOptions> = {
  timeoutMs: 3_000,
  decideBatchMax: 8,
  decideWithinMs: 1_000,
  appendBatchMax: 12,
  loadsMax: 4,
  // Three of those that begin something may wait, and six in all.
  postgresPathMax: 6,
  leaseMs: 300,
  installWithinMs: 2_000,
  takeBackEveryMs: 1_000,
  sweepEveryMs: 1_500,
  claimMs: 3_000,
  claimMax: 8,
  dueGraceMs: 800,
  checkpointAfter: 10,
  lanesMax: 3,
  witnessEveryMs: 100,
  proveEveryMs: 2_000,
  // Before others help what is pending: so that it is decided and not in the journal when somebody asks.
  transferHoldWithinMs: 700,
  transferGraceMs: 1_200,
}

export const keys = new Keys({ tenant: 'sim', secret: SECRET, shards: SHARDS })

/** How bad the network is just now; the same for all, set by the faults. */
export interface Weather {
  /** A message gets lost, on the way there or back. */
  lossy: number
  /** A message takes long. */
  slow: number
  /** A statement of Postgres is undone, for somebody else's sake. */
  contended: number
  /** Redis has too little memory: a wallet that was just installed, which nobody knows of yet, goes first. */
  evicting: number
}

/** What sets a process apart from others. */
export interface Traits {
  readonly options?: Partial<EngineOptions>
  /** How much further than others it is away from both servers. */
  readonly distance?: number
}

/**
 * One process: the real engine, over I/O that is not. It can die (nothing of it runs any more, but what it sent may still arrive)
 * and pause (everything of it waits, while the world goes on).
 */
export class Process {
  readonly name: string
  readonly engine: Engine
  readonly journal: SimJournal
  readonly sequencer: Sequencer
  alive = true
  asleep = false
  /** How wrong its clock is: once and for all, because the engine's clock is one that nobody sets. */
  readonly skewMs: number
  /** Cut off from Redis, from Postgres. */
  redisCut = false
  postgresCut = false
  /** Which server it takes for the master. Learns of a failover late. */
  redis: RedisServer
  readonly #world: World
  readonly #servers: Servers
  readonly #weather: Weather
  readonly #distance: number
  readonly #note: (what: string) => void
  /** A proxy stands between it and Redis: what was held up on the way reaches whoever is the master by then. */
  readonly #proxied: boolean
  #heldUp = { untilSent: 0, until: 0 }
  readonly #unproven: SimJournal
  #provenSession = 0
  #pausedUntil = 0
  /** What would have happened while it paused, in order. */
  #waiting: (() => void)[] = []

  constructor(
    name: string,
    world: World,
    servers: Servers,
    weather: Weather,
    telemetry: Telemetry,
    { options = OPTIONS, distance = 1 }: Traits = {},
  ) {
    this.name = name
    this.#world = world
    this.#servers = servers
    this.#weather = weather
    this.#distance = distance
    this.redis = servers.master
    this.#proxied = world.chance.happens(0.5)
    this.skewMs = world.chance.happens(0.5) ? 0 : (world.chance.next() - 0.5) * 20_000
    this.#note = (what) => telemetry.count?.('holdfast_recoveries_total', { what })
    this.journal = new SimJournal(servers.postgres.database, (...asked) => this.#proven(...asked))
    this.#unproven = new SimJournal(servers.postgres.database, (...asked) => this.#statement(...asked))
    const clock = this.#clock()
    this.sequencer = new Sequencer(this.#runner(), {
      aheadMaxMs: 60_000,
      helpAfterMs: 1_500,
      idleAfterMs: 6_000,
      pendingMax: 24,
      now: () => Math.floor(clock.timeOfDay()),
    })
    this.engine = new Engine({
      sequencer: this.sequencer,
      journal: this.journal,
      intents: new SimIntents(servers.postgres.database, (...asked) => this.#proven(...asked)),
      // Where there is no sale nobody pays: then looking for payments takes no time, and every such schedule stays as it is.
      payments: new SimPayments(
        servers.postgres.database,
        hasSale(servers) ? (...asked) => this.#proven(...asked) : undefined,
      ),
      clock,
      telemetry,
      asker: name,
      shards: SHARDS,
      agendaOf: (shard) => keys.agenda(shard),
      probeOf: (shard) => keys.probe(shard),
      placeOf: (_tenant, ref) => keys.place(ref),
      witnessesKey: keys.witnesses,
      cluster: world.chance.happens(0.5),
      options,
    })
    this.engine.start()
  }

  get paused(): boolean {
    return this.#pausedUntil > this.#world.now
  }

  wake(): void {
    this.#pausedUntil = 0
    for (const run of this.#waiting.splice(0)) this.inside(0, run)
  }

  followMaster(): void {
    this.redis = this.#servers.master
  }

  /** The proxy stumbles over a failover: of what is sent within `sentMs` from now, some arrives only after `arriveMs`. */
  holdUp(sentMs: number, arriveMs: number): void {
    if (!this.#proxied) return
    this.#heldUp = { untilSent: this.#world.now + sentMs, until: this.#world.now + arriveMs }
    this.#world.tell(() => `some calls of ${this.name} are held up for ${Math.round(arriveMs)} ms`)
  }

  /** A pause that nobody ends, when all else heals neither. */
  sleep(ms: number): void {
    this.asleep = true
    this.#world.plan(ms, () => {
      this.asleep = false
    })
    this.pause(ms)
  }

  pause(ms: number): void {
    const until = this.#world.now + ms
    if (until <= this.#pausedUntil) return
    this.#pausedUntil = until
    this.#world.plan(ms, () => {
      if (this.#pausedUntil === until) this.wake()
    })
    this.#world.tell(() => `${this.name} pauses for ${Math.round(ms)} ms`)
  }

  die(): void {
    this.alive = false
    this.#world.tell(() => `${this.name} dies`)
  }

  /** Something that happens inside this process: not while it pauses, never after it died. */
  inside(inMs: number, run: () => void): void {
    this.#world.plan(inMs, () => {
      if (!this.alive) return
      if (this.paused) this.#waiting.push(run)
      else run()
    })
  }

  #clock(): Clock {
    return {
      now: () => this.#world.now + this.skewMs,
      timeOfDay: () => this.#world.now + this.skewMs,
      after: (ms, run) => {
        let cancelled = false
        this.inside(ms, () => {
          if (!cancelled) run()
        })
        return () => {
          cancelled = true
        }
      },
      soon: (run) => this.inside(this.#world.chance.happens(0.1) ? this.#world.chance.next() * 3 : 0, run),
      random: () => this.#world.chance.next(),
    }
  }

  /** Each way of a message: mostly quick, sometimes so slow that others overtake it. */
  #delayMs(): number {
    const { chance } = this.#world
    if (!chance.happens(this.#weather.slow)) return (0.05 + chance.next() * 0.6) * this.#distance
    return chance.happens(0.2) ? chance.next() * 8_000 : chance.next() * 60
  }

  /**
   * Redis as the runner of the product gives it: a call may run and its answer be lost; one that may be resent is, so that it runs
   * twice, also late and out of order; and what was given up may still run.
   */
  #runner(): ScriptRunner {
    return {
      run: (script, scriptKeys, args) =>
        new Promise((resolve, reject) => {
          const server = this.redis
          const reached = (): RedisServer => (this.#proxied ? this.#servers.master : server)
          const { chance } = this.#world
          let answered = false
          const answer = (settle: () => void, inMs: number): void =>
            this.inside(inMs, () => {
              if (answered) return
              answered = true
              settle()
            })
          const send = (tries: number): void => {
            let open = true
            // No answer in time, or a broken connection: this try is over, though what was sent may still arrive.
            const giveUp = (inMs: number): void =>
              this.inside(inMs, () => {
                if (!open || answered) return
                open = false
                if (server !== this.#servers.master && chance.happens(0.5)) this.redis = this.#servers.master
                if (script.resend === 'safe' && tries < 2) {
                  this.#note('message_resent')
                  this.inside(chance.next() * 40, () => send(tries + 1))
                } else answer(() => reject(new RedisUnavailable('unknown', `${script.name}: no answer`)), 0)
              })
            giveUp(TIMEOUT_MS)
            if (this.redisCut) return
            if (chance.happens(this.#weather.lossy)) {
              const arrives = !chance.happens(0.5)
              this.#note(arrives ? 'message_late' : 'message_lost')
              if (!arrives) return
              // The connection breaks, and the server reads late what it had of it.
              this.#world.plan(
                chance.next() * 1_500,
                () => reached().up && this.#execute(reached(), script, scriptKeys, args),
              )
              return giveUp(chance.next() * 50)
            }
            const { now } = this.#world
            const held = now < this.#heldUp.untilSent && chance.happens(0.3)
            if (held) this.#note('message_held_up')
            this.#world.plan(held ? this.#heldUp.until - now : this.#delayMs(), () => {
              if (!reached().up) return giveUp(1)
              const outcome = this.#execute(reached(), script, scriptKeys, args)
              if (this.redisCut || chance.happens(this.#weather.lossy)) {
                this.#note('answer_lost')
                if (script.name === 'wallet_install' && chance.happens(this.#weather.evicting))
                  this.#world.plan(chance.next() * TIMEOUT_MS, () => this.#servers.evictKey(scriptKeys[1]))
                return giveUp(1)
              }
              answer(() => ('reply' in outcome ? resolve(outcome.reply) : reject(outcome.error)), this.#delayMs())
            })
          }
          send(0)
        }),
    }
  }

  #execute(server: RedisServer, script: Script, scriptKeys: readonly string[], args: readonly ScriptArg[]) {
    try {
      const reply = server.valkey.run(script, scriptKeys, args)
      if (script.name === 'wallet_install' && `${(reply as Reply[])[0]}` === 'installed')
        this.#servers.beginLife(`${scriptKeys[1]}`, `${args[6]}`)
      if (script.name === 'wallet_decide') {
        const wallets = walletsOf(scriptKeys)
        const { runs } = readDecided(args, wallets.length, reply)
        for (const [n, run] of runs.entries())
          if ('acked' in run) this.#servers.noteAcked(wallets[n] as string, run.epoch, run.acked)
      }
      this.#world.tell(() => `${this.name} → ${server.name} ${script.name} ${summary(script, scriptKeys, args, reply)}`)
      return { reply }
    } catch (error) {
      this.#world.tell(() => `${this.name} → ${server.name} ${script.name} ${error}`)
      return { error: asRunnerTells(script, error as Error) }
    }
  }

  /** As the pool of the product does it: a server that is not known yet is asked first whether it has what it should have. */
  async #proven<T>(
    name: string,
    writes: Writes,
    run: (locked: boolean) => T,
    tells?: (result: T) => boolean,
  ): Promise<T> {
    const { postgres } = this.#servers
    while (postgres.session !== this.#provenSession) {
      const { session } = postgres
      await this.engine.prove(this.#unproven).catch((error) => {
        if (!HoldfastError.is(error, 'reconcile_required')) throw error
      })
      this.#provenSession = session
    }
    return this.#statement(name, writes, run, tells)
  }

  /**
   * Postgres, one statement at a time: it may commit and its answer be lost; be given up and commit later; be undone by a deadlock or
   * a lock that was not had in time; or not happen at all.
   */
  #statement<T>(
    name: string,
    writes: Writes,
    run: (locked: boolean) => T,
    tells: (result: T) => boolean = () => false,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const { chance } = this.#world
      const { postgres } = this.#servers
      const { session } = postgres
      let answered = false
      const answer = (inMs: number, settle: () => void): void =>
        this.inside(inMs, () => {
          if (answered) return
          answered = true
          settle()
        })
      const fail = (outcome: PostgresOutcome, inMs: number, sqlstate?: string): void =>
        answer(inMs, () => reject(new PostgresError(outcome, `${name}: ${outcome}`, { sqlstate })))
      const cut = () => fail('unknown', this.#delayMs())
      const execute = (tell: (result: T) => void): void =>
        postgres.execute(writes, {
          run: () => {
            let result: T
            try {
              result = run(chance.happens(0.5))
            } catch (error) {
              return answer(this.#delayMs(), () => reject(error))
            }
            this.#world.tell(() => `${this.name} → postgres ${name} = ${short(result)}`)
            if (tells(result)) postgres.awaitStandby({ run: () => tell(result), cut })
            else tell(result)
          },
          cut,
        })
      if (this.postgresCut) return fail('not_executed', TIMEOUT_MS)
      fail('unknown', TIMEOUT_MS)
      if (chance.happens(this.#weather.lossy)) {
        // Given up by the caller; the server may not have noticed.
        const arrives = chance.happens(0.5)
        this.#note(arrives ? 'statement_late' : 'statement_lost')
        if (arrives)
          this.#world.plan(
            chance.next() * 3_000,
            () => postgres.up && session === postgres.session && execute(() => {}),
          )
        return fail('unknown', chance.next() * TIMEOUT_MS)
      }
      this.#world.plan(this.#delayMs(), () => {
        if (!postgres.up) return fail('not_executed', this.#delayMs())
        if (session !== postgres.session) return fail('unknown', this.#delayMs())
        if (writes !== false && chance.happens(this.#weather.contended)) {
          this.#note('postgres_undone')
          return fail('retry', this.#delayMs(), chance.pick(['40P01', '55P03']))
        }
        execute((result) => {
          if (chance.happens(this.#weather.lossy) || this.postgresCut || session !== postgres.session) {
            this.#note('statement_answer_lost')
            return fail('unknown', this.#delayMs())
          }
          answer(this.#delayMs(), () => {
            // What the old primary had answered may still arrive after it is gone.
            if (session === postgres.session || chance.happens(0.5)) resolve(result)
            else reject(new PostgresError('unknown', `${name}: the session was cut`))
          })
        })
      })
    })
  }
}

/** What became of a script that the server refused, or that broke, in the words of the product's runner. */
function asRunnerTells(script: Script, error: Error): Error {
  const failure = classify(error, true, TIMEOUT_MS)
  if (failure.kind !== 'refused') return new ScriptError(script.name, error.message)
  return new RedisUnavailable('not_executed', failure.reason, failure.again ? {} : { refused: failure.code })
}

const hasSale = ({ postgres }: Servers): boolean => [...postgres.database.wallets()].some(({ row }) => isSale(row.ref))

function short(value: unknown): string {
  const text = JSON.stringify(value, (_, inner) => (inner instanceof Map ? [...inner] : inner)) ?? ''
  return text.length > 300 ? `${text.slice(0, 300)}…` : text
}

function summary(script: Script, scriptKeys: readonly string[], args: readonly ScriptArg[], reply: Reply): string {
  if (script.name !== 'wallet_decide') return `= ${short(readable(reply))}`
  const message = args[1] as Buffer
  const commands = message.toString('latin1').match(/[a-z]+( \d+)+( [a-z]+)?/g) ?? []
  const { clock, runs, answers } = readDecided(args, walletsOf(scriptKeys).length, reply)
  const pending = runs.map((run) => ('entries' in run ? { ...run, entries: run.entries.map(({ seq }) => seq) } : run))
  return `${commands.join(', ')} = ${short({ clock, pending, answers })}`
}

/** Beside agendas, and the stock of sales. */
const walletsOf = (scriptKeys: readonly string[]): string[] => scriptKeys.filter((key) => key.includes(':wallet:'))

function readDecided(args: readonly ScriptArg[], walletCount: number, reply: Reply) {
  return readBatch(reply as Buffer, walletCount, new Array(Number(args[0])).fill(0))
}

/** What is text as text, and how many bytes are not. */
function readable(reply: Reply): unknown {
  if (Array.isArray(reply)) return reply.map(readable)
  if (!Buffer.isBuffer(reply)) return reply
  const text = reply.toString()
  return /^[\x20-\x7e]*$/.test(text) ? text : `${reply.length} bytes`
}
