import { expect, it } from 'vitest'
import { systemClock } from '../../src/engine/index.js'
import { command } from '../../src/machine/index.js'
import { Keys } from '../../src/redis/index.js'
import { Engines, openWallet, ownServers } from './support/engines.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 6), shards: 1 })
const { redisUrl, postgres, journal } = await ownServers()

it('waits for no batch to fill: an operation needs no timer, from the call to the answer', async () => {
  const place = keys.of('alone')
  await openWallet(journal, place, 'alone')
  const engines = new Engines(keys)
  const clock = { ...systemClock, after: () => () => {} }
  const { engine } = engines.start({ redisUrl, postgres, clock })
  const submit = (asked: Parameters<typeof command>[0]) => engine.submit(place, command(asked), { memory: false })
  // Loaded, decided, appended; refused and confirmed; found in the journal.
  expect(await submit({ kind: 'credit', key: 'in', amount: 10 })).toMatchObject({ replayed: false })
  await expect(submit({ kind: 'debit', key: 'out', amount: 11 })).rejects.toMatchObject({ code: 'insufficient_funds' })
  await expect(submit({ kind: 'credit', key: 'in', amount: 9 })).rejects.toMatchObject({ code: 'idempotency_conflict' })
  expect(await submit({ kind: 'credit', key: 'in', amount: 10 })).toMatchObject({ replayed: true })
  await engines.close()
})
