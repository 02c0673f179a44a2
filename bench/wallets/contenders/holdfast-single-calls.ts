import { Reads } from '../../../packages/holdfast/src/api/reads.js'
import { Wallet } from '../../../packages/holdfast/src/api/wallet.js'
import { systemClock } from '../../../packages/holdfast/src/engine/clock.js'
import { Engine } from '../../../packages/holdfast/src/engine/index.js'
import {
  JournalReader,
  PostgresIntents,
  PostgresJournal,
  PostgresPayments,
} from '../../../packages/holdfast/src/journal/index.js'
import { Locks } from '../../../packages/holdfast/src/lock/index.js'
import { migrate, Postgres, readSettings } from '../../../packages/holdfast/src/postgres/index.js'
import { Keys, RedisConnection, RedisScriptRunner } from '../../../packages/holdfast/src/redis/index.js'
import { type Answer, type Batch, type BatchReply, Sequencer } from '../../../packages/holdfast/src/sequencer/index.js'
import type { Place } from '../../harness/contender.js'
import { HoldfastContender } from './holdfast.js'

const SHARDS = 64

/**
 * Everything as Holdfast does it, the shipped script included, but each command goes as a script call of its own. What the batches
 * of the decider bring is the difference.
 */
export class SingleCallContender extends HoldfastContender {
  readonly #at: Place
  readonly #durability: 'ledger' | 'memory'
  #parts: Parts | undefined

  constructor(place: Place, durability: 'ledger' | 'memory') {
    super(place, durability)
    this.#at = place
    this.#durability = durability
  }

  override wallet(number: number): Wallet {
    return new Wallet({ ...(this.#parts as Parts), durability: this.#durability }, `wallet-${number}`)
  }

  override async open(): Promise<void> {
    this.#parts = await assemble(this.#at)
  }

  override async close(): Promise<void> {
    const parts = this.#parts
    if (!parts) return
    await parts.engine.close()
    parts.runner.close()
    await Promise.all([parts.redis.close(), parts.postgres.close()])
  }
}

class SingleCallSequencer extends Sequencer {
  override async decide({ life, wallets, commands }: Batch): Promise<BatchReply> {
    const told = wallets.map(() => 0)
    const replies = await Promise.all(
      commands.map((command) => {
        const wallet = wallets[command.wallet]
        if (!wallet) throw new Error('A command names a wallet of its batch')
        // Each call of a wallet returns what it adds itself: what the calls before it add is known to be on its way.
        const known = wallet.known + (told[command.wallet] as number)
        told[command.wallet] = (told[command.wallet] as number) + 1
        const { place, epochMin, epoch, acked } = wallet
        return super.decide({
          life,
          wallets: [{ place, epochMin, epoch, acked, known }],
          commands: [{ ...command, wallet: 0 }],
        })
      }),
    )
    const runs: (BatchReply['runs'][number] | undefined)[] = wallets.map(() => undefined)
    for (const [index, reply] of replies.entries()) {
      const at = commands[index]?.wallet as number
      const run = reply.runs[0] as BatchReply['runs'][number]
      const before = runs[at]
      if (before && !('type' in before) && !('type' in run)) before.entries.push(...run.entries)
      else runs[at] ??= run
    }
    return {
      clock: Math.max(...replies.map(({ clock }) => clock)),
      life: replies[0]?.life as string,
      runs: runs as BatchReply['runs'],
      answers: replies.map(({ answers }) => answers[0] as Answer),
    }
  }
}

type Parts = Awaited<ReturnType<typeof assemble>>

/** As `Holdfast.connect` does it, with another sequencer. */
async function assemble({ redisUrl, databaseUrl }: Place) {
  const postgres = new Postgres(databaseUrl, {})
  await migrate(postgres)
  await postgres.query('fixShards', [SHARDS])
  const { secret } = await readSettings(postgres)
  const redis = new RedisConnection(redisUrl, {})
  await redis.ready()
  const keys = new Keys({ tenant: 'default', secret, shards: SHARDS })
  const runner = new RedisScriptRunner(redis)
  const sequencer = new SingleCallSequencer(runner, {
    aheadMaxMs: 60_000,
    helpAfterMs: 10_000,
    idleAfterMs: 600_000,
    pendingMax: 1_000,
    now: systemClock.timeOfDay,
  })
  const journal = new PostgresJournal(postgres)
  const reader = new JournalReader(postgres)
  const reads = new Reads(5, 5_000)
  const locks = new Locks(runner, () => reader.nextLockToken(), {})
  const engine = new Engine({
    sequencer,
    journal,
    intents: new PostgresIntents(postgres),
    payments: new PostgresPayments(postgres),
    clock: systemClock,
    telemetry: {},
    asker: `single-${process.pid}-${Date.now()}`,
    shards: SHARDS,
    agendaOf: (shard) => keys.agenda(shard),
    probeOf: (shard) => keys.probe(shard),
    placeOf: (_, ref) => keys.place(ref),
    witnessesKey: keys.witnesses,
    cluster: false,
  })
  engine.start()
  return { postgres, redis, runner, sequencer, journal, reader, reads, locks, engine, keys, timeoutMs: 10_000 }
}
