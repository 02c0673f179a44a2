import { expect, it } from 'vitest'
import { command } from '../../src/machine/index.js'
import { Keys } from '../../src/redis/index.js'
import { Sequencer } from '../../src/sequencer/index.js'
import { Engines, openWallet, ownServers } from './support/engines.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 6), shards: 1 })
const { redisUrl, redis, postgres, journal } = await ownServers()

const LOADS_MAX = 3
const WALLETS = 12

/** Takes its time to install anything. */
class Installing extends Sequencer {
  underWay = 0
  most = 0

  override async install(...asked: Parameters<Sequencer['install']>): ReturnType<Sequencer['install']> {
    this.underWay += 1
    this.most = Math.max(this.most, this.underWay)
    await new Promise((resolve) => setTimeout(resolve, 50))
    const reply = await super.install(...asked)
    this.underWay -= 1
    return reply
  }
}

it('loads so many wallets at once after Redis has forgotten all of them, and no more', async () => {
  const engines = new Engines(keys)
  const { engine, sequencer } = engines.start({
    redisUrl,
    postgres,
    Sequencer: Installing,
    options: { loadsMax: LOADS_MAX, timeoutMs: 20_000 },
  })
  const places = Array.from({ length: WALLETS }, (_, n) => keys.of(`w${n}`))
  for (const [n, place] of places.entries()) await openWallet(journal, place, `w${n}`)
  const creditAll = (key: string) =>
    Promise.all(
      places.map((place) => engine.submit(place, command({ kind: 'credit', key, amount: 1 }), { memory: false })),
    )
  await creditAll('before')
  sequencer.most = 0
  await redis.flushdb()
  for (const { entry } of await creditAll('after')) expect(entry).toMatchObject({ seq: 2, available: 2 })
  expect(sequencer.most).toBe(LOADS_MAX)
  await engines.close()
})
