import { afterEach, expect, it } from 'vitest'
import { PostgresJournal } from '../../src/journal/index.js'
import { command } from '../../src/machine/index.js'
import { Keys } from '../../src/redis/index.js'
import { until } from '../api/support/paths.js'
import { run } from '../journal/journals.js'
import { Engines, leaveBehind, openWallet, ownServers } from './support/engines.js'
import { GatedJournal } from './support/gate.js'

/** A Postgres that was put back to before a raise, with the timeline that it always had. No entry is lost by that, and so nobody misses any. */

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 6), shards: 1 })
const engines = new Engines(keys)
const { redisUrl, redis, postgres, journal } = await ownServers()

afterEach(() => engines.close())

const LEDGER = { memory: false }
const credit = (key: string) => command({ kind: 'credit', key, amount: 100 })
const epochOf = async (ref: string) => (await journal.read([ref]))[0]?.epoch as number

it('gives no epoch a second time: what was decided under the lost one is not accepted beside the next', async () => {
  const place = keys.of('put back')
  await openWallet(journal, place, 'put back')
  const gated = new GatedJournal(postgres)
  const { engine: first } = engines.start({ redisUrl, postgres, journal: gated })
  await first.submit(place, credit('before'), LEDGER)
  const before = await epochOf(place.ref)
  await redis.del(place.walletKey)
  await first.touch(place)
  const lost = await epochOf(place.ref)

  gated.appends.shut()
  const slow = first.submit(place, credit('slow'), LEDGER)
  await until(() => first.load.backlog === 1)
  await run(postgres, `UPDATE wallets SET epoch = ${before} WHERE ref = '${place.ref}'`)
  await redis.del(place.walletKey)

  // Another process has it loaded, by the same server, decides, and dies before it appends that.
  const { engine: second, sequencer } = engines.start({ redisUrl, postgres })
  await second.touch(place)
  expect(await epochOf(place.ref)).not.toBe(lost)
  await leaveBehind(sequencer, place, [{ command: credit('left behind'), ...LEDGER }])

  gated.appends.open()
  const heard = [await slow]
  for (const key of ['left behind', 'next']) heard.push(await first.submit(place, credit(key), LEDGER))
  const entries = await journal.entries(place.ref, 1, 10)
  expect(entries.map(({ key }) => key).sort()).toEqual(['before', 'left behind', 'next', 'slow'])
  for (const { entry } of heard) expect(entries.find(({ key }) => key === entry?.key)?.hash).toBe(entry?.hash)
  expect(await journal.read([place.ref])).toMatchObject([{ seq: 4, available: 400 }])
})

it('goes on where an epoch comes that is lower than one that was heard of', async () => {
  const place = keys.of('lower')
  await openWallet(journal, place, 'lower')
  const raising = (step: number) => {
    const pace = { pendingMax: 20 }
    return engines.start({ redisUrl, postgres, journal: new PostgresJournal(postgres, () => step), pace }).engine
  }
  const [loads, hears] = [raising(1_000), raising(7)]
  await loads.submit(place, credit('before'), LEDGER)
  const before = await epochOf(place.ref)
  await redis.del(place.walletKey)
  await loads.touch(place)
  // It has loaded nothing itself.
  await hears.touch(place)
  await run(postgres, `UPDATE wallets SET epoch = ${before} WHERE ref = '${place.ref}'`)
  await redis.del(place.walletKey)
  await raising(5).touch(place)
  expect(await epochOf(place.ref)).toBe(before + 5)
  for (let n = 0; n < 60; n += 1) await hears.submit(place, credit(`more-${n}`), LEDGER)
  expect(await journal.read([place.ref])).toMatchObject([{ seq: 61, available: 6_100 }])
})
