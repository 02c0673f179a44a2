import { expect, it } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { type Filed, PostgresJournal } from '../../src/journal/index.js'
import { command } from '../../src/machine/index.js'
import { Postgres, PostgresError } from '../../src/postgres/index.js'
import { Keys } from '../../src/redis/index.js'
import { NO_REDIS, refusal } from '../api/support/paths.js'
import { Engines, openWallet } from './support/engines.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 6), shards: 1 })
const DECIDE_WITHIN_MS = 1_500

/** Postgres, to which the append of one key is on its way for as long as wanted: its caller has no answer. */
class HoldingUp extends PostgresJournal {
  held: readonly Filed[] | undefined
  heldAt = 0
  meanwhile = async (): Promise<void> => {}

  override async append(filed: readonly Filed[]): ReturnType<PostgresJournal['append']> {
    if (this.held || !filed.some(({ entry }) => entry.key === 'held up')) return super.append(filed)
    this.held = filed
    this.heldAt = performance.now()
    await this.meanwhile()
    throw new PostgresError('unknown', 'no answer')
  }

  arrive(): ReturnType<PostgresJournal['append']> {
    return super.append(this.held as readonly Filed[])
  }
}

it('gives an append of the Postgres path a deadline, and tells no refusal before that is over', async () => {
  const url = await freshDatabase()
  const [postgres, another] = [new Postgres(url), new Postgres(url)]
  const journal = new HoldingUp(postgres)
  const engines = new Engines(keys)
  const options = { timeoutMs: 25_000, decideWithinMs: DECIDE_WITHIN_MS, postgresPatienceMs: 60_000 }
  const { engine } = engines.start({ redisUrl: NO_REDIS, postgres, journal, options })
  const { engine: rival } = engines.start({ redisUrl: NO_REDIS, postgres: another, options })
  const place = keys.of('w')
  await openWallet(journal, place, 'w')
  const debit = (of: typeof engine, key: string) =>
    of.submit(place, command({ kind: 'debit', key, amount: 10 }), { memory: false })
  await engine.submit(place, command({ kind: 'credit', key: 'in', amount: 10 }), { memory: false })
  // Somebody else takes all there is, so that the same call is refused when it comes again.
  journal.meanwhile = async () => void (await debit(rival, 'first'))

  const refused = await refusal(debit(engine, 'held up'))
  expect(refused).toMatchObject({ code: 'insufficient_funds' })
  expect(performance.now() - journal.heldAt).toBeGreaterThan(DECIDE_WITHIN_MS)
  const [{ entry, deadline }] = journal.held as [Filed]
  expect(deadline).toBeGreaterThan(entry.at)
  expect(deadline).toBeLessThanOrEqual(entry.at + DECIDE_WITHIN_MS)
  expect((await journal.arrive()).verdicts).not.toContainEqual({ type: 'appended' })
  await engines.close()
  await Promise.all([postgres.close(), another.close()])
})
