import pg from 'pg'
import { afterAll, afterEach, expect, it } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { PostgresJournal } from '../../src/journal/index.js'
import { type Command, command } from '../../src/machine/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { Keys } from '../../src/redis/index.js'
import { NO_REDIS } from '../api/support/paths.js'
import { Engines, openWallet } from './support/engines.js'

/** Redis is away, and some wallets can't be taken over now. Whoever waited for one of them would wait to the end of the test. */

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 7), shards: 1 })
const engines = new Engines(keys)
const url = await freshDatabase()
const postgres = new Postgres(url, { lockTimeoutMs: 300_000, statementTimeoutMs: 300_000 })
const journal = new PostgresJournal(postgres)
const keeper = new pg.Client(`${url}?options=-c%20search_path%3Dholdfast`)
await keeper.connect()

afterEach(() => engines.close())
afterAll(async () => {
  await keeper.end()
  await postgres.close()
})

const SLOW = 4_711
/** Reads open holds as before, once nobody has that lock. */
const WAIT_FIRST = `
  ALTER FUNCTION open_holds RENAME TO open_holds_at_once;
  CREATE FUNCTION open_holds(of_wallet uuid, from_seq bigint)
  RETURNS TABLE (hold text, amount bigint, captured bigint, left_over bigint, expires_at bigint, refunded bigint)
  LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  BEGIN
    WHILE NOT pg_try_advisory_xact_lock_shared(${SLOW}) LOOP PERFORM pg_sleep(0.01); END LOOP;
    RETURN QUERY SELECT * FROM open_holds_at_once(of_wallet, from_seq);
  END $$`

const credit = (key: string, amount = 1) => command({ kind: 'credit', key, amount })
const start = () =>
  engines.start({
    redisUrl: NO_REDIS,
    postgres,
    journal,
    options: { sweepEveryMs: 600_000, timeoutMs: 300_000 },
  }).engine

async function opened(id: string, count: number) {
  const places = Array.from({ length: count }, (_, n) => keys.of(`${id} ${n}`))
  for (const [n, place] of places.entries()) await openWallet(journal, place, `${id} ${n}`)
  return places
}

type Place = Awaited<ReturnType<typeof opened>>[number]

/** Meanwhile one wallet is used again and again, and one is taken over each time. */
async function othersGoOn(engine: ReturnType<typeof start>, id: string, waiting: readonly Place[]) {
  const [free, ...fresh] = (await opened(`beside ${id}`, 21)) as [Place, ...Place[]]
  const pay = (place: Place, given: Command) => engine.submit(place, given, { memory: false })
  await pay(free, credit('in'))
  const answered: number[] = []
  const waits = waiting.map((place, n) => pay(place, credit('waits')).then(() => answered.push(n)))
  for (const [n, place] of fresh.entries()) {
    await pay(free, credit(`${n}`))
    await pay(place, credit('first'))
    expect(await journal.read([free.ref])).toMatchObject([{ seq: n + 2 }])
  }
  expect(answered).toEqual([])
  return { all: Promise.all(waits) }
}

it('rows that somebody keeps locked hold up nobody else, and are taken over once they are let go', async () => {
  const engine = start()
  const locked = await opened('locked', 24)
  await keeper.query('BEGIN')
  await keeper.query('SELECT FROM wallets WHERE ref = ANY ($1::uuid[]) FOR UPDATE', [locked.map(({ ref }) => ref)])
  const { all } = await othersGoOn(engine, 'locked', locked)
  await keeper.query('COMMIT')
  await all
  for (const row of await journal.read(locked.map(({ ref }) => ref)))
    expect(row).toMatchObject({ owner: 'postgres', seq: 1 })
}, 300_000)

it('open holds that take long to read hold up nobody else, nor does a row that is locked wait for them', async () => {
  const slow = await opened('slow', 8)
  const [locked] = (await opened('locked beside slow', 1)) as [Place]
  const before = start()
  for (const place of slow) {
    await before.submit(place, credit('in'), { memory: false })
    await before.submit(place, command({ kind: 'hold', key: 'h', amount: 1, ttlMs: 3_600_000 }), { memory: false })
  }
  await engines.close()
  await keeper.query(WAIT_FIRST)
  await keeper.query('SELECT pg_advisory_lock($1)', [SLOW])
  await keeper.query('BEGIN')
  await keeper.query('SELECT FROM wallets WHERE ref = $1 FOR UPDATE', [locked.ref])
  const engine = start()
  const { all } = await othersGoOn(engine, 'slow', slow)
  const late = engine.submit(locked, credit('late'), { memory: false })
  await keeper.query('COMMIT')
  expect(await late).toMatchObject({ entry: { seq: 1 } })
  await keeper.query('SELECT pg_advisory_unlock($1)', [SLOW])
  await all
  for (const row of await journal.read(slow.map(({ ref }) => ref))) expect(row).toMatchObject({ seq: 3, reserved: 1 })
}, 300_000)
