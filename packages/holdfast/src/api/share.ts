import { randomBytes } from 'node:crypto'
import { type Durability, Engine, type EngineOptions, systemClock } from '../engine/index.js'
import { HoldfastError } from '../errors/index.js'
import {
  JournalReader,
  PostgresAudits,
  PostgresIntents,
  PostgresJournal,
  PostgresPayments,
  prove,
  stop,
} from '../journal/index.js'
import { Locks } from '../lock/index.js'
import type { Postgres } from '../postgres/index.js'
import { type ReconcileOptions, type ReconcileReport, reconcile } from '../reconcile/index.js'
import {
  Keys,
  type Place,
  type RedisConnection,
  RedisScriptRunner,
  readWalletKey,
  WALLET_KEYS,
} from '../redis/index.js'
import { Sequencer } from '../sequencer/index.js'
import type { Telemetry } from '../telemetry/index.js'
import { Auditing, type BackgroundAudit } from './audit.js'
import { Reads } from './reads.js'
import { openSales, type SalesGiven } from './sale/parts.js'
import type { SaleTenant } from './sale/tenant.js'

const DEFAULT_TIMEOUT_MS = 10_000
const SCAN_PORTION = 500

/** What the instances of all tenants share. */
export interface Shared {
  readonly engine: Engine
  readonly auditing: Auditing
  readonly telemetry: Telemetry
  /** Whether there is a connection to Redis: a process that has had nothing to ask of it does not know more. */
  isRedisThere(): boolean
  tenantOf(tenant: string): SaleTenant
  reconcile(options: ReconcileOptions): Promise<ReconcileReport>
  /** Asked again, it is the same end. */
  close(): Promise<void>
}

interface Given {
  /** Fixed when the database was made. */
  readonly settings: { readonly secret: Buffer; readonly shards: number }
  readonly durability: Durability
  readonly telemetry: Telemetry
  readonly pendingMax: number
  readonly readsWaitingMax: number
  readonly engine: Partial<EngineOptions>
  readonly audit: BackgroundAudit | false
  readonly sales: Pick<SalesGiven, 'attempts' | 'early'>
  readonly disconnect: () => Promise<void>
}

/** The engine, and what stands around it, on connections that are made. Nothing runs yet. */
export function share(redis: RedisConnection, postgres: Postgres, given: Given): Shared {
  const { telemetry, durability } = given
  const { secret, shards } = given.settings
  const anyTenant = new Keys({ tenant: 'any', secret, shards })
  const keysOf = (tenant: string): Keys => anyTenant.forTenant(tenant)
  const runner = new RedisScriptRunner(redis)
  const sequencer = new Sequencer(runner, {
    aheadMaxMs: 60_000,
    helpAfterMs: 10_000,
    idleAfterMs: 600_000,
    pendingMax: given.pendingMax,
    now: () => Math.floor(systemClock.timeOfDay()),
  })
  const journal = new PostgresJournal(postgres)
  const reader = new JournalReader(postgres)
  // The rest is for the engine. A pool of one is shared: what is read then takes turns with what is written.
  const reads = new Reads(Math.max(1, Math.floor(postgres.maxConnections / 2)), given.readsWaitingMax)
  const locks = new Locks(runner, () => reader.nextLockToken(), telemetry)
  const asker = randomBytes(12).toString('hex')
  const agendaOf = (shard: number): string => anyTenant.agenda(shard)
  const placeOf = (tenant: string, ref: string): Place => keysOf(tenant).place(ref)
  const engine = new Engine({
    sequencer,
    journal,
    intents: new PostgresIntents(postgres),
    payments: new PostgresPayments(postgres),
    clock: systemClock,
    telemetry,
    asker,
    shards,
    agendaOf,
    probeOf: (shard) => anyTenant.probe(shard),
    placeOf,
    witnessesKey: anyTenant.witnesses,
    cluster: redis.isCluster,
    options: given.engine,
  })
  const takeBack = measure(engine, telemetry)
  const auditing = new Auditing(
    {
      audits: new PostgresAudits(postgres),
      journal,
      sequencer,
      engine,
      clock: systemClock,
      telemetry,
      holder: asker,
      shards,
      agendaOf,
      placeOf,
    },
    given.audit,
  )
  const isStopped = (): boolean => engine.health.stopped !== null
  const sales = openSales({ redis, postgres, journal, secret, telemetry, isStopped, ...given.sales })
  // A server that was started, promoted or restored since: is all there? If not it is stopped, and refuses by itself whatever decides.
  const unguard = postgres.guardWith((ask) =>
    engine.prove({ prove: (known) => prove(ask, known), stop: (...given) => stop(ask, ...given) }).catch((error) => {
      if (!HoldfastError.is(error, 'reconcile_required')) throw error
    }),
  )
  const timeoutMs = given.engine.timeoutMs ?? DEFAULT_TIMEOUT_MS
  const close = async (): Promise<void> => {
    for (const gauge of takeBack) gauge()
    locks.close()
    // At once, all: nothing new is taken on from here.
    await Promise.all([engine.close(), auditing.close(), sales.close()])
    await sales.finish(timeoutMs)
    unguard()
    runner.close()
    await given.disconnect()
  }
  let closed: Promise<void> | undefined
  return {
    engine,
    auditing,
    telemetry,
    isRedisThere: () => redis.isThere,
    tenantOf: (tenant) => ({
      ...{ keys: keysOf(tenant), engine, journal, reader, reads, sequencer, locks, durability, timeoutMs },
      ...sales.parts,
    }),
    async reconcile(options) {
      const parts = { journal, sequencer, witnessesKey: anyTenant.witnesses, places: () => placesIn(redis, keysOf) }
      const report = await reconcile(parts, options)
      // Others find out within a second.
      if (report.done) await engine.prove()
      return report
    },
    close() {
      closed ??= close()
      return closed
    },
  }
}

/** Every wallet that Redis has something of. */
async function* placesIn(redis: RedisConnection, keysOf: (tenant: string) => Keys): AsyncGenerator<Place[]> {
  for await (const found of redis.scan(WALLET_KEYS, SCAN_PORTION)) {
    const places = found.map(readWalletKey).filter((one) => one !== null)
    yield places.map(({ tenant, ref }) => keysOf(tenant).place(ref))
  }
}

function measure(engine: Engine, telemetry: Telemetry): (() => void)[] {
  const gauges = [
    telemetry.gauge?.('holdfast_circuit_open', () => engine.health.redisGroupsAway, { dependency: 'redis' }),
    telemetry.gauge?.('holdfast_circuit_open', () => (engine.health.postgres ? 0 : 1), { dependency: 'postgres' }),
    telemetry.gauge?.('holdfast_stopped', () => (engine.health.stopped === null ? 0 : 1)),
    telemetry.gauge?.('holdfast_backlog_entries', () => engine.load.backlog),
    telemetry.gauge?.('holdfast_operations_under_way', () => engine.load.attempts, { which: 'all' }),
    telemetry.gauge?.('holdfast_operations_under_way', () => engine.load.postgresPath, { which: 'waiting' }),
  ]
  return gauges.filter((gauge) => gauge !== undefined)
}
