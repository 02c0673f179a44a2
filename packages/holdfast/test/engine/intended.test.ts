import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Engine, systemClock } from '../../src/engine/index.js'
import { type Begun, type Intent, PostgresIntents, PostgresJournal, PostgresPayments } from '../../src/journal/index.js'
import { command, genesisHash } from '../../src/machine/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { Keys, RedisConnection, RedisScriptRunner } from '../../src/redis/index.js'
import { Sequencer } from '../../src/sequencer/index.js'
import { until } from '../api/support/paths.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 5), shards: 4 })
const closing: (() => Promise<void>)[] = []
let redisUrl: string
let postgres: Postgres
let journal: PostgresJournal

beforeAll(async () => {
  redisUrl = await freshRedis()
  postgres = new Postgres(await freshDatabase())
  journal = new PostgresJournal(postgres)
})
afterAll(async () => {
  for (const close of closing) await close()
  await postgres.close()
})

/** Is told late that it is written down: between the two lies all that can happen to a process. */
class SlowIntents extends PostgresIntents {
  written = false
  go = (): void => {}
  readonly #gone = new Promise<void>((resolve) => {
    this.go = resolve
  })

  override async begin(intents: readonly Intent[]): Promise<Begun[]> {
    const begun = await super.begin(intents)
    this.written = true
    await this.#gone
    return begun
  }
}

function startEngine(intents: PostgresIntents): Engine {
  const redis = new RedisConnection(redisUrl)
  const runner = new RedisScriptRunner(redis)
  const engine = new Engine({
    sequencer: new Sequencer(runner, {
      aheadMaxMs: 60_000,
      helpAfterMs: 10_000,
      idleAfterMs: 60_000,
      pendingMax: 1_000,
      now: () => Math.floor(systemClock.now()),
    }),
    journal,
    intents,
    payments: new PostgresPayments(postgres),
    clock: systemClock,
    telemetry: {},
    asker: `engine-${closing.length}`,
    shards: keys.shards,
    agendaOf: (shard) => keys.agenda(shard),
    placeOf: (_tenant, ref) => keys.place(ref),
    witnessesKey: keys.witnesses,
    cluster: false,
    // As long as it takes: nobody looks after what is left here.
    options: { transferHoldWithinMs: 60_000, timeoutMs: 60_000 },
  })
  closing.push(async () => {
    await engine.close()
    runner.close()
    await redis.close()
  })
  return engine
}

describe('what is written down', () => {
  it('stays while somebody who asked for the same may still hold the money, though another was refused', async () => {
    for (const id of ['from', 'to']) {
      const ref = keys.ref(id)
      const head = genesisHash(ref, 'usd')
      await journal.open({ ref, tenant: 'test', id, currency: 'usd', creditLimit: 0, metadata: '', head })
    }
    const rest = { key: 't', amount: 10, fee: 0, counter: 'revenue', metadata: '' }
    const intent: Intent = { tenant: 'test', source: keys.ref('from'), target: keys.ref('to'), ...rest }
    const slow = new SlowIntents(postgres)
    const plain = new PostgresIntents(postgres)
    const [late, early] = [startEngine(slow), startEngine(plain)]
    const done = late.transfer(intent, {})
    await until(() => slow.written)
    await expect(early.transfer(intent, {})).rejects.toMatchObject({ code: 'insufficient_funds', side: 'from' })
    await early.submit(keys.of('from'), command({ kind: 'credit', key: 'in', amount: 10 }), { memory: false })
    // If the late one died after its hold, this is all that anybody would know of it.
    await early.close()
    expect(await plain.open(10)).toHaveLength(1)
    slow.go()
    expect(await done).toMatchObject({ to: { entry: { amount: 10 } } })
    await until(async () => (await plain.open(10)).length === 0)
  })

  it('is removed at once where nobody else began it', async () => {
    const plain = new PostgresIntents(postgres)
    const rest = { key: 'alone', amount: 10, fee: 0, counter: 'revenue', metadata: '' }
    const intent: Intent = { tenant: 'test', source: keys.ref('from'), target: keys.ref('to'), ...rest }
    await expect(startEngine(plain).transfer(intent, {})).rejects.toMatchObject({ code: 'insufficient_funds' })
    await until(async () => (await plain.open(10)).length === 0)
  })
})
