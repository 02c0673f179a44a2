import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import type { Engine } from '../../src/engine/index.js'
import { type Begun, type Intent, PostgresIntents, PostgresJournal } from '../../src/journal/index.js'
import { command } from '../../src/machine/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { Keys } from '../../src/redis/index.js'
import { until } from '../api/support/paths.js'
import { Engines, openWallet } from './support/engines.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 5), shards: 4 })
const engines = new Engines(keys)
let redisUrl: string
let postgres: Postgres

beforeAll(async () => {
  redisUrl = await freshRedis()
  postgres = new Postgres(await freshDatabase())
})
afterAll(async () => {
  await engines.close()
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

/** As long as it takes: nobody looks after what is left here. */
function startEngine(intents: PostgresIntents): Engine {
  return engines.start({ redisUrl, postgres, intents, options: { transferHoldWithinMs: 60_000, timeoutMs: 60_000 } })
    .engine
}

const openIntents = async (): Promise<number> =>
  (await postgres.transaction((tx) => tx.execute('test', 'SELECT FROM transfers'))).length

describe('what is written down', () => {
  it('stays while somebody who asked for the same may still hold the money, though another was refused', async () => {
    for (const id of ['from', 'to']) await openWallet(new PostgresJournal(postgres), keys.of(id), id)
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
    expect(await openIntents()).toBe(1)
    slow.go()
    expect(await done).toMatchObject({ to: { entry: { amount: 10 } } })
    await until(async () => (await openIntents()) === 0)
  })

  it('is removed at once where nobody else began it', async () => {
    const plain = new PostgresIntents(postgres)
    const rest = { key: 'alone', amount: 10, fee: 0, counter: 'revenue', metadata: '' }
    const intent: Intent = { tenant: 'test', source: keys.ref('from'), target: keys.ref('to'), ...rest }
    await expect(startEngine(plain).transfer(intent, {})).rejects.toMatchObject({ code: 'insufficient_funds' })
    await until(async () => (await openIntents()) === 0)
  })
})
