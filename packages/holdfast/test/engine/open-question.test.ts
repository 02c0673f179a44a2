import { expect, it, vi } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import type { EngineOptions } from '../../src/engine/index.js'
import { type Filed, PostgresJournal } from '../../src/journal/index.js'
import { command } from '../../src/machine/index.js'
import { Postgres, PostgresError } from '../../src/postgres/index.js'
import { Keys, RedisUnavailable } from '../../src/redis/index.js'
import { type Batch, type BatchReply, Sequencer } from '../../src/sequencer/index.js'
import { refusal, until } from '../api/support/paths.js'
import { Engines, openWallet } from './support/engines.js'
import { Gate } from './support/gate.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 6), shards: 1 })
const DECIDE_WITHIN_MS = 3_000

/** Postgres to which appends and questions are on their way for as long as wanted, or which is away. */
class SlowJournal extends PostgresJournal {
  readonly appends = new Gate()
  readonly finds = new Gate()
  away = false
  /** Questions that were answered. */
  found = 0

  override async append(filed: readonly Filed[]): ReturnType<PostgresJournal['append']> {
    await this.appends.opened
    this.#fail()
    return super.append(filed)
  }

  override async find(...asked: Parameters<PostgresJournal['find']>): ReturnType<PostgresJournal['find']> {
    await this.finds.opened
    this.#fail()
    const entries = await super.find(...asked)
    this.found += 1
    return entries
  }

  override async charge(...asked: Parameters<PostgresJournal['charge']>): ReturnType<PostgresJournal['charge']> {
    this.#fail()
    return super.charge(...asked)
  }

  override async prove(...asked: Parameters<PostgresJournal['prove']>): ReturnType<PostgresJournal['prove']> {
    this.#fail()
    return super.prove(...asked)
  }

  #fail(): void {
    if (this.away) throw new PostgresError('not_executed', 'away')
  }
}

/** Redis, to which the first call about one key is on its way for as long as wanted, and which takes its time with another. */
class HeldUp extends Sequencer {
  readonly slow = new Gate()
  /** By key: what came of the last call about it. */
  readonly answers = new Map<string, string | undefined>()
  #held: Batch | undefined
  #tellHeld: () => void = () => {}
  readonly held = new Promise<void>((resolve) => {
    this.#tellHeld = resolve
  })

  #tellSlowed: () => void = () => {}
  readonly slowed = new Promise<void>((resolve) => {
    this.#tellSlowed = resolve
  })

  override async decide(batch: Batch): Promise<BatchReply> {
    const has = (wanted: string) => batch.commands.some(({ command: { key } }) => key === wanted)
    if (has('slow')) {
      this.#tellSlowed()
      await this.slow.opened
    }
    if (this.#held || !has('held up')) return this.#decide(batch)
    this.#held = batch
    this.#tellHeld()
    throw new RedisUnavailable('unknown', 'no answer')
  }

  async #decide(batch: Batch): Promise<BatchReply> {
    const reply = await super.decide(batch)
    for (const [index, { command: asked }] of batch.commands.entries()) {
      this.answers.set(asked.key, reply.answers[index]?.type)
    }
    return reply
  }

  arrive(): Promise<BatchReply> {
    return super.decide(this.#held as Batch)
  }
}

async function start(options: Partial<EngineOptions> = {}) {
  const postgres = new Postgres(await freshDatabase())
  const journal = new SlowJournal(postgres)
  const engines = new Engines(keys)
  const { engine, sequencer } = engines.start({
    redisUrl: await freshRedis(),
    postgres,
    journal,
    Sequencer: HeldUp,
    options: {
      timeoutMs: 25_000,
      decideWithinMs: DECIDE_WITHIN_MS,
      redisPatienceMs: 60_000,
      postgresPatienceMs: 60_000,
      ...options,
    },
  })
  const place = keys.of('w')
  await openWallet(journal, place, 'w')
  const submit = (kind: 'credit' | 'debit' | 'refund', key: string) =>
    engine.submit(place, command({ kind, key, amount: 10 }), { memory: false })
  await submit('credit', 'in')
  const close = async () => {
    await engines.close()
    await postgres.close()
  }
  return { engine, journal, sequencer, submit, close }
}

it('tells no refusal that was decided before a call that was late, however long it waited since', async () => {
  const { journal, sequencer, submit, close } = await start()
  journal.appends.shut()
  const first = submit('debit', 'first')
  await until(() => sequencer.answers.get('first') === 'accepted')
  const second = submit('debit', 'held up')
  // Decided again and refused, because of the first: that is not in the journal, so the refusal waits.
  await until(() => sequencer.answers.get('held up') === 'rejected')
  const third = submit('credit', 'more')
  await until(() => sequencer.answers.get('more') === 'accepted')
  expect((await sequencer.arrive()).answers).toMatchObject([{ type: 'accepted' }])
  // Until no call of it can be decided any more.
  await new Promise((resolve) => setTimeout(resolve, DECIDE_WITHIN_MS + 500))
  journal.appends.open()
  expect(await first).toMatchObject({ entry: { key: 'first' } })
  expect(await third).toMatchObject({ entry: { key: 'more' } })
  expect(await second).toMatchObject({ entry: { key: 'held up' } })
  await close()
})

it('tells to come again as soon as a call without an answer can not be decided any more', async () => {
  const { engine, journal, sequencer, submit, close } = await start({ decideCallsMax: 1 })
  journal.finds.shut()
  const answer = refusal(submit('debit', 'held up'))
  await sequencer.held
  // It looks for its key and queues up behind a slow call; before it is its turn Postgres is found to be away.
  sequencer.slow.shut()
  const slow = submit('credit', 'slow')
  await sequencer.slowed
  const { found } = journal
  journal.finds.open()
  await until(() => journal.found > found)
  journal.away = true
  const refund = refusal(submit('refund', 'back'))
  await vi.waitFor(() => expect(engine.health.postgres).toBe(false), { timeout: 20_000 })
  sequencer.slow.open()
  expect(await answer).toMatchObject({ code: 'unavailable' })
  journal.away = false
  expect(await slow).toMatchObject({ entry: { key: 'slow' } })
  await refund
  await close()
})
