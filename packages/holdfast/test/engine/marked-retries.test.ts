import { expect, it } from 'vitest'
import { command, REMEMBERED } from '../../src/machine/index.js'
import { Keys } from '../../src/redis/index.js'
import { type Batch, type BatchReply, Sequencer } from '../../src/sequencer/index.js'
import { Engines, openWallet, ownServers } from './support/engines.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 6), shards: 1 })
const { redisUrl, postgres, journal } = await ownServers()

class Counting extends Sequencer {
  decided = 0

  override decide(batch: Batch): Promise<BatchReply> {
    this.decided += batch.commands.length
    return super.decide(batch)
  }
}

it('are looked up in the journal before they are decided, so that an old key costs no load', async () => {
  const place = keys.of('w')
  await openWallet(journal, place, 'w')
  const engines = new Engines(keys)
  const { engine, sequencer } = engines.start({ redisUrl, postgres, Sequencer: Counting })
  const credit = (key: string, retry = false) =>
    engine.submit(place, command({ kind: 'credit', key, amount: 1 }), { memory: false, retry })
  const epochOf = async () => (await journal.read([place.ref]))[0]?.epoch
  const first = await credit('old')
  for (let n = 0; n < 2 * REMEMBERED; n += 1) await credit(`later-${n}`)
  const { decided } = sequencer
  const epoch = await epochOf()

  expect(await credit('old', true)).toEqual({ ...first, replayed: true })
  expect(sequencer.decided).toBe(decided)
  expect(await epochOf()).toBe(epoch)

  // Unmarked it is answered as well, and the wallet had to be loaded anew for that.
  expect(await credit('old')).toEqual({ ...first, replayed: true })
  expect(sequencer.decided).toBeGreaterThan(decided)
  await engines.close()
})
