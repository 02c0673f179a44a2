import { expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { type Filed, PostgresJournal } from '../../src/journal/index.js'
import { command } from '../../src/machine/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { Keys, RedisUnavailable } from '../../src/redis/index.js'
import { type Batch, type BatchReply, Sequencer } from '../../src/sequencer/index.js'
import { NO_REDIS, refusal } from '../api/support/paths.js'
import { Engines, openWallet } from './support/engines.js'

/** A call may arrive long after it was sent. What makes that harmless is its deadline, by the clock of the server. */

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 6), shards: 1 })
const ON_THE_WAY_MS = 2_000
const TIMEOUT_MS = 20_000
const DECIDE_WITHIN_MS = 1_500
/** A server's clock may be set back by so much: `CLOCK_SLACK_MS`. */
const SLACK_MS = 250
/** Of a clock, and of what lies between two looks at it. */
const ROUGHLY_MS = 100

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Redis, to which the call about the key `slow` takes long, and the first one about `held up` never comes. */
class FarRedis extends Sequencer {
  readonly deadlines = new Map<string, number>()
  heldAt = 0

  override async decide(batch: Batch): Promise<BatchReply> {
    for (const { command, deadline } of batch.commands) {
      this.deadlines.set(command.key, deadline)
      if (command.key === 'slow') await pause(ON_THE_WAY_MS)
      if (command.key !== 'held up' || this.heldAt > 0) continue
      this.heldAt = performance.now()
      throw new RedisUnavailable('unknown', 'no answer')
    }
    return super.decide(batch)
  }
}

/** Postgres, to which the append of the key `slow` takes long, where it decides. */
class FarPostgres extends PostgresJournal {
  decides = false
  readonly deadlines = new Map<string, number>()

  override async append(filed: readonly Filed[]): ReturnType<PostgresJournal['append']> {
    for (const { entry, deadline } of filed) {
      this.deadlines.set(entry.key, deadline ?? Number.POSITIVE_INFINITY)
      if (this.decides && entry.key === 'slow') await pause(ON_THE_WAY_MS)
    }
    return super.append(filed)
  }
}

async function start(redisUrl: string, decideWithinMs: number) {
  const postgres = new Postgres(await freshDatabase())
  const journal = new FarPostgres(postgres)
  journal.decides = redisUrl === NO_REDIS
  const engines = new Engines(keys)
  const { engine, sequencer } = engines.start({
    redisUrl,
    postgres,
    journal,
    Sequencer: FarRedis,
    options: { timeoutMs: TIMEOUT_MS, decideWithinMs, postgresPatienceMs: 60_000 },
  })
  const place = keys.of('w')
  await openWallet(journal, place, 'w')
  const submit = (kind: 'credit' | 'debit', key: string) =>
    engine.submit(place, command({ kind, key, amount: 10 }), { memory: false })
  const close = async () => {
    await engines.close()
    await postgres.close()
  }
  return { sequencer, journal, submit, close }
}

it.each(['Redis', 'Postgres'] as const)(
  'ends what is asked next no later because the last call was long on its way to %s',
  async (name) => {
    const redisUrl = name === 'Redis' ? await freshRedis() : NO_REDIS
    const { sequencer, journal, submit, close } = await start(redisUrl, 2 * TIMEOUT_MS)
    const { deadlines } = name === 'Redis' ? sequencer : journal
    // By the first the engine learns the clock of the server, and by the second it would unlearn it.
    for (const key of ['first', 'slow', 'next']) await submit('credit', key)
    expect(deadlines.get('next')).toBeLessThanOrEqual(Date.now() + TIMEOUT_MS + ROUGHLY_MS)
    await close()
  },
)

it('tells no refusal while a call without an answer may still be decided, by a clock that was set back', async () => {
  const { sequencer, submit, close } = await start(await freshRedis(), DECIDE_WITHIN_MS)
  const refused = await refusal(submit('debit', 'held up'))
  expect(refused).toMatchObject({ code: 'insufficient_funds' })
  expect(performance.now() - sequencer.heldAt).toBeGreaterThan(DECIDE_WITHIN_MS + SLACK_MS - ROUGHLY_MS)
  await close()
})
