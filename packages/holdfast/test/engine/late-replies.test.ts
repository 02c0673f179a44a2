import { expect, it } from 'vitest'
import type { Engine } from '../../src/engine/index.js'
import { command } from '../../src/machine/index.js'
import { Keys } from '../../src/redis/index.js'
import { type Batch, type BatchReply, Sequencer } from '../../src/sequencer/index.js'
import { Engines, openWallet, ownServers } from './support/engines.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 6), shards: 1 })
const engines = new Engines(keys)
const { redisUrl, redis, postgres, journal } = await ownServers()

/** Redis, whose answer about one key is on its way for as long as wanted. */
class SlowReply extends Sequencer {
  arrive = (): void => {}
  readonly #arrived = new Promise<void>((resolve) => {
    this.arrive = resolve
  })
  #decided = (): void => {}
  readonly decided = new Promise<void>((resolve) => {
    this.#decided = resolve
  })

  override async decide(batch: Batch): Promise<BatchReply> {
    const reply = await super.decide(batch)
    if (batch.commands.some(({ command: { key } }) => key === 'late')) {
      this.#decided()
      await this.#arrived
    }
    return reply
  }
}

it('takes no entry of a life that is over for written, because later ones of the next are', async () => {
  const place = keys.of('w')
  await openWallet(journal, place, 'w')
  const { engine, sequencer } = engines.start({
    redisUrl,
    postgres,
    Sequencer: SlowReply,
    options: { timeoutMs: 20_000 },
  })
  const { engine: another } = engines.start({ redisUrl, postgres })
  const credit = (of: Engine, key: string) =>
    of.submit(place, command({ kind: 'credit', key, amount: 10 }), { memory: false })
  const first = await credit(engine, 'first')
  const late = credit(engine, 'late')
  await sequencer.decided

  await redis.del(place.walletKey)
  for (let n = 0; n < 5; n += 1) await credit(another, `another ${n}`)
  // By now this one knows, too.
  const next = await credit(engine, 'next')
  expect(next.entry?.epoch).toBeGreaterThan(first.entry?.epoch as number)
  sequencer.arrive()

  const { entry } = await late
  const [written] = await journal.find([{ ref: place.ref, key: 'late' }])
  expect(entry).toMatchObject({ seq: written?.seq, hash: written?.hash })
  await engines.close()
})
