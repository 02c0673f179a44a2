import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import type { Engine } from '../../src/engine/index.js'
import { holdOf } from '../../src/engine/transfer-commands.js'
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

  it('is finished by whoever finds it, though its hold is known to Redis alone', async () => {
    for (const id of ['payer', 'payee']) await openWallet(new PostgresJournal(postgres), keys.of(id), id)
    const rest = { key: 'left', amount: 10, fee: 0, counter: 'revenue', metadata: '' }
    const intent: Intent = { tenant: 'test', source: keys.ref('payer'), target: keys.ref('payee'), ...rest }
    // Those who look after wallets leave what is pending alone for longer than this takes.
    const pace = { helpAfterMs: 600_000 }
    const options = { sweepEveryMs: 20, transferGraceMs: 200 }
    const { engine, sequencer } = engines.start({ redisUrl, postgres, pace, options })
    const payer = keys.of('payer')
    await engine.submit(payer, command({ kind: 'credit', key: 'in', amount: 30 }), { memory: false })

    // As a process would that dies when Redis has decided on the hold, and before anybody has written it down.
    await new PostgresIntents(postgres).begin([intent])
    const { life, clock, core } = await sequencer.look(payer, 0, 'test', 0)
    const known = { place: payer, epochMin: 0, epoch: core?.epoch ?? 0, acked: core?.seq ?? 0, known: 0 }
    const commands = [{ wallet: 0, command: holdOf(intent), deadline: clock + 20_000, memory: false }]
    const { answers } = await sequencer.decide({ life, wallets: [known], commands })
    expect(answers).toMatchObject([{ type: 'accepted' }])

    engine.start()
    await until(async () => (await openIntents()) === 0)
    const journal = new PostgresJournal(postgres)
    expect(await journal.read([intent.source])).toMatchObject([{ available: 20, reserved: 0 }])
    expect(await journal.read([intent.target])).toMatchObject([{ available: 10, reserved: 0 }])
    expect(await sequencer.look(payer, 0, 'test', 0)).toMatchObject({ core: { available: 20, reserved: 0 } })
  })

  it('is removed at once where nobody else began it', async () => {
    const plain = new PostgresIntents(postgres)
    const rest = { key: 'alone', amount: 10, fee: 0, counter: 'revenue', metadata: '' }
    const intent: Intent = { tenant: 'test', source: keys.ref('from'), target: keys.ref('to'), ...rest }
    await expect(startEngine(plain).transfer(intent, {})).rejects.toMatchObject({ code: 'insufficient_funds' })
    await until(async () => (await openIntents()) === 0)
  })
})
