import { expect, it } from 'vitest'
import type { Engine } from '../../src/engine/index.js'
import type { Witness } from '../../src/journal/index.js'
import { command } from '../../src/machine/index.js'
import { Keys } from '../../src/redis/index.js'
import { NO_REDIS } from '../api/support/paths.js'
import { Engines, openWallet, ownServers } from './support/engines.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 6), shards: 1 })
const engines = new Engines(keys)
const { redisUrl, postgres, journal } = await ownServers()

const credit = (engine: Engine, id: string, retry = false) =>
  engine.submit(keys.of(id), command({ kind: 'credit', key: 'in', amount: 1 }), { memory: false, retry })

/** What a server that is not known yet would be asked for. */
async function missedBy(engine: Engine): Promise<readonly Witness[]> {
  let asked: readonly Witness[] = []
  await engine.prove({
    prove: (witnesses) => {
      asked = witnesses
      return journal.prove(witnesses)
    },
    stop: (...stop) => journal.stop(...stop),
  })
  return asked
}

/** Postgres may be put back to before it: who told a caller of it must miss it, whoever had appended it. */
it.each([
  ['while Redis is away', NO_REDIS, false],
  ['because it was tried before', redisUrl, true],
])('misses what a caller was told of after a look into the journal: %s', async (how, url, retry) => {
  await openWallet(journal, keys.of(how), how)
  const { engine: first } = engines.start({ redisUrl: url, postgres })
  const { entry } = await credit(first, how)
  const { engine: second } = engines.start({ redisUrl: url, postgres })
  // By then it knows whether Redis is there, and each goes its own way.
  await openWallet(journal, keys.of(`${how}, another`), `${how}, another`)
  await credit(second, `${how}, another`)
  expect(await credit(second, how, retry)).toMatchObject({ replayed: true, durability: 'ledger' })
  expect(await missedBy(second)).toContainEqual(
    expect.objectContaining({ ref: keys.ref(how), seq: 1, hash: entry?.hash }),
  )
  await engines.close()
})
