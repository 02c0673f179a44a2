import { expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Engine, systemClock } from '../../src/engine/index.js'
import { type Filed, PostgresIntents, PostgresJournal } from '../../src/journal/index.js'
import { command, genesisHash } from '../../src/machine/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { Keys, RedisConnection, RedisScriptRunner, RedisUnavailable } from '../../src/redis/index.js'
import { type Batch, type BatchReply, Sequencer } from '../../src/sequencer/index.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 6), shards: 1 })
const DECIDE_WITHIN_MS = 500

/** Postgres to which appends are on their way for as long as wanted. */
class SlowAppend extends PostgresJournal {
  #gate: Promise<void> = Promise.resolve()
  #open: () => void = () => {}

  hold(): void {
    this.#gate = new Promise((resolve) => {
      this.#open = resolve
    })
  }

  release(): void {
    this.#open()
  }

  override async append(filed: readonly Filed[]): ReturnType<PostgresJournal['append']> {
    await this.#gate
    return super.append(filed)
  }
}

/** Redis, to which the first call about one key is on its way for as long as wanted. */
class HeldUp extends Sequencer {
  #held: Batch | undefined

  override async decide(batch: Batch): Promise<BatchReply> {
    if (this.#held || !batch.commands.some(({ command: { key } }) => key === 'held up')) return super.decide(batch)
    this.#held = batch
    throw new RedisUnavailable('unknown', 'no answer')
  }

  arrive(): Promise<BatchReply> {
    return super.decide(this.#held as Batch)
  }
}

it('tells no refusal that was decided before a call that was late, however long it waited since', async () => {
  const postgres = new Postgres(await freshDatabase())
  const journal = new SlowAppend(postgres)
  const redis = new RedisConnection(await freshRedis())
  const now = () => Math.floor(systemClock.now())
  const options = { aheadMaxMs: 60_000, helpAfterMs: 10_000, idleAfterMs: 60_000, pendingMax: 1_000, now }
  const sequencer = new HeldUp(new RedisScriptRunner(redis), options)
  const engine = new Engine({
    sequencer,
    journal,
    intents: new PostgresIntents(postgres),
    clock: systemClock,
    telemetry: {},
    asker: 'test',
    shards: 1,
    agendaOf: (shard) => keys.agenda(shard),
    placeOf: (_tenant, ref) => keys.place(ref),
    cluster: false,
    options: { decideWithinMs: DECIDE_WITHIN_MS },
  })
  const ref = keys.ref('w')
  const head = genesisHash(ref, 'usd')
  await journal.open({ ref, tenant: 'test', id: 'w', currency: 'usd', creditLimit: 0, metadata: '', head })
  const submit = (kind: 'credit' | 'debit', key: string) =>
    engine.submit(keys.place(ref), command({ kind, key, amount: 10 }), { memory: false })
  await submit('credit', 'in')

  journal.hold()
  const first = submit('debit', 'first')
  // In a call of its own.
  await new Promise((resolve) => setTimeout(resolve, 50))
  const second = submit('debit', 'held up')
  // Decided again and refused, because of the first: that is not in the journal, so the refusal waits.
  await new Promise((resolve) => setTimeout(resolve, DECIDE_WITHIN_MS / 5))
  const third = submit('credit', 'more')
  await new Promise((resolve) => setTimeout(resolve, DECIDE_WITHIN_MS / 5))
  expect((await sequencer.arrive()).answers).toMatchObject([{ type: 'accepted' }])
  // Until no call of it can be decided any more.
  await new Promise((resolve) => setTimeout(resolve, 2 * DECIDE_WITHIN_MS))
  journal.release()
  expect(await first).toMatchObject({ entry: { key: 'first' } })
  expect(await third).toMatchObject({ entry: { key: 'more' } })
  expect(await second).toMatchObject({ entry: { key: 'held up' } })
  await engine.close()
  await redis.close()
  await postgres.close()
})
