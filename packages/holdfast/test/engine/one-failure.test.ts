import { Redis } from 'ioredis'
import { afterEach, expect, it } from 'vitest'
import { PostgresJournal } from '../../src/journal/index.js'
import { command } from '../../src/machine/index.js'
import { PostgresError } from '../../src/postgres/index.js'
import { Keys } from '../../src/redis/index.js'
import { NO_REDIS, until } from '../api/support/paths.js'
import { Engines, openWallet, ownServers } from './support/engines.js'

/** What goes wrong once, or for one wallet, does not take Postgres away from the others. */
const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 7), shards: 1 })
const engines = new Engines(keys)
const { postgres, redisUrl } = await ownServers()
afterEach(() => engines.close())

/** In the state of a wallet: see `CORE` in lua/wallet/state.lua. */
const HEAD_AT = 3 + 14 * 8 + 32

class Stumbling extends PostgresJournal {
  lose = 0
  unreadable = ''
  met = 0

  override async append(...asked: Parameters<PostgresJournal['append']>): ReturnType<PostgresJournal['append']> {
    if (this.lose-- > 0) throw new PostgresError('unknown', 'one connection was lost')
    return super.append(...asked)
  }

  override async takeOver(...asked: Parameters<PostgresJournal['takeOver']>): ReturnType<PostgresJournal['takeOver']> {
    if (asked[0] !== this.unreadable) return super.takeOver(...asked)
    this.met += 1
    throw new Error('its stock can not be read')
  }
}

const credit = (key: string) => command({ kind: 'credit', key, amount: 1 })

async function start(redisUrl: string, id: string) {
  const journal = new Stumbling(postgres)
  const place = keys.of(id)
  await openWallet(journal, place, id)
  const away: string[] = []
  const { engine } = engines.start({
    redisUrl,
    postgres,
    journal,
    telemetry: { log: (_level, event) => void (event === 'postgres_away' && away.push(event)) },
    options: { sweepEveryMs: 600_000, timeoutMs: 20_000 },
  })
  const pay = (key: string) => engine.submit(place, credit(key), { memory: false })
  await pay('in')
  return { engine, journal, pay, away }
}

it.each([
  ['Redis', redisUrl],
  ['Postgres', NO_REDIS],
])('a connection that is lost in an append, where %s decides', async (name, redisUrl) => {
  const { journal, pay, away } = await start(redisUrl, `lost ${name}`)
  journal.lose = 1
  let answered = false
  const first = pay('lost').then(() => {
    answered = true
  })
  for (let n = 0; !answered || n < 10; n += 1) await pay(`meanwhile ${n}`)
  await first
  expect(away).toEqual([])
})

it('a wallet that can not be read, on the Postgres path', async () => {
  const { engine, journal, pay, away } = await start(NO_REDIS, 'sound')
  const bad = keys.of('bad')
  await openWallet(journal, bad, 'bad')
  journal.unreadable = bad.ref
  const given = engine.submit(bad, credit('never'), { memory: false, timeoutMs: 2_000 }).catch(() => {})
  await until(async () => {
    await pay(`beside ${journal.met} ${Math.random()}`)
    return journal.met >= 5
  })
  await given
  expect(away).toEqual([])
})

it('a state in Redis whose head is none: the refusals of all others are told meanwhile, and it alone is loaded anew', async () => {
  const redis = new Redis(redisUrl)
  const { engine, journal } = await start(redisUrl, 'beside it')
  const epochOf = async (id: string) => (await journal.read([keys.of(id).ref]))[0]?.epoch as number
  const spoilt = keys.of('spoilt')
  await openWallet(new PostgresJournal(postgres), spoilt, 'spoilt')
  const refused = async (id: string, key: string) => {
    const debit = command({ kind: 'debit', key, amount: 1_000 })
    const [told] = await Promise.allSettled([engine.submit(keys.of(id), debit, { memory: false, timeoutMs: 5_000 })])
    return told
  }
  const no = { status: 'rejected', reason: { code: 'insufficient_funds' } }
  expect(await refused('spoilt', 'first')).toMatchObject(no)
  const before = { spoilt: await epochOf('spoilt'), beside: await epochOf('beside it') }
  const core = await redis.hgetBuffer(spoilt.walletKey, 'core')
  core?.write('z', HEAD_AT, 'latin1')
  await redis.hset(spoilt.walletKey, 'core', core as Buffer)
  const told = await Promise.all(['spoilt', 'beside it'].map((id) => refused(id, 'second')))
  expect(told).toMatchObject([no, no])
  expect(await epochOf('spoilt')).toBeGreaterThan(before.spoilt)
  expect(await epochOf('beside it')).toBe(before.beside)
  redis.disconnect()
})
