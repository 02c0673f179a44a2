import pg from 'pg'
import { afterAll, afterEach, expect, it, vi } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import type { EngineOptions } from '../../src/engine/index.js'
import { PostgresJournal } from '../../src/journal/index.js'
import { command } from '../../src/machine/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { Keys } from '../../src/redis/index.js'
import { until } from '../api/support/paths.js'
import { Engines, openWallet } from './support/engines.js'

/** Somebody keeps the row of one wallet locked: a process that was stopped in the middle of a statement, or a person with a shell. */

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 8), shards: 1 })
const engines = new Engines(keys)
const redisUrl = await freshRedis()
const url = await freshDatabase()
const postgres = new Postgres(url, { lockTimeoutMs: 100 })
const journal = new PostgresJournal(postgres)
const keeper = new pg.Client(url)
await keeper.connect()

afterEach(async () => {
  vi.restoreAllMocks()
  await engines.close()
})
afterAll(async () => {
  await keeper.end()
  await postgres.close()
})

const credit = (key: string) => command({ kind: 'credit', key, amount: 1 })

async function start(id: string, given: Partial<EngineOptions> = {}) {
  const [place, other] = [keys.of(id), keys.of(`beside ${id}`)]
  await openWallet(journal, place, id)
  await openWallet(journal, other, `beside ${id}`)
  let gaps = 0
  const count = (_: string, labels?: Record<string, string>) => {
    if (labels?.verdict === 'gap') gaps += 1
  }
  const options = { sweepEveryMs: 600_000, timeoutMs: 20_000, ...given }
  const { engine } = engines.start({ redisUrl, postgres, journal, telemetry: { count }, options })
  for (const one of [place, other]) await engine.submit(one, credit('in'), { memory: true })
  await until(() => engine.load.backlog === 0)
  const lock = async () => {
    await keeper.query('BEGIN')
    await keeper.query('SELECT FROM holdfast.wallets WHERE ref = $1 FOR UPDATE', [place.ref])
  }
  const row = async () => (await journal.read([place.ref]))[0]
  return { engine, place, other, lock, row, gaps: () => gaps }
}

it('is waited for once; others go on, and the wallet as soon as it is let go, as it was', async () => {
  const { engine, place, other, lock, row, gaps } = await start('locked')
  const before = await row()
  const query = vi.spyOn(postgres, 'query')
  const append = vi.spyOn(journal, 'append')
  await lock()
  const waits = [engine.submit(place, credit('ledger'), { memory: false })]
  for (let n = 0; gaps() < 100; n += 1) {
    await engine.submit(place, credit(`memory ${n}`), { memory: true })
    if (n % 4 === 0) waits.push(engine.submit(place, credit(`ledger ${n}`), { memory: false }))
    expect(await engine.submit(other, credit(`${n}`), { memory: false })).toMatchObject({ durability: 'ledger' })
  }
  expect(await row()).toEqual(before)
  const { backlog } = engine.load
  await keeper.query('COMMIT')
  await Promise.all(waits)
  await until(() => engine.load.backlog === 0)
  expect(await row()).toMatchObject({ epoch: before?.epoch, seq: 1 + backlog })
  const calls = await Promise.allSettled(query.mock.results.map(({ value }) => value))
  const inVain = calls.filter((call) => call.status === 'rejected' && call.reason.sqlstate === '55P03')
  expect(inVain).toHaveLength(1)
  // What waits is not sent twice at once.
  for (const [filed] of append.mock.calls) expect(filed.length).toBeLessThanOrEqual(backlog + 1)
})

it('is waited for when all is to be committed that was acknowledged from memory', async () => {
  const { engine, place, lock, row, gaps } = await start('closing')
  await lock()
  expect(await engine.submit(place, credit('a'), { memory: true })).toMatchObject({ durability: 'memory' })
  let closed = false
  const closing = engine.close().then(() => {
    closed = true
  })
  await until(() => gaps() >= 3)
  expect(closed).toBe(false)
  await keeper.query('COMMIT')
  await closing
  expect(await row()).toMatchObject({ seq: 2 })
})

it('is not waited for any longer once the engine is closed', async () => {
  const { engine, place, lock } = await start('left', { timeoutMs: 300 })
  const append = vi.spyOn(journal, 'append')
  await lock()
  await engine.submit(place, credit('a'), { memory: true })
  await engine.close()
  const { length } = append.mock.calls
  // Tried every 50 ms on average while it was open.
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  await keeper.query('COMMIT')
  expect(append.mock.calls.length - length).toBeLessThanOrEqual(1)
})
