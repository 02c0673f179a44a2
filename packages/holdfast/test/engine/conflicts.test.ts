import { afterEach, expect, it } from 'vitest'
import { command } from '../../src/machine/index.js'
import { Keys } from '../../src/redis/index.js'
import { type Batch, type BatchReply, Sequencer } from '../../src/sequencer/index.js'
import { until } from '../api/support/paths.js'
import { Engines, leaveBehind, openWallet, ownServers } from './support/engines.js'
import { GatedJournal } from './support/gate.js'

/** A conflict is a "no" like any other: it is told only if the entry that it is with is in the journal. */

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 6), shards: 1 })
const engines = new Engines(keys)
const { redisUrl, redis, postgres } = await ownServers()

afterEach(() => engines.close())

const LEDGER = { memory: false }
const credit = (key: string, amount: number) => command({ kind: 'credit', key, amount })

/** Remembers what the script answered. */
class Listening extends Sequencer {
  readonly answers: string[] = []

  override async decide(batch: Batch): Promise<BatchReply> {
    const reply = await super.decide(batch)
    this.answers.push(...reply.answers.map(({ type }) => type))
    return reply
  }
}

it.each(['committed', 'lost'] as const)(
  'is told of an entry that was %s only if it is in the journal',
  async (fate) => {
    const place = keys.of(fate)
    const journal = new GatedJournal(postgres)
    await openWallet(journal, place, fate)
    const { engine, sequencer } = engines.start({ redisUrl, postgres, journal, Sequencer: Listening })
    await engine.submit(place, credit('in', 100), LEDGER)

    await leaveBehind(sequencer, place, [{ command: credit('k', 10), ...LEDGER }])
    journal.appends.shut()
    const asked = engine.submit(place, credit('k', 20), LEDGER).then(
      ({ entry }) => entry?.amount,
      ({ code }) => code,
    )
    await until(() => sequencer.answers.at(-1) === 'conflict')
    if (fate === 'lost') {
      await redis.del(place.walletKey)
      await engines.start({ redisUrl, postgres }).engine.touch(place)
    }
    journal.appends.open()

    expect(await asked).toBe(fate === 'lost' ? 20 : 'idempotency_conflict')
    const [, second, ...others] = await journal.entries(place.ref, 1, 10)
    expect(second).toMatchObject({ key: 'k', amount: fate === 'lost' ? 20 : 10 })
    expect(others).toEqual([])
  },
)
