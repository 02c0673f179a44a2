import { Auditor, type Cause, type Finding } from '../packages/holdfast/src/audit/index.js'
import type { Clock } from '../packages/holdfast/src/engine/index.js'
import type {
  AuditBounds,
  AuditedWallet,
  AuditPage,
  Audits,
  LoadableState,
  Remembered,
  Stretch,
  Verified,
} from '../packages/holdfast/src/journal/index.js'
import type { Entry } from '../packages/holdfast/src/machine/index.js'
import { PostgresError } from '../packages/holdfast/src/postgres/index.js'
import { RedisUnavailable } from '../packages/holdfast/src/redis/index.js'
import { Sequencer } from '../packages/holdfast/src/sequencer/index.js'
import type { SimDatabase, SimWallet } from './database.js'
import { asRead, type Kept, openHolds } from './database-folds.js'
import { keys, SHARDS } from './process.js'
import type { RedisServer, Servers } from './servers.js'
import { Chance, type World } from './world.js'

/** Nothing is late while processes pause for minutes; at the end everything must be where it belongs. */
const PATIENT = { pendingMaxMs: 3_600_000, overdueAfterMs: 3_600_000 }
const STRICT = { pendingMaxMs: 4_000, overdueAfterMs: 45_000 }

/** What may be found once Postgres has lost commits. */
const AFTER_A_LOSS: ReadonlySet<Cause> = new Set([
  'hot_ahead',
  'hot_wallet_unknown',
  'journal_short',
  'journal_rewritten',
  // Of a wallet of which one of these was found, the books know one side.
  'books_unbalanced',
])

/**
 * An auditor that looks on: the shipped one, over reads that are simulated, again and again while everything else goes wrong. It repairs
 * nothing, and has chance of its own, so that a schedule is the same whether it is there or not. Whatever it finds is a false alarm.
 */
export class Onlooker {
  readonly problems: string[] = []
  readonly #world: World
  readonly #servers: Servers
  readonly #redisOf: () => RedisServer
  readonly #chance: Chance
  readonly #audits: SimAudits
  audits = 0
  hot = 0

  constructor(world: World, servers: Servers, seed: number, redisOf: (chance: Chance) => RedisServer) {
    this.#world = world
    this.#servers = servers
    this.#chance = new Chance(seed ^ 0x5bd1e995)
    this.#redisOf = () => redisOf(this.#chance)
    this.#audits = new SimAudits(servers.postgres.database, (run) => this.#ask(run))
  }

  /** Begins to look on. */
  start(): void {
    void this.#round(PATIENT).finally(() => this.#world.plan(this.#chance.next() * 1_500, () => this.start()))
  }

  /** When all has come to rest: one look at everything, and now nothing may be late either. */
  async conclude(): Promise<void> {
    let done = false
    void this.#round(STRICT, true).finally(() => {
      done = true
    })
    await this.#world.run(this.#world.now + 120_000, () => done)
    if (!done) this.problems.push('the last audit did not end')
  }

  async #round(limits: typeof PATIENT, full = this.#chance.happens(0.3)): Promise<void> {
    const auditor = new Auditor({
      audits: this.#audits,
      journal: {
        find: async (wanted) => wanted.map(() => null),
        stock: (ref, seq) => this.#ask(() => this.#servers.postgres.database.stock(ref, seq)),
      },
      sequencer: this.#sequencer(),
      clock: this.#clock(),
      telemetry: {},
      agendaOf: (shard) => keys.agenda(shard),
      placeOf: (_tenant, ref) => keys.place(ref),
      touch: async () => {},
      limits: {
        ...limits,
        pageMax: 2,
        readMax: 2,
        stretchMax: 7,
        hotMax: 3,
        stockMax: 3,
        stockInAllMax: 60,
        confirmAfterMs: 2,
        confirmLateAfterMs: 3_000,
      },
    })
    for (let shard = 0; shard < SHARDS; shard += 1) {
      try {
        const { signal } = new AbortController()
        const tally = await auditor.audit({ shard, repair: false, full, ends: true, share: 1, signal })
        this.audits += 1
        this.hot += tally.hot
        for (const finding of tally.findings) this.#judge(finding)
      } catch (error) {
        if (!(error instanceof PostgresError)) throw error
      }
    }
  }

  #judge(finding: Finding): void {
    // What went with a primary whose replica lagged is gone, and Redis may know of it, or an audit that was at it: no false alarms.
    if (this.#servers.postgres.lostAt.size > 0 && AFTER_A_LOSS.has(finding.cause)) return
    const { cause, field, seq, expected, found, ref } = finding
    const text = `an audit found ${cause} ${field ?? ''} of ${ref} at ${seq ?? ''}: ${expected} → ${found}`
    this.#world.tell(() => text)
    this.problems.push(text)
  }

  #clock(): Clock {
    return {
      now: () => this.#world.now,
      timeOfDay: () => this.#world.now,
      after: (ms, run) => {
        let cancelled = false
        this.#world.plan(ms, () => {
          if (!cancelled) run()
        })
        return () => {
          cancelled = true
        }
      },
      soon: (run) => this.#world.plan(0, run),
      random: () => this.#chance.next(),
    }
  }

  /** Mostly at once, and sometimes so late that everything has changed meanwhile. */
  #delayMs(): number {
    if (this.#chance.happens(0.9)) return this.#chance.next()
    return this.#chance.next() * (this.#chance.happens(0.2) ? 5_000 : 100)
  }

  #ask<T>(run: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#world.plan(this.#delayMs(), () => {
        if (!this.#servers.postgres.up) return reject(new PostgresError('not_executed', 'audit: away'))
        let answer: T
        try {
          answer = run()
        } catch (error) {
          return reject(error)
        }
        this.#world.plan(this.#delayMs(), () => resolve(answer))
      })
    })
  }

  #sequencer(): Sequencer {
    const server = this.#redisOf()
    const options = { aheadMaxMs: 0, helpAfterMs: 0, idleAfterMs: 0, pendingMax: 24, now: () => this.#world.now }
    return new Sequencer(
      {
        run: (script, scriptKeys, args) =>
          new Promise((resolve, reject) => {
            this.#world.plan(this.#delayMs(), () => {
              if (!server.up) return reject(new RedisUnavailable('not_executed', `${script.name}: away`))
              const reply = server.valkey.run(script, scriptKeys, args)
              this.#world.plan(this.#delayMs(), () => resolve(reply))
            })
          }),
      },
      options,
    )
  }
}

/** What the statements of the auditor answer, out of the simulated tables. */
class SimAudits implements Audits {
  readonly #database: SimDatabase
  readonly #ask: <T>(run: () => T) => Promise<T>
  readonly #remembered = new Map<string, Verified>()
  #timeline = 1

  constructor(database: SimDatabase, ask: <T>(run: () => T) => Promise<T>) {
    this.#database = database
    this.#ask = ask
  }

  page(shard: number, after: string, most: number, { fullBefore, only }: AuditBounds): Promise<AuditPage> {
    return this.#ask(() => {
      // The auditor's table is one of Postgres's: what a failover loses it has lost as well.
      if (this.#timeline !== this.#database.timeline) this.#remembered.clear()
      this.#timeline = this.#database.timeline
      const page = this.#wallets()
        .filter(({ row: { ref } }) => keys.shard(ref) === shard && ref > after && (only?.includes(ref) ?? true))
        .slice(0, most)
      const isSame = ({ row }: SimWallet) => fullBefore <= 0 && this.#remembered.get(row.ref)?.head === row.head
      return {
        wallets: page.length,
        last: page.at(-1)?.row.ref ?? null,
        clock: this.#database.clock,
        others: page.filter((wallet) => !isSame(wallet)).map((wallet) => this.#audited(wallet)),
        same: page.filter(isSame).map(({ tenant, row }) => {
          return { tenant, currency: row.currency, money: BigInt(row.available) + BigInt(row.reserved) }
        }),
      }
    })
  }

  #audited({ tenant, genesis, row, entries }: SimWallet): AuditedWallet {
    const { ref, currency, openedAt, initialLimit } = row
    return {
      ref,
      tenant,
      currency,
      genesis,
      openedAt,
      initialLimit,
      row: { ...row },
      lastSeq: entries.length,
      verified: this.#remembered.get(ref) ?? null,
      fullAt: 0,
    }
  }

  entries(stretches: readonly Stretch[], most: number): Promise<Entry[][]> {
    return this.#ask(() =>
      stretches.map(({ ref, after, upTo }) =>
        (this.#wallet(ref)?.entries ?? []).slice(after, Math.min(upTo, after + most)).map(asRead),
      ),
    )
  }

  states(refs: readonly string[]): Promise<LoadableState[]> {
    return this.#ask(() =>
      refs.flatMap((ref) => {
        const wallet = this.#wallet(ref)
        if (!wallet) return []
        const { row } = wallet
        const none = { base: row.seq, refundedByEntry: new Map(), closedHolds: new Map(), stock: null }
        const state = { ...row, ...none, holds: openHolds(wallet as Kept) }
        return [{ ref, memory: row.memory, clock: this.#database.clock, state }]
      }),
    )
  }

  remember(_shard: number, wallets: readonly Remembered[]): Promise<void> {
    return this.#ask(() => {
      for (const { ref, verified } of wallets) {
        if ((this.#remembered.get(ref)?.seq ?? 0) <= verified.seq) this.#remembered.set(ref, verified)
      }
    })
  }

  async mendRow(): Promise<boolean> {
    throw new Error('An onlooker changes nothing')
  }

  async dropCheckpoint(): Promise<void> {
    throw new Error('An onlooker changes nothing')
  }

  async keep(): Promise<void> {}

  #wallets(): SimWallet[] {
    return [...this.#database.wallets()].sort((a, b) => (a.row.ref < b.row.ref ? -1 : 1))
  }

  #wallet(ref: string): SimWallet | undefined {
    return this.#wallets().find(({ row }) => row.ref === ref)
  }
}
