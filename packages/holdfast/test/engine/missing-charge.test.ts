import { afterAll, expect, it } from 'vitest'
import { freshRedis } from '../../../../test/servers.js'
import type { Engine } from '../../src/engine/index.js'
import { type Command, command } from '../../src/machine/index.js'
import { Keys } from '../../src/redis/index.js'
import { NO_REDIS } from '../api/support/paths.js'
import { Engines, openWallet, ownServers } from './support/engines.js'
import { GatedJournal } from './support/gate.js'

/** A refund of something that is not in the journal: because there is no such thing, or because it is still on its way there. */
const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 9), shards: 1 })
const engines = new Engines(keys)
const { postgres, journal, redisUrl } = await ownServers()

const held = new GatedJournal(postgres)
afterAll(async () => {
  held.appends.open()
  await engines.close()
})

const submit = (of: Engine, id: string, asked: Partial<Command> & Pick<Command, 'kind'>, memory = false) =>
  of.submit(keys.of(id), command(asked), { memory, timeoutMs: 5_000 })
const epochOf = async (id: string) => (await journal.read([keys.of(id).ref]))[0]?.epoch

/** One process has a state of the wallet; another loads it elsewhere, and acknowledges a charge from memory that is in no journal yet. */
async function charged(id: string, redisUrl: string, anotherUrl: string): Promise<{ engine: Engine; charge: number }> {
  await openWallet(journal, keys.of(id), id)
  const { engine } = engines.start({ redisUrl, postgres })
  const { engine: another } = engines.start({ redisUrl: anotherUrl, postgres, journal: held })
  await submit(engine, id, { kind: 'credit', key: 'in', amount: 100 })
  held.appends.shut()
  const { entry } = await submit(another, id, { kind: 'debit', key: 'out', amount: 60 }, true)
  return { engine, charge: entry?.seq as number }
}

it('is not refused on the Postgres path by a state that others have left behind since', async () => {
  const { engine, charge } = await charged('w', NO_REDIS, redisUrl)
  const refund = submit(engine, 'w', { kind: 'refund', key: 'r', of: charge, amount: 20 })
  await expect(refund).rejects.toMatchObject({ code: 'unavailable' })
  held.appends.open()
})

it('is measured by the charge that was made by who does not see Redis, whose state there is left behind', async () => {
  await openWallet(journal, keys.of('left'), 'left')
  const { engine } = engines.start({ redisUrl, postgres })
  await submit(engine, 'left', { kind: 'credit', key: 'in', amount: 100 })
  const { engine: blind } = engines.start({ redisUrl: NO_REDIS, postgres })
  const { entry } = await submit(blind, 'left', { kind: 'debit', key: 'out', amount: 60 })
  const refunded = await submit(engine, 'left', { kind: 'refund', key: 'r', of: entry?.seq as number, amount: 20 })
  expect(refunded).toMatchObject({ entry: { kind: 'refund', available: 60 } })
})

it('is not refused by a Redis that is not the one by which the others go', async () => {
  const { engine, charge } = await charged('two', await freshRedis(), redisUrl)
  const epoch = await epochOf('two')
  const refund = submit(engine, 'two', { kind: 'refund', key: 'r', of: charge, amount: 20 })
  await expect(refund).rejects.toMatchObject({ code: 'entry_not_found' })
  expect(await epochOf('two')).not.toBe(epoch)
})
