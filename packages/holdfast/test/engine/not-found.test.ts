import { expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Engine, systemClock } from '../../src/engine/index.js'
import { PostgresIntents, PostgresJournal } from '../../src/journal/index.js'
import { command, genesisHash } from '../../src/machine/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { Keys, RedisConnection, RedisScriptRunner } from '../../src/redis/index.js'
import { Sequencer } from '../../src/sequencer/index.js'
import { refusal } from '../api/support/paths.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 5), shards: 1 })

/** Postgres whose answer to one raise is on its way for as long as wanted. */
class SlowAnswer extends PostgresJournal {
  #answered: () => void = () => {}
  readonly answered = new Promise<void>((resolve) => {
    this.#answered = resolve
  })
  #arrive: () => void = () => {}
  readonly #arrives = new Promise<void>((resolve) => {
    this.#arrive = resolve
  })

  arrive(): void {
    this.#arrive()
  }

  override async raise(...asked: Parameters<PostgresJournal['raise']>): ReturnType<PostgresJournal['raise']> {
    const answer = await super.raise(...asked)
    this.#answered()
    await this.#arrives
    return answer
  }
}

it('tells only those that there is no such wallet who asked before that was read', async () => {
  const postgres = new Postgres(await freshDatabase())
  const journal = new SlowAnswer(postgres)
  const redis = new RedisConnection(await freshRedis())
  const now = () => Math.floor(systemClock.now())
  const options = { aheadMaxMs: 60_000, helpAfterMs: 10_000, idleAfterMs: 60_000, pendingMax: 1_000, now }
  const engine = new Engine({
    sequencer: new Sequencer(new RedisScriptRunner(redis), options),
    journal,
    intents: new PostgresIntents(postgres),
    clock: systemClock,
    telemetry: {},
    asker: 'test',
    shards: 1,
    agendaOf: (shard) => keys.agenda(shard),
    placeOf: (_tenant, ref) => keys.place(ref),
    cluster: false,
  })
  const ref = keys.ref('w')
  const credit = (key: string) =>
    engine.submit(keys.place(ref), command({ kind: 'credit', key, amount: 1 }), { memory: false })

  const before = refusal(credit('before'))
  await journal.answered
  const head = genesisHash(ref, 'usd')
  await journal.open({ ref, tenant: 'test', id: 'w', currency: 'usd', creditLimit: 0, metadata: '', head })
  const after = credit('after')
  // Long enough for it to have found out that the wallet is being loaded.
  await new Promise((resolve) => setTimeout(resolve, 100))
  journal.arrive()
  expect(await before).toMatchObject({ code: 'wallet_not_found' })
  expect(await after).toMatchObject({ entry: { seq: 1, key: 'after' } })
  await engine.close()
  await redis.close()
  await postgres.close()
})
