import { expect, it } from 'vitest'
import type { Engine } from '../../src/engine/index.js'
import { PostgresJournal } from '../../src/journal/index.js'
import { type Command, command } from '../../src/machine/index.js'
import { Keys } from '../../src/redis/index.js'
import { NO_REDIS } from '../api/support/paths.js'
import { Engines, openWallet, ownServers } from './support/engines.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 6), shards: 1 })
const engines = new Engines(keys)
const { postgres, journal } = await ownServers()

/** Between what it reads of a wallet and what it reads of a charge, something happens to both. */
class Overtaken extends PostgresJournal {
  meanwhile = async (): Promise<void> => {}
  #isStateRead = false

  override async takeOver(...asked: Parameters<PostgresJournal['takeOver']>): ReturnType<PostgresJournal['takeOver']> {
    const state = await super.takeOver(...asked)
    this.#isStateRead = true
    return state
  }

  override async charge(ref: string, seq: number): ReturnType<PostgresJournal['charge']> {
    if (this.#isStateRead) await this.meanwhile()
    return super.charge(ref, seq)
  }
}

it('decides on a refund by a state that knows the charge, though another process has charged it since the state was read', async () => {
  const place = keys.of('w')
  await openWallet(journal, place, 'w')
  const late = new Overtaken(postgres)
  const { engine } = engines.start({ redisUrl: NO_REDIS, postgres, journal: late })
  const { engine: another } = engines.start({ redisUrl: NO_REDIS, postgres })
  const submit = (of: Engine, asked: Partial<Command> & Pick<Command, 'kind'>) =>
    of.submit(place, command(asked), { memory: false })
  await submit(another, { kind: 'credit', key: 'in', amount: 100 })
  const { entry } = await submit(another, { kind: 'hold', key: 'h', amount: 60, ttlMs: 600_000 })
  const charge = (entry?.seq as number) + 1
  late.meanwhile = async () => {
    late.meanwhile = async () => {}
    const captured = await submit(another, { kind: 'capture', key: 'c', hold: 'h', amount: 50 })
    expect(captured.entry?.seq).toBe(charge)
  }

  const refunded = await submit(engine, { kind: 'refund', key: 'r', of: charge, amount: 20 })
  expect(refunded).toMatchObject({ entry: { kind: 'refund', available: 60, reserved: 10 } })
  await engines.close()
})
