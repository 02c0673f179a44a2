/** Engines on real servers, each as if it were a process of its own. */
import { Redis } from 'ioredis'
import { afterAll, expect } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../../test/servers.js'
import { type Clock, Engine, type EngineOptions, systemClock } from '../../../src/engine/index.js'
import { PostgresIntents, PostgresJournal, PostgresPayments } from '../../../src/journal/index.js'
import { type Command, genesisHash } from '../../../src/machine/index.js'
import { Postgres } from '../../../src/postgres/index.js'
import { type Keys, type Place, RedisConnection, RedisScriptRunner } from '../../../src/redis/index.js'
import { Sequencer, type SequencerOptions } from '../../../src/sequencer/index.js'
import type { Telemetry } from '../../../src/telemetry/index.js'

export interface EngineParts<S extends Sequencer> {
  readonly redisUrl: string
  readonly postgres: Postgres
  readonly journal?: PostgresJournal
  readonly intents?: PostgresIntents
  readonly Sequencer?: new (...parts: ConstructorParameters<typeof Sequencer>) => S
  readonly pace?: Partial<SequencerOptions>
  readonly telemetry?: Telemetry
  readonly clock?: Clock
  readonly options?: Partial<EngineOptions>
}

export class Engines {
  readonly keys: Keys
  readonly #closing: (() => Promise<void>)[] = []

  constructor(keys: Keys) {
    this.keys = keys
  }

  start<S extends Sequencer = Sequencer>(parts: EngineParts<S>): { engine: Engine; sequencer: S } {
    const { keys } = this
    const { redisUrl, postgres, journal = new PostgresJournal(postgres), telemetry = {}, clock = systemClock } = parts
    // A machine that stands still for a moment is no reason to take Redis for away.
    const redis = new RedisConnection(redisUrl, { commandTimeoutMs: 20_000 })
    const runner = new RedisScriptRunner(redis)
    const OwnSequencer = parts.Sequencer ?? (Sequencer as new (...parts: ConstructorParameters<typeof Sequencer>) => S)
    const sequencer = new OwnSequencer(runner, {
      aheadMaxMs: 60_000,
      helpAfterMs: 10_000,
      idleAfterMs: 60_000,
      pendingMax: 1_000,
      now: () => Math.floor(clock.timeOfDay()),
      ...parts.pace,
    })
    const engine = new Engine({
      sequencer,
      journal,
      intents: parts.intents ?? new PostgresIntents(postgres),
      payments: new PostgresPayments(postgres),
      clock,
      telemetry,
      asker: `engine-${this.#closing.length}`,
      shards: keys.shards,
      agendaOf: (shard) => keys.agenda(shard),
      probeOf: (shard) => keys.probe(shard),
      placeOf: (_tenant, ref) => keys.place(ref),
      witnessesKey: keys.witnesses,
      cluster: false,
      ...(parts.options && { options: parts.options }),
    })
    this.#closing.push(async () => {
      await engine.close()
      runner.close()
      await redis.close()
    })
    return { engine, sequencer }
  }

  async close(): Promise<void> {
    for (const close of this.#closing.splice(0)) await close()
  }
}

/** Servers for a file of tests, with data of its own, until its end. */
export async function ownServers() {
  const redisUrl = await freshRedis()
  const redis = new Redis(redisUrl)
  const url = await freshDatabase()
  const postgres = new Postgres(url)
  afterAll(async () => {
    redis.disconnect()
    await postgres.close()
  })
  return { redisUrl, redis, url, postgres, journal: new PostgresJournal(postgres) }
}

/** Opens a wallet, or with its place a part of a sale. */
export async function openWallet(journal: PostgresJournal, { ref }: Pick<Place, 'ref'>, id: string): Promise<void> {
  const head = genesisHash(ref, 'usd')
  await journal.open({ ref, tenant: 'test', id, currency: 'usd', creditLimit: 0, metadata: '', head })
}

export interface Decided {
  readonly command: Command
  readonly memory: boolean
}

/** Accepted by Redis for a process that dies before it appends any of it. */
export async function leaveBehind(sequencer: Sequencer, place: Place, decided: readonly Decided[]): Promise<void> {
  const { life, clock } = await sequencer.look(place, 0, 'test', 0)
  const { answers } = await sequencer.decide({
    life,
    wallets: [{ place, epochMin: 0, epoch: 0, acked: 0, known: 0 }],
    commands: decided.map((one) => ({ wallet: 0, deadline: clock + 20_000, ...one })),
  })
  expect(answers).toEqual(decided.map(() => expect.objectContaining({ type: 'accepted' })))
}
