import { expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { PostgresJournal } from '../../src/journal/index.js'
import { command } from '../../src/machine/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { Keys, RedisUnavailable } from '../../src/redis/index.js'
import { type Batch, type BatchReply, Sequencer } from '../../src/sequencer/index.js'
import { refusal } from '../api/support/paths.js'
import { Engines, openWallet } from './support/engines.js'

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

/** Redis, to which the first call is on its way for as long as wanted. */
class HeldUp extends Sequencer {
  #held: Batch | undefined

  override async decide(batch: Batch): Promise<BatchReply> {
    if (this.#held || batch.commands.length === 0) return super.decide(batch)
    this.#held = batch
    throw new RedisUnavailable('unknown', 'no answer')
  }

  arrive(): Promise<BatchReply> {
    return super.decide(this.#held as Batch)
  }
}

async function start<J extends PostgresJournal, S extends Sequencer>(
  Journal: new (postgres: Postgres) => J,
  Redis: new (...parts: ConstructorParameters<typeof Sequencer>) => S,
) {
  const postgres = new Postgres(await freshDatabase())
  const journal = new Journal(postgres)
  const engines = new Engines(keys)
  const { engine, sequencer } = engines.start({
    redisUrl: await freshRedis(),
    postgres,
    journal,
    Sequencer: Redis,
    options: { timeoutMs: 25_000 },
  })
  const close = async () => {
    await engines.close()
    await postgres.close()
  }
  const place = keys.of('w')
  const open = () => openWallet(journal, place, 'w')
  const credit = (key: string) => engine.submit(place, command({ kind: 'credit', key, amount: 1 }), { memory: false })
  return { journal, sequencer, open, credit, close }
}

it('tells nobody that there is no such wallet while a call of his may still be decided', async () => {
  const { sequencer, open, credit, close } = await start(PostgresJournal, HeldUp)
  const first = credit('held up')
  // Long enough to find out that there is no wallet.
  await new Promise((resolve) => setTimeout(resolve, 300))
  await open()
  await credit('beside it')
  await sequencer.arrive()
  expect(await first).toMatchObject({ entry: { key: 'held up' } })
  await close()
})

it('tells only those that there is no such wallet who asked before that was read', async () => {
  const { journal, open, credit, close } = await start(SlowAnswer, Sequencer)
  const before = refusal(credit('before'))
  await journal.answered
  await open()
  const after = credit('after')
  // Long enough for it to have found out that the wallet is being loaded.
  await new Promise((resolve) => setTimeout(resolve, 100))
  journal.arrive()
  expect(await before).toMatchObject({ code: 'wallet_not_found' })
  expect(await after).toMatchObject({ entry: { seq: 1, key: 'after' } })
  await close()
})
